/*
 * Views of the tests are kept until all have been read, as the rule compares them with one
 * another.
 */
#include "agent/commands/surroundings.h"

#include <stdlib.h>

#include "agent/analysis/environment.h"
#include "agent/base/when.h"
#include "agent/report/table.h"
#include "notifiers/text.h"

void surroundings_add(struct surroundings *surroundings, const struct analysis *analysis)
{
	if (!analysis->test->environment)
		return;
	surroundings->views = memory_resize(
		surroundings->views, surroundings->count + 1, sizeof *surroundings->views);
	surroundings->views[surroundings->count++] = environment_look(analysis);
}

static size_t find_events(const struct surroundings *surroundings, int64_t since,
	struct arena *arena, struct environment_event **events)
{
	const struct environment_view **views =
		arena_array(arena, surroundings->count, sizeof *views);

	for (size_t i = 0; i < surroundings->count; i++)
		views[i] = surroundings->views[i];
	return environment_events(views, surroundings->count, since, arena, events);
}

void surroundings_print(const struct surroundings *surroundings, int64_t since, FILE *out)
{
	struct arena *arena = arena_new();
	struct environment_event *events;
	size_t count = find_events(surroundings, since, arena, &events);
	struct buf line = {0};
	char time[WHEN_TEXT];

	for (size_t i = 0; i < count; i++) {
		text_environment(&line, &events[i], &text_plain);
		buf_printf(&line, " since %s, ", when_format(events[i].time, time));
		text_elsewhere(&line, &events[i]);
		buf_char(&line, '\n');
	}
	text_flush(&line, out);
	arena_free(arena);
}

void surroundings_free(struct surroundings *surroundings)
{
	for (size_t i = 0; i < surroundings->count; i++)
		environment_view_free(surroundings->views[i]);
	free(surroundings->views);
	*surroundings = (struct surroundings){0};
}

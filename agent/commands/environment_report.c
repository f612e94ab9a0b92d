/*
 * Views of the tests are kept until all have been read, as the rule compares them with one
 * another.
 */
#include "agent/commands/environment_report.h"

#include <stdlib.h>

#include "agent/analysis/environment.h"
#include "agent/base/when.h"
#include "agent/report/table.h"
#include "notifiers/text.h"

void environment_report_add(struct environment_report *report, const struct analysis *analysis)
{
	if (!analysis->test->environment)
		return;
	report->views = memory_resize(report->views, report->count + 1, sizeof *report->views);
	report->views[report->count++] = environment_look(analysis);
}

void environment_report_print(const struct environment_report *report, int64_t since, FILE *out)
{
	struct arena *arena = arena_new();
	const struct environment_view **views = arena_array(arena, report->count, sizeof *views);
	struct environment_event *events;
	size_t count;
	struct buf line = {0};
	char time[WHEN_TEXT];

	for (size_t i = 0; i < report->count; i++)
		views[i] = report->views[i];
	count = environment_events(views, report->count, since, arena, &events);
	for (size_t i = 0; i < count; i++) {
		text_environment(&line, &events[i], &text_plain);
		buf_printf(&line, " since %s, ", when_format(events[i].time, time));
		text_elsewhere(&line, &events[i]);
		buf_char(&line, '\n');
	}
	text_flush(&line, out);
	arena_free(arena);
}

void environment_report_free(struct environment_report *report)
{
	for (size_t i = 0; i < report->count; i++)
		environment_view_free(report->views[i]);
	free(report->views);
	*report = (struct environment_report){0};
}

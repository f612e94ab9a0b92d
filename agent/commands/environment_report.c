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
	if (!report->arena)
		report->arena = arena_new();
	report->views =
		arena_grow(report->arena, report->views, report->count, sizeof *report->views);
	report->views[report->count++] = environment_look(report->arena, analysis);
}

void environment_report_print(const struct environment_report *report, int64_t since, FILE *out)
{
	struct arena *arena = arena_new();
	struct environment_event *events;
	size_t count = environment_events(report->views, report->count, since, arena, &events);
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

void environment_report_free(struct environment_report *report)
{
	if (report->arena)
		arena_free(report->arena);
	*report = (struct environment_report){0};
}

/*
 * Common code of all forms, and the two short forms: regressions only, and CSV with one line for
 * each change point.
 */
#include "agent/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/timeline.h"
#include "agent/base/when.h"
#include "agent/model/json_put.h"
#include "agent/report/document.h"
#include "agent/report/table.h"

const char *const report_output_names[] = {"text", "json", "csv", "regressions_only", "log", NULL};

/* Default attribute columns of a CSV, as in Hunter; --attrs replaces them. */
static const char *const csv_attributes[] = {"commit", "version", "branch", "run"};

bool change_is_regression(const struct series *series, const struct change *change)
{
	return change_verdict(change, series_direction(series)) > 0;
}

const char *change_accepted(const struct findings *findings, const struct change *change)
{
	return findings->accepted ? findings->accepted[change - findings->changes] : NULL;
}

static size_t count_regressions(const struct analysis *analysis, bool accepted)
{
	size_t count = 0;
	for (size_t s = 0; s < analysis->data->count; s++) {
		const struct findings *found = &analysis->findings[s];
		for (size_t i = 0; i < found->count; i++)
			count += change_is_regression(found->series, &found->changes[i]) &&
				 accepted == (change_accepted(found, &found->changes[i]) != NULL);
	}
	return count;
}

bool analysis_has_regression(const struct analysis *analysis)
{
	return count_regressions(analysis, false) > 0;
}

/* So rounded, as glibc writes 999.7 by "%#.3g" as "1.e+03". */
static double three_digits(double value)
{
	char text[32];

	snprintf(text, sizeof text, "%.2e", value);
	return strtod(text, NULL);
}

static void print_move(
	const struct report *report, const struct findings *found, const struct change *change)
{
	const struct series *series = found->series;
	const char *accepted = change_accepted(found, change);
	const char *unit = series->metric ? series->metric->unit : NULL;
	fputs("    ", report->out);
	text_print_padded(series->name, 16, report->out);
	if (report->otava) {
		fprintf(report->out, ":\t%#8.3g\t--> %#8.3g\t(%+6.1f%%)\n",
			three_digits(change->mean_before), three_digits(change->mean_after),
			change_percent(change));
		return;
	}
	fputs(":\t", report->out);
	text_print_level(change->level_before, unit, report->out);
	fputs("\t--> ", report->out);
	text_print_level(change->level_after, unit, report->out);
	putc('\t', report->out);
	text_print_size(change->size, change->size_low, change->size_high, report->out);
	if (accepted) {
		fputs("\taccepted: ", report->out);
		text_print(accepted, report->out);
	}
	putc('\n', report->out);
}

static void report_regressions(
	const struct report *report, const struct analysis *analysis, struct arena *arena)
{
	struct timeline timeline = timeline_of(arena, analysis->data);
	struct hits hits = hits_of(analysis, &timeline, arena);
	const struct moment *last = NULL;

	for (size_t i = 0; i < hits.count; i++) {
		const struct hit *hit = &hits.items[i];
		const struct findings *found = &analysis->findings[hit->series];
		char time[WHEN_TEXT];

		/* Otava judges by the sign of the percentage, and always has a direction. */
		if (report->otava
				? series_direction(found->series) * change_percent(hit->change) >= 0
				: !change_is_regression(found->series, hit->change))
			continue;
		if (!last)
			text_line(report->out, "Regressions in %s:", analysis->test->name);
		if (!last || moment_compare(last, &hit->moment) != 0)
			fprintf(report->out, "%s\n", when_format(hit->moment.time, time));
		last = &hit->moment;
		print_move(report, found, hit->change);
	}
	if (!last)
		text_line(report->out, "No regressions found in %s.", analysis->test->name);
}

/* The columns of the attributes are between those that all have; *names: theirs. */
static const char *const *csv_columns(
	struct arena *arena, const struct report *report, struct strings *names)
{
	static const char *const before[] = {"metric", "time", "index", "forward_change_percent",
		"magnitude", "mean_before", "mean_after", "stddev_before", "stddev_after", "pvalue",
		"regression"};
	static const char *const after[] = {"commit_before", "labels", "kind", "level_before",
		"level_after", "size", "size_low", "size_high", "place_from", "place_to",
		DOCUMENT_SUSPECTS, "accepted", NULL};
	enum { BEFORE = sizeof before / sizeof *before, AFTER = sizeof after / sizeof *after };
	const char **columns;

	*names = report->attributes;
	if (names->count == 0)
		*names = (struct strings){
			csv_attributes, sizeof csv_attributes / sizeof *csv_attributes};
	columns = arena_array(arena, BEFORE + names->count + AFTER, sizeof *columns);
	memcpy(columns, before, sizeof before);
	for (size_t i = 0; i < names->count; i++)
		columns[BEFORE + i] = arena_printf(arena, "=attributes.%s", names->items[i]);
	memcpy(columns + BEFORE + names->count, after, sizeof after);
	return columns;
}

static void report_csv(
	const struct report *report, const struct analysis *analysis, struct arena *arena)
{
	struct strings names;
	const char *const *columns = csv_columns(arena, report, &names);
	struct timeline timeline = timeline_of(arena, analysis->data);
	struct hits hits = hits_of(analysis, &timeline, arena);

	for (size_t i = 0; i < hits.count; i++) {
		struct buf row = {0};

		report_put_change(&row, &analysis->findings[hits.items[i].series],
			hits.items[i].change, &names, arena);
		document_csv_row(analysis->test->name, row.data, columns, report->out);
		buf_free(&row);
	}
}

void report_begin(struct report *report)
{
	struct arena *arena = arena_new();
	struct strings names;

	report->tests = report->accepted = 0;
	report->failed = (struct buf){0};
	if (report->output == REPORT_CSV)
		document_csv_header("test", csv_columns(arena, report, &names), report->out);
	if (report->output == REPORT_JSON && !report->otava)
		fputs("{\"tests\": [", report->out);
	arena_free(arena);
}

void report_test(struct report *report, const struct analysis *analysis, struct arena *arena)
{
	switch ((enum report_output)report->output) {
	case REPORT_TEXT:
	case REPORT_LOG: report_table(report, analysis, arena); break;
	case REPORT_CSV: report_csv(report, analysis, arena); break;
	case REPORT_REGRESSIONS: report_regressions(report, analysis, arena); break;
	case REPORT_JSON:
		(report->otava ? report_json_otava : report_json)(report, analysis, arena);
		break;
	}
	report->tests++;
	report->accepted += count_regressions(analysis, true);
}

void report_put_failure(struct buf *list, const char *test, const char *why)
{
	json_open(list, "name", test);
	json_put_text(list, "error", why);
	buf_char(list, '}');
}

void report_failure(struct report *report, const char *test, const char *why)
{
	report_put_failure(&report->failed, test, why);
}

void report_end(struct report *report)
{
	if (report->output == REPORT_JSON && !report->otava)
		fprintf(report->out, "%s], \"accepted\": %zu, \"failed\": [%s]}\n",
			report->tests ? "\n" : "", report->accepted,
			report->failed.length ? report->failed.data : "");
	buf_free(&report->failed);
}

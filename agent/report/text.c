/*
 * The table of a test: time, attributes, metrics; before each row with a change, a line of dots,
 * the change in percent, and dots again.
 *
 * The layout is that of Otava's table; ours differs in a few points, all decided by report->otava:
 * it has the test's name above it, leaves out attributes that no point has, makes room for long
 * percentages, and can show p-values and colours.
 */
#include "agent/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/timeline.h"
#include "agent/base/number.h"
#include "agent/base/when.h"
#include "agent/report/table.h"

#define FAR INT64_C(259200000) /* ms */

#define RED "\033[31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"

struct view {
	const struct report *report;
	const struct analysis *analysis;
	struct table_note *percents, *pvalues; /* by column, for the lines between rows */
	struct cursor *cursor;                 /* on the current row of the table */
	struct strings attributes;
	const bool
		*rounded; /* by attribute: numbers that are not all integers, which Otava rounds */
	const size_t *axes; /* by series: the number of its axis */
};

/* The shortest text with up to six digits; infinities as in Python. */
static const char *number_text(double value, char scratch[TABLE_SCRATCH])
{
	if (isnan(value))
		return NULL;
	snprintf(scratch, TABLE_SCRATCH, "%g", value);
	return scratch;
}

static const char *time_text(int64_t ms, bool otava, char scratch[TABLE_SCRATCH])
{
	char text[WHEN_TEXT];
	if (otava) /* Otava prints no milliseconds */
		ms -= ((ms % 1000) + 1000) % 1000;
	snprintf(scratch, TABLE_SCRATCH, "%s", when_format(ms, text));
	return scratch;
}

static bool next_row(const void *context, bool first)
{
	const struct view *view = context;
	if (first)
		cursor_rewind(view->cursor);
	return cursor_next(view->cursor);
}

static const char *cell(const void *context, size_t column, char scratch[TABLE_SCRATCH])
{
	const struct view *view = context;
	if (column == 0)
		return time_text(view->cursor->moment.time, view->report->otava, scratch);
	if (--column < view->attributes.count) {
		const char *text = cursor_attribute(view->cursor, view->attributes.items[column]);
		return text && view->rounded[column] ? number_text(strtod(text, NULL), scratch)
		       : view->report->otava         ? text
						     : table_commit(text, scratch);
	}
	column -= view->attributes.count;
	const struct series *series = &view->analysis->data->series[column];
	return number_text(cursor_value(view->cursor, series, view->axes[column]), scratch);
}

/* Otava treats attributes as numbers if all of them look like numbers; an empty one does not. */
static bool is_numeric(struct cursor *cursor, const char *attribute, bool *whole)
{
	bool some = false;
	*whole = true;
	cursor_rewind(cursor);
	for (; cursor_next(cursor); some = true) {
		const char *text = cursor_attribute(cursor, attribute);
		if (!text || !text_is_number(text))
			return false;
		*whole = *whole && text_is_integer(text);
	}
	return some;
}

/* The part of a name of which a prefix may be cut: up to the labels, which may contain points. */
static size_t stem_length(const char *name)
{
	return strcspn(name, "{");
}

/* The length of the common prefix of all names in whole components (ended by points); the last
 * component always stays. */
static size_t common_prefix(const struct dataset *data)
{
	const char *first = data->count ? data->series[0].name : "";
	size_t prefix = 0, stem = stem_length(first);
	for (;;) {
		const char *point = memchr(first + prefix, '.', stem - prefix);
		if (!point)
			return prefix;
		size_t length = (size_t)(point - first) + 1;
		for (size_t s = 0; s < data->count; s++) {
			const char *name = data->series[s].name;
			if (stem_length(name) < length || memcmp(name, first, length) != 0)
				return prefix;
		}
		prefix = length;
	}
}

static struct table_column *columns_of(const struct view *view, bool *rounded, struct arena *arena)
{
	const struct dataset *data = view->analysis->data;
	struct table_column *columns =
		arena_array(arena, 1 + view->attributes.count + data->count, sizeof *columns);
	size_t count = 0, prefix = common_prefix(data);
	columns[count++] = (struct table_column){.header = "time"};
	for (size_t a = 0; a < view->attributes.count; a++) {
		const char *name = view->attributes.items[a];
		bool whole = true;
		bool number = view->report->otava && is_numeric(view->cursor, name, &whole);
		rounded[a] = number && !whole;
		columns[count++] = (struct table_column){.header = name, .number = number};
	}
	for (size_t s = 0; s < data->count; s++)
		columns[count++] = (struct table_column){
			.header = data->series[s].name + prefix, .number = true};
	return columns;
}

static const char *color_of(
	const struct report *report, const struct series *series, const struct change *change)
{
	if (!report->color || report->otava)
		return NULL;
	if (series_direction(series) == 0)
		return YELLOW;
	return change_is_regression(series, change) ? RED : GREEN;
}

static const char *percent_text(
	const struct view *view, struct arena *arena, const struct change *change)
{
	double percent = view->report->otava ? change_percent(change) : change->size;
	if (isnan(percent) && !view->report->otava)
		return "new";
	return arena_printf(arena, "%+.1f%%", isnan(percent) ? (double)NAN : percent);
}

static const char *pvalue_text(struct arena *arena, const struct change *change)
{
	return arena_printf(arena, "p=%.2g", change->pvalue);
}

/* Makes the columns wide enough for the lines between rows. */
static void widen(
	const struct view *view, struct table *table, const struct hits *hits, struct arena *arena)
{
	for (size_t i = 0; i < hits->count; i++) {
		struct table_column *column =
			&table->columns[1 + view->attributes.count + hits->items[i].series];
		size_t width = text_width(percent_text(view, arena, hits->items[i].change));
		size_t second = view->report->verbose
					? text_width(pvalue_text(arena, hits->items[i].change))
					: 0;
		width = width > second ? width : second;
		column->width = column->width > width ? column->width : width;
	}
}

/* The lines for changes on the row of the first of `count` hits. */
static void print_changes(const struct view *view, const struct table *table,
	const struct hit *hits, size_t count, struct arena *arena)
{
	FILE *out = view->report->out;
	struct table_note *percents = view->percents, *pvalues = view->pvalues;
	memset(percents, 0, table->column_count * sizeof *percents);
	memset(pvalues, 0, table->column_count * sizeof *pvalues);
	for (size_t i = 0; i < count; i++) {
		const struct series *series = view->analysis->findings[hits[i].series].series;
		size_t column = 1 + view->attributes.count + hits[i].series;
		percents[column] = (struct table_note){percent_text(view, arena, hits[i].change),
			color_of(view->report, series, hits[i].change)};
		pvalues[column].text = pvalue_text(arena, hits[i].change);
	}
	table_print_dots(table, percents, out);
	table_print_notes(table, percents, out);
	if (view->report->verbose && !view->report->otava)
		table_print_notes(table, pvalues, out);
	table_print_dots(table, percents, out);
}

static void print_body(const struct view *view, const struct table *table, const struct hits *hits,
	struct arena *arena)
{
	size_t next = 0;
	for (bool row = next_row(view, true); row; row = next_row(view, false)) {
		size_t end = next;
		while (end < hits->count &&
			moment_compare(&hits->items[end].moment, &view->cursor->moment) == 0)
			end++;
		if (end > next)
			print_changes(view, table, &hits->items[next], end - next, arena);
		next = end;
		table_print_row(table, view->report->out);
	}
}

/* "from 2026-03-01 to 2026-03-09", with minutes if these are near each other. */
static void print_span(const struct series *series, const struct change *change, FILE *out)
{
	const int64_t *times = series->axis->times;
	char from[WHEN_TEXT], to[WHEN_TEXT];
	int length = times[change->place_to] - times[change->place_from] > FAR ? 10 : 16;
	when_format(times[change->place_from], from);
	when_format(times[change->place_to], to);
	fprintf(out, "%.*s .. %.*s", length, from, length, to);
}

void report_print_trend(const struct series *series, const struct change *change, FILE *out)
{
	double points = (double)(change->place_to - change->place_from + 1);
	char from[NUMBER_TEXT], to[NUMBER_TEXT];

	number_display(change->level_before, from);
	number_display(change->level_after, to);
	fprintf(out, "trend from %s to %s over ", from, to);
	print_span(series, change, out);
	fprintf(out, ", %+.2g a point",
		(change->level_after - change->level_before) / (points > 0 ? points : 1));
}

/* Which cycles were removed before detection. */
static void print_cycles(const struct findings *found, FILE *out)
{
	static const char *const names[] = {NULL, "daily", "weekly", "daily and weekly"};
	if (!found->season.cycles)
		return;
	text_print(found->series->name, out);
	fprintf(out, ": %s cycle removed (%.0f%% of the variance)\n", names[found->season.cycles],
		100 * found->season.explained);
}

static size_t without_partner(const struct findings *found)
{
	size_t count = 0;
	for (size_t i = 0; i < found->series->axis->n; i++)
		count += !isnan(found->series->values[i]) && isnan(found->rest[i]);
	return count;
}

/* By which other series it was judged. */
static void print_control(const struct findings *found, FILE *out)
{
	const struct control *control = &found->control;
	if (!found->rule)
		return;
	text_print(found->series->name, out);
	if (control->mode == CONTROL_RATIO)
		fputs(": relative to ", out);
	else if (control->used)
		fputs(": at equal ", out);
	else
		fputs(": as it is, since it does not follow ", out);
	text_print(found->rule->name, out);
	if (control->mode == CONTROL_LOAD && control->used)
		fprintf(out, " (which explains %.0f%% of the variance)", 100 * control->explained);
	else if (control->mode == CONTROL_LOAD && control->joined < CONTROL_LEAST)
		fprintf(out, " (%zu points of both; %d are needed)", control->joined,
			CONTROL_LEAST);
	size_t alone = without_partner(found);
	if (alone > 0)
		fprintf(out, "; %zu points left out, at whose time that has none", alone);
	putc('\n', out);
}

/* How the other series changed where this one did. */
static void print_other(
	const struct findings *found, const struct change *change, struct arena *arena, FILE *out)
{
	struct announcement item = {0};
	char time[WHEN_TEXT];
	findings_basis(arena, found, change, &item);
	if (!item.other_changed)
		return;
	text_print(found->series->name, out);
	when_format(found->series->axis->times[change->index], time);
	fprintf(out, ": %.16s: ", time);
	text_print(item.other, out);
	fprintf(out, " %+.1f%% at the same time\n", item.other_size);
}

static void print_accepted(const struct findings *found, const struct change *change, FILE *out)
{
	const char *accepted = change_accepted(found, change);
	char time[WHEN_TEXT];
	if (!accepted)
		return;
	text_print(found->series->name, out);
	when_format(found->series->axis->times[change->index], time);
	fprintf(out, ": %.16s: accepted: ", time);
	text_print(accepted, out);
	putc('\n', out);
}

/* Remarks that do not fit into the table. */
static void print_remarks(const struct analysis *analysis, struct arena *arena, FILE *out)
{
	for (size_t s = 0; s < analysis->data->count; s++) {
		const struct findings *found = &analysis->findings[s];
		print_control(found, out);
		print_cycles(found, out);
		for (size_t i = 0; i < found->count; i++) {
			print_other(found, &found->changes[i], arena, out);
			print_accepted(found, &found->changes[i], out);
			if (found->changes[i].kind == CHANGE_TREND) {
				text_print(found->series->name, out);
				fputs(": ", out);
				report_print_trend(found->series, &found->changes[i], out);
				putc('\n', out);
			}
		}
	}
}

void report_table(const struct report *report, const struct analysis *analysis, struct arena *arena)
{
	struct timeline timeline = timeline_of(arena, analysis->data);
	struct cursor cursor = cursor_of(arena, &timeline);
	struct view view = {.report = report, .analysis = analysis, .cursor = &cursor};
	view.attributes = timeline_attributes(arena, &timeline, report->attributes, report->otava);
	bool *rounded = arena_array(arena, view.attributes.count, sizeof *rounded);
	size_t *axes = arena_array(arena, analysis->data->count, sizeof *axes);
	for (size_t s = 0; s < analysis->data->count; s++)
		axes[s] = timeline_axis(&timeline, &analysis->data->series[s]);
	view.rounded = rounded;
	view.axes = axes;

	if (!report->otava) {
		fputs(report->tests ? "\n" : "", report->out);
		text_print(analysis->test->name, report->out);
		fputs(":\n", report->out);
	}
	if (!report->otava && !next_row(&view, true)) {
		fputs("no data in the selected range\n", report->out);
		return;
	}
	struct table table = {.columns = columns_of(&view, rounded, arena),
		.column_count = 1 + view.attributes.count + analysis->data->count,
		.next = next_row,
		.cell = cell,
		.context = &view};
	view.percents = arena_array(arena, table.column_count, sizeof *view.percents);
	view.pvalues = arena_array(arena, table.column_count, sizeof *view.pvalues);
	struct hits hits = hits_of(analysis, &timeline, arena);
	if (!report->otava)
		widen(&view, &table, &hits, arena);
	table_measure(&table);
	table_print_header(&table, report->out);
	print_body(&view, &table, &hits, arena);
	if (!report->otava)
		print_remarks(analysis, arena, report->out);
}

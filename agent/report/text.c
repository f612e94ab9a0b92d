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
	struct cursor *cursor; /* on a row */
	struct strings attributes;
	bool *rounded; /* by attribute: numbers that are not all integers, which Otava rounds */
	size_t *axes;  /* by series: the number of its axis */
	struct table table;
	const char **cells; /* of the cursor's row, ... */
	char (*scratch)[WHEN_TEXT];
	struct table_note *notes; /* ... and above it */
};

/* The shortest text with up to six digits; infinities as in Python. */
static const char *number_text(double value, char scratch[TABLE_SCRATCH])
{
	if (isnan(value))
		return NULL;
	snprintf(scratch, TABLE_SCRATCH, "%g", value);
	return scratch;
}

/* The cells of the cursor's row. */
static const char *const *row_of(const struct view *view)
{
	const struct cursor *cursor = view->cursor;
	const struct dataset *data = view->analysis->data;
	bool otava = view->report->otava;
	int64_t ms = cursor->moment.time;
	size_t c = 1;

	if (otava) /* Otava prints no milliseconds */
		ms -= ((ms % 1000) + 1000) % 1000;
	view->cells[0] = when_format(ms, view->scratch[0]);
	for (size_t a = 0; a < view->attributes.count; a++, c++) {
		const char *text = cursor_attribute(cursor, view->attributes.items[a]);

		if (text && view->rounded[a])
			text = number_text(strtod(text, NULL), view->scratch[c]);
		else if (!otava)
			text = table_commit(text, view->scratch[c]);
		view->cells[c] = text;
	}
	for (size_t s = 0; s < data->count; s++, c++)
		view->cells[c] = number_text(
			cursor_value(cursor, &data->series[s], view->axes[s]), view->scratch[c]);
	return view->cells;
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

static void set_columns(struct view *view)
{
	const struct dataset *data = view->analysis->data;
	struct table_column *column = view->table.columns;
	size_t prefix = common_prefix(data);

	column++->header = "time";
	for (size_t a = 0; a < view->attributes.count; a++) {
		const char *name = view->attributes.items[a];
		bool whole = true;
		bool number = view->report->otava && is_numeric(view->cursor, name, &whole);

		view->rounded[a] = number && !whole;
		*column++ = (struct table_column){.header = name, .number = number};
	}
	for (size_t s = 0; s < data->count; s++)
		*column++ = (struct table_column){
			.header = data->series[s].name + prefix, .number = true};
}

/* The note of a change, in the column of its series. */
static struct table_note *set_note(
	const struct view *view, const struct hit *hit, struct arena *arena)
{
	const struct series *series = view->analysis->findings[hit->series].series;
	struct table_note *note = &view->notes[1 + view->attributes.count + hit->series];
	const struct report *report = view->report;
	double percent = report->otava ? change_percent(hit->change) : hit->change->size;

	if (isnan(percent))
		note->text = report->otava ? "+nan%" : "new";
	else
		note->text = arena_printf(arena, "%+.1f%%", percent);
	if (report->verbose && !report->otava)
		note->second = arena_printf(arena, "p=%.2g", hit->change->pvalue);
	if (report->color && !report->otava && series_direction(series) == 0)
		note->color = YELLOW;
	else if (report->color && !report->otava)
		note->color = change_is_regression(series, hit->change) ? RED : GREEN;
	return note;
}

/* Makes the columns wide enough for the notes between rows. */
static void widen(const struct view *view, const struct hits *hits, struct arena *arena)
{
	for (size_t i = 0; i < hits->count; i++) {
		const struct table_note *note = set_note(view, &hits->items[i], arena);
		struct table_column *column = &view->table.columns[note - view->notes];
		size_t width = text_width(note->text);
		size_t second = note->second ? text_width(note->second) : 0;

		width = width > second ? width : second;
		column->width = column->width > width ? column->width : width;
	}
}

static void print_body(const struct view *view, const struct hits *hits, struct arena *arena)
{
	FILE *out = view->report->out;
	size_t next = 0;

	cursor_rewind(view->cursor);
	while (cursor_next(view->cursor)) {
		size_t first = next;

		memset(view->notes, 0, view->table.column_count * sizeof *view->notes);
		for (; next < hits->count &&
			moment_compare(&hits->items[next].moment, &view->cursor->moment) == 0;
			next++)
			set_note(view, &hits->items[next], arena);
		if (next > first)
			table_print_notes(&view->table, view->notes, out);
		table_print_row(&view->table, row_of(view), out);
	}
}

void report_put_trend(struct buf *out, const struct series *series, const struct change *change)
{
	const int64_t *times = series->axis->times;
	int64_t first = times[change->place_from], last = times[change->place_to];
	int length = last - first > FAR ? 10 : 16; /* with minutes if these are near each other */
	double points = (double)(change->place_to - change->place_from + 1);
	char before[NUMBER_TEXT], after[NUMBER_TEXT], from[WHEN_TEXT], to[WHEN_TEXT];

	number_display(change->level_before, before);
	number_display(change->level_after, after);
	when_format(first, from);
	when_format(last, to);
	buf_printf(out, "trend from %s to %s over %.*s .. %.*s, %+.2g a point", before, after,
		length, from, length, to,
		(change->level_after - change->level_before) / (points > 0 ? points : 1));
}

/* By which other series it was judged. */
static void print_control(const struct findings *found, FILE *out)
{
	const struct control *control = &found->control;
	struct buf line = {0};
	size_t alone = 0;

	if (!found->rule)
		return;
	buf_printf(&line, "%s: %s%s", found->series->name,
		control->mode == CONTROL_RATIO ? "relative to "
		: control->used                ? "at equal "
					       : "as it is, since it does not follow ",
		found->rule->name);
	if (control->mode == CONTROL_LOAD && control->used)
		buf_printf(&line, " (which explains %.0f%% of the variance)",
			100 * control->explained);
	else if (control->mode == CONTROL_LOAD && control->joined < CONTROL_LEAST)
		buf_printf(&line, " (%zu points of both; %d are needed)", control->joined,
			CONTROL_LEAST);
	for (size_t i = 0; i < found->series->axis->n; i++)
		alone += !isnan(found->series->values[i]) && isnan(found->rest[i]);
	if (alone > 0)
		buf_printf(&line, "; %zu points left out, at whose time that has none", alone);
	text_line(out, "%s", line.data);
	buf_free(&line);
}

/* How the other series changed where this one did, why the change is accepted, and its trend. */
static void print_basis(
	const struct findings *found, const struct change *change, struct arena *arena, FILE *out)
{
	const char *name = found->series->name, *accepted = change_accepted(found, change);
	struct announcement item = {0};
	struct buf trend = {0};
	char time[WHEN_TEXT];

	findings_basis(arena, found, change, &item);
	when_format(found->series->axis->times[change->index], time);
	if (item.other_changed)
		text_line(out, "%s: %.16s: %s %+.1f%% at the same time", name, time, item.other,
			item.other_size);
	if (accepted)
		text_line(out, "%s: %.16s: accepted: %s", name, time, accepted);
	if (change->kind != CHANGE_TREND)
		return;
	report_put_trend(&trend, found->series, change);
	text_line(out, "%s: %s", name, trend.data);
	buf_free(&trend);
}

/* Remarks that do not fit into the table. */
static void print_remarks(const struct analysis *analysis, struct arena *arena, FILE *out)
{
	static const char *const cycles[] = {NULL, "daily", "weekly", "daily and weekly"};

	for (size_t s = 0; s < analysis->data->count; s++) {
		const struct findings *found = &analysis->findings[s];

		print_control(found, out);
		if (found->season.cycles)
			text_line(out, "%s: %s cycle removed (%.0f%% of the variance)",
				found->series->name, cycles[found->season.cycles],
				100 * found->season.explained);
		for (size_t i = 0; i < found->count; i++)
			print_basis(found, &found->changes[i], arena, out);
	}
}

void report_table(const struct report *report, const struct analysis *analysis, struct arena *arena)
{
	const struct dataset *data = analysis->data;
	struct timeline timeline = timeline_of(arena, data);
	struct cursor cursor = cursor_of(arena, &timeline);
	struct hits hits = hits_of(analysis, &timeline, arena);
	struct view view = {.report = report, .analysis = analysis, .cursor = &cursor};
	size_t count;

	if (!report->otava) {
		fputs(report->tests ? "\n" : "", report->out);
		text_line(report->out, "%s:", analysis->test->name);
	}
	cursor_rewind(&cursor);
	if (!report->otava && !cursor_next(&cursor)) {
		fputs("no data in the selected range\n", report->out);
		return;
	}
	view.attributes = timeline_attributes(arena, &timeline, report->attributes, report->otava);
	view.rounded = arena_array(arena, view.attributes.count, sizeof *view.rounded);
	view.axes = arena_array(arena, data->count, sizeof *view.axes);
	for (size_t s = 0; s < data->count; s++)
		view.axes[s] = timeline_axis(&timeline, &data->series[s]);
	count = view.table.column_count = 1 + view.attributes.count + data->count;
	view.table.columns = arena_array(arena, count, sizeof *view.table.columns);
	view.cells = arena_array(arena, count, sizeof *view.cells);
	view.scratch = arena_array(arena, count, sizeof *view.scratch);
	view.notes = arena_array(arena, count, sizeof *view.notes);
	set_columns(&view);
	if (!report->otava)
		widen(&view, &hits, arena);
	cursor_rewind(&cursor);
	while (cursor_next(&cursor))
		table_measure(&view.table, row_of(&view));
	table_print_header(&view.table, report->out);
	print_body(&view, &hits, arena);
	if (!report->otava)
		print_remarks(analysis, arena, report->out);
}

/*
 * Reports of `analyze`: as a table, JSON, CSV, and regressions only.
 */
#include "agent/report/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/timeline.h"
#include "agent/base/number.h"
#include "agent/base/when.h"
#include "agent/model/json_put.h"
#include "agent/model/record_json.h"
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

/* ---- table ---- */

/*
 * The table of a test: time, attributes, metrics; before each row with a change, a line of dots,
 * the change in percent, and dots again.
 *
 * The layout is that of Otava's table; ours differs in a few points, all decided by report->otava:
 * it has the test's name above it, leaves out attributes that no point has, makes room for long
 * percentages, and can show p-values and colours.
 */

#define FAR INT64_C(259200000) /* ms */

#define RED "\033[31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"

struct sheet {
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
static const char *const *row_of(const struct sheet *sheet)
{
	const struct cursor *cursor = sheet->cursor;
	const struct dataset *data = sheet->analysis->data;
	bool otava = sheet->report->otava;
	int64_t ms = cursor->moment.time;
	size_t c = 1;

	if (otava) /* Otava prints no milliseconds */
		ms -= ((ms % 1000) + 1000) % 1000;
	sheet->cells[0] = when_format(ms, sheet->scratch[0]);
	for (size_t a = 0; a < sheet->attributes.count; a++, c++) {
		const char *text = cursor_attribute(cursor, sheet->attributes.items[a]);

		if (text && sheet->rounded[a])
			text = number_text(strtod(text, NULL), sheet->scratch[c]);
		else if (!otava)
			text = table_commit(text, sheet->scratch[c]);
		sheet->cells[c] = text;
	}
	for (size_t s = 0; s < data->count; s++, c++)
		sheet->cells[c] = number_text(
			cursor_value(cursor, &data->series[s], sheet->axes[s]), sheet->scratch[c]);
	return sheet->cells;
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

static void set_columns(struct sheet *sheet)
{
	const struct dataset *data = sheet->analysis->data;
	struct table_column *column = sheet->table.columns;
	size_t prefix = common_prefix(data);

	column++->header = "time";
	for (size_t a = 0; a < sheet->attributes.count; a++) {
		const char *name = sheet->attributes.items[a];
		bool whole = true;
		bool number = sheet->report->otava && is_numeric(sheet->cursor, name, &whole);

		sheet->rounded[a] = number && !whole;
		*column++ = (struct table_column){.header = name, .number = number};
	}
	for (size_t s = 0; s < data->count; s++)
		*column++ = (struct table_column){
			.header = data->series[s].name + prefix, .number = true};
}

/* The note of a change, in the column of its series. */
static struct table_note *set_note(
	const struct sheet *sheet, const struct hit *hit, struct arena *arena)
{
	const struct series *series = sheet->analysis->findings[hit->series].series;
	struct table_note *note = &sheet->notes[1 + sheet->attributes.count + hit->series];
	const struct report *report = sheet->report;
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
static void widen(const struct sheet *sheet, const struct hits *hits, struct arena *arena)
{
	for (size_t i = 0; i < hits->count; i++) {
		const struct table_note *note = set_note(sheet, &hits->items[i], arena);
		struct table_column *column = &sheet->table.columns[note - sheet->notes];
		size_t width = text_width(note->text);
		size_t second = note->second ? text_width(note->second) : 0;

		width = width > second ? width : second;
		column->width = column->width > width ? column->width : width;
	}
}

static void print_body(const struct sheet *sheet, const struct hits *hits, struct arena *arena)
{
	FILE *out = sheet->report->out;
	size_t next = 0;

	cursor_rewind(sheet->cursor);
	while (cursor_next(sheet->cursor)) {
		size_t first = next;

		memset(sheet->notes, 0, sheet->table.column_count * sizeof *sheet->notes);
		for (; next < hits->count &&
			moment_compare(&hits->items[next].moment, &sheet->cursor->moment) == 0;
			next++)
			set_note(sheet, &hits->items[next], arena);
		if (next > first)
			table_print_notes(&sheet->table, sheet->notes, out);
		table_print_row(&sheet->table, row_of(sheet), out);
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

static void report_table(
	const struct report *report, const struct analysis *analysis, struct arena *arena)
{
	const struct dataset *data = analysis->data;
	struct timeline timeline = timeline_of(arena, data);
	struct cursor cursor = cursor_of(arena, &timeline);
	struct hits hits = hits_of(analysis, &timeline, arena);
	struct sheet sheet = {.report = report, .analysis = analysis, .cursor = &cursor};
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
	sheet.attributes = timeline_attributes(arena, &timeline, report->attributes, report->otava);
	sheet.rounded = arena_array(arena, sheet.attributes.count, sizeof *sheet.rounded);
	sheet.axes = arena_array(arena, data->count, sizeof *sheet.axes);
	for (size_t s = 0; s < data->count; s++)
		sheet.axes[s] = timeline_axis(&timeline, &data->series[s]);
	count = sheet.table.column_count = 1 + sheet.attributes.count + data->count;
	sheet.table.columns = arena_array(arena, count, sizeof *sheet.table.columns);
	sheet.cells = arena_array(arena, count, sizeof *sheet.cells);
	sheet.scratch = arena_array(arena, count, sizeof *sheet.scratch);
	sheet.notes = arena_array(arena, count, sizeof *sheet.notes);
	set_columns(&sheet);
	if (!report->otava)
		widen(&sheet, &hits, arena);
	cursor_rewind(&cursor);
	while (cursor_next(&cursor))
		table_measure(&sheet.table, row_of(&sheet));
	table_print_header(&sheet.table, report->out);
	print_body(&sheet, &hits, arena);
	if (!report->otava)
		print_remarks(analysis, arena, report->out);
}

/* ---- JSON ---- */

/*
 * JSON in two forms. Ours is one document for all tests, with numbers as numbers. Otava's is one
 * document for each test, on a line of its own, with statistics as rounded strings; key order,
 * spacing and escapes are those of Python's json.dumps.
 */

/* Unless the value is NULL. Names of attributes and labels are foreign. */
static void put_named(struct buf *out, const char *name, const char *value)
{
	if (!value)
		return;
	json_next(out);
	buf_json_text(out, name);
	buf_text(out, ": ");
	buf_json_text(out, value);
}

/* With those of the named attributes that its point has. */
static void put_change(struct buf *out, const struct findings *findings,
	const struct change *change, const struct strings *attributes, struct arena *arena)
{
	const struct series *series = findings->series;
	const int64_t *times = series->axis->times;
	struct attribution suspects = attribution_of(arena, series, change);
	struct announcement item = {0};
	int64_t ms = times[change->index];

	json_put(out,
		"\n{metric: %s, index: %zu, time: %jd time, timestamp: %jd seconds, attributes: {",
		series->name, change->index, ms, ms);
	for (size_t i = 0; i < attributes->count; i++)
		put_named(out, attributes->items[i],
			change_attribute(series, change, attributes->items[i]));
	buf_text(out, "}, \"attributes_before\": {");
	for (size_t i = 0; i < attributes->count; i++)
		put_named(out, attributes->items[i],
			change_attribute_before(series, change, attributes->items[i]));
	buf_char(out, '}');
	json_put(out, "commit_before: %s, labels: {",
		change_attribute_before(series, change, "commit"));
	for (size_t i = 0; i < series->labels.count; i++)
		put_named(out, series->labels.items[i].key, series->labels.items[i].value);
	buf_char(out, '}');
	announcement_put_suspects(out, &suspects, ms);
	findings_basis(arena, findings, change, &item);
	announcement_put_basis(out, &item);
	if (findings->accepted)
		json_put_text(out, "accepted", change_accepted(findings, change));
	json_put_means(out, change);
	json_put(out, "regression: %d bool", change_is_regression(series, change));
	json_put_levels(out, change);
	json_put(out, "place_from: %jd time, place_to: %jd time}", times[change->place_from],
		times[change->place_to]);
}

static void report_json(
	const struct report *report, const struct analysis *analysis, struct arena *arena)
{
	struct timeline timeline = timeline_of(arena, analysis->data);
	struct hits hits = hits_of(analysis, &timeline, arena);
	struct strings names = timeline_attributes(arena, &timeline, report->attributes, false);
	struct buf out = {0};

	buf_text(&out, report->tests ? ",\n  " : "\n  ");
	json_put(&out, "{name: %s, metrics: [", analysis->test->name);
	for (size_t s = 0; s < analysis->data->count; s++) {
		const struct series *series = analysis->findings[s].series;
		size_t missing = 0;

		for (size_t i = 0; i < series->axis->n; i++)
			missing += isnan(series->values[i]) ? 1 : 0;
		json_put(&out,
			"\n{name: %s, direction: %d, unit: %s optional, points: %zu, missing: %zu}",
			series->name, series_direction(series),
			series->metric ? series->metric->unit : "", series->axis->n, missing);
	}
	buf_text(&out, "],\n   \"changes\": [");
	for (size_t i = 0; i < hits.count; i++)
		put_change(&out, &analysis->findings[hits.items[i].series], hits.items[i].change,
			&names, arena);
	buf_text(&out, "]}");
	text_flush(&out, report->out);
}

/* A JSON string of ASCII only, as json.dumps writes it. */
static void put_ascii(struct buf *out, const char *text)
{
	struct buf plain = {0};
	buf_json_text(&plain, text);
	const unsigned char *s = (const unsigned char *)plain.data;
	while (*s) {
		if (*s < 0x80) {
			buf_char(out, (char)*s++);
			continue;
		}
		unsigned length = *s < 0xE0   ? 2
				  : *s < 0xF0 ? 3
					      : 4; /* valid UTF-8, by buf_json_text */
		unsigned code = *s & (0xFFU >> (length + 1));
		for (unsigned i = 1; i < length; i++)
			code = code << 6 | (s[i] & 0x3F);
		s += length;
		if (code >= 0x10000)
			buf_printf(out, "\\u%04x\\u%04x", 0xD7C0 + (code >> 10),
				0xDC00 + (code & 0x3FF));
		else
			buf_printf(out, "\\u%04x", code);
	}
	buf_free(&plain);
}

static void put_rounded(struct buf *out, const char *key, int digits, double value)
{
	if (isnan(value)) /* never "-nan" */
		buf_printf(out, ", \"%s\": \"nan\"", key);
	else
		buf_printf(out, ", \"%s\": \"%.*f\"", key, digits, value);
}

static void put_otava_change(
	struct buf *out, const struct series *series, const struct change *change, int64_t time)
{
	buf_text(out, "{\"metric\": ");
	put_ascii(out, series->name);
	buf_printf(out, ", \"index\": %zu, \"time\": %" PRId64, change->index, time);
	put_rounded(out, "forward_change_percent", 0, change_percent(change));
	put_rounded(out, "magnitude", 6, change->magnitude);
	put_rounded(out, "mean_before", 6, change->mean_before);
	put_rounded(out, "stddev_before", 6, change->stddev_before);
	put_rounded(out, "mean_after", 6, change->mean_after);
	put_rounded(out, "stddev_after", 6, change->stddev_after);
	put_rounded(out, "pvalue", 6, change->pvalue);
	buf_char(out, '}');
}

/* The attributes of the changes on the row of the first hit, which never conflict. */
static void put_otava_attributes(struct buf *out, const struct analysis *analysis,
	const struct hit *hits, size_t count, const struct strings *names)
{
	buf_char(out, '{');
	for (size_t i = 0; i < names->count; i++) {
		const char *value = NULL;

		for (size_t h = 0; h < count && !value &&
				   moment_compare(&hits[0].moment, &hits[h].moment) == 0;
			h++)
			value = change_attribute(analysis->findings[hits[h].series].series,
				hits[h].change, names->items[i]);
		json_next(out);
		put_ascii(out, names->items[i]);
		buf_text(out, ": ");
		put_ascii(out, value);
	}
	buf_char(out, '}');
}

static void report_json_otava(
	const struct report *report, const struct analysis *analysis, struct arena *arena)
{
	struct timeline timeline = timeline_of(arena, analysis->data);
	struct hits hits = hits_of(analysis, &timeline, arena);
	struct strings names = timeline_attributes(arena, &timeline, report->attributes, true);
	struct buf out = {0};

	buf_char(&out, '{');
	put_ascii(&out, analysis->test->name);
	buf_text(&out, ": [");
	for (size_t i = 0; i < hits.count; i++) {
		const struct hit *hit = &hits.items[i];
		int64_t ms = hit->moment.time;
		int64_t time = (ms - ((ms % 1000) + 1000) % 1000) / 1000;

		if (i == 0 || moment_compare(&hit[-1].moment, &hit->moment) != 0) {
			buf_printf(&out,
				"%s{\"time\": %" PRId64 ", \"attributes\": ", i ? "]}, " : "",
				time);
			put_otava_attributes(&out, analysis, hit, hits.count - i, &names);
			buf_text(&out, ", \"changes\": [");
		} else {
			buf_text(&out, ", ");
		}
		put_otava_change(&out, analysis->findings[hit->series].series, hit->change, time);
	}
	buf_text(&out, hits.count ? "]}]}\n" : "]}\n");
	text_flush(&out, report->out);
}

/* ---- CSV ---- */

/* The columns of the attributes are between those that all have; *names: theirs. */
static const char *const *csv_columns(
	struct arena *arena, const struct report *report, struct strings *names)
{
	static const char *const before[] = {"test", "metric", "time", "index",
		"forward_change_percent", "magnitude", "mean_before", "mean_after", "stddev_before",
		"stddev_after", "pvalue", "regression"};
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

		put_change(&row, &analysis->findings[hits.items[i].series], hits.items[i].change,
			&names, arena);
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
		document_csv_header(csv_columns(arena, report, &names), report->out);
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
	json_put(list, "\n{name: %s, error: %s}", test, why);
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

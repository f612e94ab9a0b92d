/*
 * Logs of HdrHistogram statistics as written by NoSQLBench: comments, of which `#[StartTime:
 * SECONDS ...` is required, and one row for each tag and interval:
 *
 *     Tag=NAME,start,length,count,min,p25,p50,p75,p90,p95,p98,p99,p999,p9999,max
 *
 * The metrics are NAME.count, NAME.min ... One round over the tags is one point. A round ends when
 * a tag comes again. It has the time of its first row, since the intervals of the tags differ by a
 * few milliseconds. A tag that misses a round has no value at that point.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/number.h"
#include "agent/base/when.h"
#include "sources/files/delimited.h"
#include "sources/files/files.h"
#include "sources/files/rows.h"

enum { VALUES = 12, FIRST_VALUE = 3, COLUMNS = FIRST_VALUE + VALUES, TAG_MAX = 200 };

#define YEAR_SECONDS (365 * 86400.0)

static const char *const value_names[VALUES] = {
	"count", "min", "p25", "p50", "p75", "p90", "p95", "p98", "p99", "p999", "p9999", "max"};

static const struct field histostat_fields[] = {
	OPTION_STRING(struct histostat_options, file, NULL,
		"the log of HdrHistogram statistics, relative to the current folder",
		.flags = FIELD_REQUIRED),
	{0},
};

struct tag {
	size_t columns[VALUES];
	size_t round; /* the last one in which it occurred */
};

struct reader {
	struct query *query;
	struct input *input;
	struct error *error;
	double start_time, base_time; /* epoch seconds; 0: not given */
	bool base_known;              /* base_time has been determined */
	struct rows rows;
	struct metric_columns found;
	struct name_index tags;
	struct tag *of_tag; /* by index in `tags` */
	size_t round;       /* from 1 */
	bool round_kept;    /* it lies within [since, until) */
};

static bool fail(const struct reader *reader, const struct row *row, const char *what)
{
	return error_set(
		reader->error, ERROR_DATA, "%s:%zu: %s", reader->input->name, row->line, what);
}

/* Reads the number after `name`, as in `#[StartTime: 1649352325.178 (seconds since epoch), ...`. */
static void take_comment(const struct cell *cell, const char *name, double *seconds)
{
	const char *end = cell->text + cell->length;
	const char *at = memmem(cell->text, cell->length, name, strlen(name));
	double value;

	if (!at)
		return;
	at += strlen(name);
	while (at < end && *at == ' ')
		at++;
	if (number_scan(at, end, &value) && value > 0)
		*seconds = value;
}

/*
 * Intervals are relative to the base time, or without one to the start time, unless they are epoch
 * seconds already, that is, later than a year before the start.
 */
static bool row_time(struct reader *reader, const struct row *row, int64_t *out)
{
	const struct cell *cell = &row->cells[1];
	double seconds;

	if (!number_parse(cell->text, cell->length, &seconds))
		return fail(reader, row, "the start of the interval (column 2) is not a number");
	if (!reader->base_known) {
		if (reader->start_time == 0 && reader->base_time == 0)
			return fail(reader, row,
				"no start time: a line \"#[StartTime: SECONDS ...\" must come "
				"before the rows");
		if (reader->base_time == 0 && seconds < reader->start_time - YEAR_SECONDS)
			reader->base_time = reader->start_time;
		reader->base_known = true;
	}
	double ms = (seconds + reader->base_time) * 1000;
	if (!(fabs(ms) < 1e14))
		return fail(reader, row, "the start of the interval (column 2) is out of range");
	*out = llround(ms);
	return true;
}

static bool add_tag(struct reader *reader, const struct row *row, const char *text, size_t length,
	struct tag **out)
{
	size_t known = reader->tags.count;
	size_t number = name_index_add(&reader->tags, text, length);

	if (reader->tags.count > known) {
		reader->of_tag = arena_grow(
			reader->query->arena, reader->of_tag, known, sizeof *reader->of_tag);
		struct tag *tag = &reader->of_tag[number];
		*tag = (struct tag){0};
		for (size_t i = 0; i < VALUES; i++) {
			char name[TAG_MAX + 10];
			int size = snprintf(
				name, sizeof name, "%.*s.%s", (int)length, text, value_names[i]);

			if (!metric_columns_column(&reader->found, name, (size_t)size,
				    i == 0 ? 1 : -1, &tag->columns[i], reader->error))
				return error_prefix(
					reader->error, "%s:%zu: ", reader->input->name, row->line);
		}
	}
	*out = &reader->of_tag[number];
	return true;
}

static bool begin_round(struct reader *reader, const struct row *row)
{
	int64_t time = 0;

	if (!row_time(reader, row, &time))
		return false;
	reader->round++;
	reader->round_kept = time >= reader->query->since && time < reader->query->until;
	if (!reader->round_kept || rows_append(&reader->rows, time, reader->error))
		return true;
	return error_prefix(reader->error, "%s:%zu: ", reader->input->name, row->line);
}

static bool store_values(struct reader *reader, const struct row *row, const struct tag *tag)
{
	for (size_t i = 0; i < VALUES; i++) {
		const struct cell *cell = &row->cells[FIRST_VALUE + i];
		double value;

		if (tag->columns[i] == NAME_INDEX_NONE || number_missing(cell->text, cell->length))
			continue;
		if (!number_parse(cell->text, cell->length, &value))
			return error_set(reader->error, ERROR_DATA,
				"%s:%zu: column %zu (%s): \"%.*s\" is not a number",
				reader->input->name, row->line, FIRST_VALUE + i + 1, value_names[i],
				cell->length < 60 ? (int)cell->length : 60, cell->text);
		reader->rows.numbers[tag->columns[i]].values[reader->rows.n - 1] = value;
	}
	return true;
}

static bool take_row(struct reader *reader, const struct row *row, bool *done)
{
	const struct cell *first = &row->cells[0];
	struct tag *tag = NULL;

	if (row->count != COLUMNS || first->length <= 4 || memcmp(first->text, "Tag=", 4) != 0)
		return fail(reader, row,
			"not a row of statistics (Tag=NAME, start, length, count, min, p25 ... "
			"max: 15 columns)");
	if (first->length - 4 > TAG_MAX)
		return fail(reader, row, "a tag longer than 200 bytes");
	if (!add_tag(reader, row, first->text + 4, first->length - 4, &tag))
		return false;
	if (reader->round == 0 || tag->round == reader->round) {
		*done = reader->query->listing && reader->round == 1;
		if (*done)
			return true;
		if (!begin_round(reader, row))
			return false;
	}
	tag->round = reader->round;
	return !reader->round_kept || store_values(reader, row, tag);
}

static bool read_rows(struct reader *reader, struct delimited *delimited)
{
	bool done = false;
	struct row row;

	while (!done) {
		enum delimited_step step = delimited_next(delimited, &row, reader->error);

		if (step == DELIMITED_FAILED)
			return false;
		if (step == DELIMITED_END)
			break;
		const struct cell *first = &row.cells[0];
		if (first->length && *first->text == '#') {
			take_comment(first, "StartTime:", &reader->start_time);
			take_comment(first, "BaseTime:", &reader->base_time);
		} else if (!take_row(reader, &row, &done)) {
			return false;
		}
	}
	if (reader->round == 0 && reader->start_time == 0)
		return error_set(reader->error, ERROR_DATA,
			"%s: no statistics and no start time in this file", reader->input->name);
	return true;
}

bool histostat_parse(struct query *query, struct input *input, struct error *error)
{
	struct reader reader = {.query = query,
		.input = input,
		.error = error,
		.tags = {.dict = {.arena = query->arena}}};
	struct delimited *delimited = delimited_new(input, ',', '"');
	bool good = metric_columns_start(&reader.found, query, &reader.rows, error) &&
		    read_rows(&reader, delimited);

	delimited_free(delimited);
	if (good) {
		if (query->branch)
			query_notice(query,
				"%s: histostat logs have no branches; the whole file is read",
				input->name);
		if (!reader.round)
			query_notice(query, "%s: no rows", input->name);
		metric_columns_finish(&reader.found, input->name);
	}
	rows_free(&reader.rows);
	return good;
}

static bool histostat_read(struct query *query, struct error *error)
{
	return rows_read_file(query, histostat_parse, error);
}

const struct source histostat_source = {
	.plugin = {.name = "histostat",
		.summary = "a log of HdrHistogram statistics",
		.fields = histostat_fields,
		.options_size = sizeof(struct histostat_options)},
	.read = histostat_read,
	.reads = file_reads,
};

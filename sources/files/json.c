/*
 * JSON files: a list of results, each
 *
 *     {"timestamp": 1700000000, "metrics": [{"name": "p99", "value": 12.5}, ...],
 *      "attributes": {"commit": "a60027ff"}}
 *
 * A result becomes a row at once, which is dropped if the branch, one of the attributes that may
 * come last, is not selected. Without a selected branch the base branch is read, without a base
 * branch everything (as Otava does). Keys may come in any order; unknown keys are skipped. If a key
 * occurs twice the last one counts, but two lists of metrics add up. NaN and Infinity are accepted,
 * as Python writes them. A string that is not Unicode text costs what it belongs to: a metric its
 * value, an attribute itself, and the branch its result.
 *
 * Results are parsed in place in a window of the file. A result that does not fit is parsed again
 * after the window has grown, so a file of 200 MB needs only the memory of its longest result.
 */
#include <math.h>
#include <string.h>

#include "agent/base/number.h"
#include "agent/base/scan.h"
#include "agent/base/when.h"
#include "sources/files/files.h"
#include "sources/files/rows.h"

enum {
	BLOCK = 64 << 10,
	RESULT_MAX = 64 << 20, /* bytes */
	CUT_MAX = BLOCK, /* bytes; a number or word that is cut off by the end of the window is
			    reported at its start */
};

enum left_out { LEFT_VALUES, LEFT_ATTRIBUTES, LEFT_RESULTS, LEFT_KINDS };

static const char *const left_out_names[LEFT_KINDS] = {"values", "attributes", "results"};

/* The result being read, whose values are the last row. The branch is always kept. */
struct json_result {
	const char *from; /* its start in the window */
	bool timed, repeated;
	const char *branch; /* or NULL */
	size_t left_out[LEFT_KINDS];
};

static const struct field json_fields[] = {
	OPTION_STRING(struct json_options, file, NULL,
		"the JSON file, relative to the current folder", .flags = FIELD_REQUIRED),
	OPTION_STRING(
		struct json_options, base_branch, NULL, "default branch (default: all results)"),
	OPTION_STRING(struct json_options, commit_column, NULL,
		"attribute of a point's commit; default: commit"),
	OPTION_STRING(struct json_options, version_column, NULL, "the same for its version"),
	OPTION_LIST(
		struct json_options, attributes, "attributes shown with a change (default: all)"),
	{0},
};

struct reader {
	struct query *query;
	struct error *error;
	struct input *input;
	struct scan scan;
	struct buf window;
	size_t line; /* in which the window begins, from 1 */
	bool whole;  /* the window reaches the end of the file */

	struct pairs wanted_attributes; /* wanted attributes: key in the file, name */
	bool all;                       /* and the rest under their own names */
	struct rows rows;
	struct metric_columns found;
	struct name_index attributes; /* an index here is that of the text column */
	struct json_result result;

	struct branches branches;
	size_t left_out[LEFT_KINDS], first_left_out[LEFT_KINDS]; /* how many; a line */
	size_t results_seen;
	bool repeated;
};

static size_t count_lines(const char *from, const char *to)
{
	size_t count = 0;

	while ((from = memchr(from, '\n', (size_t)(to - from)))) {
		from++;
		count++;
	}
	return count;
}

/* Prefixes the error with file and line of `at`. Always false. */
static bool add_place(const struct reader *reader, const char *at)
{
	return error_prefix(reader->error, "%s:%zu: ", reader->input->name,
		reader->line + count_lines(reader->window.data, at));
}

/* Sets an error at the current position. Always false. */
static bool fail(const struct reader *reader, const char *problem)
{
	error_set(reader->error, ERROR_DATA, "%s", problem);
	return add_place(reader, reader->scan.at);
}

/* The same for a problem of the scanner. */
static bool fail_json(const struct reader *reader)
{
	const struct scan *scan = &reader->scan;
	unsigned byte = scan->at < scan->end ? (unsigned char)*scan->at : 0;

	if (!scan->wanted)
		return fail(reader, scan->problem);
	if (scan->at == scan->end)
		error_set(reader->error, ERROR_DATA, "the file ends where %s should be",
			scan->wanted);
	else if (byte > ' ' && byte < 127)
		error_set(reader->error, ERROR_DATA, "'%c' where %s should be", (char)byte,
			scan->wanted);
	else
		error_set(reader->error, ERROR_DATA, "byte 0x%02x where %s should be", byte,
			scan->wanted);
	return add_place(reader, scan->at);
}

/* After a problem in the value at `from`: skips it if a string in it is not Unicode text, and
 * counts it. Where the window ends before the value does, it has to grow. */
static bool leave_out(struct reader *reader, const char *from, int depth, enum left_out kind)
{
	struct scan *scan = &reader->scan;

	if (!scan->spoilt)
		return false;
	if (scan_recover(scan, from, depth)) {
		reader->result.left_out[kind]++;
		return true;
	}
	if (!reader->whole)
		scan->at = scan->end;
	return false;
}

/* Skips an unused value, whose strings may contain anything. */
static bool skip_value(struct scan *scan)
{
	scan->lax = true;
	bool good = scan_value(scan);
	scan->lax = false;
	return good;
}

/* Drops the consumed bytes and reads as many as are left, at least a block. */
static bool fill(struct reader *reader)
{
	struct buf *window = &reader->window;
	size_t done = window->length ? (size_t)(reader->scan.at - window->data) : 0, got;
	size_t left = window->length - done, wanted = left > BLOCK ? left : BLOCK;

	if (left > RESULT_MAX)
		return fail(reader, "a result larger than 64 MB");
	if (window->length)
		reader->line += count_lines(window->data, window->data + done);
	buf_reserve(window, wanted);
	memmove(window->data, window->data + done, left);
	if (!input_read(reader->input, window->data + left, wanted, &got, reader->error))
		return false;
	window->length = left + got;
	reader->whole = got < wanted;
	reader->scan.at = window->data;
	reader->scan.end = window->data + window->length;
	return true;
}

/* Skips blanks, refilling the window. */
static bool skip_blanks(struct reader *reader)
{
	for (;;) {
		scan_space(&reader->scan);
		if (reader->scan.at < reader->scan.end || reader->whole)
			return true;
		if (!fill(reader))
			return false;
	}
}

/* Reads a string (decoded) or a number (as written). */
static bool read_word(struct reader *reader, const char **text, size_t *length)
{
	struct scan *scan = &reader->scan;

	if (!scan_sees_number(scan)) {
		bool good = scan_text(scan);
		*text = scan->text.data;
		*length = scan->text.length;
		return good;
	}
	*text = scan->at;
	bool good = scan_value(scan);
	*length = (size_t)(scan->at - *text);
	return good;
}

static bool sees_word(const struct reader *reader)
{
	return scan_sees(&reader->scan, '"') || scan_sees_number(&reader->scan);
}

static bool is_key(const struct reader *reader, const char *key)
{
	return strcmp(reader->scan.text.data, key) == 0;
}

static bool read_time(struct reader *reader)
{
	static const char problem[] =
		"\"timestamp\" is not a date (epoch seconds or milliseconds, or ISO 8601)";
	const char *text;
	size_t length;

	if (!sees_word(reader))
		return scan_fail(&reader->scan, problem);
	if (!read_word(reader, &text, &length))
		return false;
	if (!when_parse_stamp(text, length, &reader->rows.times[reader->rows.n - 1]))
		return scan_fail(&reader->scan, problem);
	reader->result.timed = true;
	return true;
}

static bool read_value(struct reader *reader, double *number)
{
	static const char problem[] = "the \"value\" of a metric is not a number";
	struct scan *scan = &reader->scan;
	const char *text;
	size_t length;

	if (scan_number(scan, number))
		return true;
	*number = (double)NAN;
	if (scan_word(scan, "null"))
		return true;
	if (!sees_word(reader))
		return scan_fail(scan, problem);
	if (!read_word(reader, &text, &length))
		return false;
	return number_missing(text, length) || number_parse(text, length, number) ||
	       scan_fail(scan, problem);
}

static bool read_name(struct reader *reader, size_t *column)
{
	static const char problem[] = "the \"name\" of a metric is not a string";
	struct scan *scan = &reader->scan;

	if (!scan_sees(scan, '"'))
		return scan_fail(scan, problem);
	if (!scan_text(scan))
		return false;
	if (scan->text.length == 0)
		return scan_fail(scan, problem);
	return metric_columns_column(&reader->found, scan->text.data, scan->text.length, 1, column,
		       reader->error) ||
	       add_place(reader, scan->at);
}

/* {"name": "p99", "value": 12.5}; other keys are skipped. */
static bool read_metric(struct reader *reader)
{
	struct scan *scan = &reader->scan;
	size_t column = 0;
	bool named = false, valued = false;
	double number = (double)NAN;

	if (!scan_open(scan, '{'))
		return scan_fail(scan, "a metric must be an object with \"name\" and \"value\"");
	while (scan_key(scan)) {
		bool is_name = is_key(reader, "name"), is_value = is_key(reader, "value");

		named |= is_name;
		valued |= is_value;
		if (is_name        ? !read_name(reader, &column)
			: is_value ? !read_value(reader, &number)
				   : !skip_value(scan))
			return false;
	}
	if (scan->problem)
		return false;
	if (!named || !valued)
		return scan_fail(
			scan, named ? "a metric without \"value\"" : "a metric without \"name\"");
	if (column != NAME_INDEX_NONE) {
		double *at = &reader->rows.numbers[column].values[reader->rows.n - 1];

		reader->result.repeated |= !isnan(*at);
		*at = number;
	}
	return true;
}

static bool read_metrics(struct reader *reader)
{
	struct scan *scan = &reader->scan;

	if (!scan_open(scan, '['))
		return scan_fail(scan, "\"metrics\" must be a list");
	while (scan_item(scan)) {
		const char *from = scan->at;
		int depth = scan->depth;

		if (!read_metric(reader) && !leave_out(reader, from, depth, LEFT_VALUES))
			return false;
	}
	return !scan->problem;
}

/* The column of the attribute, or NAME_INDEX_NONE if it is not wanted. One that has the name of a
 * configured one is not. */
static bool attribute_column(struct reader *reader, const struct buf *name, size_t *column)
{
	const struct pairs *wanted = &reader->wanted_attributes;
	size_t known = reader->attributes.count;

	*column = NAME_INDEX_NONE;
	for (size_t i = 0; i < wanted->count; i++) {
		if (strcmp(wanted->items[i].key, name->data) != 0)
			continue;
		*column = i;
		return true;
	}
	if (!reader->all)
		return true;
	*column = name_index_add(&reader->attributes, name->data, name->length);
	if (*column < wanted->count)
		*column = NAME_INDEX_NONE;
	return reader->attributes.count == known ||
	       rows_add_text(&reader->rows, reader->attributes.items[known], known, reader->error);
}

/* Strings, numbers and booleans are kept as text; null is no value; lists and objects are
 * skipped. */
static bool read_attribute(struct reader *reader, size_t column, bool is_branch)
{
	struct scan *scan = &reader->scan;
	const char *text = NULL;
	size_t length;

	if (sees_word(reader)) {
		if (!read_word(reader, &text, &length))
			return false;
		text = rows_text(&reader->rows, reader->query->arena, text, length);
	} else if (scan_word(scan, "true")) {
		text = "true";
	} else if (scan_word(scan, "false")) {
		text = "false";
	} else if (!skip_value(scan)) {
		return false;
	}
	if (is_branch)
		reader->result.branch = text;
	if (text && column != NAME_INDEX_NONE)
		reader->rows.texts[column].values[reader->rows.n - 1] = text;
	return true;
}

static bool read_attributes(struct reader *reader)
{
	struct scan *scan = &reader->scan;

	if (!scan_open(scan, '{'))
		return scan_fail(scan, "\"attributes\" must be an object");
	while (scan_key(scan)) {
		bool is_branch = is_key(reader, "branch");
		const char *from = scan->at;
		int depth = scan->depth;
		size_t column;

		if (!attribute_column(reader, &scan->text, &column))
			return false;
		if (!read_attribute(reader, column, is_branch) &&
			!leave_out(reader, from, depth, is_branch ? LEFT_RESULTS : LEFT_ATTRIBUTES))
			return false;
	}
	return !scan->problem;
}

static bool read_result(struct reader *reader)
{
	struct json_result *result = &reader->result;
	struct scan *scan = &reader->scan;

	*result = (struct json_result){.from = scan->at};
	if (!rows_append(&reader->rows, 0, reader->error))
		return add_place(reader, scan->at);
	if (!scan_open(scan, '{'))
		return scan_fail(scan,
			"a result must be an object with \"timestamp\", \"metrics\" and "
			"\"attributes\"");
	while (scan_key(scan))
		if (is_key(reader, "timestamp")        ? !read_time(reader)
			: is_key(reader, "metrics")    ? !read_metrics(reader)
			: is_key(reader, "attributes") ? !read_attributes(reader)
						       : !skip_value(scan))
			return false;
	if (scan->problem || result->timed)
		return !scan->problem;
	scan->at = result->from;
	return scan_fail(scan, "a result without \"timestamp\"");
}

/* Reads the next result; *more is false at the end of the list. */
static bool next_result(struct reader *reader, bool *more)
{
	struct scan *scan = &reader->scan;

	for (;;) {
		size_t start = (size_t)(scan->at - reader->window.data), rows = reader->rows.n;
		bool first = scan->first;

		*more = scan_item(scan);
		if (*more ? read_result(reader) : !scan->problem)
			return true;
		if (!scan->problem)
			return false;
		if (reader->whole || scan->end - scan->at > CUT_MAX)
			return fail_json(reader);
		reader->rows.n = rows;
		scan->at = reader->window.data + start;
		scan->problem = scan->wanted = NULL;
		scan->spoilt = scan->lax = false;
		scan->first = first;
		scan->depth = 1;
		if (!fill(reader))
			return false;
	}
}

static bool start(struct reader *reader)
{
	struct scan *scan = &reader->scan;

	reader->attributes.dict.arena = reader->query->arena;
	for (size_t i = 0; i < reader->wanted_attributes.count; i++) {
		const char *name = reader->wanted_attributes.items[i].value;

		name_index_add(&reader->attributes, name, strlen(name));
		if (!rows_add_text(&reader->rows, name, i, reader->error))
			return false;
	}
	if (!metric_columns_start(&reader->found, reader->query, &reader->rows, reader->error) ||
		!fill(reader))
		return false;
	if (reader->window.length >= 3 && memcmp(scan->at, "\xEF\xBB\xBF", 3) == 0)
		scan->at += 3;
	if (!skip_blanks(reader))
		return false;
	if (scan->at == scan->end)
		return error_set(
			reader->error, ERROR_DATA, "%s: the file is empty", reader->input->name);
	return scan_open(scan, '[') || fail(reader, "the file must be a list");
}

/* Keeps the result, or drops its row. */
static void settle_result(struct reader *reader)
{
	const struct json_result *result = &reader->result;
	const struct query *query = reader->query;
	struct rows *rows = &reader->rows;
	int64_t time = rows->times[rows->n - 1];

	reader->results_seen++;
	for (int kind = 0; kind < LEFT_KINDS; kind++) {
		if (result->left_out[kind] && !reader->left_out[kind])
			reader->first_left_out[kind] =
				reader->line + count_lines(reader->window.data, result->from);
		reader->left_out[kind] += result->left_out[kind];
	}
	if (result->left_out[LEFT_RESULTS] ||
		!branches_take(&reader->branches, query->arena, result->branch,
			result->branch ? strlen(result->branch) : 0) ||
		time < query->since || time >= query->until)
		rows->n--;
	else
		reader->repeated |= result->repeated;
}

static bool check_branches(struct reader *reader, const char *name)
{
	struct query *query = reader->query;
	struct branches *branches = &reader->branches;

	if (!branches->selected && branches->count > 1)
		query_notice(query,
			"%s: results of several branches (%s) are read as one series; choose one "
			"with --branch",
			name, branches_list(branches, query->arena));
	if (branches->selected && !branches->count && reader->results_seen)
		return error_set(reader->error, ERROR_DATA,
			"%s: branch \"%.100s\" is selected, but no result has an attribute "
			"\"branch\"",
			name, branches->selected);
	return branches_check(branches, query->arena, name, "result", reader->error);
}

static void notice_left_out(const struct reader *reader, const char *name)
{
	for (int kind = 0; kind < LEFT_KINDS; kind++) {
		if (!reader->left_out[kind])
			continue;
		reader->query->incomplete |= kind != LEFT_ATTRIBUTES;
		query_notice(reader->query,
			"%s: %s left out: %zu, since a string is not Unicode text, the first in "
			"the result at line %zu",
			name, left_out_names[kind], reader->left_out[kind],
			reader->first_left_out[kind]);
	}
}

bool json_parse(struct query *query, struct input *input, struct error *error)
{
	const struct json_options *options = query->options;
	struct reader reader = {
		.query = query,
		.error = error,
		.input = input,
		.scan.words = true,
		.line = 1,
		.wanted_attributes = attribute_names(query->arena, options->commit_column,
			options->version_column, options->attributes),
		.all = options->attributes.count == 0,
		.branches.selected = query->branch ? query->branch : options->base_branch,
	};
	bool good = start(&reader), more = true;

	while (good && more) {
		good = next_result(&reader, &more);
		if (good && more)
			settle_result(&reader);
	}
	good = good && skip_blanks(&reader) && (scan_end(&reader.scan) || fail_json(&reader)) &&
	       check_branches(&reader, input->name);
	if (good) {
		if (!reader.results_seen)
			query_notice(query, "%s: no results", input->name);
		notice_left_out(&reader, input->name);
		if (reader.repeated)
			query_notice(query,
				"%s: some results contain a metric twice; the last value counts",
				input->name);
		metric_columns_finish(&reader.found, input->name);
	}
	buf_free(&reader.window);
	buf_free(&reader.scan.text);
	rows_free(&reader.rows);
	return good;
}

static bool json_read(struct query *query, struct error *error)
{
	return rows_read_file(query, json_parse, error);
}

const struct source json_source = {
	.plugin = {.name = "json",
		.summary = "a JSON file with a list of results",
		.fields = json_fields,
		.options_size = sizeof(struct json_options)},
	.read = json_read,
	.reads = file_reads,
};

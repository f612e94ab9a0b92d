/*
 * JSON files: a list of results, each
 *     {"timestamp": 1700000000, "metrics": [{"name": "p99", "value": 12.5}, ...], "attributes":
 * {"commit": "a60027ff"}}
 *
 * A result is read whole before it is stored, since its attributes tell whether its branch is
 * wanted and may come last. Without a branch asked for, the base branch is read, without that
 * everything (Otava's rules).
 */
#include <math.h>
#include <string.h>

#include "sources/files/files.h"
#include "sources/files/json_result.h"

static const struct field json_fields[] = {
	{.name = "file",
		.type = FIELD_STRING,
		.offset = offsetof(struct json_options, file),
		.flags = FIELD_REQUIRED,
		.metavar = "FILE",
		.help = "the JSON file, relative to the current folder"},
	{.name = "base_branch",
		.type = FIELD_STRING,
		.offset = offsetof(struct json_options, base_branch),
		.metavar = "BRANCH",
		.help = "the branch that is read when none is asked for (default: all results)"},
	{.name = "commit_column",
		.type = FIELD_STRING,
		.offset = offsetof(struct json_options, commit_column),
		.metavar = "NAME",
		.help = "the attribute that holds a point's commit, where it has another name than "
			"commit"},
	{.name = "version_column",
		.type = FIELD_STRING,
		.offset = offsetof(struct json_options, version_column),
		.metavar = "NAME",
		.help = "the same for its version"},
	{.name = "attributes",
		.type = FIELD_LIST,
		.offset = offsetof(struct json_options, attributes),
		.metavar = "NAMES",
		.help = "attributes that are shown with a change (default: all)"},
	{0}};

struct reader {
	struct json_results results;
	const char *wanted; /* branch, or NULL */
	struct branches branches;
	size_t results_seen;
	bool branch_seen, repeated;
};

static bool is_wanted(struct reader *reader)
{
	const char *branch = reader->results.result.branch;

	if (branch)
		branches_add(
			&reader->branches, reader->results.query->arena, branch, strlen(branch));
	if (!reader->wanted)
		return true;
	if (!branch || strcmp(branch, reader->wanted) != 0)
		return false;
	reader->branch_seen = true;
	return true;
}

static bool store(struct reader *reader)
{
	const struct json_result *result = &reader->results.result;
	const struct query *query = reader->results.query;
	struct rows *rows = &reader->results.rows;
	struct error *error = reader->results.error;

	reader->results_seen++;
	if (!is_wanted(reader) || result->time < query->since || result->time >= query->until)
		return true;
	if (!rows_append(rows, result->time, error))
		return error_prefix(
			error, "%s:%zu: ", reader->results.json->input->name, result->line);
	for (size_t i = 0; i < result->value_count; i++) {
		const struct json_value *value = &result->values[i];
		double *at = &rows->numbers[value->column][rows->n - 1];

		reader->repeated |= !isnan(*at);
		*at = value->number * reader->results.found.metrics[value->column]->scale;
	}
	for (size_t i = 0; i < result->attribute_count; i++)
		rows->texts[result->attributes[i].column][rows->n - 1] = result->attributes[i].text;
	return true;
}

static bool read_all(struct reader *reader)
{
	bool more;

	if (!json_results_start(&reader->results))
		return false;
	do {
		if (!json_results_next(&reader->results, &more) || (more && !store(reader)))
			return false;
	} while (more);
	return true;
}

static bool check_branches(struct reader *reader, const char *name)
{
	struct query *query = reader->results.query;
	struct error *error = reader->results.error;

	if (!reader->wanted && reader->branches.count > 1)
		query_notice(query,
			"%s: results of several branches (%s) are taken as one series; choose one "
			"with --branch",
			name, branches_list(&reader->branches, query->arena));
	if (!reader->wanted || reader->branch_seen || !reader->results_seen)
		return true;
	if (!reader->branches.count)
		return error_set(error, ERROR_DATA,
			"%s: branch \"%.100s\" was asked for, but no result has an attribute "
			"\"branch\"",
			name, reader->wanted);
	return error_set(error, ERROR_DATA, "%s: no result is of branch \"%.100s\" (there are: %s)",
		name, reader->wanted, branches_list(&reader->branches, query->arena));
}

bool json_parse(struct query *query, struct input *input, struct error *error)
{
	const struct json_options *options = query->options;
	struct reader reader = {
		.results = {.query = query,
			.json = json_reader_new(input),
			.error = error,
			.said = attribute_names(query->arena, options->commit_column,
				options->version_column, options->attributes),
			.all = options->attributes.count == 0},
		.wanted = query->branch ? query->branch : options->base_branch,
	};
	const struct name_index *attributes = &reader.results.attributes;
	bool good = read_all(&reader) && check_branches(&reader, input->name);

	if (good) {
		if (!reader.results_seen)
			query_notice(query, "%s: no results", input->name);
		if (reader.repeated)
			query_notice(query,
				"%s: some results have a metric twice; the last value counts",
				input->name);
		const char **names = arena_array(query->arena, attributes->count, sizeof *names);
		for (size_t i = 0; i < attributes->count; i++)
			names[i] = attributes->items[i];
		found_finish(&reader.results.found, input->name, names);
	}
	json_results_free(&reader.results);
	return good;
}

static bool json_read(struct query *query, struct error *error)
{
	const struct json_options *options = query->options;
	struct input input;

	if (!input_open(&input, options->file, query->timeout, error))
		return false;
	bool good = json_parse(query, &input, error);
	input_close(&input);
	return good;
}

static bool json_list(struct query *query, struct strings *names, struct error *error)
{
	if (!query->metric_count && !json_read(query, error))
		return false;
	*names = found_names(query);
	return true;
}

const struct source json_source = {
	.name = "json",
	.summary = "a JSON file with a list of results",
	.fields = json_fields,
	.options_size = sizeof(struct json_options),
	.read = json_read,
	.list = json_list,
};

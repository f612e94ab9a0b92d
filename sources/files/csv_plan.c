/*
 * Only columns with a use are looked for, so a file may have others of any kind, even nameless or
 * of the same name.
 */
#include "sources/files/csv_plan.h"

#include <string.h>

#include "agent/core/dict.h"

struct planner {
	struct csv_plan *plan;
	const struct query *query;
	const struct csv_options *options;
	const char *file;
	size_t line; /* of the header */
	struct error *error;
	struct name_index names; /* of the header */
	size_t *first,
		*again; /* by number of the name: its columns; again is 0 where there is one */
};

/* The one byte that an option of csv_options gives; "" is none, "\t" a tab. */
static bool parse_byte(const char *key, const char *value, char *out, struct error *error)
{
	if (strcmp(value, "\\t") == 0)
		value = "\t";
	if (strlen(value) > 1 || *value == '\r' || *value == '\n')
		return error_set(error, ERROR_USAGE, "csv_options: %s must be one character", key);
	*out = *value;
	return true;
}

bool csv_dialect(
	const struct csv_options *options, char *delimiter, char *quote, struct error *error)
{
	static const char *const names[] = {"delimiter", "quote_char"};

	*delimiter = ',';
	*quote = '"';
	for (size_t i = 0; i < options->csv_options.count; i++) {
		const struct pair *pair = &options->csv_options.items[i];
		const char *value = pair->value ? pair->value : "";
		bool is_quote =
			strcmp(pair->key, "quote_char") == 0 || strcmp(pair->key, "quotechar") == 0;

		if (!is_quote && strcmp(pair->key, "delimiter") != 0) {
			error_set(error, ERROR_USAGE, "csv_options: unknown key \"%.60s\"",
				pair->key);
			return field_hint(error, pair->key, names, 2);
		}
		if (!parse_byte(pair->key, value, is_quote ? quote : delimiter, error))
			return false;
	}
	if (!*delimiter || *delimiter == *quote)
		return error_set(error, ERROR_USAGE,
			"csv_options: the delimiter must be there and differ from the quote");
	return true;
}

static void take_header(struct planner *planner, const struct row *row)
{
	struct arena *arena = planner->query->arena;
	const char **header = arena_array(arena, row->count, sizeof *header);

	planner->first = arena_array(arena, row->count, sizeof *planner->first);
	planner->again = arena_array(arena, row->count, sizeof *planner->again);
	for (size_t i = 0; i < row->count; i++) {
		const char *text = row->cells[i].text;
		size_t length = row->cells[i].length, known = planner->names.count;

		for (; length && (*text == ' ' || *text == '\t'); length--)
			text++;
		while (length && (text[length - 1] == ' ' || text[length - 1] == '\t'))
			length--;
		size_t number = name_index_add(&planner->names, text, length);
		if (planner->names.count > known)
			planner->first[number] = i;
		else
			planner->again[number] = i;
		header[i] = planner->names.items[number];
	}
	planner->plan->header = (struct strings){header, row->count};
}

/* The column of that name, NO_COLUMN if there is none. Fails if there are several. */
static bool find_column(const struct planner *planner, const char *name, size_t *column)
{
	size_t number = name_index_find(&planner->names, name, strlen(name));

	*column = number == NAME_INDEX_NONE ? NO_COLUMN : planner->first[number];
	if (number == NAME_INDEX_NONE || !planner->again[number])
		return true;
	return error_set(planner->error, ERROR_DATA,
		"%s:%zu: column \"%.100s\" is there more than once (columns %zu and %zu)",
		planner->file, planner->line, name, *column + 1, planner->again[number] + 1);
}

/* The same for a column that must be there. */
static bool need_column(
	const struct planner *planner, const char *what, const char *name, size_t *column)
{
	const struct strings *header = &planner->plan->header;

	if (!find_column(planner, name, column))
		return false;
	if (*column != NO_COLUMN)
		return true;
	error_set(planner->error, ERROR_DATA, "%s:%zu: no column \"%.100s\" for %s%s",
		planner->file, planner->line, name, what,
		column_hint(planner->query->arena, name, header));
	if (header->count > 1)
		return false;
	return error_set(planner->error, ERROR_DATA,
		"%s:%zu: no column \"%.100s\" for %s; the header has one column: is another "
		"delimiter meant (csv_options)?",
		planner->file, planner->line, name, what);
}

static bool plan_attributes(struct planner *planner)
{
	const struct csv_options *options = planner->options;
	struct pairs names = attribute_names(planner->query->arena, options->commit_column,
		options->version_column, options->attributes);
	struct csv_plan *plan = planner->plan;

	plan->texts = arena_array(planner->query->arena, names.count, sizeof *plan->texts);
	for (size_t i = 0; i < names.count; i++) {
		const struct pair *at = &names.items[i];
		size_t column;

		if (!need_column(planner, attribute_option(at), at->key, &column))
			return false;
		if (column != plan->time)
			plan->texts[plan->text_count++] = (struct text_column){column, at->value};
	}
	return true;
}

static bool plan_metrics(struct planner *planner)
{
	const struct query *query = planner->query;
	struct csv_plan *plan = planner->plan;

	plan->numbers = arena_array(query->arena, query->metric_count, sizeof *plan->numbers);
	for (size_t i = 0; i < query->metric_count; i++) {
		const struct metric *metric = &query->metrics[i];
		const char *what = arena_printf(query->arena, "metric \"%.100s\"", metric->name);
		size_t column;

		if (!need_column(
			    planner, what, metric->column ? metric->column : metric->name, &column))
			return false;
		plan->numbers[plan->number_count++] =
			(struct number_column){.column = column, .metric = metric};
	}
	return true;
}

/* Without configured metrics: all columns that have a name and no other use, until their values say
 * otherwise. */
static bool plan_guess(struct planner *planner)
{
	struct arena *arena = planner->query->arena;
	struct csv_plan *plan = planner->plan;

	plan->guessing = true;
	plan->numbers = arena_array(arena, plan->header.count, sizeof *plan->numbers);
	for (size_t i = 0; i < plan->header.count; i++) {
		bool used = i == plan->time || i == plan->branch || !*plan->header.items[i];
		size_t column;

		for (size_t j = 0; j < plan->text_count; j++)
			used |= plan->texts[j].column == i;
		if (used)
			continue;
		if (!find_column(planner, plan->header.items[i], &column))
			return false;
		struct metric *metric = arena_alloc(arena, sizeof *metric);
		*metric =
			(struct metric){.name = plan->header.items[i], .direction = 1, .scale = 1};
		plan->numbers[plan->number_count++] =
			(struct number_column){.column = column, .metric = metric};
	}
	return true;
}

static bool plan_columns(struct planner *planner)
{
	struct csv_plan *plan = planner->plan;
	const struct query *query = planner->query;

	if (!need_column(planner, "the time (see time_column)", planner->options->time_column,
		    &plan->time) ||
		!find_column(planner, "branch", &plan->branch))
		return false;
	if (query->branch && plan->branch == NO_COLUMN)
		return error_set(planner->error, ERROR_DATA,
			"%s:%zu: a branch was asked for (--branch or $BRANCH), but there is no "
			"column "
			"\"branch\"",
			planner->file, planner->line);
	return plan_attributes(planner) &&
	       (query->metric_count ? plan_metrics(planner) : plan_guess(planner));
}

bool csv_plan_make(struct csv_plan *plan, const struct query *query, const char *file,
	const struct row *header, struct error *error)
{
	struct planner planner = {.plan = plan,
		.names = {.dict = {.arena = query->arena}},
		.query = query,
		.options = query->options,
		.file = file,
		.line = header->line,
		.error = error};

	*plan = (struct csv_plan){0};
	take_header(&planner, header);
	bool good = plan_columns(&planner);
	return good;
}

/*
 * The order of the keys is free, and unknown keys are passed over. Where a key comes twice the last
 * one counts; two lists of metrics add up.
 */
#include "sources/files/json_result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/number.h"
#include "agent/core/when.h"

void json_results_free(struct json_results *reader)
{
	json_reader_free(reader->json);
	rows_free(&reader->rows);
	free(reader->result.values);
	free(reader->result.attributes);
}

/* The next token, which must be the wanted one. */
static bool expect(struct json_results *reader, enum token wanted, const char *what)
{
	enum token token = json_next(reader->json, reader->error);

	if (token == wanted)
		return true;
	return token != TOKEN_FAILED &&
	       json_fail(reader->json, reader->error, "%s must be %s", what,
		       wanted == TOKEN_ARRAY ? "a list" : "an object");
}

static bool is_text(const struct buf *text, const char *word)
{
	return strcmp(text->data ? text->data : "", word) == 0;
}

static bool read_time(struct json_results *reader)
{
	struct json_result *result = &reader->result;
	enum token token = json_next(reader->json, reader->error);
	const struct buf *text = &reader->json->text;

	if (token == TOKEN_FAILED)
		return false;
	if ((token != TOKEN_NUMBER && token != TOKEN_STRING) || !text->data ||
		!when_parse_stamp(text->data, text->length, &result->time))
		return json_fail(reader->json, reader->error,
			"\"timestamp\" is not a date (epoch seconds or milliseconds, or ISO 8601)");
	result->timed = true;
	return true;
}

static bool read_value(struct json_results *reader, double *number)
{
	enum token token = json_next(reader->json, reader->error);
	const struct buf *text = &reader->json->text;
	const char *data = text->data ? text->data : "";

	*number = (double)NAN;
	if (token == TOKEN_FAILED)
		return false;
	if (token == TOKEN_NULL)
		return true;
	if ((token == TOKEN_NUMBER || token == TOKEN_STRING) &&
		(number_missing(data, text->length) || number_parse(data, text->length, number)))
		return true;
	return json_fail(reader->json, reader->error, "the \"value\" of a metric is not a number");
}

static void add_value(struct json_result *result, size_t column, double number)
{
	result->values = memory_grow(result->values, &result->value_capacity,
		result->value_count + 1, sizeof *result->values);
	result->values[result->value_count++] = (struct json_value){column, number};
}

/* {"name": "p99", "value": 12.5}; whatever else is in it is passed over. */
static bool read_metric(struct json_results *reader)
{
	struct json_reader *json = reader->json;
	size_t column = 0;
	bool named = false, valued = false;
	double number = (double)NAN;

	for (;;) {
		enum token token = json_next(json, reader->error);

		if (token == TOKEN_OBJECT_END)
			break;
		if (token == TOKEN_FAILED)
			return false;
		if (is_text(&json->text, "value")) {
			valued = true;
			if (!read_value(reader, &number))
				return false;
			continue;
		}
		bool is_name = is_text(&json->text, "name");
		token = json_next(json, reader->error);
		if (token == TOKEN_FAILED || (!is_name && !json_skip(json, token, reader->error)))
			return false;
		if (!is_name)
			continue;
		if (token != TOKEN_STRING || !json->text.length)
			return json_fail(
				json, reader->error, "the \"name\" of a metric is not a text");
		named = true;
		if (!found_column(&reader->found, json->text.data, json->text.length, 1, &column,
			    reader->error))
			return error_prefix(
				reader->error, "%s:%zu: ", json->input->name, json->line);
	}
	if (!named || !valued)
		return json_fail(
			json, reader->error, "a metric without \"%s\"", named ? "value" : "name");
	if (column != NAME_INDEX_NONE)
		add_value(&reader->result, column, number);
	return true;
}

static bool read_metrics(struct json_results *reader)
{
	if (!expect(reader, TOKEN_ARRAY, "\"metrics\""))
		return false;
	for (;;) {
		enum token token = json_next(reader->json, reader->error);

		if (token == TOKEN_ARRAY_END)
			return true;
		if (token == TOKEN_FAILED)
			return false;
		if (token != TOKEN_OBJECT)
			return json_fail(reader->json, reader->error,
				"a metric must be an object with \"name\" and \"value\"");
		if (!read_metric(reader))
			return false;
	}
}

/* Whether the name is another attribute's. */
static bool is_said(const struct json_results *reader, const char *name)
{
	for (size_t i = 0; i < reader->said.count; i++)
		if (strcmp(reader->said.items[i].value, name) == 0)
			return true;
	return false;
}

/* The column of the attribute, NAME_INDEX_NONE if it is not wanted. */
static bool attribute_column(struct json_results *reader, const struct buf *name, size_t *column)
{
	const char *text = name->data ? name->data : "";
	size_t known = reader->attributes.count, index;

	for (size_t i = 0; i < reader->said.count; i++)
		if (strcmp(reader->said.items[i].key, text) == 0) {
			text = reader->said.items[i].value;
			*column = name_index_find(&reader->attributes, text, strlen(text));
			return true;
		}
	*column = NAME_INDEX_NONE;
	if (!reader->all || is_said(reader, text))
		return true;
	*column = name_index_add(&reader->attributes, text, name->length);
	return reader->attributes.count == known ||
	       rows_add_text(&reader->rows, &index, reader->error);
}

static void add_attribute(struct json_result *result, size_t column, const char *text)
{
	result->attributes = memory_grow(result->attributes, &result->attribute_capacity,
		result->attribute_count + 1, sizeof *result->attributes);
	result->attributes[result->attribute_count++] = (struct json_attribute){column, text};
}

/* Texts, numbers and true or false are kept as text; null is no value, lists and objects are passed
 * over. */
static bool read_attribute(struct json_results *reader, size_t column, bool is_branch)
{
	struct json_reader *json = reader->json;
	enum token token = json_next(json, reader->error);
	const char *text = NULL;

	if (token == TOKEN_FAILED || !json_skip(json, token, reader->error))
		return false;
	if (token == TOKEN_STRING || token == TOKEN_NUMBER)
		text = rows_text(&reader->rows, reader->query->arena,
			json->text.data ? json->text.data : "", json->text.length);
	else if (token == TOKEN_TRUE || token == TOKEN_FALSE)
		text = token == TOKEN_TRUE ? "true" : "false";
	if (is_branch)
		reader->result.branch = text;
	if (text && column != NAME_INDEX_NONE)
		add_attribute(&reader->result, column, text);
	return true;
}

static bool read_attributes(struct json_results *reader)
{
	if (!expect(reader, TOKEN_OBJECT, "\"attributes\""))
		return false;
	for (;;) {
		enum token token = json_next(reader->json, reader->error);
		size_t column;

		if (token == TOKEN_OBJECT_END)
			return true;
		if (token == TOKEN_FAILED ||
			!attribute_column(reader, &reader->json->text, &column) ||
			!read_attribute(reader, column, is_text(&reader->json->text, "branch")))
			return false;
	}
}

static bool read_result(struct json_results *reader)
{
	struct json_result *result = &reader->result;
	struct json_reader *json = reader->json;

	result->line = json->line;
	result->timed = false;
	result->branch = NULL;
	result->value_count = result->attribute_count = 0;
	for (;;) {
		enum token token = json_next(json, reader->error);
		bool good;

		if (token == TOKEN_OBJECT_END)
			return result->timed || error_set(reader->error, ERROR_DATA,
							"%s:%zu: a result without \"timestamp\"",
							json->input->name, result->line);
		if (token == TOKEN_FAILED)
			return false;
		if (is_text(&json->text, "timestamp")) {
			good = read_time(reader);
		} else if (is_text(&json->text, "metrics")) {
			good = read_metrics(reader);
		} else if (is_text(&json->text, "attributes")) {
			good = read_attributes(reader);
		} else {
			token = json_next(json, reader->error);
			good = token != TOKEN_FAILED && json_skip(json, token, reader->error);
		}
		if (!good)
			return false;
	}
}

bool json_results_start(struct json_results *reader)
{
	size_t index;

	reader->attributes.dict.arena = reader->query->arena;
	for (size_t i = 0; i < reader->said.count; i++) {
		const char *name = reader->said.items[i].value;

		name_index_add(&reader->attributes, name, strlen(name));
		if (!rows_add_text(&reader->rows, &index, reader->error))
			return false;
	}
	return found_start(&reader->found, reader->query, &reader->rows, reader->error) &&
	       expect(reader, TOKEN_ARRAY, "the file");
}

bool json_results_next(struct json_results *reader, bool *more)
{
	enum token token = json_next(reader->json, reader->error);

	*more = token == TOKEN_OBJECT;
	if (*more)
		return read_result(reader);
	if (token == TOKEN_ARRAY_END)
		return json_next(reader->json, reader->error) == TOKEN_END;
	return token != TOKEN_FAILED && json_fail(reader->json, reader->error,
						"a result must be an object with \"timestamp\", "
						"\"metrics\" and \"attributes\"");
}

/*
 * JSON of any bytes: the streaming reader against jansson, and the source on top of it.
 *
 * The reader must accept what jansson accepts and refuse what it refuses, and say the same. Not
 * compared, because they are meant to differ: nesting between the two limits, numbers beyond
 * jansson's range, the words NaN and Infinity, a byte order mark, and NUL bytes outside strings, at
 * which jansson may stop.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/number.h"
#include "agent/core/when.h"
#include "sources/files/files.h"
#include "sources/files/jsonread.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static bool is_text(const struct json_reader *reader, const char *text, size_t length)
{
	return reader->text.length == length &&
	       (length == 0 || memcmp(reader->text.data, text, length) == 0);
}

/* The value that `token` begins must be `expected`. */
static void compare(
	struct json_reader *reader, enum token token, json_t *expected, struct error *error)
{
	const char *key;
	double number = 0;
	json_t *value;
	size_t index;

	switch (json_typeof(expected)) {
	case JSON_OBJECT:
		/* Keys that come twice leave one value in jansson's object: only the syntax is
		 * compared. */
		check(token == TOKEN_OBJECT && json_skip(reader, token, error));
		json_object_foreach(expected, key, value) check(key != NULL);
		return;
	case JSON_ARRAY:
		check(token == TOKEN_ARRAY);
		json_array_foreach(expected, index, value)
			compare(reader, json_next(reader, error), value, error);
		check(json_next(reader, error) == TOKEN_ARRAY_END);
		return;
	case JSON_STRING:
		check(token == TOKEN_STRING &&
			is_text(reader, json_string_value(expected), json_string_length(expected)));
		return;
	case JSON_INTEGER:
	case JSON_REAL:
		check(token == TOKEN_NUMBER &&
			number_parse(reader->text.data, reader->text.length, &number));
		check(number == json_number_value(expected));
		return;
	case JSON_TRUE: check(token == TOKEN_TRUE); return;
	case JSON_FALSE: check(token == TOKEN_FALSE); return;
	case JSON_NULL: check(token == TOKEN_NULL); return;
	}
	abort();
}

/* Reads all; says whether it is a document that jansson should accept as well. */
static bool read_all(struct json_reader *reader, bool *strict, struct error *error)
{
	*strict = true;
	for (;;) {
		enum token token = json_next(reader, error);

		if (token == TOKEN_FAILED)
			check(error->kind == ERROR_DATA && error->text[0]);
		if (token == TOKEN_FAILED || token == TOKEN_END)
			return token == TOKEN_END;
		if (token == TOKEN_NUMBER &&
			(reader->text.data[0] == 'N' || strchr(reader->text.data, 'I')))
			*strict = false;
	}
}

static void differ(const uint8_t *data, size_t size)
{
	struct input input = input_bytes("fuzz", data, size);
	struct json_reader *reader = json_reader_new(&input);
	struct error error = {0};
	json_error_t problem;
	bool strict, good = read_all(reader, &strict, &error);
	json_t *tree = json_loadb((const char *)data, size, JSON_DECODE_ANY, &problem);

	json_reader_free(reader);
	if (tree) {
		check(good || strstr(error.text, "nested more than"));
	} else if (good && strict && !(size >= 3 && memcmp(data, "\xEF\xBB\xBF", 3) == 0)) {
		enum json_error_code code = json_error_code(&problem);
		check(code == json_error_numeric_overflow);
	}
	if (tree && good) {
		input = input_bytes("fuzz", data, size);
		reader = json_reader_new(&input);
		compare(reader, json_next(reader, &error), tree, &error);
		check(json_next(reader, &error) == TOKEN_END);
		json_reader_free(reader);
	}
	json_decref(tree);
}

static void parse(const uint8_t *data, size_t size)
{
	struct json_options options = {.file = "fuzz"};
	struct query query = {.arena = arena_new(),
		.options = &options,
		.since = WHEN_ALWAYS,
		.until = WHEN_NEVER};
	struct input input = input_bytes("fuzz", data, size);
	struct error error = {0};

	if (json_parse(&query, &input, &error)) {
		for (size_t i = 0; i < query.data.count; i++)
			for (size_t k = 1; k < query.data.series[i].axis->n; k++)
				check(query.data.series[i].axis->times[k] >=
					query.data.series[i].axis->times[k - 1]);
	} else {
		check(error.kind == ERROR_DATA && error.text[0]);
	}
	arena_free(query.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size || !memchr(data, '\0', size))
		differ(data, size);
	parse(data, size);
	return 0;
}

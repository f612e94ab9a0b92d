/*
 * Reads reference data for tests: files of one JSON object a line, with jansson. Anything amiss
 * fails the test.
 */
#ifndef TESTS_UNIT_JSONL_H
#define TESTS_UNIT_JSONL_H

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls `each` for every line of the file, by its full path or in this tests/ folder; returns their
 * number. */
static inline size_t jsonl_each(
	const char *name, void (*each)(json_t *row, void *context), void *context)
{
	char path[2048];
	snprintf(path, sizeof path, "%s%s%s", *name == '/' ? "" : HUNTER_TEST_DATA,
		*name == '/' ? "" : "/", name);
	FILE *file = fopen(path, "r");
	if (!file)
		fail_msg("%s cannot be opened", path);
	size_t rows = 0, size = 0;
	char *line = NULL;
	while (getline(&line, &size, file) > 0) {
		json_error_t error;
		json_t *row = json_loads(line, 0, &error);
		if (!row)
			fail_msg("%s:%zu: %s", path, rows + 1, error.text);
		each(row, context);
		json_decref(row);
		rows++;
	}
	free(line);
	fclose(file);
	return rows;
}

/* A number; "inf", "-inf", "nan" and null where JSON has none. */
static inline double jsonl_number(const json_t *value)
{
	if (json_is_number(value))
		return json_number_value(value);
	return json_is_string(value) ? strtod(json_string_value(value), NULL) : nan("");
}

/* The numbers of an array; the caller frees them. */
static inline double *jsonl_numbers(const json_t *array, size_t *n)
{
	*n = json_array_size(array);
	double *numbers = calloc(*n + 1, sizeof(double));
	for (size_t i = 0; i < *n; i++)
		numbers[i] = jsonl_number(json_array_get(array, i));
	return numbers;
}

#endif

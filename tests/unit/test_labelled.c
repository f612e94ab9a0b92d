/*
 * Labelled series as people write them, and what is told of those that are wrong.
 */
// clang-format off
#include "unit.h"
// clang-format on

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/evaluate/labelled.h"

static bool read_text(
	struct arena *arena, const char *text, struct labelled_series *out, struct error *error)
{
	struct line_reader *reader = line_reader_new();
	bool good = labelled_read(reader, text, strlen(text), arena, out, error);
	line_reader_free(reader);
	return good;
}

static void assert_places(struct places places, size_t count, const size_t *wanted)
{
	assert_int_equal(places.count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(places.at[i], wanted[i]);
}

static void one_list(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	struct labelled_series series;
	struct error error;
	/* Out of order, twice, and with the trivial point. */
	assert_true(read_text(arena,
		"{\"id\": \"a\", \"change_points\": [3, 0, 1, 3], \"series\": [1, 2.5, null, 4]}",
		&series, &error));
	assert_string_equal(series.id, "a");
	assert_string_equal(series.group, "");
	assert_int_equal(series.labels.n, 4);
	assert_true(isnan(series.values[2]) && series.values[3] == 4);
	assert_int_equal(series.labels.annotator_count, 1);
	assert_places(series.labels.annotators[0], 2, (size_t[]){1, 3});
	assert_places(series.labels.all, 2, (size_t[]){1, 3});
	arena_free(arena);
}

static void annotators(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	struct labelled_series series;
	struct error error;
	assert_true(read_text(arena,
		"{\"name\": \"b\", \"series\": [1,2,3,4,5], \"annotations\": {\"x\": [4, 2], "
		"\"y\": []}, \"class\": \"disk\", \"unsure\": [[1, 3]], \"dates\": [7], "
		"\"hashes\": [\"h\", null, \"h\", \"h\", \"h\"]}",
		&series, &error));
	assert_string_equal(series.id, "b");
	assert_string_equal(series.group, "disk");
	assert_int_equal(series.labels.annotator_count, 2);
	assert_places(series.labels.annotators[0], 2, (size_t[]){2, 4});
	assert_places(series.labels.annotators[1], 0, NULL);
	assert_places(series.labels.all, 2, (size_t[]){2, 4});
	assert_int_equal(series.labels.span_count, 1);
	assert_int_equal(series.labels.spans[0].to, 3);
	assert_non_null(series.hashes);
	assert_null(series.times);
	assert_true(read_text(arena,
		"{\"series\": [1, 2], \"change_points\": [], \"start\": 1767322800, \"step\": 60}",
		&series, &error));
	assert_true(series.times[0] == 1767322800000 && series.times[1] == 1767322860000);
	assert_false(read_text(arena,
		"{\"series\": [1, 2], \"change_points\": [], \"times\": [60]}", &series, &error));
	assert_string_equal(error.text, "\"times\" has 1 items and \"series\" 2");
	assert_null(series.runs);
	arena_free(arena);
}

/* The form of histories that were labelled by eye; of several spellings the last counts. */
static void maybes(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	struct labelled_series series;
	struct error error;
	assert_true(read_text(arena,
		"{\"id\": \"c\", \"change_points\": [1], \"true\": [4], \"maybe\": [8, 2, 0], "
		"\"kind\": \"steps\", \"series\": [1, 2, 3, 4, 5, 6, 7, 8, 9], \"unsure\": [[1, "
		"1]], "
		"\"repo\": \"x/y\"}",
		&series, &error));
	assert_string_equal(series.group, "steps");
	assert_places(series.labels.all, 1, (size_t[]){4});
	assert_places(series.labels.maybe, 2, (size_t[]){2, 8});
	assert_int_equal(series.labels.span_count, 1);
	arena_free(arena);
}

/* What only one of two readers would take for JSON, and a key of no bytes. */
static void odd_members(void **state)
{
	static const struct {
		const char *text;
		double first;
	} cases[] = {
		{"{\"\": 1, \"series\": [7, 2], \"change_points\": [1]}", 7},
		{"{\"series\": [7, NaN, -Infinity], \"change_points\": [1]}", 7},
		{"{\"series\": [NaN], \"series\": [7, 2], \"change_points\": [1]}", 7},
		{"{\"series\": [1e999, 2], \"change_points\": [1]}", HUGE_VAL},
		{"{\"series\": [7, 2], \"change_points\": [0], \"annotations\": [1], \"\": {}}", 7},
		{"{\"options\": {\"\": {\"\": 1}, \"a\": null}, \"options\": null, "
		 "\"series\": [7, 2], \"change_points\": [1]}",
			7},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct arena *arena = arena_new();
		struct labelled_series series;
		struct error error = {0};
		if (!read_text(arena, cases[i].text, &series, &error))
			fail_msg("%s: %s", cases[i].text, error.text);
		assert_true(series.values[0] == cases[i].first);
		assert_places(series.labels.all, 1, (size_t[]){1});
		arena_free(arena);
	}
}

static void wrong_lines(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"{\"series\": [1, 2]", "not valid JSON at byte 18"},
		{"{\"series\": [], \"change_points\": []}", "\"series\" is empty"},
		{"{\"change_points\": []}", "no \"series\""},
		{"{\"series\": [1, 2], \"change_points\": 1}",
			"\"change_points\" is neither a list nor a map of lists"},
		{"{\"series\": [1, 2], \"change_points\": [2]}",
			"\"change_points\" 2 is not within the series (from 0 to 1)"},
		{"{\"series\": [1, 2], \"change_points\": [-1]}",
			"\"change_points\" -1 is not within the series (from 0 to 1)"},
		{"{\"series\": [1, 2], \"change_points\": {\"ann\": [0.5]}}",
			"\"change_points\" of \"ann\" contains a value that is not an integer"},
		{"{\"series\": [1, 2], \"change_points\": [], \"unsure\": [[1]]}",
			"\"unsure\" contains an entry that is not [from, to]"},
		{"{\"series\": [1, 2], \"change_points\": [], \"unsure\": [[1, 0]]}",
			"\"unsure\" 0 is not within the series (from 1 to 2)"},
		{"{\"series\": [1, 2], \"change_points\": [], \"unsure\": 5}",
			"\"unsure\" is not a list"},
		{"{\"series\": [1, 2], \"true\": [2], \"maybe\": []}",
			"\"true\" 2 is not within the series (from 0 to 1)"},
		{"{\"series\": [1, 2], \"true\": [], \"maybe\": [2]}",
			"\"maybe\" 2 is not within the series (from 0 to 1)"},
		{"{\"series\": [1, 2], \"true\": [], \"maybe\": 1}", "\"maybe\" is not a list"},
		{"{\"series\": [1, 2], \"true\": [], \"kind\": 1}", "\"kind\" is not a string"},
		{"{\"series\": [1, 2], \"change_points\": [], \"class\": 5}",
			"\"class\" is not a string"},
		{"{\"series\": [1, 2], \"change_points\": [], \"unsure\": [[0, 1e999]]}",
			"\"unsure\": real number overflow near '1e999'"},
		{"{\"series\": [1, 2], \"change_points\": [99999999999999999999]}",
			"\"change_points\": too big integer near '99999999999999999999'"},
		{"{\"series\": [1, 2], \"change_points\": [NaN]}", "not valid JSON at byte 38"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct arena *arena = arena_new();
		struct labelled_series series;
		struct error error;
		assert_false(read_text(arena, cases[i].text, &series, &error));
		assert_string_equal(error.text, cases[i].says);
		arena_free(arena);
	}
}

static void files(void **state)
{
	(void)state;
	static const char text[] = "{\"series\": [1, 2], \"change_points\": []}\n\n"
				   "{\"series\": [1, 2], \"change_points\": {}}\n"
				   "{\"series\": [1, 2], \"change_points\": [5]}\n";
	char name[] = "/tmp/hunter-labelled-XXXXXX", says[200];
	const char *const names[] = {name};
	const struct strings list = {names, 1};
	int file = mkstemp(name);
	assert_int_equal(write(file, text, strlen(text)), strlen(text));
	struct arena *arena = arena_new();
	struct labelled_set set = {0};
	struct error error;
	assert_false(labelled_load(&list, 4096, arena, &set, &error));
	snprintf(says, sizeof says,
		"%s:4: \"change_points\" 5 is not within the series (from 0 to 1)", name);
	assert_string_equal(error.text, says);
	set = (struct labelled_set){0};
	assert_int_equal(ftruncate(file, (off_t)(strstr(text, ": [5]") - text - 34)), 0);
	assert_true(labelled_load(&list, 4096, arena, &set, &error));
	assert_int_equal(set.count, 1);
	assert_int_equal(set.unlabelled, 1);
	set = (struct labelled_set){0};
	assert_false(labelled_load(&list, 16, arena, &set, &error));
	snprintf(says, sizeof says, "%s:1: line longer than 16 bytes (--max-line)", name);
	assert_string_equal(error.text, says);
	close(file);
	unlink(name);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_list),
		cmocka_unit_test(annotators),
		cmocka_unit_test(maybes),
		cmocka_unit_test(odd_members),
		cmocka_unit_test(wrong_lines),
		cmocka_unit_test(files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

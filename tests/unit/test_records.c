/* agent/commands/records: a change as an agent lists it. What comes of it is in
 * e2e/test_gates.py. */
#include "unit.h"

#include <jansson.h>
#include <math.h>

#include "agent/commands/records.h"

#define NAMES                                                                                      \
	"\"test\": \"t\", \"metric\": \"m\", \"series\": \"m\", \"time\": "                        \
	"\"2026-01-02T00:00:00Z\""

static bool read_text(struct arena *arena, const char *text, struct change_record *out)
{
	json_t *object = json_loads(text, 0, NULL);
	bool read = record_read(arena, object, out);

	assert_non_null(object);
	json_decref(object);
	return read;
}

static void test_members(void **state)
{
	struct arena *arena = arena_new();
	struct change_record record;

	(void)state;
	assert_true(read_text(arena,
		"{\"id\": 7, " NAMES
		", \"state\": \"moved\", \"kind\": \"trend\", \"direction\": -1, "
		"\"count_after\": 30, \"size\": 4, \"size_low\": null, \"level_after\": 2.5}",
		&record));
	assert_int_equal(record.item.id, 7);
	assert_int_equal(record.state, CHANGE_MOVED);
	assert_int_equal(record.item.change.kind, CHANGE_TREND);
	assert_int_equal(record.item.direction, -1);
	assert_int_equal(record.item.change.count_after, 30);
	assert_true(record.item.change.size == 4 && isnan(record.item.change.size_low));
	assert_string_equal(record.branch, "");
	arena_free(arena);
}

/* Another version's, or nobody's: they would be indices of names, and sizes. */
static void test_values_out_of_range(void **state)
{
	struct arena *arena = arena_new();
	struct change_record record;

	(void)state;
	assert_true(read_text(arena,
		"{\"id\": 7, " NAMES ", \"state\": 99, \"kind\": -5, \"direction\": 4294967297, "
		"\"count_after\": -1}",
		&record));
	assert_int_equal(record.state, CHANGE_CONFIRMED);
	assert_int_equal(record.item.change.kind, 0);
	assert_int_equal(record.item.direction, 0);
	assert_int_equal(record.item.change.count_after, 0);
	assert_false(read_text(arena, "{\"id\": -7, " NAMES "}", &record));
	assert_false(read_text(arena, "{\"id\": 9223372036854775807, " NAMES "}", &record));
	assert_false(read_text(arena, "{" NAMES "}", &record));
	assert_false(read_text(arena, "{\"id\": 7, \"test\": \"t\"}", &record));
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_values_out_of_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

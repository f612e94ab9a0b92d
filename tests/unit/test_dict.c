/* agent/base/dict.h, and the arrays of agent/base/arena.h that grow. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/dict.h"

static void test_dict(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	struct dict dict = {.arena = arena};
	static const char *const values[] = {"first", "second"};
	for (size_t i = 0; i < 1000; i++) {
		char *name = arena_printf(arena, "name %zu", i);
		assert_null(dict_get(&dict, name));
		const void **place = dict_place(&dict, name);
		assert_null(*place);
		*place = values[i % 2];
		assert_int_equal(dict.count, i + 1);
		assert_string_equal(dict_get(&dict, "name 0"), "first");
	}
	for (size_t i = 0; i < 1000; i++) {
		char *name = arena_printf(arena, "name %zu", i);
		assert_ptr_equal(dict_get(&dict, name), values[i % 2]);
		assert_ptr_equal(*dict_place(&dict, name), values[i % 2]);
	}
	assert_int_equal(dict.count, 1000);
	arena_free(arena);
}

/* Labels of series are names, too: which share a slot is not to be known. */
static void test_dict_is_keyed(void **state)
{
	static const int value = 1;
	struct arena *arena = arena_new();
	struct dict one = {.arena = arena}, other = {.arena = arena};
	size_t elsewhere = 0;

	(void)state;
	for (int i = 0; i < 100; i++) {
		const char *name = arena_printf(arena, "name %d", i);
		*dict_place(&one, name) = *dict_place(&other, name) = &value;
	}
	assert_int_equal(one.capacity, other.capacity);
	for (size_t i = 0; i < one.capacity; i++)
		elsewhere += one.slots[i].name != other.slots[i].name;
	assert_int_not_equal(elsewhere, 0);
	arena_free(arena);
}

static void test_name_index(void **state)
{
	struct arena *arena = arena_new();
	struct name_index index = {.dict = {.arena = arena}};
	char name[20];

	(void)state;
	assert_int_equal(name_index_find(&index, "name 0", 6), NAME_INDEX_NONE);
	for (size_t i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "name %zu, more", i);
		size_t length = strcspn(name, ",");

		assert_int_equal(name_index_add(&index, name, length), i);
		assert_int_equal(name_index_add(&index, name, length), i);
		assert_int_equal(index.count, i + 1);
	}
	for (size_t i = 0; i < 100; i++) {
		size_t length = (size_t)snprintf(name, sizeof name, "name %zu", i);

		assert_string_equal(index.items[i], name);
		assert_int_equal(name_index_find(&index, name, length), i);
	}
	assert_int_equal(name_index_find(&index, "name", 4), NAME_INDEX_NONE);
	arena_free(arena);
}

static void test_growing(void **state)
{
	struct arena *arena = arena_new();
	size_t *items = NULL, *other = NULL, capacity = 0, moves = 0;

	(void)state;
	for (size_t i = 0; i < 1000; i++) {
		size_t before = capacity;

		items = memory_grow(items, &capacity, i + 1, sizeof *items);
		other = arena_grow(arena, other, i, sizeof *other);
		items[i] = other[i] = i;
		assert_true(capacity > i);
		moves += capacity != before;
	}
	assert_in_range(moves, 1, 10);
	for (size_t i = 0; i < 1000; i++)
		assert_true(items[i] == i && other[i] == i);
	items = memory_grow(items, &capacity, 5000, sizeof *items);
	assert_int_equal(capacity, 5000);
	assert_int_equal(items[999], 999);
	free(items);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dict),
		cmocka_unit_test(test_dict_is_keyed),
		cmocka_unit_test(test_name_index),
		cmocka_unit_test(test_growing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

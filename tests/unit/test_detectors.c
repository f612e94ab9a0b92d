/*
 * What holds for every detector of the registry: its table, the same answer twice and in two
 * threads at once, scales, long series.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <pthread.h>
#include <string.h>

#include "detectors/combine.h"
#include "detectors/edivisive.h"
#include "detectors/kernel.h"
#include "tests/unit/close.h"
#include "tests/unit/random_series.h"

#include "tests/unit/detect.h"

enum { LONGEST = 10000, OPTIONS_MOST = 256 };

struct room {
	_Alignas(16) char options[OPTIONS_MOST];
	struct edivisive_options edivisive;
	struct kernel_options kernel;
	struct combine_member members[2];
};

/* The defaults, and two members for `combine`. */
static const void *defaults(const struct detector *detector, struct room *room)
{
	assert_true(detector->options_size <= OPTIONS_MOST);
	memset(room, 0, sizeof *room);
	field_defaults(detector->fields, room->options);
	if (detector != &combine_detector)
		return room->options;
	field_defaults(edivisive_detector.fields, &room->edivisive);
	field_defaults(kernel_detector.fields, &room->kernel);
	room->members[0] = (struct combine_member){"edivisive", &room->edivisive};
	room->members[1] = (struct combine_member){"kernel", &room->kernel};
	struct combine_options *options = (void *)room->options;
	options->members = room->members;
	options->count = options->need = 2;
	return options;
}

static bool is_permutation(const struct detector *detector)
{
	return strcmp(detector->name, "edivisive_permutation") == 0;
}

static void test_tables(void **state)
{
	(void)state;
	size_t count = 0;
	for (const struct detector *const *d = detectors; *d; d++, count++) {
		struct room room;
		struct error error;
		const void *options = defaults(*d, &room);
		assert_ptr_equal(detector_find((*d)->name), *d);
		assert_true((*d)->summary && *(*d)->summary);
		assert_true(!(*d)->check || (*d)->check(options, &error));
		assert_true(!(*d)->stream_new == !(*d)->stream_append);
		for (const struct field *field = (*d)->fields; field->name; field++) {
			assert_true(field->help && field->initial);
			assert_true(field->offset < (*d)->options_size);
			assert_ptr_equal(field_find((*d)->fields, field->name), field);
		}
	}
	assert_int_equal(count, 7);
}

static void test_survival(void **state)
{
	(void)state;
	for (const struct detector *const *d = detectors; *d; d++) {
		struct room room;
		if (!is_permutation(*d)) /* whose searches are squared: the fuzzer does it */
			assert_survives(*d, defaults(*d, &room));
	}
}

/* Powers of two change no digit: the same points, the same p, scaled means. */
static void test_scales(void **state)
{
	(void)state;
	double values[120], scaled[120];
	static const int exponents[] = {-900, -320, 320, 900};
	for (const struct detector *const *d = detectors; *d; d++) {
		struct room room;
		const void *options = defaults(*d, &room);
		if (strcmp((*d)->name, "stepfit") == 0)
			continue; /* its least deviation is in the unit of the values */
		noisy_steps(4, values, 120, 60, 8);
		static struct change plain[120];
		size_t count = detect(*d, options, values, 120);
		memcpy(plain, found, count * sizeof *plain);
		assert_true(count > 0);
		for (size_t e = 0; e < 4; e++) {
			for (size_t i = 0; i < 120; i++)
				scaled[i] = ldexp(values[i], exponents[e]);
			assert_int_equal(detect(*d, options, scaled, 120), count);
			for (size_t i = 0; i < count; i++) {
				assert_int_equal(found[i].index, plain[i].index);
				assert_close(found[i].pvalue, plain[i].pvalue, 1e-9);
				assert_close(found[i].stddev_after,
					ldexp(plain[i].stddev_after, exponents[e]), 1e-9);
			}
		}
	}
}

struct task {
	const struct detector *detector;
	struct room room;
	size_t counts[20];
	struct change last[300];
};

static void *run_task(void *context)
{
	struct task *task = context;
	const void *options = defaults(task->detector, &task->room);
	struct scratch *scratch = scratch_new();
	for (uint64_t seed = 1; seed <= 20; seed++) {
		double values[300];
		size_t n = is_permutation(task->detector) ? 40 : 300;
		noisy_steps(seed, values, n, n / 3, 5);
		const struct samples samples = {.values = values, .n = n};
		task->counts[seed - 1] =
			task->detector->detect(&samples, options, scratch, task->last);
	}
	scratch_free(scratch);
	return NULL;
}

/* Two threads at once say what one says alone. */
static void test_threads(void **state)
{
	(void)state;
	static struct task tasks[3];
	for (const struct detector *const *d = detectors; *d; d++) {
		pthread_t threads[2];
		memset(tasks, 0, sizeof tasks);
		for (size_t i = 0; i < 3; i++)
			tasks[i].detector = *d;
		for (size_t i = 0; i < 2; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, run_task, &tasks[i]), 0);
		for (size_t i = 0; i < 2; i++)
			assert_int_equal(pthread_join(threads[i], NULL), 0);
		run_task(&tasks[2]);
		for (size_t i = 0; i < 2; i++) {
			assert_memory_equal(
				tasks[i].counts, tasks[2].counts, sizeof tasks[2].counts);
			assert_memory_equal(tasks[i].last, tasks[2].last,
				tasks[2].counts[19] * sizeof(struct change));
		}
	}
}

/* All but the permutation test, whose cost is that of its searches, do 10,000 points in a second
 * or so; this is bounded by the test's time limit. */
static void test_long_series(void **state)
{
	(void)state;
	static double values[LONGEST];
	noisy_steps(8, values, LONGEST, 1250, 6);
	for (const struct detector *const *d = detectors; *d; d++) {
		struct room room;
		if (is_permutation(*d))
			continue;
		size_t count = detect(*d, defaults(*d, &room), values, LONGEST), close = 0;
		assert_changes_sound(count, values, LONGEST);
		for (size_t i = 0; i < count; i++)
			close += (found[i].index + 2) % 1250 <= 4;
		assert_true(close >= 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_survival),
		cmocka_unit_test(test_scales),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_long_series),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

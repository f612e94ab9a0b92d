/*
 * What holds for every detector of the registry: its table, the same answer twice and in two
 * threads at once, scales, long series.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <pthread.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/hash.h"
#include "detectors/combine.h"
#include "detectors/edivisive/edivisive.h"
#include "detectors/kernel.h"
#include "detectors/lookback.h"
#include "detectors/scratch.h"
#include "tests/unit/close.h"
#include "tests/unit/random_series.h"
#include "tests/unit/same_change.h"
#include "tests/unit/sanitized.h"

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
	assert_true(detector->plugin.options_size <= OPTIONS_MOST);
	memset(room, 0, sizeof *room);
	field_defaults(detector->plugin.fields, room->options);
	if (detector != &combine_detector)
		return room->options;
	field_defaults(edivisive_detector.plugin.fields, &room->edivisive);
	field_defaults(kernel_detector.plugin.fields, &room->kernel);
	room->members[0] = (struct combine_member){"edivisive", &room->edivisive};
	room->members[1] = (struct combine_member){"kernel", &room->kernel};
	struct combine_options *options = (void *)room->options;
	options->members = room->members;
	options->count = options->need = 2;
	return options;
}

static bool is_permutation(const struct detector *detector)
{
	return strcmp(detector->plugin.name, "edivisive_permutation") == 0;
}

static void test_tables(void **state)
{
	(void)state;
	size_t count = 0;
	for (const struct plugin *const *at = detectors; *at; at++, count++) {
		const struct detector *detector = (const struct detector *)*at;
		struct room room;
		struct error error;
		const void *options = defaults(detector, &room);
		assert_ptr_equal(detector_find(detector->plugin.name), detector);
		assert_true(detector->plugin.summary && *detector->plugin.summary);
		assert_true(detector->thrift && *detector->thrift);
		assert_true(!detector->plugin.check || detector->plugin.check(options, &error));
		assert_true(!detector->stream_new == !detector->stream_append);
		for (const struct field *field = detector->plugin.fields; field->name; field++) {
			assert_true(field->help && field->initial);
			assert_true(field->offset < detector->plugin.options_size);
			assert_ptr_equal(field_find(detector->plugin.fields, field->name), field);
		}
	}
	assert_int_equal(count, 7);
}

/* Any number is a seed, and how many permutations are made at least follows from p_value: a million
 * at its least. Profile otava takes what Otava takes. */
static bool is_left_out(const struct detector *detector, const char *choice)
{
	return is_permutation(detector) || strcmp(choice, "otava") == 0;
}

enum { PANEL = 25, PANEL_N = 480, SHORT = 150, SHORT_N = 30 };

/* Steps of many sizes and in two units, some of which only many points show, or nearly lost in
 * noise; then the short ones. */
static size_t panel_series(uint64_t seed, double *values)
{
	bool slight = seed >= 6 && seed <= 9;
	double step = slight ? 0 : 0.05 * (double)seed * (double)seed;
	if (seed > PANEL) {
		noisy_steps(seed, values, SHORT_N, SHORT_N / 2, 2);
		return SHORT_N;
	}
	noisy_steps(seed, values, PANEL_N, 36 + 3 * seed, step);
	values[30] += 30;
	for (size_t i = 0; i < PANEL_N; i++) {
		values[i] += slight && i >= PANEL_N / 2 ? 0.6 : 0;
		if (seed == 2) /* little noise, and a small step */
			values[i] = 100 + (values[i] - 100) / 20 + (i >= 120 ? 0.5 : 0);
		values[i] += seed == 1 ? (double)(i / 40 * 5) : i >= 360 ? 2 * step : 0;
		values[i] *= seed % 5 == 0 ? 1e-4 : 1;
	}
	return PANEL_N;
}

/* What a detector finds in the panel, in runs of six and of two points, as one number. */
static uint64_t panel_of(const struct detector *detector, const void *options, size_t *count)
{
	static size_t runs[PANEL_N];
	uint64_t hash = HASH_START;
	*count = 0;
	for (uint64_t seed = 1; seed <= PANEL + SHORT; seed++) {
		double values[PANEL_N];
		const struct samples samples = {.values = values,
			.n = panel_series(seed, values),
			.direction = -1,
			.runs = runs};
		for (size_t i = 0; i < PANEL_N; i++)
			runs[i] = i / (seed % 2 ? 6 : 2);
		size_t changes = detect_samples(detector, options, &samples);
		*count += changes;
		hash = hash_add(hash, &changes, sizeof changes);
		for (size_t i = 0; i < changes; i++)
			hash = hash_add(hash, &found[i].index, sizeof found[i].index);
	}
	return hash;
}

static double number_of(const struct field *field, const void *options)
{
	const char *at = (const char *)options + field->offset;
	return field->type == FIELD_DOUBLE ? *(const double *)(const void *)at
					   : (double)*(const int64_t *)(const void *)at;
}

static void set_number(const struct field *field, void *options, double value)
{
	char *at = (char *)options + field->offset;
	if (field->type == FIELD_DOUBLE)
		*(double *)(void *)at = value;
	else
		*(int64_t *)(void *)at = (int64_t)value;
}

/* At both ends of what the detector accepts, a number changes what is found; at its largest, a
 * share differs from a tenth of it; and with the least count something is found. */
static void check_effect(
	const struct detector *detector, const struct field *field, void *options, double end)
{
	double usual = number_of(field, options);
	double value = end == 0 && field->flags & FIELD_MIN_OPEN ? 1e-3 * usual : end;
	struct error error;
	size_t some, count;
	uint64_t before = panel_of(detector, options, &some), after;
	bool accepted = false;
	/* Towards the default, until a value is accepted. */
	for (int i = 0; i < 2000 && !accepted; i++) {
		set_number(field, options, value);
		accepted = !detector->plugin.check || detector->plugin.check(options, &error);
		if (!accepted)
			value = field->type == FIELD_INT ? value + (value < usual ? 1 : -1)
							 : value * (value < usual ? 1.01 : 0.99);
	}
	if (!accepted) { /* it is refused with this choice, whatever it is */
		set_number(field, options, usual);
		return;
	}
	after = panel_of(detector, options, &count);
	if (before == after &&
		(field->type == FIELD_INT ? value != usual : fabs(value - usual) > 1e-9))
		fail_msg("%s: %s: %g does what %g does", detector->plugin.name, field->name, value,
			usual);
	if (end == field->min && field->type == FIELD_INT && count == 0)
		fail_msg("%s: %s: with %g nothing is found", detector->plugin.name, field->name,
			value);
	if (end == field->max && value <= 1 && usual != value) {
		set_number(field, options, 0.1 * value);
		if (panel_of(detector, options, &count) == after)
			fail_msg("%s: %s: %g does what %g does", detector->plugin.name, field->name,
				value, 0.1 * value);
	}
	set_number(field, options, usual);
}

/* With each choice of each option. */
static void test_effects(void **state)
{
	(void)state;
	for (const struct plugin *const *at = detectors; *at; at++) {
		const struct detector *detector = (const struct detector *)*at;
		const struct field *choice = detector->plugin.fields;
		while (choice->name && choice->type != FIELD_CHOICE)
			choice++;
		for (int c = 0; c == 0 || (choice->name && choice->choices[c]); c++) {
			for (const struct field *field = detector->plugin.fields; field->name;
				field++) {
				struct room room;
				assert_non_null(defaults(detector, &room));
				if (choice->name)
					*(int *)(void *)(room.options + choice->offset) = c;
				if (detector == &kernel_detector) /* else min_size: 1 is too dear */
					((struct kernel_options *)(void *)room.options)->penalty =
						0.1;
				if (field->type == FIELD_CHOICE ||
					is_left_out(
						detector, choice->name ? choice->choices[c] : ""))
					continue;
				check_effect(detector, field, room.options, field->min);
				check_effect(detector, field, room.options, field->max);
			}
		}
	}
}

static void test_survival(void **state)
{
	(void)state;
	for (const struct plugin *const *at = detectors; *at; at++) {
		const struct detector *detector = (const struct detector *)*at;
		struct room room;
		if (!is_permutation(detector)) /* whose searches are squared: the fuzzer does it */
			assert_survives(detector, defaults(detector, &room));
	}
}

/* Powers of two change no digit: the same points, the same p, scaled means. */
static void test_scales(void **state)
{
	(void)state;
	double values[120], scaled[120];
	static const int exponents[] = {-900, -320, 320, 900};
	for (const struct plugin *const *at = detectors; *at; at++) {
		const struct detector *detector = (const struct detector *)*at;
		struct room room;
		const void *options = defaults(detector, &room);
		if (strcmp(detector->plugin.name, "stepfit") == 0)
			continue; /* its least deviation is in the unit of the values */
		noisy_steps(4, values, 120, 60, 8);
		static struct change plain[120];
		size_t count = detect(detector, options, values, 120);
		memcpy(plain, found, count * sizeof *plain);
		assert_true(count > 0);
		for (size_t e = 0; e < 4; e++) {
			for (size_t i = 0; i < 120; i++)
				scaled[i] = ldexp(values[i], exponents[e]);
			assert_int_equal(detect(detector, options, scaled, 120), count);
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
	for (const struct plugin *const *at = detectors; *at; at++) {
		const struct detector *detector = (const struct detector *)*at;
		pthread_t threads[2];
		memset(tasks, 0, sizeof tasks);
		for (size_t i = 0; i < 3; i++)
			tasks[i].detector = detector;
		for (size_t i = 0; i < 2; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, run_task, &tasks[i]), 0);
		for (size_t i = 0; i < 2; i++)
			assert_int_equal(pthread_join(threads[i], NULL), 0);
		run_task(&tasks[2]);
		for (size_t i = 0; i < 2; i++) {
			assert_memory_equal(
				tasks[i].counts, tasks[2].counts, sizeof tasks[2].counts);
			assert_true(
				same_changes(tasks[i].last, tasks[2].last, tasks[2].counts[19]));
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
	for (const struct plugin *const *at = detectors; *at; at++) {
		const struct detector *detector = (const struct detector *)*at;
		struct room room;
		if (is_permutation(detector))
			continue;
		size_t count = detect(detector, defaults(detector, &room), values, LONGEST),
		       close = 0;
		assert_changes_sound(count, values, LONGEST);
		for (size_t i = 0; i < count; i++)
			close += (found[i].index + 2) % 1250 <= 4;
		assert_true(close >= 7);
	}
}

/* What the limit leaves alone: the same answer as without. */
static void test_within_the_limit(void **state)
{
	(void)state;
	static double values[LONGEST];
	static struct change limited[LONGEST];
	noisy_steps(8, values, LONGEST, 1250, 6);
	struct scratch *scratch = scratch_new();
	for (const struct plugin *const *at = detectors; *at; at++) {
		const struct detector *detector = (const struct detector *)*at;
		struct room room;
		struct error error;
		const void *options = defaults(detector, &room);
		size_t n = is_permutation(detector) ? 300 : LONGEST,
		       count = detect(detector, options, values, n);
		const struct samples samples = {.values = values, .n = n};
		size_t again;
		assert_true(detector_run(
			detector, &samples, options, scratch, limited, &again, &error));
		assert_int_equal(again, count);
		assert_true(same_changes(limited, found, count));
	}
	scratch_free(scratch);
}

/* Options that ask for more work than n values are worth, each in a way of its own. */
struct demand {
	const char *detector, *options[6][2];
	bool level; /* the values: two, in turn; else each larger than the last */
};

static const struct demand demands[] = {
	{"edivisive", {{"profile", "otava"}, {"window", "4000"}, {"p_value", "1"}}, false},
	{"edivisive", {{"profile", "otava"}, {"p_value", "1"}, {"magnitude", "1e300"}}, false},
	{"edivisive", {{"profile", "otava"}, {"window", "500"}, {"p_value", "0.49"}}, true},
	{"edivisive", {{"window", "4000"}, {"p_value", "1"}}, false},
	{"edivisive_permutation", {{"permutations", "1000000"}}, false},
	{"kernel", {{"penalty", "1000000"}}, true},
	{"stepfit", {{"algorithm", "mannwhitneyu"}, {"radius", "25"}, {"threshold", "1"}}, true},
	{"stepfit", {{"algorithm", "mannwhitneyu"}, {"radius", "1000"}}, false},
	{"stepfit", {{"algorithm", "percent"}, {"radius", "1000"}}, false},
	{"lookback", {{"runs", "1000"}, {"magnitude", "0"}}, false},
};

enum { DEMANDING = 4000 };
#define ALLOWED 10000000 /* many times what edivisive takes by default */

static void read_options(const struct demand *demand, struct room *room)
{
	const struct detector *detector = detector_find(demand->detector);
	struct arena *arena = arena_new();
	struct error error;
	field_defaults(detector->plugin.fields, room->options);
	for (size_t i = 0; demand->options[i][0]; i++) {
		const struct field *field =
			field_find(detector->plugin.fields, demand->options[i][0]);
		assert_non_null(field);
		assert_true(
			field_parse(field, room->options, demand->options[i][1], arena, &error));
	}
	arena_free(arena);
}

static void fill_values(double *values, size_t n, bool level)
{
	for (size_t i = 0; i < n; i++)
		values[i] = level ? (double)(i % 2) : (double)(i + i % 7);
}

/* All work that grows faster than the series is counted, and ends where it is not allowed. */
static void test_work_is_counted(void **state)
{
	(void)state;
	static double values[DEMANDING];
	static struct change changes[DEMANDING];
	struct scratch *scratch = scratch_new();
	for (size_t i = 0; i < sizeof demands / sizeof *demands; i++) {
		const struct detector *detector = detector_find(demands[i].detector);
		const struct samples samples = {.values = values, .n = DEMANDING};
		struct room room;
		read_options(&demands[i], &room);
		fill_values(values, DEMANDING, demands[i].level);
		scratch_allow(scratch, ALLOWED);
		detector->detect(&samples, room.options, scratch, changes);
		if (!scratch_is_spent(scratch))
			fail_msg("%s, demand %zu: not counted", detector->plugin.name, i);
	}
	scratch_free(scratch);
}

/* A tolerance within which every vote meets every other. */
static void test_work_of_a_combination(void **state)
{
	(void)state;
	static double values[DEMANDING];
	static struct change changes[DEMANDING];
	const struct lookback_options lookback = {.runs = 1, .p_value = 1, .min_samples = 100};
	const struct edivisive_options edivisive = {.window = 50, .p_value = 1e-9};
	const struct combine_member three[] = {
		{"lookback", &lookback}, {"lookback", &lookback}, {"edivisive", &edivisive}};
	const struct combine_options options = {1000000, 3, three, 3};
	const struct samples samples = {.values = values, .n = DEMANDING};
	struct scratch *scratch = scratch_new();
	fill_values(values, DEMANDING, true);
	scratch_allow(scratch, ALLOWED);
	combine_detector.detect(&samples, &options, scratch, changes);
	assert_true(scratch_is_spent(scratch));
	scratch_free(scratch);
}

#ifndef SANITIZED
/* Instead of working for hours it says what was too much, and is ready for the next call. */
static void test_too_much_work(void **state)
{
	(void)state;
	enum { N = 200000 };
	static const struct demand one_search[] = {
		{"edivisive", {{"window", "1000000"}}, false},
		{"edivisive", {{"profile", "otava"}, {"window", "1000000"}}, false},
		{"edivisive_permutation", {{0}}, false},
	};
	double *values = memory_new(N, sizeof *values);
	struct change *changes = memory_new(N, sizeof *changes);
	struct scratch *scratch = scratch_new();
	fill_values(values, N, false);
	for (size_t i = 0; i < sizeof one_search / sizeof *one_search; i++) {
		const struct detector *detector = detector_find(one_search[i].detector);
		struct samples samples = {.values = values, .n = N};
		struct room room;
		struct error error;
		size_t count;
		read_options(&one_search[i], &room);
		assert_false(detector_run(
			detector, &samples, room.options, scratch, changes, &count, &error));
		assert_int_equal(error.kind, ERROR_DATA);
		assert_non_null(strstr(error.text, detector->plugin.name));
		assert_non_null(strstr(error.text, "12.0 billion steps for 200000 points"));
		assert_non_null(strstr(error.text, detector->thrift));
		samples.n = 20;
		assert_true(detector_run(
			detector, &samples, room.options, scratch, changes, &count, &error));
	}
	scratch_free(scratch);
	free(values);
	free(changes);
}
#endif

/* Wherever the work ends, nothing is read or written that should not be. */
static void test_cut_short(void **state)
{
	(void)state;
	static double values[2000];
	static struct change changes[2000];
	struct scratch *scratch = scratch_new();
	for (const struct plugin *const *at = detectors; *at; at++) {
		const struct detector *detector = (const struct detector *)*at;
		struct room room;
		const void *options = defaults(detector, &room);
		size_t n = is_permutation(detector) ? 200 : 2000;
		const struct samples samples = {.values = values, .n = n};
		noisy_steps(3, values, n, 40, 7);
		for (uint64_t steps = 1; steps < UINT64_C(40000000); steps += 1 + steps) {
			scratch_allow(scratch, steps);
			assert_true(detector->detect(&samples, options, scratch, changes) <= n);
			if (!detector->stream_new)
				continue;
			struct stream *stream = detector->stream_new(options, 0);
			size_t count;
			scratch_allow(scratch, steps);
			detector->stream_append(stream, values, n, scratch, &count);
			detector->stream_free(stream);
		}
	}
	scratch_free(scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_effects),
		cmocka_unit_test(test_survival),
		cmocka_unit_test(test_scales),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_long_series),
		cmocka_unit_test(test_within_the_limit),
		cmocka_unit_test(test_work_is_counted),
		cmocka_unit_test(test_work_of_a_combination),
#ifndef SANITIZED /* billions of steps, of the code that the other cases run */
		cmocka_unit_test(test_too_much_work),
#endif
		cmocka_unit_test(test_cut_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

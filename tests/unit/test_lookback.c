/*
 * Comparisons of a run with those before it: patterns of our own, of the kinds that LNT knows by
 * name; LNT's own where the reference data are at hand; and series of runs.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include "detectors/lookback.h"
#include "tests/unit/close.h"
#include "tests/unit/jsonl.h"
#include "tests/unit/random_series.h"

#include "tests/unit/detect.h"

enum { ROOM = 64 };

static struct scratch *scratch;

static struct lookback_options defaults(void)
{
	struct lookback_options options;
	field_defaults(lookback_detector.plugin.fields, &options);
	return options;
}

struct sample {
	size_t n;
	double values[12];
};

struct pattern {
	const char *name;
	struct sample now, before;
	enum lookback_verdict expected;
};

#define VALUES(...)                                                                                \
	{                                                                                          \
		sizeof((double[]){__VA_ARGS__}) / sizeof(double),                                  \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

#define SAME LOOKBACK_UNCHANGED
#define BETTER LOOKBACK_IMPROVED
#define WORSE LOOKBACK_REGRESSED

static const struct pattern patterns[] = {
	{"flat", VALUES(7), VALUES(7, 7, 7, 7, 7), SAME},
	{"flat with noise", VALUES(7.03), VALUES(7.01, 7.08, 7.05, 7, 7.02), SAME},
	{"within a percent", VALUES(20.19), VALUES(20, 19.9, 20), SAME},
	{"slower", VALUES(8), VALUES(4), WORSE},
	{"faster", VALUES(4), VALUES(8), BETTER},
	{"regression", VALUES(9), VALUES(6, 6, 6, 6, 6, 6), WORSE},
	{"regression in noise", VALUES(23.1), VALUES(20.2, 21, 20.7, 20.1, 20.9, 20.4), WORSE},
	{"improvement in noise", VALUES(18.2), VALUES(20.2, 21, 20.7, 20.1, 20.9), BETTER},
	{"two modes", VALUES(5), VALUES(3, 5, 3, 5, 3, 5, 3), SAME},
	{"two modes in pairs", VALUES(5), VALUES(3, 3, 5, 5, 3, 3, 5), SAME},
	{"two modes with noise", VALUES(5.13), VALUES(3.1, 5.1, 3, 5.2, 3.2, 5.1), SAME},
	{"regression of two modes", VALUES(7), VALUES(3, 5, 3, 5, 3, 5), WORSE},
	{"overlapping regression of two modes", VALUES(5.8), VALUES(3, 5, 3, 5, 3, 5), WORSE},
	{"slow regression", VALUES(3.3), VALUES(2, 2.2, 2.4, 2.6, 2.8, 3), WORSE},
	{"slow improvement", VALUES(2.1), VALUES(3.6, 3.3, 3, 2.7, 2.4), BETTER},
	/* What a lookback cannot know: that a spike will go away. */
	{"spike", VALUES(40), VALUES(6, 6, 6, 6, 6, 6), WORSE},
	{"after a spike", VALUES(6), VALUES(6, 6, 6, 6, 6, 40), SAME},
	/* Replicates. */
	{"best of several", VALUES(9.9, 6.01, 8), VALUES(6, 6.1, 6.05), SAME},
	{"several, clear", VALUES(9, 9.1, 9.05), VALUES(6, 6.1, 6.05), WORSE},
	{"several, within their deviation", VALUES(7, 14, 9), VALUES(6, 6.5, 6.2), SAME},
	{"ranks say the same", VALUES(6.3, 5.2, 5.6, 6.6), VALUES(5.5, 5.8, 6.1, 6.5, 5.9), SAME},
	{"ranks say otherwise", VALUES(8, 8.1, 8.2, 8.05), VALUES(6, 6.1, 6.2, 6.05, 6.3), WORSE},
	{"nothing now", {0}, VALUES(6), SAME},
	{"nothing before", VALUES(6), {0}, SAME},
	{"from zero", VALUES(3), VALUES(0, 0, 0), WORSE},
};

static enum lookback_verdict compare(
	const struct pattern *pattern, int direction, const struct lookback_options *options)
{
	struct lookback_side now = {.values = pattern->now.values, .n = pattern->now.n};
	struct lookback_side before = {.values = pattern->before.values, .n = pattern->before.n};
	return lookback_compare(&now, &before, direction, options, scratch).verdict;
}

static void test_patterns(void **state)
{
	(void)state;
	struct lookback_options options = defaults();
	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
		enum lookback_verdict verdict = compare(&patterns[i], -1, &options);
		if (verdict != patterns[i].expected)
			fail_msg("%s: %d instead of %d", patterns[i].name, verdict,
				patterns[i].expected);
		assert_int_equal(compare(&patterns[i], 0, &options), verdict);
	}
}

/* Where higher is better the signs turn, and the largest sample stands for a run. */
static void test_direction(void **state)
{
	(void)state;
	struct lookback_options options = defaults();
	const struct pattern up = {"", VALUES(9, 9.1, 9.05), VALUES(6, 6.1), SAME};
	const struct pattern one_good = {"", VALUES(6.1, 2, 3), VALUES(6, 6.1), SAME};
	assert_int_equal(compare(&up, 1, &options), LOOKBACK_IMPROVED);
	assert_int_equal(compare(&up, -1, &options), LOOKBACK_REGRESSED);
	assert_int_equal(compare(&one_good, 1, &options), LOOKBACK_UNCHANGED);
	options.deviations = 0;
	assert_int_equal(compare(&one_good, -1, &options), LOOKBACK_IMPROVED);
	options.best = LOOKBACK_MAX;
	assert_int_equal(compare(&one_good, -1, &options), LOOKBACK_UNCHANGED);
	options.best = LOOKBACK_MEDIAN;
	assert_int_equal(compare(&one_good, 1, &options), LOOKBACK_REGRESSED);
}

static void test_options(void **state)
{
	(void)state;
	const struct pattern small = {"", VALUES(1.05), VALUES(1), SAME};
	const struct pattern ranks = {"", VALUES(3, 3.1, 3.2, 9), VALUES(1, 2, 4, 5, 6), SAME};
	struct lookback_options options = defaults();
	assert_int_equal(compare(&small, -1, &options), LOOKBACK_REGRESSED);
	options.floor = 0.1;
	assert_int_equal(compare(&small, -1, &options), LOOKBACK_UNCHANGED);
	options.floor = 0;
	options.magnitude = 0.06;
	assert_int_equal(compare(&small, -1, &options), LOOKBACK_UNCHANGED);
	options = defaults();
	options.deviations = 0;
	assert_int_equal(compare(&ranks, -1, &options), LOOKBACK_UNCHANGED);
	options.p_value = 1;
	assert_int_equal(compare(&ranks, -1, &options), LOOKBACK_REGRESSED);
	options.p_value = 0.05;
	options.min_samples = 5;
	assert_int_equal(compare(&ranks, -1, &options), LOOKBACK_REGRESSED);
}

static void test_hash(void **state)
{
	(void)state;
	const double now = 8, before = 4;
	struct lookback_options options = defaults();
	static const struct {
		uint64_t now, before;
		enum lookback_verdict expected;
	} cases[] = {{5, 5, SAME}, {5, 6, WORSE}, {0, 6, WORSE}, {5, 0, WORSE}, {0, 0, WORSE}};
	for (size_t i = 0; i < 5; i++) {
		struct lookback_side one = {&now, 1, cases[i].now};
		struct lookback_side other = {&before, 1, cases[i].before};
		assert_int_equal(lookback_compare(&one, &other, -1, &options, scratch).verdict,
			cases[i].expected);
	}
}

static uint64_t hash_of(const json_t *text)
{
	uint64_t hash = 0;
	for (const char *c = json_string_value(text); c && *c; c++)
		hash = hash * 131 + (unsigned char)*c;
	return hash;
}

struct tally {
	size_t agreed, judged;
};

static void compare_row(json_t *row, void *context)
{
	const double lnts_floor = 0.01;
	struct tally *tally = context;
	struct lookback_options options = defaults();
	const char *name = json_string_value(json_object_get(row, "name"));
	const char *best = json_string_value(json_object_get(row, "aggregation"));
	options.floor = lnts_floor;
	options.best = strcmp(best, "median") == 0 ? LOOKBACK_MEDIAN : LOOKBACK_MIN;
	struct lookback_side now = {.hash = hash_of(json_object_get(row, "cur_hash"))};
	struct lookback_side before = {.hash = hash_of(json_object_get(row, "prev_hash"))};
	if (strstr(name, "/disabled"))
		now.hash = before.hash = 0;
	double *values = jsonl_numbers(json_object_get(row, "current"), &now.n);
	double *earlier = jsonl_numbers(json_object_get(row, "previous"), &before.n);
	now.values = values;
	before.values = earlier;
	struct lookback_result result = lookback_compare(&now, &before, -1, &options, scratch);
	static const char *const words[] = {"UNCHANGED_PASS", "IMPROVED", "REGRESSED"};
	const char *said = json_string_value(json_object_get(row, "lnt_result"));
	const char *expected = json_string_value(json_object_get(row, "expected"));
	/* Those about tests that fail have no comparison: nothing is said about them. */
	if (strcmp(words[result.verdict], said ? said : words[LOOKBACK_UNCHANGED]) != 0)
		fail_msg("%s: %s instead of %s", name, words[result.verdict], said);
	assert_close(result.delta, jsonl_number(json_object_get(row, "delta")), 1e-12);
	tally->judged += expected != NULL;
	tally->agreed += expected && strcmp(words[result.verdict], expected) == 0;
	free(values);
	free(earlier);
}

static void test_lnts_comparisons(void **state)
{
	(void)state;
	const char *folder = getenv("HUNTER_REFERENCE_DATA");
	struct tally tally = {0};
	char path[1024];
	if (!folder) {
		skip("HUNTER_REFERENCE_DATA is not set: nothing to compare with");
		return;
	}
	snprintf(path, sizeof path, "%s/datasets/lnt-patterns.jsonl", folder);
	assert_int_equal(jsonl_each(path, compare_row, &tally), 38);
	assert_int_equal(tally.judged, 35);
	/* A spike is a regression to LNT, too, and one slow improvement is below its percent. */
	assert_int_equal(tally.agreed, 32);
}

struct run_series {
	double values[ROOM];
	size_t runs[ROOM];
	uint64_t hashes[ROOM];
	size_t n;
};

static void add_run(struct run_series *series, const struct sample *sample, uint64_t hash)
{
	size_t run = series->n ? series->runs[series->n - 1] + 1 : 0;
	for (size_t i = 0; i < sample->n; i++) {
		series->values[series->n] = sample->values[i];
		series->runs[series->n] = run;
		series->hashes[series->n++] = hash;
	}
}

static size_t detect_runs(const struct run_series *series, bool hashes)
{
	struct lookback_options options = defaults();
	const struct samples samples = {.values = series->values,
		.n = series->n,
		.direction = -1,
		.runs = series->runs,
		.hashes = hashes ? series->hashes : NULL};
	return detect_samples(&lookback_detector, &options, &samples);
}

static void test_replicates(void **state)
{
	(void)state;
	struct run_series series = {0};
	const struct sample low = VALUES(6, 6.2, 6.1, 6.3), high = VALUES(8, 8.3, 8.1, 8.2);
	for (int i = 0; i < 6; i++)
		add_run(&series, i < 4 ? &low : &high, 0);
	assert_int_equal(detect_runs(&series, false), 1);
	assert_int_equal(found[0].index, 16);
	assert_close(found[0].mean_before, 6.15, 1e-14);
	assert_close(found[0].mean_after, 8.15, 1e-14);
	assert_true(found[0].pvalue < 0.01); /* of the ranks: 2 / (20 over 4), were there no ties */
	assert_true(found[0].pvalue > 1e-4);
}

/* Of one binary all differences are noise; of two they count, and the runs of each are pooled. */
static void test_same_hash(void **state)
{
	(void)state;
	struct run_series series = {0};
	const struct sample low = VALUES(6, 6.1), high = VALUES(8, 8.1), wide = VALUES(5.9, 9);
	add_run(&series, &low, 1);
	add_run(&series, &high, 1);
	add_run(&series, &low, 1);
	add_run(&series, &(struct sample)VALUES(8.9, 9), 1);
	assert_int_equal(detect_runs(&series, false), 2);
	assert_int_equal(detect_runs(&series, true), 0);
	add_run(&series, &(struct sample)VALUES(12, 12.1), 2);
	assert_int_equal(detect_runs(&series, true), 1);
	assert_int_equal(found[0].index, 8);
	add_run(&series, &wide, 2); /* pooled, the best of the new binary is no other */
	assert_int_equal(detect_runs(&series, true), 0);
}

static void test_series(void **state)
{
	(void)state;
	double values[60];
	struct lookback_options options = defaults();
	for (size_t i = 0; i < 60; i++)
		values[i] = i < 20 ? 10 : i < 45 ? 12 : 9;
	values[30] = nan("");
	assert_int_equal(detect(&lookback_detector, &options, values, 60), 2);
	assert_int_equal(found[0].index, 20);
	assert_int_equal(found[1].index, 45);
	/* What comes back within the runs looked back at is no news; what was before them is. */
	for (size_t i = 0; i < 60; i++)
		values[i] = i >= 20 && i < 28 ? 12 : 10;
	assert_int_equal(detect(&lookback_detector, &options, values, 60), 1);
	options.runs = 5;
	assert_int_equal(detect(&lookback_detector, &options, values, 60), 2);
}

static void test_edges(void **state)
{
	(void)state;
	struct lookback_options options = defaults();
	assert_survives(&lookback_detector, &options);
	options.magnitude = 0;
	options.min_samples = 1;
	options.p_value = 1;
	assert_survives(&lookback_detector, &options);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_direction),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_hash),
		cmocka_unit_test(test_lnts_comparisons),
		cmocka_unit_test(test_replicates),
		cmocka_unit_test(test_same_hash),
		cmocka_unit_test(test_series),
		cmocka_unit_test(test_edges),
	};
	scratch = scratch_new();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	scratch_free(scratch);
	return failed;
}

/*
 * What is remembered between passes, in random walks: points arrive, the range slides, the program
 * is started again, values are corrected. What is announced is what a run would announce that sees
 * all points from the first on and is never interrupted.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <stdlib.h>
#include <string.h>

#include "agent/decide/match.h"
#include "detectors/edivisive/edivisive.h"
#include "tests/unit/kept.h"
#include "tests/unit/random_series.h"
#include "tests/unit/sanitized.h"

enum { POINTS = 1000, WAITS = 20 };

#define START INT64_C(1700000000000)
#define HOUR INT64_C(3600000)
#define STEP INT64_C(86400000) /* a point a day: no season, no outages of many points */

struct walk {
	const struct detector *detector;
	const void *options;
	struct confirm_rule confirm;
	enum series_kind kind;
	int64_t range; /* ms; 0: none */
	int64_t step;  /* ms between points */
	struct series_cache *memory;
	struct scratch *scratch;
	struct kept kept;
	double values[POINTS];
	int64_t times[POINTS];
	size_t first; /* points before it are lost */
};

static void restart(struct walk *walk)
{
	series_cache_free(walk->memory);
	walk->memory = series_cache_make();
	series_cache_restore(
		walk->memory, &walk->kept.checkpoint, walk->kept.has_checkpoint ? 1 : 0);
}

static struct walk *walk_new(const struct detector *detector, const void *options, int64_t range,
	int64_t step, uint64_t seed)
{
	struct walk *walk = memory_new(1, sizeof *walk);
	uint64_t random = seed * 0x9e3779b97f4a7c15 + 1;

	walk->detector = detector;
	walk->options = options;
	walk->range = range * step;
	walk->step = step;
	walk->scratch = scratch_new();
	random_series(&random, walk->values, POINTS);
	for (size_t i = 0; i < POINTS; i++)
		walk->times[i] = START + (int64_t)i * step;
	restart(walk);
	return walk;
}

static void walk_free(struct walk *walk)
{
	series_cache_free(walk->memory);
	scratch_free(walk->scratch);
	free(walk);
}

/* A pass that sees the points before `end`. `failing`: the store cannot write. */
static void pass(struct walk *walk, size_t end, bool failing)
{
	int64_t now = walk->times[end - 1] + walk->step / 2;
	int64_t since = series_cache_begin(walk->memory, now, walk->range);
	const struct plugin plugin = {.name = walk->detector->plugin.name};
	const struct test test = {.name = "t",
		.detection = {.detector = &plugin,
			.options = walk->options,
			.confirm = walk->confirm,
			.kind = walk->kind,
			.season = SEASON_NONE}};
	size_t from = walk->first;

	while (from < end && walk->times[from] < since)
		from++;
	struct axis axis = {.n = end - from, .times = walk->times + from};
	kept_pass(&walk->kept, walk->memory, &test, &axis, walk->values + from, now, walk->scratch,
		failing);
}

/* By itself, or by the end of the change that it undoes. */
static bool has_been_told(const struct change_record *record)
{
	return record->news == NOTIFY_PENDING || record->covered;
}

/* ms between the points that are judged. */
static int64_t spacing_of(const struct walk *walk)
{
	return walk->step < HOUR ? HOUR : walk->step;
}

/* Whoever sees more points may wait longer at the end of the walk: a change that the other one does
 * not see any more may have ended there. */
static bool is_told(const struct walk *walk, int64_t time)
{
	const struct kept *kept = &walk->kept;
	int64_t spacing = spacing_of(walk);

	for (size_t i = 0; i < kept->count; i++) {
		const struct change_record *record = &kept->records[i];
		bool waits = record->state == CHANGE_CANDIDATE &&
			     record->item.time > START + POINTS * walk->step - WAITS * spacing;

		if ((has_been_told(record) || waits) &&
			llabs(record->item.time - time) <= CHANGE_TOLERANCE * spacing)
			return true;
	}
	return false;
}

/* Changes that were told, `missing` of them not by the other walk. Those do not count that were so
 * far back when they were seen that a walk's range may not reach them. */
static size_t count_told(
	const struct walk *walk, const struct walk *other, int64_t range, size_t *missing)
{
	size_t count = 0;

	for (size_t i = 0; i < walk->kept.count; i++) {
		const struct change_record *record = &walk->kept.records[i];

		if (!has_been_told(record) || record->item.time < record->first_seen - range)
			continue;
		count++;
		*missing += !is_told(other, record->item.time);
	}
	return count;
}

/* Announcements of what had been announced. */
static size_t count_twice(const struct kept *kept)
{
	size_t twice = 0;

	for (size_t i = 0; i < kept->count; i++)
		twice += kept->told[i] > 1;
	for (size_t i = 0; i < kept->count; i++)
		for (size_t j = 0; j < i; j++)
			twice += kept->records[i].news == NOTIFY_PENDING &&
				 kept->records[j].news == NOTIFY_PENDING &&
				 kept->records[i].sign == kept->records[j].sign &&
				 kept->records[i].item.time == kept->records[j].item.time;
	return twice;
}

struct score {
	size_t told, missing, extra, twice, hushed, passes, requests;
};

static void compare(const struct walk *walk, const struct walk *reference, struct score *score)
{
	int64_t range = walk->range;

	score->told += count_told(reference, walk, range, &score->missing);
	count_told(walk, reference, range, &score->extra);
	score->twice += count_twice(&walk->kept);
	score->hushed += walk->kept.hushed;
	score->passes += walk->kept.passes;
	score->requests += walk->kept.requests;
}

struct weather {
	int64_t range;    /* points */
	size_t restart;   /* one pass in so many, 0: none */
	size_t unripe;    /* so often the last point is another one at first */
	size_t retention; /* points that the source has; 0: all */
	size_t failing;   /* one pass in so many is not recorded */
	struct confirm_rule confirm;
	enum series_kind kind;
	int64_t step; /* ms between points; 0: STEP */
};

/* Noise that lasts for about three hours. */
static void add_memory(struct walk *walk)
{
	uint64_t random = 5;
	double state = 0;

	for (size_t i = 0; i < POINTS; i++) {
		state = 0.9 * state + 0.005 * random_normal(&random);
		walk->values[i] *= exp(state);
	}
}

static void walk_both(const struct detector *detector, const void *options,
	const struct weather *weather, uint64_t seed, struct score *score)
{
	int64_t step = weather->step > 0 ? weather->step : STEP;
	struct walk *walk = walk_new(detector, options, weather->range, step, seed);
	struct walk *reference = walk_new(detector, options, 0, step, seed);
	uint64_t random = seed + 77;

	if (step < HOUR) {
		add_memory(walk);
		add_memory(reference);
	}

	walk->confirm = reference->confirm = weather->confirm;
	walk->kind = reference->kind = weather->kind;
	for (size_t end = 1 + random_below(&random, 100); end <= POINTS;
		end += random_below(&random, random_below(&random, 4) ? 2 : 30)) {
		double true_value = walk->values[end - 1];

		if (weather->unripe && random_below(&random, weather->unripe) == 0)
			walk->values[end - 1] = reference->values[end - 1] = true_value * 0.7;
		if (weather->restart && random_below(&random, weather->restart) == 0)
			restart(walk);
		if (weather->retention && end > weather->retention)
			walk->first = end - weather->retention;
		bool failing = weather->failing && random_below(&random, weather->failing) == 0;

		pass(walk, end, failing);
		pass(reference, end, failing);
		walk->values[end - 1] = reference->values[end - 1] = true_value;
	}
	compare(walk, reference, score);
	walk_free(walk);
	walk_free(reference);
}

static struct score walk_many(const struct detector *detector, const void *options,
	const struct weather *weather, size_t seeds)
{
	struct score score = {0};

	for (uint64_t seed = 1; seed <= seeds; seed++)
		walk_both(detector, options, weather, seed, &score);
	print_message("%zu told, %zu missing, %zu more, %zu twice, %zu ends hushed; "
		      "%zu passes, %zu wrote\n",
		score.told, score.missing, score.extra, score.twice, score.hushed, score.passes,
		score.requests);
	assert_true(score.told > 2 * seeds);
	assert_int_equal(score.twice, 0);
	assert_int_equal(score.hushed, 0);
	assert_true(score.requests * 4 < score.passes);
	return score;
}

static const struct confirm_rule at_once = {.mode = CONFIRM_OFF};
static const struct edivisive_options narrow = {.window = 10, .p_value = 0.001};
static const struct edivisive_options wide = {.window = 50, .p_value = 0.001};
static const struct edivisive_options otava = {
	.window = 20, .p_value = 0.001, .profile = EDIVISIVE_OTAVA};

/* As long as the program runs, nothing is lost by the sliding. */
static void test_sliding(void **state)
{
	(void)state;
	struct weather weather = {.confirm = at_once, .range = 150};
	struct score score = walk_many(&edivisive_detector, &narrow, &weather, CASES(120));

	assert_int_equal(score.missing + score.extra, 0);
}

static void test_values_that_are_corrected(void **state)
{
	(void)state;
	struct weather weather = {.confirm = at_once, .range = 150, .unripe = 2};
	struct score score = walk_many(&edivisive_detector, &narrow, &weather, CASES(120));

	assert_in_range(score.missing + score.extra, 0, score.told / 200);
}

/* Each fifth pass is the first of a program. */
static void test_restarts(void **state)
{
	(void)state;
	struct weather weather = {.confirm = at_once, .range = 150, .restart = 5};
	struct score score = walk_many(&edivisive_detector, &narrow, &weather, CASES(120));

	assert_in_range(score.missing + score.extra, 0, score.told / 50);
}

static void test_all_at_once(void **state)
{
	(void)state;
	struct weather weather = {.confirm = at_once,
		.range = 250,
		.restart = 10,
		.unripe = 3,
		.retention = 150,
		.failing = 5};
	struct score score = walk_many(&edivisive_detector, &narrow, &weather, CASES(120));

	assert_in_range(score.missing + score.extra, 0, score.told / 20);
}

/* The range holds less than one window of the detector's: now and then it looks from elsewhere. */
static void test_few_points(void **state)
{
	(void)state;
	struct weather weather = {.confirm = at_once, .range = 60, .restart = 10};
	const size_t walks = CASES(120);
	struct score score = walk_many(&edivisive_detector, &wide, &weather, walks);

	assert_in_range(score.missing + score.extra, 0, walks * POINTS / 372);
}

/* A detector that cannot go on where it was. */
static void test_without_stream(void **state)
{
	(void)state;
	struct weather weather = {.confirm = at_once, .range = 150, .restart = 10};
	struct score score = walk_many(&edivisive_detector, &otava, &weather, 60);

	assert_in_range(score.missing + score.extra, 0, score.told / 4);
}

/* With the rule that is the default, a restart costs no candidate its time. */
static void test_candidates(void **state)
{
	(void)state;
	struct weather weather = {.range = 150, .restart = 5, .failing = 5};
	struct score score = walk_many(&edivisive_detector, &narrow, &weather, CASES(120));

	assert_in_range(score.missing + score.extra, 0, score.told / 50);
	weather = (struct weather){.range = 150};
	score = walk_many(&edivisive_detector, &narrow, &weather, CASES(120));
	assert_int_equal(score.missing + score.extra, 0);
}

/* What a service's series has done before is read from its points: a restart anywhere changes
 * nothing that is told, nor does it cost a candidate its time. */
static void test_services(void **state)
{
	struct weather weather = {.range = POINTS, .restart = 3, .kind = KIND_SERVICE};
	struct score score;

	(void)state;
	score = walk_many(&edivisive_detector, &narrow, &weather, CASES(120));
	assert_int_equal(score.missing + score.extra, 0);
}

/* Points every twenty minutes that are judged by the hour: a restart changes nothing either. */
static void test_hours(void **state)
{
	struct weather weather = {
		.range = POINTS, .restart = 3, .kind = KIND_SERVICE, .step = HOUR / 3};
	struct score score;

	(void)state;
	score = walk_many(&edivisive_detector, &narrow, &weather, CASES(120));
	assert_int_equal(score.missing + score.extra, 0);
}

static size_t count_state(const struct kept *kept, enum change_state state)
{
	size_t count = 0;

	for (size_t i = 0; i < kept->count; i++)
		count += kept->records[i].state == state;
	return count;
}

static size_t count_pending(const struct kept *kept)
{
	size_t count = 0;

	for (size_t i = 0; i < kept->count; i++)
		count += kept->records[i].news == NOTIFY_PENDING;
	return count;
}

/*
 * Other detectors look at what was recorded with those before them: nothing is told of what they
 * find in the same points, nothing that was told goes, then or later, and it is written once.
 */
static void test_another_revision(void **state)
{
	enum { BEFORE = 600 };
	size_t found = 0, vanished = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 80; seed++) {
		struct walk *walk = walk_new(&edivisive_detector, &narrow, 0, STEP, seed);
		struct kept *kept = &walk->kept;

		walk->confirm = at_once;
		for (size_t end = 400; end <= BEFORE; end += 10)
			pass(walk, end, false);
		assert_int_equal(kept->checkpoint.revision, DETECTOR_REVISION);
		size_t told = count_pending(kept), known = kept->count;
		size_t gone = count_state(kept, CHANGE_WITHDRAWN);

		walk->options = &otava;
		kept->checkpoint.revision = DETECTOR_REVISION - 1;
		kept->checkpoint.last_point = walk->times[BEFORE - 1];
		restart(walk);
		pass(walk, BEFORE, false);
		assert_int_equal(kept->checkpoint.revision, DETECTOR_REVISION);
		assert_int_equal(kept->checkpoint.revised, walk->times[BEFORE - 1]);
		assert_int_equal(count_pending(kept), told);
		assert_int_equal(count_state(kept, CHANGE_WITHDRAWN), gone);
		vanished += kept->tally.revision_gone;
		found += kept->count - known;
		assert_int_equal(kept->tally.revision_new, kept->count - known);
		size_t requests = kept->requests;

		restart(walk);
		pass(walk, BEFORE, false);
		assert_int_equal(kept->tally.revision_new + kept->tally.revision_gone, 0);
		assert_int_equal(kept->requests, requests);
		assert_int_equal(count_state(kept, CHANGE_WITHDRAWN), gone);
		walk_free(walk);
	}
	print_message("%zu found by the others only, %zu not by them\n", found, vanished);
	assert_true(found > 60 && vanished > 60);
}

static struct series_cache_cut cut(struct series_cache *memory, struct arena *arena,
	const char *const *names, size_t count, size_t most, struct dataset *data)
{
	struct series *series = arena_array(arena, count, sizeof *series);

	for (size_t i = 0; i < count; i++)
		series[i].identity = names[i];
	*data = (struct dataset){series, count};
	return series_cache_cut(memory, arena, data, most);
}

/* Those that are known stay, whatever else comes and in whatever order; then the first by name. */
static void test_the_same_series_are_kept(void **state)
{
	static const char *const names[] = {"m", "a", "z", "c", "k"};
	static const struct series_checkpoint marks[] = {
		{.series = "k", .branch = "", .anchor = 1, .last_point = 2},
		{.series = "z", .branch = "", .anchor = 1, .last_point = 2}};
	struct series_cache *memory = series_cache_make();
	struct arena *arena = arena_new();
	struct dataset data;
	char *name = arena_alloc(arena, SERIES_CACHE_IDENTITY_MAX + 2);
	const char *const too_long[] = {"b", name};

	(void)state;
	series_cache_restore(memory, marks, 2);
	assert_int_equal(cut(memory, arena, names, 5, 5, &data).too_many, 0);
	assert_int_equal(data.count, 5);
	assert_int_equal(cut(memory, arena, names, 5, 3, &data).too_many, 2);
	assert_int_equal(data.count, 3);
	assert_string_equal(data.series[0].identity, "a");
	assert_string_equal(data.series[1].identity, "z");
	assert_string_equal(data.series[2].identity, "k");
	assert_int_equal(cut(memory, arena, names, 5, 1, &data).too_many, 4);
	assert_string_equal(data.series[0].identity, "k");
	memset(name, 'x', SERIES_CACHE_IDENTITY_MAX);
	assert_int_equal(cut(memory, arena, too_long, 2, 9, &data).too_long, 0);
	name[SERIES_CACHE_IDENTITY_MAX] = 'x';
	assert_int_equal(cut(memory, arena, too_long, 2, 9, &data).too_long, 1);
	assert_int_equal(data.count, 1);
	assert_string_equal(data.series[0].identity, "b");
	arena_free(arena);
	series_cache_free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sliding),
		cmocka_unit_test(test_restarts),
		cmocka_unit_test(test_services),
		cmocka_unit_test(test_hours),
		cmocka_unit_test(test_values_that_are_corrected),
		cmocka_unit_test(test_all_at_once),
		cmocka_unit_test(test_few_points),
		cmocka_unit_test(test_without_stream),
		cmocka_unit_test(test_candidates),
		cmocka_unit_test(test_another_revision),
		cmocka_unit_test(test_the_same_series_are_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * belief: when a change that was found is news; on changes made by hand, and on series that grow
 * point by point.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/decide/confirm.h"
#include "agent/decide/match.h"
#include "detectors/edivisive/edivisive.h"
#include "tests/unit/kept.h"
#include "tests/unit/random_series.h"
#include "tests/unit/sanitized.h"

#define HOUR INT64_C(3600000)
#define START INT64_C(1700000000000)
#define NOW (START + 1000 * HOUR)
enum { N = 100, AT = 60, MOST_SERIES = 200 };

/* A test of up to MOST_SERIES series, each of a metric of its own, and at most one change each. */
struct fixture {
	struct arena *arena;
	struct metric metrics[MOST_SERIES];
	struct detection detections[MOST_SERIES];
	struct test test;
	struct axis axis;
	double values[N];
	struct series series[MOST_SERIES];
	struct dataset data;
	struct change changes[MOST_SERIES];
	struct findings findings[MOST_SERIES];
	struct realignment realignment, *realignments[MOST_SERIES];
	struct kept kept; /* of the first series */
	struct store_record *request;
};

static int setup(void **state)
{
	struct arena *arena = arena_new();
	struct fixture *f = arena_alloc(arena, sizeof *f);

	f->arena = arena;
	f->test = (struct test){.name = "t",
		.metrics = f->metrics,
		.detections = f->detections,
		.metric_count = MOST_SERIES};
	f->axis = (struct axis){.n = N, .times = arena_array(arena, N, sizeof *f->axis.times)};
	for (size_t i = 0; i < N; i++)
		f->axis.times[i] = START + (int64_t)i * HOUR;
	for (size_t i = 0; i < MOST_SERIES; i++) {
		const char *name = i == 0 ? "s" : arena_printf(arena, "x%zu", i);

		f->metrics[i].name = name;
		f->series[i] = (struct series){.metric = &f->metrics[i],
			.name = name,
			.identity = name,
			.axis = &f->axis,
			.values = f->values};
		f->changes[i] = (struct change){.index = AT,
			.pvalue = 1e-6,
			.mean_before = 1,
			.mean_after = 2,
			.count_before = 20};
		f->findings[i] =
			(struct findings){.series = &f->series[i], .changes = &f->changes[i]};
	}
	f->data = (struct dataset){f->series, 1};
	f->realignments[0] = &f->realignment;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->request)
		store_call_free(&f->request->call);
	arena_free(f->arena);
	return 0;
}

/* A pass in which there is something new and the change of the first series, if `after` is not 0,
 * has so many points after it. */
static struct news_tally pass(struct fixture *f, size_t after, int64_t oldest)
{
	const struct analysis analysis = {&f->test, &f->data, f->findings};
	struct news_tally tally;

	f->findings[0].count = after > 0;
	f->changes[0].count_after = after;
	f->realignment.grown = true;
	if (f->request)
		store_call_free(&f->request->call);
	f->request = store_record_new(NULL, NULL);
	tally = news_find(&analysis, f->realignments, f->kept.records, f->kept.count,
		&(struct news_clock){.now = NOW, .oldest = oldest}, f->request);
	if (f->data.count == 1)
		kept_store(&f->kept, f->request);
	return tally;
}

static void expect(
	const struct fixture *f, enum change_state state, enum notify_state news, int64_t runs)
{
	assert_int_equal(f->kept.count, 1);
	assert_int_equal(f->kept.records[0].state, state);
	assert_int_equal(f->kept.records[0].news, news);
	assert_int_equal(f->kept.records[0].runs, runs);
}

static void test_candidate_until_it_stands(void **state)
{
	struct fixture *f = *state;
	struct news_tally tally = pass(f, 3, WHEN_ALWAYS);

	expect(f, CHANGE_CANDIDATE, NOTIFY_HELD, 1);
	assert_int_equal(tally.candidates, 1);
	assert_int_equal(tally.fresh, 0);
	assert_int_equal(f->realignment.candidates, 1);
	f->kept.records[0].first_seen = 7;
	f->changes[0].index = AT + 2;
	assert_int_equal(pass(f, 4, WHEN_ALWAYS).candidates, 1);
	expect(f, CHANGE_CANDIDATE, NOTIFY_HELD, 2);
	assert_int_equal(f->kept.records[0].item.time, f->axis.times[AT + 2]);
	assert_int_equal(f->kept.records[0].item.change.count_after, 3);
	pass(f, 6, WHEN_ALWAYS);
	expect(f, CHANGE_CANDIDATE, NOTIFY_HELD, 3);
	f->changes[0].mean_after = 3;
	assert_int_equal(pass(f, 7, WHEN_ALWAYS).fresh, 1);
	expect(f, CHANGE_CONFIRMED, NOTIFY_PENDING, 4);
	assert_true(f->request->records.items[0].confirmed);
	assert_int_equal(f->request->records.items[0].first_seen, 7);
	assert_int_equal(f->request->records.items[0].item.change.mean_after, 3);
	assert_int_equal(f->realignment.candidates, 0);
	tally = pass(f, 8, WHEN_ALWAYS);
	assert_int_equal(tally.fresh + tally.silent + tally.candidates + tally.moved, 0);
	assert_int_equal(f->request->records.count + f->request->update_count, 0);
}

/* 20 points before it: p has to be below 1e-7, and 5 points behind it. */
static void test_overwhelming_needs_five_points(void **state)
{
	struct fixture *f = *state;

	f->changes[0].pvalue = 1e-8;
	assert_int_equal(pass(f, 4, WHEN_ALWAYS).candidates, 1);
	assert_int_equal(pass(f, 5, WHEN_ALWAYS).fresh, 1);
	expect(f, CHANGE_CONFIRMED, NOTIFY_PENDING, 2);
}

static void test_rules(void **state)
{
	struct fixture *f = *state;

	f->detections[0].confirm = (struct confirm_rule){.mode = CONFIRM_POINTS, .points = 5};
	assert_int_equal(pass(f, 4, WHEN_ALWAYS).candidates, 1);
	assert_int_equal(pass(f, 5, WHEN_ALWAYS).fresh, 1);
	f->kept.count = 0;
	f->detections[0].confirm = (struct confirm_rule){.mode = CONFIRM_OFF};
	assert_int_equal(pass(f, 1, WHEN_ALWAYS).fresh, 1);
}

static void test_nothing_new_counts_for_nothing(void **state)
{
	struct fixture *f = *state;
	const struct analysis analysis = {&f->test, &f->data, f->findings};
	struct store_record *request = store_record_new(NULL, NULL);

	pass(f, 3, WHEN_ALWAYS);
	f->realignment.grown = false;
	assert_int_equal(news_find(&analysis, f->realignments, f->kept.records, f->kept.count,
				 &(struct news_clock){.now = NOW, .oldest = WHEN_ALWAYS}, request)
				 .candidates,
		1);
	assert_int_equal(request->records.count + request->update_count, 0);
	store_call_free(&request->call);
}

/* What waits for other things than the rule is not written at a start either, with another reason.
 */
static void test_a_restart_changes_no_reason(void **state)
{
	struct fixture *f = *state;
	const struct analysis analysis = {&f->test, &f->data, f->findings};
	struct store_record *request = store_record_new(NULL, NULL);

	f->detections[0] = (struct detection){.confirm.mode = CONFIRM_OFF, .fdr = 0.05};
	f->changes[0].pvalue = 0.5;
	pass(f, 9, WHEN_ALWAYS);
	expect(f, CHANGE_CANDIDATE, NOTIFY_HELD, 1);
	assert_string_equal(confirm_word(f->kept.records[0].reason), "fdr");
	f->realignment.grown = false;
	f->realignment.restarted = true;
	news_find(&analysis, f->realignments, f->kept.records, f->kept.count,
		&(struct news_clock){.now = NOW, .oldest = WHEN_ALWAYS}, request);
	assert_int_equal(request->records.count + request->update_count, 0);
	store_call_free(&request->call);
	free(f->realignment.kept);
}

/* Nobody has heard of it, so nobody hears that it is gone; what is found there later begins anew.
 */
static void test_lost_and_found(void **state)
{
	struct fixture *f = *state;
	struct news_tally tally;

	pass(f, 3, WHEN_ALWAYS);
	tally = pass(f, 0, WHEN_ALWAYS);
	expect(f, CHANGE_WITHDRAWN, NOTIFY_HELD, 1);
	assert_int_equal(tally.lost, 1);
	assert_int_equal(tally.withdrawn, 0);
	assert_int_equal(pass(f, 0, WHEN_ALWAYS).lost, 0);
	assert_int_equal(pass(f, 8, WHEN_ALWAYS).candidates, 1);
	expect(f, CHANGE_CANDIDATE, NOTIFY_HELD, 1);
	assert_int_equal(pass(f, 11, WHEN_ALWAYS).candidates, 1);
	assert_int_equal(pass(f, 12, WHEN_ALWAYS).fresh, 1);
	expect(f, CHANGE_CONFIRMED, NOTIFY_PENDING, 3);
	assert_int_equal(f->kept.told[0], 1);
	f->kept.records[0].news = NOTIFY_QUEUED;
	assert_int_equal(pass(f, 0, WHEN_ALWAYS).withdrawn, 1);
	tally = pass(f, 3, WHEN_ALWAYS);
	assert_int_equal(tally.returned, 1);
	assert_int_equal(tally.fresh + tally.candidates, 0);
	expect(f, CHANGE_CONFIRMED, NOTIFY_QUEUED, 3);
}

/* Its age counts when it is seen first, or anew, and not when it is believed. */
static void test_age(void **state)
{
	struct fixture *f = *state;
	int64_t young = f->axis.times[AT], old = young + 1;

	pass(f, 3, young);
	assert_int_equal(pass(f, 9, old).fresh, 1);
	f->kept.count = 0;
	assert_int_equal(pass(f, 3, old).candidates, 1);
	expect(f, CHANGE_CANDIDATE, NOTIFY_SILENT, 1);
	assert_int_equal(pass(f, 9, young).silent, 1);
	expect(f, CHANGE_CONFIRMED, NOTIFY_SILENT, 2);
	f->kept.count = 0;
	pass(f, 3, young);
	pass(f, 0, young);
	assert_int_equal(pass(f, 3, old).silent, 1);
	expect(f, CHANGE_CONFIRMED, NOTIFY_SILENT, 1);
}

/* Each of the series, but for the first, has a change that the rule believes at once. */
static void all_series(struct fixture *f, size_t with, double pvalue, double share)
{
	f->data.count = MOST_SERIES;
	for (size_t i = 0; i < MOST_SERIES; i++) {
		f->detections[i].confirm.mode = CONFIRM_OFF;
		f->detections[i].fdr = share;
		f->changes[i].pvalue = pvalue;
		f->findings[i].count = i > 0 && i <= with;
	}
}

static void test_share_of_false_ones(void **state)
{
	struct fixture *f = *state;

	all_series(f, 1, 1e-3, 0.05); /* alone among 200 it needs 2.5e-4 */
	assert_int_equal(pass(f, 0, WHEN_ALWAYS).candidates, 1);
	assert_int_equal(f->request->records.items[0].state, CHANGE_CANDIDATE);
	assert_int_equal(f->request->records.items[0].news, NOTIFY_HELD);
	all_series(f, 1, 1e-4, 0.05);
	assert_int_equal(pass(f, 0, WHEN_ALWAYS).fresh, 1);
	all_series(f, 10, 1e-3, 0.05); /* with nine others 2.5e-3 */
	assert_int_equal(pass(f, 0, WHEN_ALWAYS).fresh, 10);
	all_series(f, 1, 1e-3, 0);
	assert_int_equal(pass(f, 0, WHEN_ALWAYS).fresh, 1);
	all_series(f, 1, (double)NAN, 0.05); /* of a detector that gives none */
	assert_int_equal(pass(f, 0, WHEN_ALWAYS).fresh, 1);
}

/* Each share has its own series: half of them, here. */
static void test_shares_are_apart(void **state)
{
	struct fixture *f = *state;
	struct news_tally tally;

	all_series(f, MOST_SERIES / 2 + 1, 4e-4, 0.05);
	for (size_t i = 0; i < MOST_SERIES / 2; i++) {
		f->detections[i].fdr = 0.01;
		f->findings[i].count = i == 1;
	}
	f->findings[MOST_SERIES / 2 + 1].count = 1;
	f->findings[MOST_SERIES / 2].count = 0;
	tally = pass(f, 0, WHEN_ALWAYS);
	assert_int_equal(tally.fresh, 1);
	assert_int_equal(tally.candidates, 1);
	assert_int_equal(f->request->records.items[0].state, CHANGE_CANDIDATE);
	assert_int_equal(f->request->records.items[1].state, CHANGE_CONFIRMED);
}

/* A candidate that the rule believes by now stays one, with its first numbers. */
static void test_share_holds_a_candidate(void **state)
{
	struct fixture *f = *state;

	f->detections[0].fdr = 1e-7;
	pass(f, 3, WHEN_ALWAYS);
	assert_int_equal(pass(f, 30, WHEN_ALWAYS).candidates, 1);
	expect(f, CHANGE_CANDIDATE, NOTIFY_HELD, 2);
	assert_int_equal(f->kept.records[0].item.change.count_after, 3);
	f->changes[0].pvalue = 1e-8;
	assert_int_equal(pass(f, 31, WHEN_ALWAYS).fresh, 1);
}

/* A series that comes point by point to an agent, which is started again now and then. */
struct stream {
	double values[200];
	int64_t times[200];
	struct kept kept;
	size_t told_at[MOST_RECORDS], told; /* points that there were at each announcement */
};

static const struct edivisive_options options = {.window = 50, .p_value = 0.001};

static size_t sum_told(const struct kept *kept)
{
	size_t sum = 0;

	for (size_t i = 0; i < kept->count; i++)
		sum += kept->told[i];
	return sum;
}

static void arrive(struct stream *stream, struct confirm_rule rule, uint64_t *random)
{
	const struct plugin plugin = {.name = "edivisive"};
	const struct test test = {.name = "t",
		.detection = {.detector = &plugin, .options = &options, .confirm = rule}};
	struct scratch *scratch = scratch_new();
	struct series_cache *memory = series_cache_make();

	series_cache_restore(memory, NULL, 0);
	for (size_t end = 10; end <= 200; end++) {
		struct axis axis = {.n = end, .times = stream->times};

		series_cache_begin(memory, NOW, 0);
		kept_pass(&stream->kept, memory, &test, &axis, stream->values, NOW, scratch, false);
		while (stream->told < sum_told(&stream->kept))
			stream->told_at[stream->told++] = end;
		if (random_below(random, 20) == 0) {
			series_cache_free(memory);
			memory = series_cache_make();
			series_cache_restore(
				memory, &stream->kept.checkpoint, stream->kept.has_checkpoint);
		}
	}
	series_cache_free(memory);
	scratch_free(scratch);
}

/* 200 points of normal noise with a step at 100. */
static struct stream *grow(uint64_t seed, double step, double noise, enum confirm_mode mode)
{
	struct stream *stream = memory_new(1, sizeof *stream);
	uint64_t random = seed * 0x9e3779b97f4a7c15 + 1;

	for (size_t i = 0; i < 200; i++) {
		stream->values[i] =
			100 * (1 + noise * random_normal(&random) + (i < 100 ? 0 : step));
		stream->times[i] = START + (int64_t)i * HOUR;
	}
	arrive(stream, (struct confirm_rule){.mode = mode}, &random);
	for (size_t i = 0; i < stream->kept.count; i++)
		assert_in_range(stream->kept.told[i], 0, 1);
	return stream;
}

static int compare_sizes(const void *a, const void *b)
{
	size_t left = *(const size_t *)a, right = *(const size_t *)b;

	return (left > right) - (left < right);
}

/* The median of the points from the step to its announcement, and in how many series it was. */
static size_t median_delay(double step, double noise, enum confirm_mode mode, size_t *seen)
{
	enum { SEEDS = 60 };
	size_t delays[SEEDS];

	*seen = 0;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct stream *stream = grow(seed, step, noise, mode);
		size_t i = 0;

		while (i < stream->told && stream->told_at[i] <= 100)
			i++;
		if (i < stream->told)
			delays[(*seen)++] = stream->told_at[i] - 100;
		free(stream);
	}
	qsort(delays, *seen, sizeof *delays, compare_sizes);
	return delays[*seen / 2];
}

static void test_delays(void **state)
{
	size_t seen;

	(void)state;
	assert_in_range(median_delay(0.05, 0.02, CONFIRM_AUTO, &seen), 4, 6);
	assert_in_range(seen, 58, 60);
	assert_in_range(median_delay(0.05, 0.01, CONFIRM_AUTO, &seen), 2, 3);
	assert_int_equal(seen, 60);
	assert_in_range(median_delay(0.5, 0.01, CONFIRM_AUTO, &seen), 2, 3);
	assert_int_equal(seen, 60);
}

static double false_alarms(enum confirm_mode mode)
{
	enum { SEEDS = 400 };
	size_t told = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct stream *stream = grow(seed, 0, 0.02, mode);

		told += stream->told;
		free(stream);
	}
	return 1000.0 * (double)told / (SEEDS * 191.0);
}

static void test_false_alarms(void **state)
{
#ifdef SANITIZED
	skip("with a sanitizer it would take long: it counts what happens where the other tests "
	     "have been");
#endif
	double at_once = false_alarms(CONFIRM_OFF), confirmed = false_alarms(CONFIRM_AUTO);

	(void)state;
	print_message("false alarms per 1,000 points: %.2f at once, %.2f confirmed\n", at_once,
		confirmed);
	assert_true(at_once < 0.25);
	assert_true(confirmed < 0.15);
	assert_true(confirmed < 0.8 * at_once);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_candidate_until_it_stands),
		CASE(test_overwhelming_needs_five_points),
		CASE(test_rules),
		CASE(test_nothing_new_counts_for_nothing),
		CASE(test_a_restart_changes_no_reason),
		CASE(test_lost_and_found),
		CASE(test_age),
		CASE(test_share_of_false_ones),
		CASE(test_shares_are_apart),
		CASE(test_share_holds_a_candidate),
		cmocka_unit_test(test_delays),
		cmocka_unit_test(test_false_alarms),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

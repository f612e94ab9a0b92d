/*
 * news: which records and updates a pass leaves, on data made by hand.
 */
#include "unit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/base/when.h"
#include "agent/decide/confirm.h"
#include "agent/monitor/news.h"
#include "tests/unit/levels.h"
#include "tests/unit/sanitized.h"

#define HOUR INT64_C(3600000)
#define START INT64_C(1700000000000)
#define NOW (START + 1000 * HOUR)
#define ALWAYS INT64_MIN
enum { N = 160 };

struct fixture {
	struct arena *arena;
	struct metric metric;
	struct test test;
	struct axis axis;
	struct column columns[2];
	struct series series[2];
	struct dataset data;
	struct change changes[3];
	struct findings findings[2];
	struct analysis analysis;
	struct store_record *request;
};

static struct change change_at(size_t index, double before, double after)
{
	return (struct change){.index = index,
		.pvalue = 1e-6,
		LEVELS(before, after),
		.place_from = index,
		.place_to = index};
}

/* Two series on one axis of an hour's steps; the first has a change at 60 and commits, the second
 * has none. */
static int setup(void **state)
{
	struct arena *arena = arena_new();
	struct fixture *f = arena_alloc(arena, sizeof *f);

	f->arena = arena;
	f->metric = (struct metric){.name = "p99", .direction = -1, .unit = "ns"};
	f->test.name = "db.read";
	f->test.detection.confirm.mode = CONFIRM_OFF;
	f->axis.n = N;
	f->axis.times = arena_array(arena, N, sizeof *f->axis.times);
	f->axis.columns = f->columns;
	f->axis.column_count = 2;
	f->columns[0] = (struct column){"commit", arena_array(arena, N, sizeof(char *))};
	f->columns[1] = (struct column){"version", arena_array(arena, N, sizeof(char *))};
	for (size_t i = 0; i < N; i++) {
		f->axis.times[i] = START + (int64_t)i * HOUR;
		f->columns[0].values[i] = arena_printf(arena, "c%zu", i);
	}
	for (size_t i = 0; i < 2; i++) {
		f->series[i] = (struct series){.metric = &f->metric,
			.name = i == 0 ? "p99" : "p50",
			.identity = i == 0 ? "p99{region=\"eu\"}" : "p50",
			.axis = &f->axis,
			.values = arena_array(arena, N, sizeof(double))};
		f->findings[i] = (struct findings){.series = &f->series[i], .changes = f->changes};
	}
	f->changes[0] = change_at(60, 10, 12);
	f->findings[0].count = 1;
	f->data = (struct dataset){f->series, 2};
	f->analysis = (struct analysis){&f->test, &f->data, f->findings};
	f->request = store_record_new(NULL, NULL);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	store_call_free(&f->request->call);
	arena_free(f->arena);
	return 0;
}

static struct news_tally find(
	struct fixture *f, const struct change_record *known, size_t count, int64_t oldest)
{
	store_call_free(&f->request->call);
	f->request = store_record_new(NULL, NULL);
	return news_find(&f->analysis, NULL, known, count,
		&(struct news_clock){.now = NOW, .oldest = oldest}, f->request);
}

static struct change_record known_at(int point, const char *series, enum change_state state)
{
	return (struct change_record){.item = {.id = 7, .time = START + point * HOUR},
		.series = series,
		.branch = "",
		.sign = 1,
		.state = state};
}

static void test_first_sight(void **state)
{
	struct fixture *f = *state;
	struct news_tally tally = find(f, NULL, 0, ALWAYS);
	const struct change_record *record = f->request->records.items;

	assert_int_equal(tally.fresh, 1);
	assert_int_equal(f->request->records.count, 1);
	assert_int_equal(f->request->update_count, 0);
	assert_string_equal(record->item.test, "db.read");
	assert_string_equal(record->item.metric, "p99");
	assert_string_equal(record->item.unit, "ns");
	assert_int_equal(record->item.direction, -1);
	assert_int_equal(record->item.time, START + 60 * HOUR);
	assert_string_equal(record->item.commit_before, "c59");
	assert_string_equal(record->item.commit_after, "c60");
	assert_null(record->item.version_before);
	assert_null(record->item.version_after);
	assert_string_equal(record->series, "p99{region=\"eu\"}");
	assert_string_equal(record->branch, "");
	assert_int_equal(record->sign, 1);
	assert_int_equal(record->state, CHANGE_CONFIRMED);
	assert_int_equal(record->news, NOTIFY_PENDING);
	assert_int_equal(record->first_seen, NOW);
	assert_int_equal(record->item.spacing, HOUR);
}

/* The points around it go with a change: those that are there of this series. */
static void test_points_around(void **state)
{
	struct fixture *f = *state;
	struct excerpt excerpt;

	f->axis.n = 100;
	for (size_t i = 0; i < N; i++)
		f->series[0].values[i] = i == 70 ? (double)NAN : i < 60 ? 10 : 12;
	find(f, NULL, 0, ALWAYS);
	assert_true(excerpt_unpack(f->arena, f->request->records.items[0].item.excerpt, &excerpt));
	assert_int_equal(excerpt.n, f->axis.n - 1);
	for (size_t i = 0; i < excerpt.n; i++) {
		assert_int_equal(excerpt.times[i], START + (int64_t)(i + (i >= 70)) * HOUR);
		assert_true(excerpt.values[i] == (i < 60 ? 10 : 12));
	}
}

/* The last good commit is that of the last point which exists in this series. */
static void test_missing_points_have_no_commit(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 50; i < 60; i++)
		f->series[0].values[i] = (double)NAN;
	find(f, NULL, 0, ALWAYS);
	assert_string_equal(f->request->records.items[0].item.commit_before, "c49");
	assert_string_equal(f->request->records.items[0].item.commit_after, "c60");
}

/* Rows without a commit widen the range, so that what caused the change lies within it. */
static void test_rows_without_commit_widen_the_range(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 58; i < 63; i++)
		f->columns[0].values[i] = i % 2 ? NULL : "";
	find(f, NULL, 0, ALWAYS);
	assert_string_equal(f->request->records.items[0].item.commit_before, "c57");
	assert_string_equal(f->request->records.items[0].item.commit_after, "c63");
	for (size_t i = 0; i < N; i++)
		f->columns[0].values[i] = NULL;
	find(f, NULL, 0, ALWAYS);
	assert_null(f->request->records.items[0].item.commit_before);
	assert_null(f->request->records.items[0].item.commit_after);
}

#ifndef SANITIZED
/* Many long series: what one takes is given back before the next. */
static void test_series_share_the_memory(void **state)
{
	enum { SERIES = 200, POINTS = 100000, MOST_MB = 100 };
	struct fixture *f = *state;
	struct series *series = arena_array(f->arena, SERIES, sizeof *series);
	struct findings *findings = arena_array(f->arena, SERIES, sizeof *findings);
	struct rusage before, after;

	f->axis.n = POINTS;
	f->axis.times = arena_array(f->arena, POINTS, sizeof *f->axis.times);
	f->axis.column_count = 0;
	for (size_t i = 0; i < POINTS; i++)
		f->axis.times[i] = START + (int64_t)i * 60000;
	for (size_t i = 0; i < SERIES; i++) {
		series[i] = f->series[0];
		series[i].identity = arena_printf(f->arena, "p99{n=\"%zu\"}", i);
		series[i].values = arena_array(f->arena, POINTS, sizeof(double));
		findings[i] =
			(struct findings){.series = &series[i], .changes = f->changes, .count = 1};
	}
	f->data = (struct dataset){series, SERIES};
	f->analysis.findings = findings;
	getrusage(RUSAGE_SELF, &before);
	assert_int_equal(find(f, NULL, 0, ALWAYS).fresh, SERIES);
	getrusage(RUSAGE_SELF, &after);
	assert_true(after.ru_maxrss - before.ru_maxrss < MOST_MB * 1024);
}
#endif

static void test_old_is_recorded_silently(void **state)
{
	struct fixture *f = *state;
	struct news_tally tally = find(f, NULL, 0, START + 61 * HOUR);

	assert_int_equal(tally.fresh, 0);
	assert_int_equal(tally.silent, 1);
	assert_int_equal(f->request->records.items[0].news, NOTIFY_SILENT);
	tally = find(f, NULL, 0, START + 60 * HOUR);
	assert_int_equal(tally.fresh, 1);
}

#define MAX_AGE (14 * 24 * HOUR)

static enum notify_state news_by(struct fixture *f, const struct news_clock *clock, bool newer)
{
	struct realignment realignments[2] = {{.newer = newer}, {.newer = newer}};

	store_call_free(&f->request->call);
	f->request = store_record_new(NULL, NULL);
	news_find(&f->analysis, (struct realignment *[]){&realignments[0], &realignments[1]}, NULL,
		0, clock, f->request);
	assert_int_equal(f->request->records.count, 1);
	return f->request->records.items[0].news;
}

/* The newest point is some 870 hours before NOW. */
static void test_a_clock_that_is_ahead(void **state)
{
	struct fixture *f = *state;
	int64_t newest = START + (N - 1) * HOUR, change = START + 60 * HOUR;
	struct news_clock clock = {.now = NOW, .oldest = NOW - MAX_AGE};

	assert_true(NOW - newest > MAX_AGE);
	assert_int_equal(news_by(f, &clock, false), NOTIFY_SILENT); /* it ended long ago */
	assert_int_equal(news_by(f, &clock, true), NOTIFY_PENDING); /* or is just coming */
	clock.ahead = NOW - newest;                                 /* or a server knows the time */
	assert_int_equal(news_by(f, &clock, false), NOTIFY_PENDING);
	clock.ahead = 400 * HOUR; /* by the server's time it still ended long ago */
	assert_int_equal(news_by(f, &clock, false), NOTIFY_SILENT);
	clock.ahead = 500000 * HOUR; /* the server knows nothing: it is not before the data */
	clock.oldest = NOW - (newest - change) + HOUR;
	assert_int_equal(news_by(f, &clock, false), NOTIFY_SILENT);
	f->changes[0] = change_at(N - 101, 10, 12); /* not among the newest 100 points */
	assert_int_equal(news_by(f, &clock, true), NOTIFY_SILENT);
}

/* max_age is days: from a series' second run on the newest 100 points are never too old. */
static void test_points_are_never_too_old(void **state)
{
	struct fixture *f = *state;
	struct news_clock clock = {.now = START + N * HOUR, .oldest = START + (N - 5) * HOUR};

	for (size_t at = N - 101; at < N - 98; at++) {
		f->changes[0] = change_at(at, 10, 12);
		assert_int_equal(news_by(f, &clock, false), NOTIFY_SILENT);
		assert_int_equal(
			news_by(f, &clock, true), at >= N - 100 ? NOTIFY_PENDING : NOTIFY_SILENT);
	}
	clock.oldest = WHEN_NEVER; /* nothing is news: another agent's view, a simulation's start */
	assert_int_equal(news_by(f, &clock, true), NOTIFY_SILENT);
}

/* What the windows show now in old points is no news, unless cycles were fitted again: then it was
 * hidden. Not if a known change may be it, nor if it is over. */
static void test_a_fit_uncovers(void **state)
{
	struct fixture *f = *state;
	struct change_key key = {.time = START + 60 * HOUR, .sign = 1};
	struct change_record known = known_at(48, "p99{region=\"eu\"}", CHANGE_CONFIRMED);

	for (size_t i = 0; i < N; i++)
		f->series[0].values[i] = i < 60 ? 10 + 0.01 * (double)(i % 3) : 12;
	for (int i = 0; i < 3; i++) {
		struct realignment past = {.restarted = true,
			.refitted = i > 0,
			.newer = true,
			.grown = true,
			.until = START + 80 * HOUR,
			.before = &key,
			.before_count = 1};
		struct realignment none = {0};

		store_call_free(&f->request->call);
		f->request = store_record_new(NULL, NULL);
		news_find(&f->analysis, (struct realignment *[]){&past, &none}, &known, i == 2,
			&(struct news_clock){.now = NOW, .oldest = ALWAYS}, f->request);
		assert_int_equal(f->request->records.count, 1);
		assert_int_equal(
			f->request->records.items[0].news, i == 1 ? NOTIFY_PENDING : NOTIFY_SILENT);
		free(past.kept);
	}
}

/* After a fit of cycles a told change may be found further away than usual, in old points, too: it
 * stands, and what is found is no other. */
static void test_a_fit_moves(void **state)
{
	struct fixture *f = *state;
	struct change_key key = {.time = START + 60 * HOUR, .sign = 1};
	struct change_record known = known_at(72, "p99{region=\"eu\"}", CHANGE_CONFIRMED);
	struct realignment none = {0}, past = {.restarted = true,
					       .refitted = true,
					       .newer = true,
					       .grown = true,
					       .until = START + 80 * HOUR,
					       .before = &key,
					       .before_count = 1};
	struct news_tally tally;

	known.item.change = change_at(72, 10.1, 12.2);
	known.item.change.count_after = 8;
	for (size_t i = 0; i < N; i++)
		f->series[0].values[i] = (i < 60 ? 10 : 12) + 0.01 * (double)(i % 3);
	tally = news_find(&f->analysis, (struct realignment *[]){&past, &none}, &known, 1,
		&(struct news_clock){.now = NOW, .oldest = ALWAYS}, f->request);
	assert_int_equal(tally.withdrawn, 0);
	assert_int_equal(f->request->records.count, 0);
	free(past.kept);
}

static void test_whatever_the_clock(void **state)
{
	struct news_clock all = {.now = NOW, .oldest = WHEN_ALWAYS, .ahead = HOUR};
	struct news_clock none = {.now = NOW, .oldest = WHEN_NEVER, .ahead = HOUR};
	struct news_clock behind = {.now = START, .oldest = START - MAX_AGE};

	(void)state;
	assert_true(news_oldest(&all, (int64_t[]){START}, 1, true) == WHEN_ALWAYS);
	assert_true(news_oldest(&none, (int64_t[]){START}, 1, true) == WHEN_NEVER);
	assert_true(news_oldest(&behind, (int64_t[]){NOW}, 1, true) == behind.oldest);
}

static void test_known_is_no_news(void **state)
{
	struct fixture *f = *state;
	struct change_record known = known_at(60, "p99{region=\"eu\"}", CHANGE_CONFIRMED);
	struct news_tally tally = find(f, &known, 1, ALWAYS);

	assert_int_equal(tally.fresh + tally.moved + tally.withdrawn + tally.returned, 0);
	assert_int_equal(f->request->records.count, 0);
	assert_int_equal(f->request->update_count, 0);
}

static void test_moved(void **state)
{
	struct fixture *f = *state;
	struct change_record known = known_at(57, "p99{region=\"eu\"}", CHANGE_CONFIRMED);
	struct news_tally tally = find(f, &known, 1, ALWAYS);

	assert_int_equal(tally.moved, 1);
	assert_int_equal(f->request->records.count, 0);
	assert_int_equal(f->request->update_count, 1);
	assert_int_equal(f->request->updates[0].id, 7);
	assert_int_equal(f->request->updates[0].time, START + 60 * HOUR);
	assert_int_equal(f->request->updates[0].state, CHANGE_MOVED);
}

/* Where it moves to, its numbers and commits go, too; but how many points followed it when it was
 * told. */
static void test_moved_with_its_numbers(void **state)
{
	struct fixture *f = *state;
	struct change_record known = known_at(57, "p99{region=\"eu\"}", CHANGE_CONFIRMED);
	const struct announcement *item;

	known.item.change.count_after = 3;
	f->changes[0].count_after = 40;
	f->changes[0].place_from = 58;
	f->changes[0].place_to = 62;
	find(f, &known, 1, ALWAYS);
	item = f->request->updates[0].item;
	assert_non_null(item);
	assert_true(f->request->updates[0].excerpt.length > 0);
	assert_string_equal(item->commit_before, "c59");
	assert_string_equal(item->commit_after, "c60");
	assert_string_equal(item->place_commit_before, "c57");
	assert_string_equal(item->place_commit_after, "c62");
	assert_int_equal(item->place_from, START + 58 * HOUR);
	assert_int_equal(item->place_to, START + 62 * HOUR);
	assert_true(isnan(item->slope));
	assert_int_equal(item->change.level_after, 12);
	assert_int_equal(item->change.count_after, 3);
}

/* A step has turned out to be a trend, which goes on: it is written anew where that can be seen. */
static void test_a_trend_that_grows(void **state)
{
	struct fixture *f = *state;
	struct change_record known = known_at(60, "p99{region=\"eu\"}", CHANGE_MOVED);
	struct change *trend = &f->changes[0];
	struct news_tally tally;

	trend->kind = CHANGE_TREND;
	trend->place_from = 58;
	trend->place_to = 67;
	trend->level_after = 20;
	f->series[0].values[62] = (double)NAN;
	tally = find(f, &known, 1, ALWAYS);
	assert_int_equal(tally.fresh + tally.moved + tally.returned + tally.withdrawn, 0);
	assert_int_equal(f->request->records.count, 0);
	assert_int_equal(f->request->update_count, 1);
	assert_int_equal(f->request->updates[0].state, CHANGE_MOVED);
	assert_int_equal(f->request->updates[0].time, START + 60 * HOUR);
	assert_true(f->request->updates[0].item->slope == 10.0 / 9);
	known.item.change = *trend;
	known.item.place_from = START + 58 * HOUR;
	known.item.place_to = START + 67 * HOUR;
	trend->level_after = 20.1;
	find(f, &known, 1, ALWAYS);
	assert_int_equal(f->request->update_count, 0);
	trend->level_after = 20.5;
	find(f, &known, 1, ALWAYS);
	assert_int_equal(f->request->update_count, 1);
	trend->level_after = 20;
	trend->place_to = 68;
	find(f, &known, 1, ALWAYS);
	assert_int_equal(f->request->update_count, 1);
	known.state = CHANGE_WITHDRAWN;
	assert_int_equal(find(f, &known, 1, ALWAYS).returned, 1);
	assert_non_null(f->request->updates[0].item);
}

/* Missing points do not widen the tolerance's five points: it is counted in points that exist. */
static void test_tolerance_counts_existing_points(void **state)
{
	struct fixture *f = *state;
	struct change_record known = known_at(40, "p99{region=\"eu\"}", CHANGE_CONFIRMED);

	assert_int_equal(find(f, &known, 1, ALWAYS).fresh, 1);
	for (size_t i = 41; i < 58; i++)
		f->series[0].values[i] = (double)NAN;
	assert_int_equal(find(f, &known, 1, ALWAYS).fresh, 0);
}

static void test_withdrawn_and_back(void **state)
{
	struct fixture *f = *state;
	struct change_record known = known_at(60, "p99{region=\"eu\"}", CHANGE_CONFIRMED);
	struct news_tally tally;

	f->findings[0].count = 0;
	tally = find(f, &known, 1, ALWAYS);
	assert_int_equal(tally.withdrawn, 1);
	assert_int_equal(f->request->updates[0].state, CHANGE_WITHDRAWN);
	known.state = CHANGE_WITHDRAWN;
	tally = find(f, &known, 1, ALWAYS);
	assert_int_equal(tally.withdrawn, 0);
	assert_int_equal(f->request->update_count, 0);
	f->findings[0].count = 1;
	tally = find(f, &known, 1, ALWAYS);
	assert_int_equal(tally.returned, 1);
	assert_int_equal(tally.fresh, 0);
	assert_int_equal(f->request->updates[0].state, CHANGE_CONFIRMED);
}

static void make_step(struct fixture *f, size_t from)
{
	for (size_t i = 0; i < N; i++)
		f->series[0].values[i] = i < from ? 10 : 12;
}

/* Not found, and still to be seen in the values: not withdrawn, and no news if it is found again.
 */
static void test_standing(void **state)
{
	struct fixture *f = *state;
	struct change_record known = known_at(60, "p99{region=\"eu\"}", CHANGE_CONFIRMED);
	struct news_tally tally;

	make_step(f, 60);
	f->findings[0].count = 0;
	tally = find(f, &known, 1, ALWAYS);
	assert_int_equal(tally.withdrawn, 0);
	assert_int_equal(f->request->update_count, 0);
	f->findings[0].count = 1;
	tally = find(f, &known, 1, ALWAYS);
	assert_int_equal(tally.fresh + tally.moved + tally.returned, 0);
	f->findings[0].count = 0;
	known.state = CHANGE_CANDIDATE;
	tally = find(f, &known, 1, ALWAYS);
	assert_int_equal(tally.lost, 1);
	known.state = CHANGE_CONFIRMED;
	for (size_t i = 60; i < N; i++)
		f->series[0].values[i] = 10;
	assert_int_equal(find(f, &known, 1, ALWAYS).withdrawn, 1);
}

/* It stands, and what is found instead lies among the points that followed when it was told. */
static void test_moved_further(void **state)
{
	struct fixture *f = *state;
	struct change_record known = known_at(40, "p99{region=\"eu\"}", CHANGE_CONFIRMED);
	struct news_tally tally;

	for (size_t i = 0; i < N; i++)
		f->series[0].values[i] = (double)i;
	known.item.change.count_after = 30;
	tally = find(f, &known, 1, ALWAYS);
	assert_int_equal(tally.moved, 1);
	assert_int_equal(tally.fresh + tally.withdrawn, 0);
	assert_int_equal(f->request->update_count, 1);
	assert_int_equal(f->request->updates[0].time, START + 60 * HOUR);
	known.item.change.count_after = 10;
	tally = find(f, &known, 1, ALWAYS);
	assert_int_equal(tally.fresh, 1);
	assert_int_equal(tally.moved + tally.withdrawn, 0);
	make_step(f, 60);
	known.item.change.count_after = 30;
	tally = find(f, &known, 1, ALWAYS);
	assert_int_equal(tally.fresh, 1);
	assert_int_equal(tally.withdrawn, 1);
}

/* What is known of a series that is not in the data stays as it is. */
static void test_absent_series_is_left_alone(void **state)
{
	struct fixture *f = *state;
	struct change_record known[] = {
		known_at(60, "p50", CHANGE_CONFIRMED),
		known_at(60, "p99{region=\"eu\"}", CHANGE_CONFIRMED),
		known_at(60, "p99{region=\"us\"}", CHANGE_CONFIRMED),
	};
	struct news_tally tally = find(f, known, 3, ALWAYS);

	assert_int_equal(tally.fresh, 0);
	assert_int_equal(tally.withdrawn, 1);
	assert_int_equal(f->request->update_count, 1);
}

static void test_branches_are_apart(void **state)
{
	struct fixture *f = *state;
	struct change_record known = known_at(60, "p99{region=\"eu\"}", CHANGE_CONFIRMED);

	known.branch = "feature";
	assert_int_equal(find(f, &known, 1, ALWAYS).fresh, 1);
	assert_int_equal(f->request->update_count, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* The first series with noise of 0.1: at 12 from `from` on, and back at 10 from `back` on. */
static void make_excursion(struct fixture *f, size_t from, size_t back)
{
	for (size_t i = 0; i < N; i++)
		f->series[0].values[i] =
			(i >= from && i < back ? 12 : 10) + 0.1 * ((double)(i * 7 % 11) / 5 - 1);
	f->changes[0] = change_at(from, 10, 12);
	f->changes[1] = change_at(back, 12, 10);
	f->findings[0].count = back < N ? 2 : 1;
	f->axis.n = N;
}

static struct change_record told_at(int point, int sign)
{
	struct change_record known = known_at(point, "p99{region=\"eu\"}", CHANGE_CONFIRMED);

	known.sign = sign;
	known.news = NOTIFY_QUEUED;
	known.item.change.level_before = sign > 0 ? 10 : 12;
	known.item.change.level_after = sign > 0 ? 12 : 10;
	known.item.change.count_after = 5;
	return known;
}

/* The way back is recorded, and told by the end of the other. */
static void test_step_that_is_undone(void **state)
{
	struct fixture *f = *state;
	struct change_record known = told_at(60, 1);

	make_excursion(f, 60, 80);
	struct news_tally tally = find(f, &known, 1, ALWAYS);

	assert_int_equal(tally.recovered, 1);
	assert_int_equal(tally.withdrawn + tally.moved + tally.fresh, 0);
	assert_int_equal(f->request->update_count, 1);
	assert_int_equal(f->request->updates[0].state, CHANGE_RECOVERED);
	assert_int_equal(f->request->updates[0].over.time, START + 80 * HOUR);
	assert_true(f->request->updates[0].excerpt.length > 0);
	assert_true(fabs(f->request->updates[0].over.level - 10) < 0.1);
	assert_false(f->request->updates[0].silent);
	assert_int_equal(f->request->records.count, 1);
	assert_int_equal(f->request->records.items[0].state, CHANGE_CONFIRMED);
	assert_int_equal(f->request->records.items[0].news, NOTIFY_SILENT);
}

/* It may be a dip: with four points the way back waits as a candidate, and the other is open. */
static void test_way_back_waits(void **state)
{
	struct fixture *f = *state;
	struct change_record known = told_at(60, 1);

	make_excursion(f, 60, 80);
	f->axis.n = 84;
	assert_int_equal(find(f, &known, 1, ALWAYS).recovered, 0);
	assert_int_equal(f->request->records.count, 1);
	assert_int_equal(f->request->records.items[0].state, CHANGE_CANDIDATE);
	assert_int_equal(f->request->records.items[0].news, NOTIFY_HELD);
	f->axis.n = 85;
	assert_int_equal(find(f, &known, 1, ALWAYS).recovered, 1);
}

/* A service's step waits until it has lasted longer than what came and went before, unless the
 * configuration says when changes are confirmed; a benchmark's does not. */
static void test_what_came_and_went(void **state)
{
	struct fixture *f = *state;

	f->test.detection = (struct detection){.kind = KIND_SERVICE};
	make_excursion(f, 70, N);
	for (size_t i = 34; i < 46; i++) /* at other hours */
		f->series[0].values[i] += 2;
	f->changes[0].count_after = 24;
	f->axis.n = 82;
	assert_int_equal(find(f, NULL, 0, ALWAYS).candidates, 1);
	assert_int_equal(f->request->records.items[0].news, NOTIFY_HELD);
	f->axis.n = 95; /* a day: the series is young */
	assert_int_equal(find(f, NULL, 0, ALWAYS).fresh, 1);
	f->axis.n = 82;
	f->test.detection.confirm = (struct confirm_rule){.mode = CONFIRM_POINTS, .points = 3};
	assert_int_equal(find(f, NULL, 0, ALWAYS).fresh, 1);
	f->test.detection = (struct detection){.kind = KIND_BENCHMARK};
	assert_int_equal(find(f, NULL, 0, ALWAYS).fresh, 1);
}

/* The level that a service's step leaves is not mixed with the level before the last step. */
static void test_a_step_behind_a_step(void **state)
{
	struct fixture *f = *state;
	struct change_record known = told_at(34, 1);

	f->test.detection = (struct detection){.kind = KIND_SERVICE};
	make_excursion(f, 34, 64);
	for (size_t i = 64; i < N; i++)
		f->series[0].values[i] += 1.2;
	f->changes[1] = change_at(64, 12, 11.2);
	f->changes[1].count_after = 24;
	f->axis.n = 74;
	assert_int_equal(find(f, &known, 1, ALWAYS).fresh, 1);
}

/* Of a service's movement that is over before it was told neither half is news: both wait until
 * the level has been back for long. */
static void test_over_before_it_was_told(void **state)
{
	struct fixture *f = *state;
	const struct change_record *records;

	f->test.detection = (struct detection){.kind = KIND_SERVICE};
	for (int direction = -1; direction <= 1; direction++) {
		f->metric.direction = direction;
		make_excursion(f, 30, 40);
		f->changes[0].count_after = f->changes[1].count_after = 48;
		f->axis.n = 87;
		assert_int_equal(find(f, NULL, 0, ALWAYS).candidates, 2);
		records = f->request->records.items;
		assert_string_equal(records[0].reason, confirm_reasons[CONFIRM_DOUBT]);
		assert_string_equal(records[1].reason, confirm_reasons[CONFIRM_END]);
		f->axis.n = 88;
		assert_int_equal(find(f, NULL, 0, ALWAYS).silent, 2);
		records = f->request->records.items;
		assert_int_equal(records[0].news, NOTIFY_SILENT);
		assert_int_equal(records[0].state, CHANGE_RECOVERED);
		assert_int_equal(records[1].news, NOTIFY_SILENT);
	}
	f->test.detection.kind = KIND_BENCHMARK;
	assert_int_equal(find(f, NULL, 0, ALWAYS).fresh, 2);
}

/* What goes far beyond the level before it does not wait to be its return. */
static void test_far_beyond_is_no_way_back(void **state)
{
	struct fixture *f = *state;
	struct change_record known = told_at(60, 1);

	for (enum series_kind kind = KIND_SERVICE; kind <= KIND_BENCHMARK; kind++) {
		f->test.detection = (struct detection){.kind = kind};
		make_excursion(f, 60, 80);
		for (size_t i = 80; i < N; i++)
			f->series[0].values[i] -= 4;
		f->changes[0].count_after = f->changes[1].count_after = 24;
		f->changes[1].level_after = 6;
		f->axis.n = 84;
		assert_int_equal(find(f, NULL, 0, ALWAYS).candidates, kind == KIND_SERVICE);
		assert_int_equal(find(f, &known, 1, ALWAYS).candidates, 0);
	}
}

static void test_what_was_not_told_is_closed_in_silence(void **state)
{
	struct fixture *f = *state;
	struct change_record known = told_at(60, 1);

	known.news = NOTIFY_SILENT;
	make_excursion(f, 60, 80);
	assert_int_equal(find(f, &known, 1, ALWAYS).recovered, 1);
	assert_int_equal(f->request->records.items[0].news, NOTIFY_PENDING);
}

/* Both are found for the first time: one telling, of the change with its end. If the change is too
 * old to be told, its end is news; and where a change that ends another is undone itself, what
 * undoes it is news, as nobody else tells of it. */
static void test_step_and_its_end_are_new(void **state)
{
	struct fixture *f = *state;
	const struct change_record *records;

	make_excursion(f, 60, 80);
	assert_int_equal(find(f, NULL, 0, ALWAYS).fresh, 1);
	records = f->request->records.items;
	assert_int_equal(f->request->records.count, 2);
	assert_int_equal(records[0].state, CHANGE_RECOVERED);
	assert_int_equal(records[0].news, NOTIFY_PENDING);
	assert_int_equal(records[0].item.over.time, START + 80 * HOUR);
	assert_int_equal(records[1].state, CHANGE_CONFIRMED);
	assert_int_equal(records[1].news, NOTIFY_SILENT);
	assert_int_equal(find(f, NULL, 0, START + 70 * HOUR).fresh, 1);
	assert_int_equal(f->request->records.items[0].news, NOTIFY_SILENT);
	assert_int_equal(f->request->records.items[1].news, NOTIFY_PENDING);
	f->metric.direction = 0;
	for (size_t i = 90; i < N; i++)
		f->series[0].values[i] += 2;
	f->changes[2] = change_at(90, 10, 12);
	f->findings[0].count = 3;
	assert_int_equal(find(f, NULL, 0, ALWAYS).fresh, 2);
	assert_int_equal(f->request->records.items[0].news, NOTIFY_PENDING);
	assert_int_equal(f->request->records.items[1].news, NOTIFY_SILENT);
	assert_int_equal(f->request->records.items[2].news, NOTIFY_PENDING);
}

/* For a metric of which more is better it is an improvement, and its end a regression. */
static void test_undone_improvement_is_news(void **state)
{
	struct fixture *f = *state;
	struct change_record known = told_at(60, 1);

	f->metric.direction = 1;
	make_excursion(f, 60, 80);
	struct news_tally tally = find(f, &known, 1, ALWAYS);

	assert_int_equal(tally.recovered, 0);
	assert_int_equal(tally.fresh, 1);
	assert_int_equal(f->request->records.items[0].news, NOTIFY_PENDING);
}

/* It is not found any more, neither is its end, and it can be seen that it was there. */
static void test_excursion_that_is_not_found(void **state)
{
	struct fixture *f = *state;
	struct change_record known[] = {told_at(60, 1), told_at(64, -1)};

	known[1].item.id = 8;
	known[1].news = NOTIFY_SILENT;
	make_excursion(f, 60, 64);
	f->findings[0].count = 0;
	f->axis.n = 67;
	assert_int_equal(find(f, known, 1, ALWAYS).recovered, 0);
	assert_int_equal(f->request->update_count, 0);
	f->axis.n = N;
	struct news_tally tally = find(f, known, 2, ALWAYS);

	assert_int_equal(tally.recovered, 1);
	assert_int_equal(tally.withdrawn, 1); /* the end */
	assert_int_equal(f->request->updates[0].state, CHANGE_RECOVERED);
	assert_int_equal(f->request->updates[0].over.time, START + 64 * HOUR);
	assert_false(f->request->updates[0].silent);
	assert_int_equal(f->request->updates[1].id, 8);
	assert_int_equal(f->request->updates[1].state, CHANGE_WITHDRAWN);
	known[1].news = NOTIFY_QUEUED; /* it tells of the other's end, so it stays */
	assert_int_equal(find(f, known, 2, ALWAYS).withdrawn, 0);
	assert_int_equal(f->request->update_count, 1);
	assert_int_equal(f->request->updates[0].state, CHANGE_RECOVERED);
	assert_true(f->request->updates[0].silent);
}

/* What has recovered and is found again stays so, and is open again where its level is the last. */
static void test_recovered_and_found_again(void **state)
{
	struct fixture *f = *state;
	struct change_record known = told_at(60, 1);

	known.state = CHANGE_RECOVERED;
	known.item.over = (struct recovered){START + 80 * HOUR, 10};
	make_excursion(f, 60, 80);
	(void)find(f, &known, 1, ALWAYS);
	assert_int_equal(f->request->update_count, 0);
	assert_int_equal(f->request->records.count, 1);
	assert_int_equal(f->request->records.items[0].news, NOTIFY_SILENT); /* its end */
	f->findings[0].count = 0;
	(void)find(f, &known, 1, ALWAYS);
	assert_int_equal(f->request->update_count + f->request->records.count, 0);
	make_excursion(f, 60, N);
	(void)find(f, &known, 1, ALWAYS);
	assert_int_equal(f->request->update_count, 1);
	assert_int_equal(f->request->updates[0].state, CHANGE_CONFIRMED);
	make_excursion(f, 82, N); /* another one, close by */
	known.item.over.time = START + 81 * HOUR;
	known.item.time = START + 79 * HOUR;
	assert_int_equal(find(f, &known, 1, ALWAYS).fresh, 1);
}

/* Its step lies before the first point by now. */
static void test_old_change_recovers(void **state)
{
	struct fixture *f = *state;
	struct change_record known = told_at(-50, 1);

	make_excursion(f, 0, 80);
	f->changes[0] = f->changes[1];
	f->findings[0].count = 1;
	assert_int_equal(find(f, &known, 1, ALWAYS).recovered, 1);
	assert_int_equal(f->request->updates[0].over.time, START + 80 * HOUR);
	known.item.change.level_before = 5;
	assert_int_equal(find(f, &known, 1, ALWAYS).recovered, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_first_sight),
		CASE(test_points_around),
		CASE(test_missing_points_have_no_commit),
		CASE(test_rows_without_commit_widen_the_range),
#ifndef SANITIZED
		CASE(test_series_share_the_memory),
#endif
		CASE(test_old_is_recorded_silently),
		CASE(test_a_clock_that_is_ahead),
		CASE(test_points_are_never_too_old),
		CASE(test_a_fit_uncovers),
		CASE(test_a_fit_moves),
		CASE(test_whatever_the_clock),
		CASE(test_known_is_no_news),
		CASE(test_moved),
		CASE(test_moved_with_its_numbers),
		CASE(test_a_trend_that_grows),
		CASE(test_tolerance_counts_existing_points),
		CASE(test_withdrawn_and_back),
		CASE(test_standing),
		CASE(test_moved_further),
		CASE(test_absent_series_is_left_alone),
		CASE(test_branches_are_apart),
		CASE(test_step_that_is_undone),
		CASE(test_way_back_waits),
		CASE(test_what_came_and_went),
		CASE(test_a_step_behind_a_step),
		CASE(test_over_before_it_was_told),
		CASE(test_far_beyond_is_no_way_back),
		CASE(test_what_was_not_told_is_closed_in_silence),
		CASE(test_step_and_its_end_are_new),
		CASE(test_undone_improvement_is_news),
		CASE(test_excursion_that_is_not_found),
		CASE(test_recovered_and_found_again),
		CASE(test_old_change_recovers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

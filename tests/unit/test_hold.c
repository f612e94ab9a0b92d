/*
 * hold: changes of series whose cycles are not decided yet; by their dates, and as an agent sees
 * hourly series grow that is started again before each run. And that cycles which are fitted anew
 * move nothing that was told, and bring up nothing without new points.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/zone.h"
#include "agent/decide/hold.h"
#include "detectors/edivisive/edivisive.h"
#include "tests/bench/generate_service.h"
#include "tests/unit/kept.h"
#include "tests/unit/random_series.h"

#define HOUR INT64_C(3600000)
#define DAY (24 * HOUR)
#define MONDAY INT64_C(1709510400000) /* 2024-03-04 00:00 UTC */

enum { WEEK = 7 * 24, POINTS = 6 * WEEK };

static struct season undecided(unsigned cycles, const struct zone *zone)
{
	return (struct season){.undecided = cycles, .clock = {.local = zone_local, .zone = zone}};
}

static int64_t until(const struct season *season, int64_t seen)
{
	return hold_until(season, 0, seen - 10 * DAY, seen, seen);
}

static void test_weekends(void **state)
{
	struct season season = undecided(SEASON_WEEKLY, NULL);
	int64_t tuesday = MONDAY + 8 * DAY;

	(void)state;
	for (int64_t hour = 0; hour < WEEK; hour++) {
		int64_t seen = MONDAY + hour * HOUR;

		assert_int_equal(until(&season, seen), hour < 5 * 24 ? seen : tuesday);
	}
	season.undecided = SEASON_DAILY | SEASON_WEEKLY;
	assert_int_equal(until(&season, MONDAY), MONDAY + DAY);
	assert_int_equal(until(&season, MONDAY + 5 * DAY), tuesday);
	season.undecided = SEASON_DAILY;
	assert_int_equal(until(&season, MONDAY + 5 * DAY), MONDAY + 6 * DAY);
	season.undecided = 0;
	assert_int_equal(until(&season, MONDAY + 5 * DAY), MONDAY + 5 * DAY);
}

/* Of days that nothing before can be compared with: 24 h into the next ones of the other kind. */
static void test_first_days(void **state)
{
	struct season season = undecided(SEASON_WEEKLY, NULL);
	int64_t sunday = MONDAY + 6 * DAY, monday = sunday + DAY, seen;

	(void)state;
	for (int64_t hour = 0; hour < 5 * 24; hour++) {
		seen = MONDAY + hour * HOUR;
		assert_int_equal(hold_until(&season, 0, MONDAY, seen, seen), sunday);
		seen = monday + hour * HOUR; /* the first working day is known: Friday */
		assert_int_equal(hold_until(&season, 0, MONDAY + 4 * DAY, seen, seen), seen);
		assert_int_equal(
			hold_until(&season, 0, MONDAY + 4 * DAY + 1, seen, seen), sunday + 7 * DAY);
		assert_int_equal(hold_until(&season, 0, sunday, seen, seen), sunday + 7 * DAY);
		assert_int_equal(hold_until(&season, 0, 0, seen, seen), seen); /* no service */
	}
	/* Seen on Friday, and found to begin on Saturday. */
	seen = MONDAY + 5 * DAY - HOUR;
	assert_int_equal(
		hold_until(&season, 0, MONDAY - 7 * DAY, seen + HOUR, seen), MONDAY + 8 * DAY);
}

/* A holiday that was named is held like a weekend, also once weeks are known, if there are any. */
static void test_holidays(void **state)
{
	const int64_t wednesday = MONDAY + 2 * DAY;
	struct season season = {
		.cycles = SEASON_DAILY | SEASON_WEEKLY, .clock = {.holidays = {&wednesday, 1}}};

	(void)state;
	assert_int_equal(until(&season, wednesday - 1), wednesday - 1);
	assert_int_equal(until(&season, wednesday), wednesday + 2 * DAY);
	assert_int_equal(until(&season, wednesday + DAY), wednesday + DAY);
	assert_int_equal(until(&season, MONDAY + 5 * DAY), MONDAY + 5 * DAY);
	season.undecided = SEASON_WEEKLY;
	assert_int_equal(until(&season, wednesday), wednesday + 2 * DAY);
	assert_int_equal(until(&season, MONDAY + 5 * DAY), MONDAY + 8 * DAY);
	season.undecided = season.cycles = 0;
	assert_int_equal(until(&season, wednesday), wednesday);
}

/* Where the range is too short to know days, or for a weekend, nobody waits; and not for what has
 * left it. */
static void test_short_ranges(void **state)
{
	struct season season = undecided(SEASON_DAILY | SEASON_WEEKLY, NULL);
	int64_t saturday = MONDAY + 5 * DAY, tuesday = MONDAY + 8 * DAY, seen = saturday + HOUR;

	(void)state;
	assert_int_equal(hold_until(&season, 3 * HOUR, 0, saturday, seen), seen);
	assert_int_equal(hold_until(&season, 3 * DAY - 1, 0, saturday, seen), seen);
	assert_int_equal(hold_until(&season, 3 * DAY, 0, saturday, seen), seen + DAY);
	assert_int_equal(hold_until(&season, 4 * DAY, 0, saturday, seen), tuesday);
	assert_int_equal(hold_until(&season, 4 * DAY, 0, saturday - DAY, seen), saturday + 2 * DAY);
	assert_int_equal(hold_until(&season, 4 * DAY, 0, saturday - 4 * DAY, seen), seen);
}

/* Before 1970, too, days begin at midnight. */
static void test_long_ago(void **state)
{
	struct season season = undecided(SEASON_WEEKLY, NULL);
	int64_t saturday = -5 * DAY; /* 1969-12-27 */

	(void)state;
	assert_int_equal(until(&season, saturday - 1), saturday - 1);
	assert_int_equal(until(&season, saturday), -2 * DAY);
}

/* A weekend is that of the zone, and Monday begins an hour earlier or later for them when clocks
 * have been changed on Sunday. */
static void test_zones(void **state)
{
	static const int64_t sundays[] = {
		1710028800000, 1711843200000, 1729987200000}; /* 2024-03-10, 03-31, 10-27 UTC */
	static const int64_t before[] = {1, 1, 2}, after[] = {1, 2, 1}; /* hours ahead of UTC */
	struct arena *arena = arena_new();
	struct season season = undecided(SEASON_WEEKLY, NULL);
	struct error error;

	(void)state;
	if (!zone_read(arena, NULL, "Europe/Berlin", &season.clock.zone, &error)) {
		arena_free(arena);
		skip(error.text);
	}
	for (size_t i = 0; i < 3; i++) {
		int64_t saturday = sundays[i] - DAY - before[i] * HOUR;
		int64_t monday = sundays[i] + DAY - after[i] * HOUR;

		assert_int_equal(until(&season, saturday - 1), saturday - 1);
		assert_int_equal(until(&season, saturday), monday + DAY);
		assert_int_equal(until(&season, monday - 1), monday + DAY);
		assert_int_equal(until(&season, monday), monday);
	}
	arena_free(arena);
}

static struct hold held(int64_t seen, int64_t until, double before, double after, double about)
{
	return (struct hold){.seen = seen,
		.until = until,
		.confirmed = true,
		.level_before = before,
		.level_after = after,
		.low = after - about,
		.high = after + about};
}

static void expect(struct hold *changes, size_t count, int64_t now, const char *verdicts)
{
	hold_judge(changes, count, now);
	for (size_t i = 0; i < count; i++)
		assert_int_equal("NWO"[changes[i].verdict], verdicts[i]);
}

/* Up on a Saturday and down on Monday comes to nothing, unless something is left of it. */
static void test_pairs(void **state)
{
	struct hold pair[] = {held(10, 40, 100, 150, 2), held(30, 30, 150, 101, 2)};
	struct hold left[] = {held(10, 40, 100, 150, 2), held(30, 30, 150, 113, 2)};
	struct hold hair[] = {held(10, 40, 100, 150, 2), held(30, 30, 150, 112, 1)};
	struct hold further[] = {held(10, 40, 100, 150, 2), held(30, 30, 150, 170, 2)};

	(void)state;
	expect(pair, 2, 39, "WW");
	expect(pair, 2, 40, "OO");
	expect(left, 2, 39, "WW");
	expect(left, 2, 40, "NN");
	expect(hair, 2, 40, "OO");
	expect(further, 2, 40, "NN");
}

static void test_more_than_pairs(void **state)
{
	struct hold three[] = {held(10, 40, 100, 150, 2), held(20, 40, 150, 180, 2),
		held(30, 30, 180, 99, 2), held(45, 45, 99, 150, 2)};
	struct hold none[] = {held(10, 10, 100, 150, 2), held(30, 30, 150, 100, 2)};
	struct hold lasts[] = {held(10, 40, 100, 150, 2)};

	(void)state;
	expect(three, 4, 50, "OOON");
	expect(none, 2, 50, "NN"); /* weekdays */
	expect(lasts, 1, 39, "W");
	expect(lasts, 1, 40, "N");
}

/* What might undo it has to be believed before it does. */
static void test_unbelieved_partner(void **state)
{
	struct hold pair[] = {held(10, 40, 100, 150, 2), held(30, 30, 150, 100, 2)};

	(void)state;
	pair[1].confirmed = false;
	expect(pair, 2, 40, "WW");
	expect(pair, 2, 40 + DAY, "NN");
	pair[1].confirmed = true;
	expect(pair, 2, 41, "OO");
}

/* Days off that take back what began on working days are over on Monday. */
static void test_days_off_in_between(void **state)
{
	struct hold weekend[] = {
		held(10, 40, 100, 130, 2), held(30, 60, 130, 101, 2), held(50, 60, 101, 130, 2)};
	struct hold over[] = {held(10, 40, 100, 130, 2), held(30, 60, 130, 101, 2)};
	struct hold again[] = {
		held(10, 60, 100, 130, 2), held(20, 60, 130, 100, 2), held(50, 60, 100, 130, 2)};

	(void)state;
	weekend[1].off = weekend[2].off = over[1].off = again[0].off = again[1].off = true;
	expect(weekend, 2, 40, "WW");
	expect(weekend, 2, 59, "WW");
	expect(weekend, 3, 60, "NOO");
	expect(over, 2, 59, "WW");
	expect(over, 2, 60, "OO");
	expect(again, 3, 60, "OON");
}

/* An agent and a series of hours that begins on a Monday. */
struct growing {
	struct scratch *scratch;
	struct series_cache *memory;
	struct kept kept;
	const struct zone *zone;
	enum season_mode season;
	const struct edivisive_options *options;
	int64_t start, step;
	double *values;
	int64_t *times;
	size_t end, told;
	int64_t told_at; /* ms: the newest point when something was told last */
};

static const struct edivisive_options options = {.window = 50, .p_value = 0.001};
static const struct edivisive_options otava = {
	.window = 50, .p_value = 0.001, .profile = EDIVISIVE_OTAVA};

static void begin(struct growing *growing, size_t n)
{
	growing->scratch = scratch_new();
	growing->memory = series_cache_make();
	series_cache_restore(growing->memory, NULL, 0);
	growing->times = memory_new(n, sizeof *growing->times);
	for (size_t i = 0; i < n; i++)
		growing->times[i] = growing->start + (int64_t)i * growing->step;
}

static void end(struct growing *growing)
{
	series_cache_free(growing->memory);
	scratch_free(growing->scratch);
	free(growing->times);
}

static void restart(struct growing *growing)
{
	series_cache_free(growing->memory);
	growing->memory = series_cache_make();
	series_cache_restore(
		growing->memory, &growing->kept.checkpoint, growing->kept.has_checkpoint ? 1 : 0);
}

static size_t count_told(const struct kept *kept)
{
	size_t told = 0;

	for (size_t i = 0; i < kept->count; i++)
		told += kept->told[i];
	return told;
}

/* A run that sees the points before `end`, so long after the last of them. */
static void run(struct growing *growing, size_t end, int64_t later)
{
	const struct plugin plugin = {.name = "edivisive"};
	const struct test test = {.name = "t",
		.detection = {.detector = &plugin,
			.options = growing->options,
			.season = growing->season,
			.zone = growing->zone}};
	struct axis axis = {.n = end, .times = growing->times};
	int64_t now = growing->times[end - 1] + later;

	series_cache_begin(growing->memory, now, 0);
	kept_pass(&growing->kept, growing->memory, &test, &axis, growing->values, now,
		growing->scratch, false);
	growing->end = end;
	if (count_told(&growing->kept) > growing->told)
		growing->told_at = growing->times[end - 1];
	growing->told = count_told(&growing->kept);
}

/* `level` at each hour in noise of 3%. */
static void fill(double *values, size_t n, double (*level)(size_t hour), uint64_t seed)
{
	uint64_t random = seed * 0x9e3779b97f4a7c15 + 1;

	for (size_t i = 0; i < n; i++)
		values[i] = level(i) * exp(0.03 * random_normal(&random));
}

enum { SATURDAY = 5 * 24, TUESDAY = WEEK + 24, STEP = SATURDAY + 10 };

static double lasting(size_t hour)
{
	return hour >= STEP ? 130 : 100;
}

static double over(size_t hour)
{
	return hour >= STEP && hour < WEEK + 3 ? 130 : 100;
}

static double weekends(size_t hour)
{
	return hour % WEEK >= SATURDAY ? 60 : 100;
}

static double tuesday(size_t hour)
{
	return hour >= WEEK + 30 ? 130 : 100;
}

/* Hour by hour; `restarts`: by another program each. */
static void live(struct growing *growing, double (*level)(size_t hour), size_t n, bool restarts,
	uint64_t seed)
{
	static double values[POINTS];

	*growing = (struct growing){.season = growing->season,
		.options = growing->options ? growing->options : &options,
		.zone = growing->zone,
		.start = MONDAY,
		.step = HOUR,
		.values = values};
	fill(values, POINTS, level, seed);
	begin(growing, POINTS);
	for (size_t last = 4 * 24; last <= n; last++) {
		if (restarts)
			restart(growing);
		run(growing, last, HOUR / 2);
	}
}

static const struct change_record *told_record(const struct growing *growing)
{
	for (size_t i = 0; i < growing->kept.count; i++)
		if (growing->kept.told[i] > 0)
			return &growing->kept.records[i];
	fail_msg("nothing was told");
	return NULL;
}

/* It is told when Tuesday begins, at its place, whoever has looked at it meanwhile. */
static void test_a_step_of_saturday(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct growing growing = {.season = SEASON_AUTO};

		live(&growing, lasting, TUESDAY, seed % 2, seed);
		assert_int_equal(growing.told, 0);
		assert_int_equal(growing.kept.records[0].state, CHANGE_CANDIDATE);
		assert_int_equal(growing.kept.records[0].news, NOTIFY_HELD);
		run(&growing, TUESDAY + 1, HOUR / 2);
		assert_int_equal(growing.told, 1);
		assert_in_range(told_record(&growing)->item.time, MONDAY + (STEP - 3) * HOUR,
			MONDAY + (STEP + 3) * HOUR);
		for (size_t last = TUESDAY + 2; last < TUESDAY + 24; last++)
			run(&growing, last, HOUR / 2);
		assert_int_equal(growing.told, 1);
		end(&growing);
	}
}

/* Of what is over before it is told nobody hears, and both are known. */
static void test_a_pair_is_recorded(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct growing growing = {.season = SEASON_AUTO};
		size_t up = 0, down = 0;

		live(&growing, over, TUESDAY + 48, seed % 2, seed);
		assert_int_equal(growing.told, 0);
		for (size_t i = 0; i < growing.kept.count; i++) {
			const struct change_record *record = &growing.kept.records[i];

			if (record->state == CHANGE_WITHDRAWN)
				continue;
			assert_int_equal(record->news, NOTIFY_SILENT);
			assert_int_not_equal(record->state, CHANGE_CANDIDATE);
			up += record->sign > 0;
			down += record->sign < 0;
		}
		assert_int_equal(up, 1);
		assert_int_equal(down, 1);
		end(&growing);
	}
}

/* Weekends are lower, and nobody is told before their weeks are known, or after. */
static void test_weekends_are_no_news(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct growing growing = {.season = SEASON_AUTO};

		live(&growing, weekends, 4 * WEEK, seed % 2, seed);
		assert_int_equal(growing.told, 0);
		end(&growing);
	}
}

static void test_weekdays_and_others_do_not_wait(void **state)
{
	struct growing growing = {.season = SEASON_AUTO};

	(void)state;
	live(&growing, tuesday, WEEK + 48, false, 1);
	assert_int_equal(growing.told, 1);
	assert_true(growing.told_at < MONDAY + (WEEK + 30 + 20) * HOUR);
	end(&growing);
	growing = (struct growing){.season = SEASON_NONE};
	live(&growing, lasting, STEP + 20, false, 1);
	assert_int_equal(growing.told, 1);
	end(&growing);
	growing = (struct growing){.options = &otava};
	live(&growing, lasting, STEP + 20, false, 1);
	assert_int_equal(growing.told, 1);
	end(&growing);
}

/* When a change was first seen, by the points that followed it then, and by which clock it is held.
 */
static void test_first_seen(void **state)
{
	static const int64_t times[] = {0, 10, 20, 20, 30};
	static const struct {
		int64_t time;
		size_t followed, seen;
	} rows[] = {{10, 1, 1}, {10, 2, 2}, {10, 4, 4}, {10, 5, 4}, {10, 0, 1}, {15, 1, 2},
		{20, 2, 3}, {-5, 1, 0}, {30, 1, 4}, {31, 1, 4}, {31, 9, 4}};
	static const struct {
		size_t n;
		int64_t now, clock;
	} clocks[] = {{5, 0, 30}, {5, HOLD_GRACE + 30, 30}, {5, HOLD_GRACE + 31, 31},
		{1, HOLD_GRACE + 5, 5}, {0, HOLD_GRACE + 7, 7}, {5, -1000, 30}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(hold_seen(times, 5, rows[i].time, rows[i].followed), rows[i].seen);
	for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++)
		assert_int_equal(hold_clock(times, clocks[i].n, clocks[i].now), clocks[i].clock);
}

/* Its last point is of Sunday: a day after the hold it is told without one, and once. */
static void test_a_series_that_ends(void **state)
{
	(void)state;
	for (int restarts = 0; restarts < 2; restarts++) {
		struct growing growing = {.season = SEASON_AUTO};
		int64_t rest = (TUESDAY - (WEEK - 12)) * HOUR + HOLD_GRACE;

		live(&growing, lasting, WEEK - 11, restarts, 1);
		for (int64_t later = HOUR; later < rest; later += HOUR) {
			if (restarts)
				restart(&growing);
			run(&growing, WEEK - 11, later);
			assert_int_equal(growing.told, 0);
		}
		run(&growing, WEEK - 11, rest);
		assert_int_equal(growing.told, 1);
		run(&growing, WEEK - 11, rest + HOUR);
		assert_int_equal(growing.told, 1);
		end(&growing);
	}
}

/* What is found in the first week waits until its weekend is seen. */
static double early(size_t hour)
{
	return hour >= 40 ? 150 : 100;
}

static void test_before_days_are_known(void **state)
{
	struct growing growing = {.season = SEASON_AUTO, .options = &options};
	static double values[POINTS];

	(void)state;
	growing.start = MONDAY;
	growing.step = HOUR;
	growing.values = values;
	fill(values, POINTS, early, 1);
	begin(&growing, POINTS);
	for (size_t last = 1; last < WEEK && growing.told == 0; last++)
		run(&growing, last, HOUR / 2);
	assert_int_equal(growing.told, 1);
	assert_int_equal(growing.told_at, MONDAY + (WEEK - 24) * HOUR);
	end(&growing);
}

static void copy_records(const struct kept *kept, struct change_record *out)
{
	memcpy(out, kept->records, kept->count * sizeof *out);
}

/* Of what is told and lies that far back nothing has moved: by more than a point, which a swing
 * that is fitted anew can do. */
static size_t count_moved(const struct growing *growing, const struct change_record *before,
	size_t count, int64_t until)
{
	size_t moved = 0;

	for (size_t i = 0; i < count; i++) {
		const struct change_record *now = &growing->kept.records[i];

		if (growing->kept.told[i] == 0 || before[i].item.time >= until)
			continue;
		moved += llabs(now->item.time - before[i].item.time) > growing->step;
	}
	return moved;
}

/*
 * Service metrics of all kinds, some hours a run: another program, which knows which points were
 * seen and whose cycles are fitted at another time, tells nothing of them, and moves nothing; nor
 * does a fit that comes with new points move what lies two windows back.
 */
static void test_refits(void **state)
{
	static struct service_series series;
	static struct change_record before[MOST_RECORDS];
	uint64_t random = 5;
	size_t told = 0;

	(void)state;
	for (size_t number = 0; number < 2 * service_class_count; number++) {
		struct growing growing = {.season = SEASON_AUTO, .options = &options};

		service_generate(number % service_class_count, 5 + number, 28, &series);
		if (series.n > 2000)
			continue;
		growing.start = series.start * 1000;
		growing.step = series.step * 1000;
		growing.values = series.values;
		begin(&growing, series.n);
		for (size_t last = series.n / 4; last <= series.n;
			last += 1 + random_below(&random, 24)) {
			size_t count = growing.kept.count;
			int64_t back = growing.times[last - 1] - 100 * growing.step;

			copy_records(&growing.kept, before);
			run(&growing, last, growing.step / 2);
			assert_int_equal(count_moved(&growing, before, count, back), 0);
			if (random_below(&random, 3) > 0)
				continue;
			size_t known = growing.told;

			count = growing.kept.count;
			copy_records(&growing.kept, before);
			if (growing.kept.has_checkpoint)
				growing.kept.checkpoint.last_point = growing.times[last - 1];
			restart(&growing);
			run(&growing, last, growing.step / 2 + 1);
			assert_int_equal(growing.told, known);
			assert_int_equal(count_moved(&growing, before, count, INT64_MAX), 0);
		}
		told += growing.told;
		end(&growing);
	}
	print_message("%zu told\n", told);
	assert_true(told > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_seen),
		cmocka_unit_test(test_weekends),
		cmocka_unit_test(test_first_days),
		cmocka_unit_test(test_holidays),
		cmocka_unit_test(test_short_ranges),
		cmocka_unit_test(test_long_ago),
		cmocka_unit_test(test_zones),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_more_than_pairs),
		cmocka_unit_test(test_unbelieved_partner),
		cmocka_unit_test(test_days_off_in_between),
		cmocka_unit_test(test_a_step_of_saturday),
		cmocka_unit_test(test_a_pair_is_recorded),
		cmocka_unit_test(test_weekends_are_no_news),
		cmocka_unit_test(test_weekdays_and_others_do_not_wait),
		cmocka_unit_test(test_a_series_that_ends),
		cmocka_unit_test(test_before_days_are_known),
		cmocka_unit_test(test_refits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Seasons: what is accepted, what is left alone, and that what is frozen stays so.
 */
#include "unit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/zone.h"
#include "detectors/detector.h"
#include "detectors/season.h"
#include "tests/unit/random.h"

#define HOUR INT64_C(3600000)
#define START (INT64_C(1772409600000)) /* Monday 2026-03-02 00:00 UTC */

enum { MOST = 4000 };

static const struct season_clock UTC;

struct made {
	double values[MOST], clean[MOST];
	int64_t times[MOST];
	size_t n;
	uint64_t random;
	struct scratch *scratch;
};

static int setup(void **state)
{
	struct made *made = calloc(1, sizeof *made);

	made->random = 12345;
	made->scratch = scratch_new();
	*state = made;
	return made ? 0 : -1;
}

static int teardown(void **state)
{
	struct made *made = *state;

	scratch_free(made->scratch);
	free(made);
	return 0;
}

/* Noise of `sd` around 100 times 1 + `daily` of a sine of the day, times `weekend` on two days. */
static void make(struct made *made, size_t n, int64_t step, double daily, double weekend, double sd)
{
	made->n = n;
	for (size_t i = 0; i < n; i++) {
		int64_t time = START + (int64_t)i * step;
		double day = (double)(time % (24 * HOUR)) / (double)(24 * HOUR);
		bool off = (time - START) / (24 * HOUR) % 7 >= 5;

		made->times[i] = time;
		made->clean[i] = 100 * exp(sd * random_bell(&made->random));
		made->values[i] =
			made->clean[i] * (1 + daily * sin(2 * M_PI * day)) * (off ? weekend : 1);
	}
}

static struct season fit(struct made *made, enum season_mode mode)
{
	return season_fit(mode, UTC, 0, made->values, made->times, made->n, made->scratch);
}

/* How far the adjusted values are from those without a cycle, in the mean. */
static double distance(const struct made *made, const struct season *season)
{
	double out[MOST], sum = 0, level = 0;

	season_remove(season, made->times, made->values, made->n, out);
	for (size_t i = 0; i < made->n; i++)
		level += (log(out[i]) - log(made->clean[i])) / (double)made->n;
	for (size_t i = 0; i < made->n; i++)
		sum += fabs(log(out[i]) - log(made->clean[i]) - level);
	return sum / (double)made->n;
}

static void test_daily_cycle(void **state)
{
	struct made *made = *state;

	make(made, 720, HOUR, 0.3, 1, 0.05);
	struct season season = fit(made, SEASON_AUTO);
	assert_int_equal(season.cycles, SEASON_DAILY);
	assert_int_equal(season.scale, SCALE_LOG);
	assert_true(season.explained > 0.85 && season.explained < 1);
	assert_true(distance(made, &season) < 0.012);
	season_free(&season);
}

static void test_weekly_cycle(void **state)
{
	struct made *made = *state;

	make(made, 720, HOUR, 0.3, 0.6, 0.05);
	struct season season = fit(made, SEASON_AUTO);
	assert_true(season.cycles & SEASON_WEEKLY);
	assert_true(distance(made, &season) < 0.016);
	season_free(&season);
	make(made, 365, 24 * HOUR, 0, 0.6, 0.05);
	season = fit(made, SEASON_AUTO);
	assert_int_equal(season.cycles, SEASON_WEEKLY);
	assert_true(distance(made, &season) < 0.012);
	season_free(&season);
}

/* A day's sine whose swing changes after half of the time, in noise of 3%. */
static void make_swing(struct made *made, size_t n, double first, double second)
{
	make(made, n, HOUR, 0, 1, 0.03);
	for (size_t i = 0; i < n; i++)
		made->values[i] = made->clean[i] * (1 + (i < n / 2 ? first : second) *
								   sin(2 * M_PI * (double)i / 24));
}

/* The mean distance from the values without a cycle, of those from `from` on. */
static double distance_from(struct made *made, size_t from)
{
	double out[MOST], sum = 0;
	struct season season = fit(made, SEASON_AUTO);

	season_remove(&season, made->times, made->values, made->n, out);
	for (size_t i = from; i < made->n; i++)
		sum += fabs(log(out[i] / made->clean[i])) / (double)(made->n - from);
	season_free(&season);
	return sum;
}

/* It follows within a week what the profile of the whole cannot have, and leaves a swing that stays
 * nearly as it is. */
static void test_swing(void **state)
{
	static const double swings[][2] = {{0.3, 0.3}, {0.3, 0.15}, {0.3, 0.5}, {0.2, 0.4}};
	struct made *made = *state;

	for (size_t i = 0; i < 4; i++) {
		make_swing(made, 60 * 24, swings[i][0], swings[i][1]);
		assert_true(distance_from(made, 38 * 24) < 0.016);
	}
}

/* Working days that look like a Sunday pass as one, named or not; one that was named and looks like
 * any other does not; of one that is still to come the name counts. */
static void test_holidays(void **state)
{
	static const int64_t days[] = {9, 17, 31, 36};
	int64_t named[4], today = START + 36 * 24 * HOUR;
	struct made *made = *state;
	struct season_clock clock = {.holidays = {named + 1, 3}};
	double out[24];

	for (size_t i = 0; i < 4; i++)
		named[i] = START + days[i] * 24 * HOUR;
	make(made, 35 * 24, HOUR, 0.3, 0.6, 0.03);
	for (size_t i = 0; i < made->n; i++)
		if (i / 24 == 9 || i / 24 == 17)
			made->values[i] *= 0.6;
	struct season season = season_fit(
		SEASON_AUTO, clock, 0, made->values, made->times, made->n, made->scratch);
	assert_int_equal(season.cycles, SEASON_DAILY | SEASON_WEEKLY);
	assert_int_equal(season.sunday_count, 3);
	assert_int_equal(season.sundays[0], named[0]);
	assert_int_equal(season.sundays[1], named[1]);
	assert_int_equal(season.sundays[2], named[3]);
	for (size_t i = 0; i < 24; i++) {
		int64_t time = today + (int64_t)i * HOUR;
		double value = 60 * (1 + 0.3 * sin(2 * M_PI * (double)i / 24)), sunday;

		season_remove(&season, &time, &value, 1, &out[i]);
		assert_in_range(lround(out[i]), 82, 94);
		time += 24 * HOUR;
		season_remove(&season, &time, &value, 1, &out[i]);
		assert_in_range(lround(out[i]), 49, 56);
		assert_int_equal(season_remove_sundays(&season, &time, &value, 1, &sunday),
			i <= 3 || i >= 21);
		if (i <= 3)
			assert_in_range(lround(sunday), 82, 94);
	}
	season_free(&season);
}

/* A level that falls in the evening to that of weekends, and stays: none of its days is a holiday.
 */
static void test_a_lower_level_is_no_sunday(void **state)
{
	struct made *made = *state;

	for (size_t day = 28; day < 33; day++) {
		make(made, (day + 1) * 24, HOUR, 0.3, 0.6, 0.03);
		for (size_t i = day * 24 - 5; i < made->n; i++)
			made->values[i] *= 0.6;
		for (made->n -= 12; made->n <= (day + 1) * 24; made->n += 12) {
			struct season season = fit(made, SEASON_AUTO);

			assert_int_equal(season.cycles, SEASON_DAILY | SEASON_WEEKLY);
			assert_int_equal(season.sunday_count, 0);
			season_free(&season);
		}
	}
}

/* How many of 50 made in the same way have a weekly cycle. */
static int weekly_of_50(struct made *made, size_t n, double weekend, double sd)
{
	int count = 0;

	for (int round = 0; round < 50; round++) {
		make(made, n, HOUR, 0.45, weekend, sd);
		struct season season = fit(made, SEASON_AUTO);
		count += (season.cycles & SEASON_WEEKLY) != 0;
		season_free(&season);
	}
	return count;
}

/* Noise that does not depend on itself hides no weekend, if it is loud. */
static void test_loud_weeks(void **state)
{
	struct made *made = *state;

	assert_in_range(weekly_of_50(made, 14 * 24, 0.6, 0.2), 48, 50);
	assert_in_range(weekly_of_50(made, 30 * 24, 0.6, 0.4), 40, 50);
	assert_int_equal(weekly_of_50(made, 14 * 24, 1, 0.4), 0);
	assert_int_equal(weekly_of_50(made, 30 * 24, 1, 0.4), 0);
}

/* Noise that does may look like weeks. */
static void test_lasting_noise_is_no_week(void **state)
{
	static const size_t days[] = {14, 21, 30};
	struct made *made = *state;
	int count = 0;

	for (int round = 0; round < 150; round++) {
		double left = 0;

		make(made, days[round % 3] * 24, HOUR, 0.3, 1, 0);
		for (size_t i = 0; i < made->n; i++) {
			left = (round % 2 ? 0.8 : 0.6) * left + 0.05 * random_bell(&made->random);
			made->values[i] *= exp(left);
		}
		struct season season = fit(made, SEASON_AUTO);
		count += (season.cycles & SEASON_WEEKLY) != 0;
		season_free(&season);
	}
	assert_in_range(count, 0, 1);
}

/* Of two levels, either of which stays for `stay` hours in the mean. */
static void make_modes(struct made *made, size_t n, int64_t step, double stay)
{
	size_t mode = 0;

	make(made, n, step, 0, 1, 0.02);
	for (size_t i = 0; i < n; i++) {
		if ((double)random_below(&made->random, 1000000) <
			1e6 * (double)(step / HOUR) / stay)
			mode = 1 - mode;
		made->values[i] *= mode ? 1.1 : 1;
	}
}

/* Modes that stay for a day or so look like weeks, if there are few of them. */
static void test_modes_that_stay_are_no_week(void **state)
{
	static const size_t days[] = {14, 16, 21, 30};
	struct made *made = *state;
	size_t count = 0;

	for (size_t round = 0; round < 400; round++) {
		make_modes(made, days[round % 4] * 24, HOUR, 12 << round % 3);
		struct season season = fit(made, SEASON_AUTO);
		count += season.cycles != 0;
		season_free(&season);
	}
	assert_in_range(count, 0, 2);
}

/* A sawtooth, or two levels in turn, every so many hours. */
static void make_periodic(struct made *made, size_t n, double hours, bool square)
{
	double start = (double)random_below(&made->random, 1000) / 1000;

	make(made, n, HOUR, 0, 1, 0.03);
	for (size_t i = 0; i < n; i++) {
		double phase = fmod((double)i / hours + start, 1);
		made->values[i] *= 1 + 0.2 * (square ? phase < 0.5 : phase);
	}
}

/* What repeats itself every 7 hours does so every week. */
static void test_other_periods_are_no_week(void **state)
{
	static const double hours[] = {7, 13, 21, 28, 33.6, 36, 42, 56, 60, 72, 80, 84, 96, 120};
	struct made *made = *state;

	for (size_t i = 0; i < sizeof hours / sizeof *hours; i++)
		for (size_t round = 0; round < 6; round++) {
			make_periodic(made, (14 + 8 * (round / 2)) * 24, hours[i], round % 2);
			struct season season = fit(made, SEASON_AUTO);
			assert_int_equal(season.cycles, 0);
			season_free(&season);
		}
}

/* What repeats itself every 12 hours does so every day; 23 or 25 are none. */
static void test_other_periods_and_days(void **state)
{
	struct made *made = *state;

	for (size_t round = 0; round < 6; round++) {
		static const double hours[] = {23, 25, 12};

		make_periodic(made, 21 * 24, hours[round / 2], round % 2);
		struct season season = fit(made, SEASON_AUTO);
		assert_int_equal(season.cycles, round < 4 ? 0 : SEASON_DAILY);
		season_free(&season);
	}
}

static void test_other_cadences(void **state)
{
	static const int64_t minutes[] = {5, 7, 10, 15, 30, 120, 240, 360};
	struct made *made = *state;

	for (size_t i = 0; i < sizeof minutes / sizeof *minutes; i++) {
		int64_t step = minutes[i] * 60000;
		size_t n = (size_t)(25 * 24 * HOUR / step);

		make(made, n < MOST ? n : MOST, step, 0.3, 1, 0.05);
		struct season season = fit(made, SEASON_AUTO);
		assert_int_equal(season.cycles, SEASON_DAILY);
		assert_true(distance(made, &season) < 0.02);
		season_free(&season);
	}
}

/* Without a cycle nothing is touched, not by a bit. */
static void test_none_is_untouched(void **state)
{
	struct made *made = *state;
	double out[MOST];

	for (int round = 0; round < 50; round++) {
		make(made, 720, HOUR, 0, 1, 0.05);
		made->values[5] = (double)NAN;
		struct season season = fit(made, SEASON_AUTO);
		assert_int_equal(season.cycles, 0);
		season_remove(&season, made->times, made->values, made->n, out);
		assert_memory_equal(out, made->values, made->n * sizeof *out);
		season_free(&season);
	}
}

static void test_mode_decides(void **state)
{
	struct made *made = *state;

	make(made, 720, HOUR, 0.3, 0.6, 0.05);
	struct season season = fit(made, SEASON_NONE);
	assert_int_equal(season.cycles, 0);
	season = fit(made, SEASON_DAY);
	assert_int_equal(season.cycles, SEASON_DAILY);
	season_free(&season);
	make(made, 24 * 7, HOUR, 0.02, 1, 0.04);
	season = fit(made, SEASON_AUTO);
	assert_int_equal(season.cycles, 0);
	season_free(&season);
	season = fit(made, SEASON_DAY); /* asked for, so less is enough */
	assert_int_equal(season.cycles, SEASON_DAILY);
	season_free(&season);
}

static void test_too_few_points_are_undecided(void **state)
{
	struct made *made = *state;

	make(made, 71, HOUR, 0.3, 1, 0.05);
	struct season season = fit(made, SEASON_AUTO);
	assert_int_equal(season.cycles, 0);
	assert_int_equal(season.undecided, SEASON_DAILY | SEASON_WEEKLY);
	season_free(&season);
	make(made, 72, HOUR, 0.3, 1, 0.05);
	season = fit(made, SEASON_AUTO);
	assert_int_equal(season.cycles, SEASON_DAILY);
	assert_int_equal(season.undecided, SEASON_WEEKLY);
	season_free(&season);
	make(made, 24 * 14, HOUR, 0.3, 1, 0.05);
	season = fit(made, SEASON_AUTO);
	assert_int_equal(season.undecided, 0);
	season_free(&season);
}

/* Builds that come as they come have no cadence, and so no cycle. */
static void test_irregular_times(void **state)
{
	struct made *made = *state;

	make(made, 720, HOUR, 0.3, 1, 0.05);
	for (size_t i = 1; i < made->n; i++)
		made->times[i] =
			made->times[i - 1] + 60000 + (int64_t)random_below(&made->random, 7200000);
	struct season season = fit(made, SEASON_AUTO);
	assert_int_equal(season.cycles, 0);
	assert_int_equal(season.undecided, 0);
	season_free(&season);
}

static size_t excursion_of(struct made *made, enum season_mode mode)
{
	struct season season = fit(made, mode);
	size_t excursion = season.excursion;

	season_free(&season);
	return excursion;
}

/* An outage may have more points than the bad builds of a history; the cadence tells which it is,
 * cycles or not, removed or not. */
static void test_excursions_by_cadence(void **state)
{
	struct made *made = *state;

	for (enum season_mode mode = SEASON_AUTO; mode <= SEASON_WEEK; mode++) {
		make(made, 300, HOUR, mode % 2 ? 0.3 : 0, 1, 0.05);
		assert_int_equal(excursion_of(made, mode), 12);
		make(made, 300, 6 * HOUR, 0, 1, 0.05);
		assert_int_equal(excursion_of(made, mode), 12);
		make(made, 300, 24 * HOUR, 0, 1, 0.05);
		assert_int_equal(excursion_of(made, mode), 0);
		make(made, 300, HOUR, 0, 1, 0.05);
		for (size_t i = 1; i < made->n; i++)
			made->times[i] = made->times[i - 1] + 60000 +
					 (int64_t)random_below(&made->random, 7200000);
		assert_int_equal(excursion_of(made, mode), 0);
	}
	struct season season =
		season_fit(SEASON_AUTO, UTC, 0, made->values, NULL, made->n, made->scratch);
	assert_int_equal(season.cycles + season.excursion, 0);
	season_free(&season);
}

/* Scrapes come a little late, points are missing, an outage is long: the cycle is still there. */
static void test_jitter_gaps_and_outages(void **state)
{
	struct made *made = *state;

	make(made, 720, HOUR, 0.3, 1, 0.05);
	for (size_t i = 0; i < made->n; i++) {
		made->times[i] += (int64_t)random_below(&made->random, 240000);
		if (random_below(&made->random, 10) == 0 || (i > 300 && i < 340))
			made->values[i] = (double)NAN;
		if (i > 500 && i < 512)
			made->values[i] *= 8;
	}
	struct season season = fit(made, SEASON_AUTO);
	assert_int_equal(season.cycles, SEASON_DAILY);
	for (size_t i = 0; i < made->n; i++)
		made->values[i] = isnan(made->values[i]) ? made->clean[i] : made->values[i];
	double out[MOST];
	season_remove(&season, made->times, made->values + 0, 100, out);
	for (size_t i = 0; i < 100; i++)
		assert_true(isfinite(out[i]));
	season_free(&season);
}

/* The level moves; the cycle is found all the same, and the step stays whole. */
static void test_step_within_the_range(void **state)
{
	struct made *made = *state;
	double out[MOST], before = 0, after = 0;

	make(made, 720, HOUR, 0.3, 1, 0.05);
	for (size_t i = 400; i < made->n; i++)
		made->values[i] *= 1.2;
	struct season season = fit(made, SEASON_AUTO);
	assert_int_equal(season.cycles, SEASON_DAILY);
	season_remove(&season, made->times, made->values, made->n, out);
	for (size_t i = 0; i < 400; i++)
		before += out[i] / 400;
	for (size_t i = 400; i < made->n; i++)
		after += out[i] / 320;
	assert_true(fabs(after / before - 1.2) < 0.015);
	season_free(&season);
}

/* Clocks are turned on 2026-03-29: people's day stays the same, UTC's does not. */
static void test_daylight_saving(void **state)
{
	struct made *made = *state;
	struct arena *arena = arena_new();
	const struct zone *zone;
	struct error error;

	if (!zone_read(arena, NULL, "Europe/Berlin", &zone, &error)) {
		arena_free(arena);
		skip(error.text);
	}
	made->n = 24 * 60;
	for (size_t i = 0; i < made->n; i++) {
		made->times[i] = START + (int64_t)i * HOUR;
		int64_t hour = zone_local(zone, made->times[i]) / HOUR % 24;
		made->clean[i] = 100 * exp(0.02 * random_bell(&made->random));
		made->values[i] = made->clean[i] * (hour >= 8 && hour < 18 ? 2 : 1);
	}
	for (size_t days = 14; days <= 56; days += 14) {
		size_t first = days < 28 ? 20 * 24 : 0;
		struct season seen = season_fit(SEASON_AUTO,
			(struct season_clock){.local = zone_local, .zone = zone}, 0,
			made->values + first, made->times + first, 24 * days, made->scratch);
		assert_int_equal(seen.cycles, SEASON_DAILY);
		season_free(&seen);
	}
	struct season utc = fit(made, SEASON_DAY);
	struct season local =
		season_fit(SEASON_DAY, (struct season_clock){.local = zone_local, .zone = zone}, 0,
			made->values, made->times, made->n, made->scratch);
	assert_true(distance(made, &local) < 0.01);
	assert_true(distance(made, &utc) > 0.02);
	season_free(&utc);
	season_free(&local);
	arena_free(arena);
}

/* Counts with zeros are taken on their own scale; a logarithm is not for them. */
static void test_scales(void **state)
{
	struct made *made = *state;

	make(made, 720, HOUR, 0.5, 1, 0.2);
	for (size_t i = 0; i < made->n; i++)
		made->values[i] = floor(made->values[i] / 5);
	made->values[7] = 0;
	struct season season = fit(made, SEASON_AUTO);
	assert_int_equal(season.scale, SCALE_ROOT);
	assert_int_equal(season.cycles, SEASON_DAILY);
	season_free(&season);
	make(made, 720, HOUR, 0.3, 1, 0.05);
	season = fit(made, SEASON_AUTO);
	assert_true(season_takes(&season, made->values, made->n));
	made->values[9] = 0;
	assert_false(season_takes(&season, made->values, made->n));
	season_free(&season);
	made->values[9] = -1.5;
	season = fit(made, SEASON_AUTO);
	assert_int_equal(season.scale, SCALE_RAW);
	assert_int_equal(season.cycles, SEASON_DAILY);
	season_free(&season);
}

static double mean_of(const double *values, size_t from, size_t to)
{
	double sum = 0;

	for (size_t i = from; i < to; i++)
		sum += values[i];
	return sum / (double)(to - from);
}

/*
 * A quantity that is never negative stays so without its cycle, even if it nearly vanishes each
 * night and each weekend, and its level is what it averages over whole weeks: of latencies
 * (positive), of rates (fractions and zeros) and of counts. After a step the ratio of the levels is
 * that of the weeks, and after an outage the level is that
 * of the hours that are always without values.
 */
static void test_levels_that_can_be(void **state)
{
	struct made *made = *state;
	double adjusted[MOST];
	enum { WEEKS = 6, N = WEEKS * 168 };

	for (int kind = 0; kind < 3; kind++)
		for (int after = 0; after < 2; after++) { /* a step of 60%, an outage */
			uint64_t random = (uint64_t)kind + 5;

			make(made, N, HOUR, 0.3, 1, 0.05);
			for (size_t i = 0; i < N; i++) {
				double hour = (double)(made->times[i] / HOUR % 24);
				double day = fmax(0, sin(M_PI * (hour - 6) / 15)) *
					     (made->times[i] / HOUR / 24 % 7 < 5 ? 1 : 0.3);
				double level = (kind == 2 ? 200 : 2) *
					       (kind == 0 ? 0.03 + day : day) *
					       (1 + 0.05 * random_bell(&random));

				level *= i < N * 5 / 6 ? 1 : after == 0 ? 1.6 : 0;
				made->values[i] = kind == 2 ? floor(fmax(0, level))
							    : fmax(kind == 0 ? 1e-3 : 0, level);
			}
			struct season season = fit(made, SEASON_AUTO);
			assert_int_equal(season.scale, kind == 0 ? SCALE_LOG : SCALE_ROOT);
			assert_int_equal(season.cycles, SEASON_DAILY | SEASON_WEEKLY);
			season_remove(&season, made->times, made->values, N, adjusted);
			for (size_t i = 0; i < N; i++)
				assert_true(adjusted[i] >= 0);
			double before = mean_of(adjusted, 0, N * 5 / 6);
			double last = mean_of(adjusted, N * 5 / 6, N);
			double measured = mean_of(made->values, 0, N * 5 / 6);
			if (fabs(before / measured - 1) > 0.15)
				fail_msg("kind %d: a level of %g, measured %g", kind, before,
					measured);
			if (after == 0 && fabs(last / before - 1.6) > 0.15)
				fail_msg("kind %d: a ratio of %g", kind, last / before);
			if (after == 1 && last > 0.5 * before)
				fail_msg("kind %d: a level of %g after the end", kind, last);
			season_free(&season);
		}
}

/* What is made of a point depends on the point alone. */
static void test_points_one_by_one(void **state)
{
	struct made *made = *state;
	double whole[MOST], single;

	make(made, 720, HOUR, 0.3, 0.6, 0.05);
	struct season season = fit(made, SEASON_AUTO);
	season_remove(&season, made->times, made->values, made->n, whole);
	for (size_t i = 0; i < made->n; i++) {
		season_remove(&season, made->times + i, made->values + i, 1, &single);
		assert_memory_equal(&single, whole + i, sizeof single);
	}
	season_free(&season);
}

static void test_hostile_series(void **state)
{
	struct made *made = *state;
	double out[MOST];

	for (int kind = 0; kind < 6; kind++) {
		make(made, 500, HOUR, 0.3, 1, 0.05);
		for (size_t i = 0; i < made->n; i++) {
			if (kind == 0)
				made->values[i] = (double)NAN;
			if (kind == 1)
				made->times[i] = START;
			if (kind == 2)
				made->times[i] = i ? INT64_MAX / 2 : INT64_MIN / 2;
			if (kind == 3)
				made->values[i] = i % 2 ? 1e308 : 1e-308;
			if (kind == 4)
				made->values[i] = 5;
			if (kind == 5)
				made->times[i] = START + (int64_t)(i * i) * HOUR;
		}
		struct season season = fit(made, SEASON_AUTO);
		season_remove(&season, made->times, made->values, made->n, out);
		if (kind == 0 || kind == 4)
			assert_int_equal(season.cycles, 0);
		season_free(&season);
	}
	struct season season = season_fit(SEASON_AUTO, UTC, 0, NULL, NULL, 0, made->scratch);
	assert_int_equal(season.cycles, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_daily_cycle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_weekly_cycle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_swing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_holidays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_lower_level_is_no_sunday, setup, teardown),
		cmocka_unit_test_setup_teardown(test_loud_weeks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lasting_noise_is_no_week, setup, teardown),
		cmocka_unit_test_setup_teardown(test_modes_that_stay_are_no_week, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_periods_are_no_week, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_periods_and_days, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_cadences, setup, teardown),
		cmocka_unit_test_setup_teardown(test_none_is_untouched, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mode_decides, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_few_points_are_undecided, setup, teardown),
		cmocka_unit_test_setup_teardown(test_irregular_times, setup, teardown),
		cmocka_unit_test_setup_teardown(test_excursions_by_cadence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_jitter_gaps_and_outages, setup, teardown),
		cmocka_unit_test_setup_teardown(test_step_within_the_range, setup, teardown),
		cmocka_unit_test_setup_teardown(test_daylight_saving, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scales, setup, teardown),
		cmocka_unit_test_setup_teardown(test_levels_that_can_be, setup, teardown),
		cmocka_unit_test_setup_teardown(test_points_one_by_one, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_series, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

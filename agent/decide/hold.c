#include "agent/decide/hold.h"

#include <math.h>

#include "agent/model/series.h"

#define DAY INT64_C(86400000)
#define MOST_ALIKE (14 * DAY) /* days in a row that are off, or not, at most */

enum {
	RANGE_DAYS = 3,    /* days needed to know a daily cycle */
	RANGE_WEEKEND = 4, /* days that a weekend is held, and a bit */
};

/* The share of a step below which the rest counts as nothing. */
static const double NOTHING = 0.25;

/* The time at which local clocks first show `wanted`, at or after `near`, which is a day or two
 * earlier. */
static int64_t time_of_local(const struct season_clock *clock, int64_t near, int64_t wanted)
{
	int64_t time = near + (wanted - season_local(clock, near));

	return time + (wanted - season_local(clock, time));
}

/*
 * The end of the hold of a change at `at`: 24 h into the next day of the other kind. On working
 * days that is so only in a series that has not had any before the last days off. Once weeks are
 * known it is so only of holidays.
 */
static int64_t end_of_days(const struct season *season, int64_t first, int64_t at)
{
	const struct season_clock *clock = &season->clock;
	int64_t today = season_day(season_local(clock, at)), before = today, end = today + DAY;
	bool off = season_is_off(clock, today);

	if (!(season->undecided & SEASON_WEEKLY) &&
		!(season->cycles && season_is_holiday(clock, today)))
		return at;

	while (season_is_off(clock, before) == off && today - before < MOST_ALIKE)
		before -= DAY;
	while (season_is_off(clock, before) != off && today - before < MOST_ALIKE)
		before -= DAY;
	while (season_is_off(clock, end) == off && end - today < MOST_ALIKE)
		end += DAY;
	if (!off && season_local(clock, first) <= before)
		return at;
	return time_of_local(clock, at, end) + DAY;
}

bool hold_is_off(const struct season *season, int64_t time, int64_t seen)
{
	const struct season_clock *clock = &season->clock;

	return season_is_off(clock, season_day(season_local(clock, time) - DAY)) ||
	       season_is_off(clock, season_day(season_local(clock, seen)));
}

int64_t hold_until(
	const struct season *season, int64_t range, int64_t first, int64_t time, int64_t seen)
{
	int64_t until = seen, gone = range > 0 ? time + range / 4 * 3 : INT64_MAX;

	if (range <= 0)
		range = INT64_MAX;
	for (int i = 0; range >= RANGE_WEEKEND * DAY && i < 2; i++) {
		int64_t end = end_of_days(season, first, i == 0 ? time : seen);

		until = end > until ? end : until;
	}
	if ((season->undecided & SEASON_DAILY) && range >= RANGE_DAYS * DAY && until < seen + DAY)
		until = seen + DAY;
	if (until > gone)
		until = gone;
	return until > seen ? until : seen;
}

size_t hold_seen(const int64_t *times, size_t n, int64_t time, size_t followed)
{
	size_t last = times_lower_bound(times, n, time) + (followed > 0 ? followed - 1 : 0);

	return last < n ? last : n - 1;
}

int64_t hold_clock(const int64_t *times, size_t n, int64_t now)
{
	int64_t wall = now - HOLD_GRACE, newest = n > 0 ? times[n - 1] : wall;

	return newest > wall ? newest : wall;
}

/* Whether the level after `last` is the one before `first`. */
static bool is_back(const struct hold *first, const struct hold *last)
{
	double step = fabs(first->level_after - first->level_before);
	double left = fabs(last->level_after - first->level_before);

	return left < step / 2 &&
	       (left <= NOTHING * step ||
		       (last->low <= first->level_before && first->level_before <= last->high));
}

/*
 * If a later one brings the first of the changes back, they and all in between come to nothing.
 * They wait for those of them that are held, and for those that are not confirmed yet a day at
 * most.
 */
static void cancel(struct hold *changes, size_t count, int64_t now)
{
	size_t last = count - 1;
	bool sure = true, wait = now < changes[0].until + DAY;

	while (last > 0 &&
		(changes[last].verdict == DROP || changes[last].seen >= changes[0].until ||
			!is_back(&changes[0], &changes[last])))
		last--;
	for (size_t i = 0; i <= last; i++) {
		sure = sure && changes[i].confirmed && changes[i].verdict != HOLD;
		wait = wait || changes[i].verdict == HOLD;
	}
	for (size_t i = 0; last > 0 && i <= last; i++)
		if (sure)
			changes[i].verdict = DROP;
		else if (wait && changes[i].verdict != DROP)
			changes[i].verdict = HOLD;
}

void hold_judge(struct hold *changes, size_t count, int64_t now)
{
	int64_t until = INT64_MIN;

	for (size_t i = 0; i < count; i++) {
		if (changes[i].seen < until && changes[i].until < until)
			changes[i].until = until;
		until = changes[i].until > until ? changes[i].until : until;
		changes[i].verdict = now < changes[i].until ? HOLD : PASS;
	}
	for (int later = 0; later < 2; later++)
		for (size_t i = 0; i < count; i++)
			if (changes[i].off != later && changes[i].verdict == PASS &&
				changes[i].until > changes[i].seen)
				cancel(changes + i, count - i, now);
}

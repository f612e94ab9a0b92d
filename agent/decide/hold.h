/*
 * Holds: candidates that wait because it is undecided whether their series has a cycle
 * (docs/configure/seasons.md).
 *
 * While a weekly cycle is possible and too few weeks have been seen, a change first seen on a
 * weekend waits until 24 h into the next weekday; by then it has either lasted or reverted; while a
 * daily cycle is undecided, every change waits for a day. Days and weeks are those of the series'
 * own clock: the time of its newest point, in its time zone.
 *
 * No state is kept here: when a change was first seen follows from its record, which holds how
 * many points followed it then.
 */
#ifndef AGENT_DECIDE_HOLD_H
#define AGENT_DECIDE_HOLD_H

#include "agent/decide/decision.h"
#include "detectors/season.h"

/* ms: a series without a point for so long has ended, and the wall clock applies to it */
#define HOLD_GRACE INT64_C(86400000)

/*
 * Until when a change at `time` that is first seen at `seen` is held; returns `seen` if it is not.
 * `range` is that of the source, 0 if it has none: a day is not waited for if the range is too
 * short to show daily cycles, nor a weekend if it takes up most of the range, nor beyond three
 * quarters of the range. `first` is the time of a service's first point: a change first seen on a
 * working day waits while the series has no earlier one; 0 for other series. All times are ms.
 */
int64_t hold_until(
	const struct season *season, int64_t range, int64_t first, int64_t time, int64_t seen);

/* Whether a change at `time` that is first seen at `seen` is one of days off: begins on them or on
 * the first working day behind, or is seen on them. */
bool hold_is_off(const struct season *season, int64_t time, int64_t seen);

/* The index of the point at which a change at `time` was first seen, given how many points followed
 * it then. `times` are those of the existing points, at least one. */
size_t hold_seen(const int64_t *times, size_t n, int64_t time, size_t followed);

/* The series' own clock, by which holds end: the time of its newest point; `now`, the wall clock,
 * continues it once the series has ended. */
int64_t hold_clock(const int64_t *times, size_t n, int64_t now);

/* A change of a series that has not been announced. */
struct hold {
	int64_t seen, until; /* ms; until: from hold_until */
	bool off;            /* from hold_is_off */
	bool confirmed;
	double level_before, level_after, low, high; /* low, high: 95% interval of level_after */
	enum verdict verdict; /* set by hold_judge; DROP: it was held, and the previous level came
				 back before its hold ended: recorded, not announced */
};

/*
 * Judges the changes of one series, in order of time, at `now` by the series' clock. A change
 * first seen while an earlier one is held is held as long as that one. Changes may cancel each
 * other out: if a later level is nearer the one before the first change by more than half of the
 * step, and not distinguishable from it, all in between are over. What is of days off is
 * compared first: they take nothing back that began before them if the days behind do not. If that
 * later change is held they wait for it; if it is not confirmed yet, a day at most.
 */
void hold_judge(struct hold *changes, size_t count, int64_t now);

#endif

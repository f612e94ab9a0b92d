/*
 * Changes that are held back because it is not decided yet whether their series has cycles.
 *
 * While a weekly cycle may be there and too few weeks were seen, what is first seen on a weekend
 * waits until 24 h into the next weekday, and then lasts or is over; with a daily cycle undecided
 * whatever is found waits for a day. Days and weeks are those of the series' own clock, which is
 * the time of its newest point, in its zone.
 *
 * Nothing is kept here: when a change was first seen follows from its row, which holds how many
 * points followed it by then.
 */
#ifndef AGENT_MONITOR_HOLD_H
#define AGENT_MONITOR_HOLD_H

#include "detectors/season.h"

/* A series of which no point has come for so long has ended: the wall clock goes on for it. ms */
#define HOLD_GRACE INT64_C(86400000)

/*
 * Until when a change at `time` that is first seen at `seen` is held; `seen`: it is not. `range` is
 * that of the source, 0 if it has none: for days that it is too short for nobody waits, nor over
 * weekends that take most of it, nor until the change has left it. All are ms.
 */
int64_t hold_until(const struct season *season, int64_t range, int64_t time, int64_t seen);

enum hold_verdict {
	HOLD_NOT,
	HOLD_WAIT,
	HOLD_OVER, /* it was held, and before that ended the level of before was back: recorded, not
		      told */
};

/* A change of a series that nobody was told of. */
struct held {
	int64_t seen, until; /* ms; until: by hold_until */
	bool confirmed;
	double level_before, level_after, low, high; /* low, high: 95% interval of level_after */
	enum hold_verdict verdict;                   /* out */
};

/*
 * Judges those of one series, in order of time, at `now` by its clock. What is first seen while an
 * earlier one is held is held as long. Together they may come to nothing: if a later level is
 * nearer the one before the first by more than half the step, and cannot be told from it, all in
 * between are over. If such a later change is not believed yet they wait for it, a day at most.
 */
void hold_judge(struct held *changes, size_t count, int64_t now);

#endif

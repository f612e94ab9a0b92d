/*
 * A change point: the place in a series where one regime ends and another begins.
 */
#ifndef AGENT_MODEL_CHANGE_H
#define AGENT_MODEL_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stored, with these numbers: do not renumber. */
enum change_kind {
	CHANGE_STEP,
	CHANGE_TREND, /* from place_from to place_to; index is where it became visible */
};

static const char *const change_kind_names[] = {[CHANGE_STEP] = "step", [CHANGE_TREND] = "trend"};

/* A change is identified by its time, to within so many points of its series: its index moves as
 * points arrive. */
enum { CHANGE_TOLERANCE = 5 };

struct change {
	size_t index;  /* of the first value of the new regime, in the caller's series, 1 <= index <
			  n */
	double pvalue; /* 0..1, of the test between the two neighbouring segments */
	double mean_before, mean_after;
	double stddev_before, stddev_after;
	size_t count_before, count_after; /* non-missing points in the two segments */
	double magnitude; /* max(|after/before - 1|, |before/after - 1|); a ratio over zero counts
			     as 0 */

	/* Robust against single outliers: levels of the nearest points to either side, outliers
	 * clipped; for a trend, the points where it began and ended. */
	enum change_kind kind;
	double level_before, level_after;
	double size, size_low, size_high; /* in percent of level_before, with its 95% interval; NaN
					     if that is 0 or there are too few points */
	size_t place_from, place_to;      /* 95% set of places, both included */
	size_t cause_from, cause_to;      /* 99% set of places, used for attribution */
};

/* The new level's difference, in percent of the old level; 0 if that is 0. */
static inline double change_percent(const struct change *change)
{
	if (change->mean_before == 0)
		return 0;
	return 100.0 * (change->mean_after / change->mean_before - 1.0);
}

/* Shifts everything that is counted in points; clamps at the first point. */
static inline void change_shift(struct change *change, ptrdiff_t by)
{
	size_t *const places[] = {&change->index, &change->place_from, &change->place_to,
		&change->cause_from, &change->cause_to};

	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		*places[i] =
			(ptrdiff_t)*places[i] + by > 0 ? (size_t)((ptrdiff_t)*places[i] + by) : 0;
}

/* Direction of the change: 1 up, -1 down, 0 neither. */
static inline int change_sign(const struct change *change)
{
	return (change->level_after > change->level_before) -
	       (change->level_after < change->level_before);
}

/* The effect on a metric of that direction (1: higher is better, -1: lower is better): 1 worse, -1
 * better, 0 neither. Without a direction (0) every change is neither. */
static inline int change_verdict(const struct change *change, int direction)
{
	return -direction * change_sign(change);
}

/* Of such a verdict: "regression", "improvement" or "change". */
static inline const char *change_verdict_name(int verdict)
{
	static const char *const names[] = {"improvement", "change", "regression"};

	return names[1 + verdict];
}

/* Whether two changes have the same time, within the tolerance of the finer series; all in ms. */
static inline bool change_near(
	int64_t time, int64_t spacing, int64_t other_time, int64_t other_spacing)
{
	int64_t apart = time < other_time ? other_time - time : time - other_time;

	return apart <= CHANGE_TOLERANCE * (spacing < other_spacing ? spacing : other_spacing);
}

#endif

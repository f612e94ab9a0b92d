/*
 * Whether a step of a service's series is news yet, judged by the series' history.
 *
 * The level of a service moves for many reasons that pass: outages, waves of load, jobs, holidays.
 * A step that is as high and has lasted as long as something that came and went before is no news
 * until it has lasted longer; nor is one that looks like the same hours of the last weeks.
 * docs/design/algorithms.md section 5.
 *
 * Pure: what is decided depends on the values alone. Lengths are points.
 */
#ifndef DETECTORS_PRECEDENT_H
#define DETECTORS_PRECEDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PRECEDENT_SHORT = 48, /* points of a short movement, at most: two days of hours */
	PRECEDENT_LONG = 150, /* a step with so many points behind it waits for nothing */
	PRECEDENT_PAIR = 200, /* between a step and the one that undoes it, at most */
};

enum precedent_verdict {
	PRECEDENT_NONE,   /* news */
	PRECEDENT_SMALL,  /* so small a step is news only once it lasts */
	PRECEDENT_PASSED, /* movements of this height and length have come and gone */
	PRECEDENT_BACK,   /* the newest value is back */
	PRECEDENT_SUNDAY, /* a working day that passes as a Sunday so far */
	PRECEDENT_WEEKLY, /* the last weeks, or of a young series days, had this level at these
			     hours */
};

/* Sentences for each verdict, in lower case and without a full stop. */
extern const char *const precedent_reasons[];

/*
 * Judges the step at `place` of the n existing values, without cycles, at ascending `times` (ms).
 * `begin` is the place of the step before it, or 0: the level between both is the one it leaves.
 * `sunday`: the values from the place on as if they were of a Sunday that has just begun; NULL: the
 * step is not at the beginning of a day, or weeks are not known. `cut`: the series may be
 * older than its first value here.
 * O(n) for the last 1,440 values before the place.
 */
enum precedent_verdict precedent_of(const double *values, const int64_t *times, size_t n,
	size_t begin, size_t place, const double *sunday, bool cut);

#endif

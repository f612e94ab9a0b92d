/*
 * Describes a change: robust levels, the relative size with its interval, and the set of places at
 * which it may have happened. docs/design/algorithms.md section 4. At most 2 DESCRIBE_SIDE values
 * are used, and nothing allocates.
 */
#ifndef DETECTORS_DESCRIBE_H
#define DETECTORS_DESCRIBE_H

#include "agent/model/change.h"
#include "detectors/tried.h"

enum { DESCRIBE_SIDE = 100 }; /* points to either side that are used at most */

/* max(|after/before - 1|, |before/after - 1|), a ratio over zero counting as 0. */
double describe_magnitude(double before, double after);

/* Two levels, the variances and the covariance of their estimates, and the degrees of freedom. */
struct levels {
	double before, after, variance_before, variance_after, covariance, df;
	bool counts; /* no value is below 0, so neither is a level */
};

/* Fills the size and its 95% interval; df 0: no interval. */
void describe_size(struct change *change, const struct levels *levels);

/*
 * Fills kind, levels, size and place of a step. `values` are existing values times 2^unit, `places`
 * their indices in the series (NULL: identical); the segments to either side are [start, cut) and
 * [cut, end), of which the nearest DESCRIBE_SIDE points are used. Reads no other field.
 */
void describe_step(struct change *change, const double *values, const size_t *places, size_t start,
	size_t cut, size_t end, int unit);

/*
 * Keeps those of the changes, in order, that are large: whose level behind them differs by more
 * than `least` (a share) from the level before them, or from the level of the last large one, so
 * that several small steps are reported once they add up. Notes the rest in the list, if there is
 * one. Returns the number of those kept; 0 for `least` keeps all.
 */
size_t magnitude_filter(
	struct change *changes, size_t count, double least, struct tried_list *tried);

#endif

/*
 * Whether a change is over: the level of before is back.
 *
 * A change recovers when a later level is nearer the old one by more than half the step, and the
 * 95% interval of their difference reaches the old level or what lies beyond it; what is left of
 * less than a twentieth of the step counts as nothing. docs/algorithms.md, "From change points to
 * news".
 *
 * Values are those of a series without their cycles, NaN where there is none; `changes` are those
 * that are found in them now, ascending.
 */
#ifndef DETECTORS_RECOVERY_H
#define DETECTORS_RECOVERY_H

#include <stdbool.h>

#include "agent/core/change.h"

enum {
	RECOVERY_LEAST = 5,  /* values that are back before that is believed */
	RECOVERY_WIDEST = 25 /* points that an excursion may take */
};

enum recovery_verdict {
	RECOVERY_NONE, /* the new level lasts, as far as one can tell */
	RECOVERY_WAIT, /* it seems to be over, and the values to come will tell */
	RECOVERY_OVER,
};

struct recovery {
	enum recovery_verdict verdict;
	size_t from;      /* but for NONE: index of the first value that is back */
	double level;     /* of OVER: the one that is back */
	size_t way;       /* the change that brought it back, a number of `changes`; or SIZE_MAX */
	bool few, beyond; /* of WAIT: for want of values; of OVER: it went as far again */
};

/* Of changes[which]: is it undone by a later one? */
struct recovery recovery_by_changes(
	const double *values, size_t n, const struct change *changes, size_t count, size_t which);

/* The same of a change that lies before the values, by the levels that it had. */
struct recovery recovery_of_old(const double *values, size_t n, const struct change *changes,
	size_t count, double before, double after);

/* A change as it was told. */
struct told_step {
	size_t place;    /* where it is known */
	double step;     /* how much higher the new level was */
	size_t followed; /* values that it was told by */
};

/*
 * Of a change that was found and is not any more: was it an excursion of RECOVERY_WIDEST points at
 * most, that can still be seen in the values, and can have been told as that step?
 */
struct recovery recovery_of_excursion(const double *values, size_t n, const struct change *changes,
	size_t count, const struct told_step *told);

#endif

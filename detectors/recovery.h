/*
 * Decides whether a change is over: the previous level is back.
 *
 * A change recovers when a later level is less than half the step away from the old one, and the
 * 95% interval of their difference includes the old level or values beyond it; a remainder of less
 * than a twentieth of the step and half of the old level counts as nothing.
 * docs/design/algorithms.md section 5.
 *
 * The values are those of a series without its cycles, NaN where missing; `changes` are those found
 * in them now, ascending. Nothing allocates.
 */
#ifndef DETECTORS_RECOVERY_H
#define DETECTORS_RECOVERY_H

#include <stdbool.h>

#include "agent/model/change.h"

enum {
	RECOVERY_LEAST = 5,  /* values on the old level before recovery is confirmed */
	RECOVERY_WIDEST = 25 /* points that an excursion may take */
};

enum recovery_verdict {
	RECOVERY_NONE, /* the new level lasts, as far as can be told */
	RECOVERY_WAIT, /* apparently over; more values will decide */
	RECOVERY_OVER,
};

struct recovery {
	enum recovery_verdict verdict;
	size_t from;  /* unless NONE: index of the first value on the old level */
	double level; /* for OVER: the recovered level */
	size_t way;   /* index into `changes` of the change that restored it, or SIZE_MAX */
	bool few;     /* for WAIT: the later level has too few values yet */
	bool beyond;  /* for both: the level went more than half the step beyond the old one */
};

/* Whether changes[which] is undone by a later change. */
struct recovery recovery_by_changes(
	const double *values, size_t n, const struct change *changes, size_t count, size_t which);

/* The same for a change that lies before the values, given its levels. */
struct recovery recovery_of_old(const double *values, size_t n, const struct change *changes,
	size_t count, double before, double after);

/* A change as announced. */
struct told_step {
	size_t place;    /* current place */
	double step;     /* new level minus old level */
	size_t followed; /* values that followed it when it was announced */
};

/*
 * For a change that is no longer found: whether it was an excursion of at most RECOVERY_WIDEST
 * points that is still visible in the values and could have been announced as that step.
 */
struct recovery recovery_of_excursion(const double *values, size_t n, const struct change *changes,
	size_t count, const struct told_step *told);

#endif

/*
 * What a detector has tried: the places that it looked at closer, and what became of each.
 *
 * A list that hangs on the scratch of a call is filled by it (scratch_trace); what the call finds
 * is the same to the bit with and without.
 *
 *   edivisive              each candidate of a window, and what became of it
 *   ... profile otava      the same; of each window the split at which it was cut no further
 *   edivisive_permutation  the best split of each piece that was left whole
 *   kernel                 of each TRIED_BLOCK points the place that saves the most of the cost
 *   stepfit                of each radius the largest step that is none
 *   modes                  where the values go from level to level
 *   lookback               of each TRIED_BLOCK runs the one that differs the most, and each that
 *                          differs by enough and is dropped all the same
 *   combine                what its members tried, and the changes on which too few agree
 */
#ifndef DETECTORS_TRIED_H
#define DETECTORS_TRIED_H

#include <stdbool.h>
#include <stddef.h>

/* The order is that of their names and sentences. */
enum tried_fate {
	TRIED_STANDS,
	TRIED_WEAK,      /* no candidate: the best split of its window, and not even p <= 0.1 */
	TRIED_TEST,      /* p is not below p_value */
	TRIED_RANKS,     /* p is, and the ranks do not agree */
	TRIED_MAGNITUDE, /* it is not larger than the magnitude that is asked for */
	TRIED_ENDS,      /* a single point lies before or behind it */
	TRIED_EXCURSION, /* the values come back */
	TRIED_SHORT,     /* a stronger one lies so near that what is between is no level */
	TRIED_RAMP,      /* a part of a ramp that stands as one change */
	TRIED_OUTLIER,   /* a value far from its neighbours, which is clipped before anything */
	TRIED_MODE,      /* one more stay on a level that the values keep to and leave again */
	TRIED_WANDER,    /* an additional stay on a level that the values hold and leave again */
	TRIED_DRIFT,     /* movement of a wandering level */
	TRIED_OUTDONE,   /* within a drift too slow to report */
	TRIED_COST,      /* a better place failed, so this one was not tested */
	TRIED_THRESHOLD, /* the step is below the threshold */
	TRIED_APART,     /* the levels are one */
	TRIED_PENDING,   /* too few points lie behind it yet */
	TRIED_FLOOR,     /* smaller than the floor */
	TRIED_SAMPLES,   /* within the spread of the run's samples */
	TRIED_BINARY,    /* the same binary as before */
	TRIED_VOTES,     /* too few detectors agree */
	TRIED_FATES,
};

struct tried {
	size_t index; /* of the first value after it, in the caller's series */
	enum tried_fate fate;
	/* Against the neighbouring segments of its last test; NaN if it was not tested. */
	double pvalue, mean_before, mean_after;
	/* The quantity that missed its limit: "p", "magnitude", "saving". NULL: none, or not a
	 * single number. */
	const char *measure;
	double measured, limit;
	const char *by; /* the member of combine; else NULL */
};

enum { TRIED_BLOCK = 20 };

struct tried_list {
	struct tried *items; /* malloc */
	size_t count, room;
	size_t last;          /* largest index of the items */
	const size_t *places; /* of the part that is being searched: its values' indices */
	const char *by;       /* member that notes items now; else NULL */
};

/* "excursion" and "the values come back within a few points". */
extern const char *const tried_names[TRIED_FATES], *const tried_sentences[TRIED_FATES];

/* Adds one; of two for the same place and member the more informative one is kept. */
void tried_note(struct tried_list *list, const struct tried *one);

/* A place without p-value and means, since it was not tested. */
struct tried tried_untested(size_t index, enum tried_fate fate);

/* Sets the quantity and the limit it was compared with. */
void tried_limit(struct tried *one, const char *measure, double measured, double limit);

/* Of each TRIED_BLOCK of what comes in order of `number` only the best is noted, when the block is
 * over; the last by tried_flush. Zeroed: nothing has come. */
struct tried_best {
	struct tried item; /* without a measure: none */
	size_t block;
};

void tried_offer(
	struct tried_list *list, struct tried_best *best, size_t number, const struct tried *one);
void tried_flush(struct tried_list *list, struct tried_best *best);

/* Which of two that missed a limit came closer to it. */
bool tried_nearer(const struct tried *one, const struct tried *other);

/* Marks what was tried between these indices as part of a ramp. */
void tried_ramp(struct tried_list *list, size_t from, size_t to);

/* How informative a fate is, for a place that has two. */
int tried_weight(enum tried_fate fate);

/* Drops what was tried from the index on, since it will be tried again. */
void tried_forget(struct tried_list *list, size_t index);

/* Sorts by index. */
void tried_sort(struct tried_list *list);
void tried_free(struct tried_list *list);

#endif

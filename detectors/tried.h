/*
 * The trace of a detector: the places that it examined, with the outcome of each.
 *
 * A list that is set on the scratch of a call (scratch_trace) is filled by the call; the result is
 * the same to the bit with and without. What each detector notes:
 *
 *   edivisive              each candidate
 *   ... profile otava      each candidate of a window; the best split of what it left whole
 *   edivisive_permutation  the best split of each piece that was left whole
 *   kernel                 of each TRIED_BLOCK points the place that would save the most
 *   stepfit                of each TRIED_BLOCK points the largest step below the threshold
 *   modes                  each place where the values change their level without a change point
 *   lookback               of each TRIED_BLOCK runs the one that differs the most, and each that
 *                          differs by enough and is dropped all the same
 *   combine                what its members note, and the changes on which too few agree
 */
#ifndef DETECTORS_TRIED_H
#define DETECTORS_TRIED_H

#include <stdbool.h>
#include <stddef.h>

/* In the order of tried_kinds. */
enum tried_fate {
	TRIED_STANDS,
	TRIED_WEAK,      /* no candidate of a window (profile otava), or no cut of the partition */
	TRIED_TEST,      /* p is not below p_value */
	TRIED_RANKS,     /* p is, but the rank rule fails */
	TRIED_MAGNITUDE, /* not above the required magnitude */
	TRIED_ENDS,      /* only a single point lies before or behind it */
	TRIED_EXCURSION, /* the values come back */
	TRIED_RAMP,      /* part of a ramp, which is one change */
	TRIED_OUTLIER,   /* a value far from its neighbours, clipped before the search */
	TRIED_MODE,      /* one more stay on a level that the values visit repeatedly */
	TRIED_WANDER,    /* a movement of a wandering level */
	TRIED_DRIFT,     /* within a drift too slow to report */
	TRIED_OUTDONE,   /* not tested, since a better place failed */
	TRIED_COST,      /* one more level would explain less than it costs */
	TRIED_THRESHOLD, /* the step is below the threshold */
	TRIED_APART,     /* the two levels were joined */
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
	/* Of its last test, between the neighbouring segments; NaN if there was none. */
	double pvalue, mean_before, mean_after;
	/* The quantity that missed its limit: "p", "magnitude", "saving", "wandering" (in percent).
	 * NULL: none, or not a single number. */
	const char *measure;
	double measured, limit;
	const char *by; /* the member of combine; else NULL */
};

enum { TRIED_BLOCK = 20 };

struct tried_list {
	struct tried *items; /* malloc */
	size_t count, room;
	size_t last;          /* largest index of the items */
	const size_t *places; /* of the chunk in work: indices of its values in the series */
	const char *by;       /* the member of combine that is running; else NULL */
};

/* Of each fate a short name ("excursion"), a sentence, and how informative it is: of two for one
 * place the one of more weight is kept. */
extern const struct tried_kind {
	const char *name, *sentence;
	int weight;
} tried_kinds[TRIED_FATES];

/* Adds one; of two for the same place and member the more informative one is kept. */
void tried_note(struct tried_list *list, const struct tried *one);

/* A place without p-value and means, since it was not tested. */
struct tried tried_untested(size_t index, enum tried_fate fate);

/* Sets the quantity and the limit it was compared with. */
void tried_limit(struct tried *one, const char *measure, double measured, double limit);

/* Notes only the best of each block of TRIED_BLOCK numbers, once the block is over; tried_flush
 * notes that of the last block. Starts zeroed. */
struct tried_best {
	struct tried item; /* without a measure: none */
	size_t block;
};

void tried_offer(
	struct tried_list *list, struct tried_best *best, size_t number, const struct tried *one);
void tried_flush(struct tried_list *list, struct tried_best *best);

/* Whether `one` came closer to its limit than `other`: by p if both have one, else by the measure.
 */
bool tried_nearer(const struct tried *one, const struct tried *other);

/* Marks the items between these indices as parts of a ramp. */
void tried_ramp(struct tried_list *list, size_t from, size_t to);

/* Drops the items from the index on, since that part will be searched again. */
void tried_forget(struct tried_list *list, size_t index);

/* Sorts by index. */
void tried_sort(struct tried_list *list);
void tried_free(struct tried_list *list);

#endif

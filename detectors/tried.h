/*
 * What a detector has tried: the places that it looked at closer, and what became of each.
 *
 * A list that hangs on the scratch of a call is filled by it (scratch_trace); what the call finds
 * is the same to the bit with and without. Only e-divisive's own profile keeps one: of other
 * detectors it stays empty but for what stands.
 */
#ifndef DETECTORS_TRIED_H
#define DETECTORS_TRIED_H

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
	TRIED_FATES,
};

struct tried {
	size_t index; /* of the first value behind it, counted in the caller's series */
	enum tried_fate fate;
	/* Against the neighbouring segments that it was last judged by; NaN where it was not. */
	double pvalue, mean_before, mean_after;
};

struct tried_list {
	struct tried *items; /* malloc */
	size_t count, room;
	const size_t *places; /* of the part that is being searched: its values' indices */
};

/* "excursion" and "the values come back within a few points". */
extern const char *const tried_names[TRIED_FATES], *const tried_sentences[TRIED_FATES];

/* Adds one; of two of one place that which says more stays. */
void tried_note(struct tried_list *list, const struct tried *one);

/* What was tried between these indices is a part of a ramp. */
void tried_ramp(struct tried_list *list, size_t from, size_t to);

/* How much a fate says of a place that has two. */
int tried_weight(enum tried_fate fate);

/* Forgets what was tried from the index on, as it will be again. */
void tried_forget(struct tried_list *list, size_t index);

/* In order of index. */
void tried_sort(struct tried_list *list);
void tried_free(struct tried_list *list);

#endif

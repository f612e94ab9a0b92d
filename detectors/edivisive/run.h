/*
 * The default profile on a whole series: docs/algorithms.md section 2, and the numbers that are
 * reported.
 *
 * A run goes over the existing values in chunks of 7W. Once there are values beyond a chunk, its
 * change points before 5W are settled for good, and the next chunk begins at the last of them or 3W
 * further on, whichever is later. It takes no candidates where its predecessor, which knew more of
 * what was before, has already found none. Only the last chunk is evaluated again when values are
 * added, which costs the same however long the series is; and as a full run does nothing else, the
 * result is the same.
 */
#ifndef DETECTORS_EDIVISIVE_RUN_H
#define DETECTORS_EDIVISIVE_RUN_H

#include "detectors/edivisive/chunk.h"
#include "detectors/stats.h"

/* Moments of the values [start, end), added up from left to right in blocks that end at multiples
 * of RUN_BLOCK. */
struct fold {
	size_t start, end;
	struct moments moments;
};

enum { RUN_BLOCK = 64 };

struct run {
	struct chunk chunk;
	size_t chunk_start;
	struct fold fold;       /* of the open segment, from the last settled point to a block's end
				   before the chunk */
	struct change *changes; /* the result: `settled` ones and those of the last chunk */
	size_t count, settled, capacity;
	size_t fixed; /* values that what is settled rests on, that there is a next one included */
	size_t *starts; /* places where the chunks after the first began */
	size_t start_count, start_capacity;
	size_t ramp_end; /* of the last settled point, if it stands for a ramp; else 0 */
	bool ramp_rises;
	size_t zeros; /* values before the first that is not zero */
	bool has_unit;
	int unit; /* moments are taken of 2^unit value */
};

/* Existing values from number `first` to `end`, and their places in the series. */
struct stretch {
	const double *values;
	const size_t *places;
	size_t first, end;
};

struct run run_new(const struct edivisive_options *options, size_t excursion);
void run_free(struct run *run);

/* The first value that will be needed again: a stretch may begin there. */
size_t run_first(const struct run *run);

/*
 * Lets go of what can be computed again from the values from run_first on. Those from number
 * `fixed` on may then be others.
 */
void run_rest(struct run *run);

/* Takes in the values up to stretch->end and leaves the change points of all values so far in
 * run->changes. */
void run_extend(struct run *run, const struct stretch *stretch, struct scratch *scratch);

#endif

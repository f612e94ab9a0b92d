/*
 * Work that is done in parts, by whatever threads the caller has.
 *
 * How work is cut depends on its size alone, never on the threads, so that what parts add up is the
 * same everywhere.
 */
#ifndef DETECTORS_PARALLEL_H
#define DETECTORS_PARALLEL_H

#include <stddef.h>

/* How parts of the work are run: `run` calls part(argument, i) for each i below count, in any
 * order, perhaps at once, and returns when all are done. NULL: one after the other. */
struct parallel {
	void (*run)(void *context, void (*part)(void *argument, size_t index), void *argument,
		size_t count);
	void *context;
};

/* How many parts `n` rows make, and where one of them begins; that of index `parts` begins at n. */
size_t parts_count(size_t n);
size_t parts_begin(size_t n, size_t parts, size_t index);

/* Runs all parts. */
void parts_run(const struct parallel *parallel, void (*part)(void *argument, size_t index),
	void *argument, size_t count);

#endif

/*
 * Splits work into parts that run on the caller's threads.
 *
 * The split depends only on the size of the work, never on the number of threads, so that sums over
 * parts are the same everywhere.
 */
#ifndef DETECTORS_PARALLEL_H
#define DETECTORS_PARALLEL_H

#include <stddef.h>

/* Runs parts: `run` calls part(argument, i) for each i below count, in any order and possibly
 * concurrently, and returns when all are done. NULL: one after the other. */
struct parallel {
	void (*run)(void *context, void (*part)(void *argument, size_t index), void *argument,
		size_t count);
	void *context;
};

/* The number of parts of `n` rows, and the start of a part; that of index `parts` is n. */
size_t parts_count(size_t n);
size_t parts_begin(size_t n, size_t parts, size_t index);

/* Runs all parts. */
void parts_run(const struct parallel *parallel, void (*part)(void *argument, size_t index),
	void *argument, size_t count);

#endif

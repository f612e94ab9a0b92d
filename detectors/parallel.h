/*
 * Parts of a computation that run on the caller's threads.
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

#endif

/*
 * Working memory of the detectors: a stack of blocks that is emptied at the start of a call and
 * grows to what is needed. Running out of memory aborts. Sizes are bounded by the series the caller
 * already holds.
 */
#ifndef DETECTORS_SCRATCH_H
#define DETECTORS_SCRATCH_H

#include <stddef.h>

struct scratch;

/* Forgets everything taken so far and keeps the memory. Every detect and append begins with it. */
void scratch_reset(struct scratch *scratch);

/* Uninitialised room for `count` items of `size` bytes, aligned to 64 bytes, good until the next
 * reset. */
void *scratch_take(struct scratch *scratch, size_t count, size_t size)
	__attribute__((malloc, returns_nonnull));

/* realloc that aborts instead of returning NULL, for what a stream keeps between calls. */
void *scratch_resize(void *memory, size_t count, size_t size) __attribute__((returns_nonnull));

#endif

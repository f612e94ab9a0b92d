/*
 * Working memory of the detectors: a stack of blocks that is emptied at the start of a call and
 * grows to what is needed. Running out of memory aborts. Sizes are bounded by the series the caller
 * already holds.
 *
 * A scratch also bounds the work of a call. What grows faster than the series is counted before it
 * is done, in steps of about a nanosecond: steps, not time, so that the same series is refused or
 * not on every machine.
 */
#ifndef DETECTORS_SCRATCH_H
#define DETECTORS_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scratch;
struct tried_list;

/* Forgets everything taken so far and keeps the memory. Every detect and append begins with it. */
void scratch_reset(struct scratch *scratch);

/* Uninitialised room for `count` items of `size` bytes, aligned to 64 bytes, good until the next
 * reset. */
void *scratch_take(struct scratch *scratch, size_t count, size_t size)
	__attribute__((malloc, returns_nonnull));

/* A scratch of its own memory whose work counts as that of `scratch`, which outlives it. */
struct scratch *scratch_beside(struct scratch *scratch);

/* The work that may be done from now on; UINT64_MAX, as at first, for any. */
void scratch_allow(struct scratch *scratch, uint64_t steps);

/*
 * Announces work. False if there is no room for it, and from then on: the caller leaves it and
 * returns soon, with whatever it has, which nobody will use.
 */
bool scratch_spend(struct scratch *scratch, uint64_t steps);
bool scratch_is_spent(const struct scratch *scratch);
/* Steps that were announced so far where not any number was allowed, over all calls. */
uint64_t scratch_done(const struct scratch *scratch);

/* Where the calls with this scratch note what they try (detectors/tried.h); NULL, as at first:
 * nowhere.
 */
void scratch_trace(struct scratch *scratch, struct tried_list *tried);
struct tried_list *scratch_tried(const struct scratch *scratch);

/* realloc that aborts instead of returning NULL, for what a stream keeps between calls. */
void *scratch_resize(void *memory, size_t count, size_t size) __attribute__((returns_nonnull));

#endif

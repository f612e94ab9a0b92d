/*
 * Working memory of the detectors: a stack of blocks that is emptied at the start of a call and
 * grows as needed. Running out of memory aborts. Sizes are bounded by the series that the caller
 * already holds.
 *
 * A scratch also bounds the work of a call. Work that grows faster than the series is charged
 * before it is done, in steps of about a nanosecond: steps, not time, so that a series is refused
 * on every machine or on none.
 */
#ifndef DETECTORS_SCRATCH_H
#define DETECTORS_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scratch;
struct tried_list;

/* Frees everything taken so far and keeps the memory. Every detect and append begins with it. */
void scratch_reset(struct scratch *scratch);

/* Uninitialised room for `count` items of `size` bytes, aligned to 64 bytes, good until the next
 * reset. */
void *scratch_take(struct scratch *scratch, size_t count, size_t size)
	__attribute__((malloc, returns_nonnull));

/* A scratch with its own memory that charges its work to `scratch`, which must outlive it. */
struct scratch *scratch_child(struct scratch *scratch);

/* Sets the budget from now on; UINT64_MAX, the initial value, is unlimited. */
void scratch_allow(struct scratch *scratch, uint64_t steps);

/*
 * Charges work. False if it exceeds the budget, and from then on: the caller skips it and returns
 * soon, and its result is discarded.
 */
bool scratch_spend(struct scratch *scratch, uint64_t steps);
bool scratch_is_spent(const struct scratch *scratch);
/* Steps charged so far under a limited budget, over all calls. */
uint64_t scratch_done(const struct scratch *scratch);

/* Sets the list in which calls with this scratch record the places that they examine
 * (detectors/tried.h); NULL, the initial value: none. */
void scratch_trace(struct scratch *scratch, struct tried_list *tried);
struct tried_list *scratch_tried(const struct scratch *scratch);

#endif

/*
 * Numbers for property tests: from a seed, so that a failure can be repeated.
 */
#ifndef TESTS_UNIT_RANDOM_H
#define TESTS_UNIT_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* xorshift64*, seeded with anything but 0. */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1d;
}

static inline double random_unit(uint64_t *state)
{
	return (double)(random_next(state) >> 11) * 0x1p-53;
}

/* A sum of twelve: nearly normal, of variance 1, and never beyond 6. */
static inline double random_bell(uint64_t *state)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += random_unit(state);
	return sum;
}

static inline size_t random_below(uint64_t *state, size_t bound)
{
	return (size_t)(random_next(state) % bound);
}

#endif

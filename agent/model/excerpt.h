/*
 * An excerpt: the points around a change at its confirmation. It is stored with the change, so that
 * it can be drawn without the source. Packed, it takes some 600 bytes.
 */
#ifndef AGENT_MODEL_EXCERPT_H
#define AGENT_MODEL_EXCERPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

enum {
	EXCERPT_SIDE = 60, /* points to either side */
	EXCERPT_MOST = 2 * EXCERPT_SIDE + 1,
	EXCERPT_BYTES = 2048, /* packed, at most */
};

struct excerpt {
	size_t n;             /* at most EXCERPT_MOST; 0: there is none */
	const int64_t *times; /* ms, ascending */
	const double *values; /* to 7 digits of the largest distance from the first; never NaN */
};

struct packed_excerpt {
	const unsigned char *bytes;
	size_t length; /* 0: there is none */
};

/*
 * Packs the surroundings of the points first..last of n, the places of a change; of more points
 * than EXCERPT_MOST, the extremes of equal parts. Missing points are left out.
 */
struct packed_excerpt excerpt_pack(struct arena *arena, const int64_t *times, const double *values,
	size_t n, size_t first, size_t last);

/* False if it is malformed; then `out` is empty. No bytes are an empty excerpt. */
bool excerpt_unpack(struct arena *arena, struct packed_excerpt packed, struct excerpt *out);

#endif

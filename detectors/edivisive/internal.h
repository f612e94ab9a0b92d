/*
 * The two profiles of edivisive, with the contracts of struct detector; the stream begins with its
 * profile, which edivisive.c sets.
 */
#ifndef DETECTORS_EDIVISIVE_INTERNAL_H
#define DETECTORS_EDIVISIVE_INTERNAL_H

#include "detectors/edivisive/edivisive.h"

struct profile {
	struct stream *(*begin)(const struct edivisive_options *options, size_t excursion);
	const struct change *(*append)(struct stream *stream, const double *values, size_t n,
		struct scratch *scratch, size_t *count);
	size_t (*rest)(struct stream *stream, size_t *fixed);
	size_t (*chunk)(const struct stream *stream, size_t at);
	void (*end)(struct stream *stream);
};

struct stream {
	const struct profile *profile;
};

extern const struct profile default_profile, otava_profile;

#endif

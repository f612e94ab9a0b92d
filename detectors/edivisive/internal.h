/*
 * The functions of the two profiles of edivisive, with the contracts of struct detector.
 */
#ifndef DETECTORS_EDIVISIVE_INTERNAL_H
#define DETECTORS_EDIVISIVE_INTERNAL_H

#include "detectors/edivisive/edivisive.h"

size_t otava_detect(const struct samples *samples, const struct edivisive_options *options,
	struct scratch *scratch, struct change *out);

struct otava_stream;
struct otava_stream *otava_stream_new(const struct edivisive_options *options);
const struct change *otava_stream_append(struct otava_stream *stream, const double *values,
	size_t n, struct scratch *scratch, size_t *count);
void otava_stream_rest(struct otava_stream *stream);
void otava_stream_free(struct otava_stream *stream);

size_t default_detect(const struct samples *samples, const struct edivisive_options *options,
	struct scratch *scratch, struct change *out);

struct default_stream;
struct default_stream *default_stream_new(
	const struct edivisive_options *options, size_t excursion);
const struct change *default_stream_append(struct default_stream *stream, const double *values,
	size_t n, struct scratch *scratch, size_t *count);
size_t default_stream_rest(struct default_stream *stream, size_t *fixed);
size_t default_stream_chunk(const struct default_stream *stream, size_t at);
void default_stream_free(struct default_stream *stream);

#endif

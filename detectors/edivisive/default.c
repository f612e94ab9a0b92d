/*
 * The default profile behind the detector interface: missing values are left out before a run and
 * the places of change points counted in the caller's series.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "detectors/edivisive/internal.h"
#include "detectors/edivisive/run.h"
#include "detectors/finite.h"
#include "detectors/scratch.h"

struct default_stream {
	struct run run;
	size_t n;       /* values so far, missing ones included */
	double *values; /* existing values from number `first` on */
	size_t *places;
	size_t first, end, capacity;
};

size_t default_detect(const struct samples *samples, const struct edivisive_options *options,
	struct scratch *scratch, struct change *out)
{
	scratch_reset(scratch);
	double *values = scratch_take(scratch, samples->n, sizeof(double));
	size_t *places = scratch_take(scratch, samples->n, sizeof(size_t));
	size_t n = finite_values(samples->values, samples->n, values, places);
	struct run run = run_new(options, samples->excursion);
	struct stretch stretch = {.values = values, .places = places, .end = n};
	run_extend(&run, &stretch, scratch);
	size_t count = run.count;
	if (count > 0)
		memcpy(out, run.changes, count * sizeof(*out));
	run_free(&run);
	return count;
}

struct default_stream *default_stream_new(const struct edivisive_options *options, size_t excursion)
{
	struct default_stream *stream = scratch_resize(NULL, 1, sizeof(*stream));
	stream->run = run_new(options, excursion);
	return stream;
}

static void resize(struct default_stream *stream, size_t capacity)
{
	stream->capacity = capacity;
	stream->values = scratch_resize(stream->values, capacity, sizeof(double));
	stream->places = scratch_resize(stream->places, capacity, sizeof(size_t));
}

static void add_values(struct default_stream *stream, const double *values, size_t n)
{
	size_t held = stream->end - stream->first;
	if (held + n > stream->capacity || !stream->values)
		resize(stream, held + n + (held + n) / 2);
	size_t count = finite_values(values, n, stream->values + held, stream->places + held);
	for (size_t i = 0; i < count; i++)
		stream->places[held + i] += stream->n;
	stream->end += count;
	stream->n += n;
}

/* Lets go of values that the run is done with, and of room that a long first append took. */
static void drop_values(struct default_stream *stream)
{
	size_t first = run_first(&stream->run), done = first - stream->first;
	if (done == 0)
		return;
	size_t held = stream->end - first;
	memmove(stream->values, stream->values + done, held * sizeof(double));
	memmove(stream->places, stream->places + done, held * sizeof(size_t));
	stream->first = first;
	if (stream->capacity > 4 * held)
		resize(stream, 2 * held);
}

const struct change *default_stream_append(struct default_stream *stream, const double *values,
	size_t n, struct scratch *scratch, size_t *count)
{
	scratch_reset(scratch);
	add_values(stream, values, n);
	struct stretch stretch = {
		.values = stream->values,
		.places = stream->places,
		.first = stream->first,
		.end = stream->end,
	};
	run_extend(&stream->run, &stretch, scratch);
	drop_values(stream);
	*count = stream->run.count;
	return stream->run.changes;
}

/* The place of existing value `number`, or where the next one would be. */
static size_t place_of(const struct default_stream *stream, size_t number)
{
	return number < stream->end ? stream->places[number - stream->first] : stream->n;
}

size_t default_stream_rest(struct default_stream *stream, size_t *fixed)
{
	struct run *run = &stream->run;
	size_t rest = place_of(stream, stream->first);

	*fixed = run->fixed > 0 ? place_of(stream, run->fixed - 1) + 1 : 0;
	run_rest(run);
	free(stream->values);
	free(stream->places);
	stream->values = NULL;
	stream->places = NULL;
	stream->capacity = 0;
	stream->end = stream->first;
	stream->n = rest;
	return rest;
}

size_t default_stream_chunk(const struct default_stream *stream, size_t at)
{
	const struct run *run = &stream->run;
	size_t count = run->start_count;

	while (count > 0 && run->starts[count - 1] > at)
		count--;
	return count > 0 ? run->starts[count - 1] : 0;
}

void default_stream_free(struct default_stream *stream)
{
	run_free(&stream->run);
	free(stream->values);
	free(stream->places);
	free(stream);
}

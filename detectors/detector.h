/*
 * Detectors: pure functions from a series to its change points, and the registry that knows them by
 * name.
 *
 * Detectors need libc and libm only. They read no clock, hold no global state and give the same
 * answer for the same input on every machine (no contraction of floating point, seeded randomness).
 * Series with missing points (NaN) are welcome; an infinite value counts as missing, except in
 * edivisive's profile otava, where it blinds its windows as it does in Otava. Two threads may run
 * the same detector at once, each with a scratch of its own.
 */
#ifndef DETECTORS_DETECTOR_H
#define DETECTORS_DETECTOR_H

#include <stdint.h>

#include "agent/core/change.h"
#include "agent/core/field.h"

struct samples {
	const double *values; /* in time order; NaN where missing */
	size_t n;
	int direction;    /* 1 higher is better, -1 lower is better, 0 either way or unknown */
	size_t excursion; /* so many points that leave their level far behind and come back to it
			     are no change, where a detector knows excursions; 0: its own limit */
	/* Of each point, or NULL. Detectors that know no runs take each point for itself. */
	const size_t *runs; /* the number of its run, which never falls: points that were measured
			       together share one; NULL: each is a run of its own */
	const uint64_t *hashes; /* of the binary it was measured with; 0: unknown */
};

/* Working memory that grows to what is needed and is reused from call to call; one thread's at a
 * time. */
struct scratch;
struct scratch *scratch_new(void);
void scratch_free(struct scratch *scratch);

/* Incremental state of one series under one set of options. */
struct stream;

struct detector {
	const char *name;
	const char *summary; /* one line for --help and the docs */
	const char *thrift;  /* how to make do with less work: "choose a smaller window" */
	const struct field *fields;
	size_t options_size;

	/* What the fields cannot say of options, or NULL: a text "OPTION: ..." (ERROR_USAGE). */
	bool (*check)(const void *options, struct error *error);

	/* Writes the change points in order of index to out, which has room for samples->n, and
	 * returns their number; what they are is not said once the scratch is spent. */
	size_t (*detect)(const struct samples *samples, const void *options,
		struct scratch *scratch, struct change *out);

	/*
	 * Optional, all three or none. stream_append takes `n` more values and returns all change
	 * points of the series so far, identical to detect() on all values together; the array
	 * belongs to the stream and is good until the next call. The options are copied;
	 * `excursion` is as in struct samples.
	 */
	struct stream *(*stream_new)(const void *options, size_t excursion);
	const struct change *(*stream_append)(struct stream *stream, const double *values, size_t n,
		struct scratch *scratch, size_t *count);
	void (*stream_free)(struct stream *stream);

	/*
	 * Optional, both or none; for a caller who has the values anyway and many streams.
	 * stream_rest lets go of the values: the next append begins with that of the number it
	 * returns. From number *fixed on they may be others than before; what is found is then as
	 * if they always had been. stream_chunk is the last number up to `at` from which on a
	 * stream of its own sees the windows that this one sees; at least 0.
	 */
	size_t (*stream_rest)(struct stream *stream, size_t *fixed);
	size_t (*stream_chunk)(const struct stream *stream, size_t at);
};

/*
 * Raise it when a detector finds other changes than before in the same values, or cycles, controls
 * and sizes are judged otherwise. It is stored with each series that the agent looks at; what only
 * the raise has brought to light is then no news (agent/monitor/series_state.h). 0 is that of
 * programs that had none.
 */
#define DETECTOR_REVISION 3

extern const struct detector *const detectors[]; /* ends with NULL; the first is the default */

/* The detector of that name, or NULL. */
const struct detector *detector_find(const char *name);

/* The steps that one call may take whatever its options ask for, and those more for each value:
 * some five to ten seconds. */
#define DETECTOR_STEPS UINT64_C(10000000000)
#define DETECTOR_STEPS_VALUE UINT64_C(10000)

/* detector->detect within that bound; *count points are in `out`. ERROR_DATA: too much work. */
bool detector_run(const struct detector *detector, const struct samples *samples,
	const void *options, struct scratch *scratch, struct change *out, size_t *count,
	struct error *error) MUST_USE;

/* Likewise detector->stream_append; NULL if it was too much, and the stream is then of no use but
 * to be freed. An empty result has an address of its own. */
const struct change *detector_append(const struct detector *detector, struct stream *stream,
	const double *values, size_t n, struct scratch *scratch, size_t *count,
	struct error *error) MUST_USE;

#endif

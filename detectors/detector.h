/*
 * Detectors: pure functions from a series to its change points, and the registry that finds them by
 * name.
 *
 * Detectors need libc and libm only. They read no clock, hold no global state and give the same
 * result for the same input on every machine (no contraction of floating point, seeded randomness).
 * A series may have missing points (NaN); an infinite value counts as missing, except in
 * edivisive's profile otava, where it blinds its windows as it does in Otava. Two threads may run
 * the same detector at once, each with its own scratch.
 */
#ifndef DETECTORS_DETECTOR_H
#define DETECTORS_DETECTOR_H

#include <stdint.h>

#include "agent/base/plugin.h"
#include "agent/model/change.h"

struct samples {
	const double *values; /* in time order; NaN where missing */
	size_t n;
	int direction;    /* 1 higher is better, -1 lower is better, 0 either way or unknown */
	size_t excursion; /* up to so many points that leave their level by far and return to it are
			     no change, in detectors that recognise excursions; 0: the detector's
			     own limit */
	/* Of each point, or NULL. Detectors without runs treat each point as its own run. */
	const size_t *runs; /* the number of its run, non-decreasing: points measured together share
			       one; NULL: each is its own run */
	const uint64_t *hashes; /* of the binary it was measured with; 0: unknown */
};

/* Working memory that grows as needed and is reused from call to call; used by one thread at a
 * time. */
struct scratch;
struct scratch *scratch_new(void);
void scratch_free(struct scratch *scratch);

/* Incremental state of one series under one set of options. */
struct stream;

struct detector {
	struct plugin plugin;
	const char *thrift; /* how to reduce the work, for an error: "choose a smaller window" */

	/* Writes the change points in order of index to out, which has room for samples->n, and
	 * returns their number. The result is undefined once the scratch's budget is spent. */
	size_t (*detect)(const struct samples *samples, const void *options,
		struct scratch *scratch, struct change *out);

	/*
	 * Optional, all three or none. stream_append takes `n` more values and returns all change
	 * points of the series so far, identical to detect() on all values; the array belongs to
	 * the stream and is valid until the next call. The options are copied; `excursion` is as in
	 * struct samples.
	 */
	struct stream *(*stream_new)(const void *options, size_t excursion);
	const struct change *(*stream_append)(struct stream *stream, const double *values, size_t n,
		struct scratch *scratch, size_t *count);
	void (*stream_free)(struct stream *stream);

	/*
	 * Optional, both or none, for callers that keep the values themselves and have many
	 * streams. stream_rest frees the stream's copy of the values: the next append must begin
	 * with the value at the index that it returns. From index *fixed on the values may then
	 * differ from before; the result is as if they always had. stream_chunk returns the largest
	 * index up to `at` from which a new stream has the same windows as this one, or 0.
	 */
	size_t (*stream_rest)(struct stream *stream, size_t *fixed);
	size_t (*stream_chunk)(const struct stream *stream, size_t at);
};

/*
 * Increase it when a detector finds other changes in the same values than before, or when cycles,
 * controls and sizes are computed differently. It is stored with each series that the agent
 * watches; changes that appear only because of the increase are not announced
 * (agent/monitor/series_cache.h). 0 stands for programs without a revision.
 */
#define DETECTOR_REVISION 6

/* Each begins a struct detector; the first is the default. */
extern const struct plugin *const detectors[];

/* The detector of that name, or NULL. */
const struct detector *detector_find(const char *name);

/* The work that one call may do, in steps (detectors/scratch.h): a basic allowance, about five to
 * ten seconds, and more for each value. */
#define DETECTOR_STEPS UINT64_C(10000000000)
#define DETECTOR_STEPS_VALUE UINT64_C(10000)

/*
 * Runs detector->detect within that bound; `out` receives *count points. ERROR_DATA: too much work.
 */
bool detector_run(const struct detector *detector, const struct samples *samples,
	const void *options, struct scratch *scratch, struct change *out, size_t *count,
	struct error *error) MUST_USE;

/* Runs detector->stream_append within that bound. NULL: too much work, and the stream can only be
 * freed. An empty result is not NULL. */
const struct change *detector_append(const struct detector *detector, struct stream *stream,
	const double *values, size_t n, struct scratch *scratch, size_t *count,
	struct error *error) MUST_USE;

#endif

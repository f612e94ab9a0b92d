/*
 * Reads answers of Graphite's /render in place, without building a tree, in either of two formats:
 *
 *     servers.web1.cpu,1795175040,1795175340,60|0.25,None,inf,0.26,None            format=raw
 *     [{"target": "servers.web1.cpu", "datapoints": [[0.25, 1795175040], ...]}]    format=json
 *
 * The raw format is a third of the size and states the resolution. It has no escapes, so the last
 * three numbers before the bar are the header, and everything before them is the target. A line may
 * have more values than its header says, since some of Graphite's functions produce them. A
 * malformed value only costs its point, a target that is not Unicode text (in JSON) or holds a NUL
 * byte only its series. A malformed header, a line that does not end or has too few values is an
 * error, since nothing after it can be trusted.
 */
#ifndef SOURCES_GRAPHITE_ANSWER_H
#define SOURCES_GRAPHITE_ANSWER_H

#include <stdint.h>

#include "agent/base/error.h"

/* Valid until the next series. */
struct graphite_series {
	const char *target;   /* NUL-terminated; NULL if the series cannot be used */
	int64_t step;         /* s; 0: unknown */
	const int64_t *times; /* ms, ascending */
	const double *values; /* may be infinite, but not NaN */
	size_t n;             /* points that have a value */
	size_t malformed;     /* values that are neither numbers nor missing */
	const char *unusable; /* why it cannot be used, with its text or the beginning of it */
	const char *text;
	size_t length;
};

typedef void graphite_take(void *context, const struct graphite_series *series);

/* Calls `take` for each series, in order; it may have been called before an error is found. `most`
 * is the largest number of points with a value in a series; 0: no limit. */
bool graphite_read_raw(const char *text, size_t length, int64_t most, graphite_take *take,
	void *context, struct error *error) MUST_USE;
bool graphite_read_json(const char *text, size_t length, int64_t most, graphite_take *take,
	void *context, struct error *error) MUST_USE;

#endif

/*
 * Answers of Graphite's /render, read in place and without a tree, in either of two forms:
 *
 *     servers.web1.cpu,1795175040,1795175340,60|0.25,None,inf,0.26,None            format=raw
 *     [{"target": "servers.web1.cpu", "datapoints": [[0.25, 1795175040], ...]}]    format=json
 *
 * The raw form is a third of the size and names the resolution; it has no escapes, so the last
 * three numbers before the bar are the header and all before them is the target. A line may have
 * more values than its header says, as some functions of Graphite make them. A value that is no
 * number costs its point only; a header or a shape that is wrong, or a line that does not end or
 * has too few values, is an error, since what follows cannot be trusted.
 */
#ifndef SOURCES_GRAPHITE_ANSWER_H
#define SOURCES_GRAPHITE_ANSWER_H

#include <stdint.h>

#include "agent/core/error.h"

/* Good until the next series. */
struct graphite_series {
	const char *target;   /* with a NUL */
	int64_t step;         /* s; 0: the answer does not say */
	const int64_t *times; /* ms, ascending */
	const double *values; /* infinities as they came; never NaN */
	size_t n;             /* points that have a value */
	size_t broken;        /* values that are neither numbers nor missing */
};

typedef void graphite_take(void *context, const struct graphite_series *series);

/* Calls `take` for each series in the answer's order; some may have been taken before an error is
 * seen. A series may have `most` points that have a value, or any number if that is 0. */
bool graphite_read_raw(const char *text, size_t length, int64_t most, graphite_take *take,
	void *context, struct error *error) MUST_USE;
bool graphite_read_json(const char *text, size_t length, int64_t most, graphite_take *take,
	void *context, struct error *error) MUST_USE;

#endif

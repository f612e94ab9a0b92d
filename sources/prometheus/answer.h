/*
 * Answers of Prometheus' HTTP API, read in place and without a tree:
 *
 *     {"status": "success", "data": {"resultType": "matrix", "result": [
 *         {"metric": {"__name__": "up", "job": "a"}, "values": [[1795161600.123, "1"], ...]}]}}
 *
 * Keys may come in any order; those that are not known (stats, a proxy's own) are skipped.
 * What is accepted is what jansson accepts, with which the reader is fuzzed, but for two things: a
 * known key or a label that comes twice is an error here, a skipped number may be too big for a
 * double.
 */
#ifndef SOURCES_PROMETHEUS_ANSWER_H
#define SOURCES_PROMETHEUS_ANSWER_H

#include <stdint.h>

#include "agent/core/arena.h"
#include "agent/core/field.h"

struct answer_series {
	const struct pair *labels; /* sorted by name; texts are in the arena */
	size_t label_count;
	const int64_t *times; /* ms, ascending; good until the next series */
	const double *values; /* as they came, NaN and infinities too */
	size_t n;
	bool histograms; /* it has native histograms, which are not read */
};

struct answer {
	const char *failure; /* the server's own "errorType: error" if it failed, else NULL */
	const char *type;    /* "matrix", "vector", ...; NULL if there is no data */
	struct strings warnings, infos; /* at most 20 of each */
	const char *lacking; /* the first of all warnings that is not about PromQL, or NULL: data
				are missing, as of a store that does not answer */
	bool partial;        /* "isPartial": a part of VictoriaMetrics' cluster is missing */
	size_t series;       /* handed over */
};

typedef void answer_take(void *context, const struct answer_series *series);

/*
 * Calls `take` for each series of a matrix, in the answer's order. False for what is no such
 * answer; series may have been handed over before that is seen.
 */
bool answer_read(struct arena *arena, const char *text, size_t length, answer_take *take,
	void *context, struct answer *out, struct error *error) MUST_USE;

#endif

/*
 * Reads answers of Prometheus' HTTP API in place, without building a tree:
 *
 *     {"status": "success", "data": {"resultType": "matrix", "result": [
 *         {"metric": {"__name__": "up", "job": "a"}, "values": [[1795161600.123, "1"], ...]}]}}
 *
 * Keys may come in any order; unknown ones (stats, those of a proxy) are skipped. It accepts what
 * jansson accepts, against which it is fuzzed, with three exceptions: a known key that occurs twice
 * is an error here, a skipped number may be too large for a double, and a series whose labels
 * cannot be used is left out: labels that are not Unicode text or not strings, the same label
 * twice, more than 512.
 */
#ifndef SOURCES_PROMETHEUS_ANSWER_H
#define SOURCES_PROMETHEUS_ANSWER_H

#include <stdint.h>

#include "agent/base/field.h"
#include "sources/source.h"

enum { ANSWER_LABELS_MAX = 512 };

struct answer_series {
	struct pairs labels;  /* sorted by name; texts are in the query's arena */
	const int64_t *times; /* ms, ascending; valid until the next series */
	const double *values; /* as received, including NaN and infinities */
	size_t n;
	bool histograms; /* it has native histograms, which are skipped */
};

struct answer {
	const char *failure; /* "errorType: error" of the server if it failed, else NULL */
	const char *type;    /* "matrix", "vector", ...; NULL if there is no data */
	struct strings warnings, infos; /* at most 20 of each */
	const char *lacking; /* the first warning that is not about PromQL, or NULL: data are
				missing, for example because a store does not answer */
	bool partial;        /* "isPartial": a part of VictoriaMetrics' cluster is missing */
	size_t series;       /* passed to `take` */
};

/* The label of that name, or NULL. */
const struct pair *answer_label(struct pairs labels, const char *name);

typedef void answer_take(void *context, const struct answer_series *series);

/*
 * Calls `take` for each series of a matrix, in order; notes those that are left out in the query
 * (query_leave_out). Returns false if the text is not such an answer; `take` may have been called
 * before that is found.
 */
bool answer_read(struct query *query, const char *text, size_t length, answer_take *take,
	void *context, struct answer *out, struct error *error) MUST_USE;

/*
 * Reads answers of VictoriaMetrics' /api/v1/export in place, without building a tree: one object
 * per series and line, time stamps in milliseconds:
 *
 *     {"metric": {"__name__": "up"}, "values": [1, 0.5], "timestamps": [1795161600123, ...]}
 *
 * A value is a number, null, or a word (+Inf, "Infinity", NaN) where versions write what JSON
 * cannot express. Stale markers come as null or NaN; points without a value are left out.
 *
 * Calls `take` for each object; one series may come in several. Of `out` only `series` is set.
 * Leaves out and returns false as answer_read does.
 */
bool export_read(struct query *query, const char *text, size_t length, answer_take *take,
	void *context, struct answer *out, struct error *error) MUST_USE;

#endif

/*
 * What VictoriaMetrics' /api/v1/export answers, read in place and without a tree: an object for
 * each series, a line each, time stamps in milliseconds:
 *
 *     {"metric": {"__name__": "up"}, "values": [1, 0.5], "timestamps": [1795161600123, ...]}
 *
 * A value is a number, null, or a word (+Inf, "Infinity", NaN), as versions write what JSON cannot
 * say. Stale markers come as null or NaN; points without a value are left out.
 */
#ifndef SOURCES_PROMETHEUS_EXPORT_H
#define SOURCES_PROMETHEUS_EXPORT_H

#include "sources/prometheus/answer.h"

/*
 * Calls `take` for each object; a series may come in several. False for what is no such answer;
 * series may have been handed over before that is seen.
 */
bool export_read(struct arena *arena, const char *text, size_t length, answer_take *take,
	void *context, struct error *error) MUST_USE;

#endif

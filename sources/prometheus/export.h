/*
 * Reads answers of VictoriaMetrics' /api/v1/export in place, without building a tree: one object
 * per series and line, time stamps in milliseconds:
 *
 *     {"metric": {"__name__": "up"}, "values": [1, 0.5], "timestamps": [1795161600123, ...]}
 *
 * A value is a number, null, or a word (+Inf, "Infinity", NaN) where versions write what JSON
 * cannot express. Stale markers come as null or NaN; points without a value are left out.
 */
#ifndef SOURCES_PROMETHEUS_EXPORT_H
#define SOURCES_PROMETHEUS_EXPORT_H

#include "sources/prometheus/answer.h"

/*
 * Calls `take` for each object; one series may come in several. Returns false if the text is not
 * such an answer; `take` may have been called before that is found.
 */
bool export_read(struct arena *arena, const char *text, size_t length, answer_take *take,
	void *context, struct error *error) MUST_USE;

#endif

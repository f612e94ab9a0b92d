/*
 * The agent's own metrics: counters, gauges and histograms, declared once and printed for
 * Prometheus.
 *
 * A metric is a row of a const table in metrics.c: name, type, help, label names. Values are kept
 * for each set of label values, of which a metric holds a bounded number; what comes after is
 * counted under the label value "other". All functions are for the loop's thread.
 */
#ifndef AGENT_METRICS_H
#define AGENT_METRICS_H

#include <stddef.h>

#include "agent/core/buf.h"

/* Labels in parentheses, in the order in which their values are given. */
enum metric_id {
	METRIC_BUILD_INFO,            /* gauge (version): 1 */
	METRIC_TESTS,                 /* gauge: tests of the configuration */
	METRIC_RUNS,                  /* counter (source) */
	METRIC_RUN_FAILURES,          /* counter (source, reason) */
	METRIC_MISSED_RUNS,           /* counter */
	METRIC_RUN_DURATION,          /* histogram (source), seconds */
	METRIC_SCHEDULE_LAG,          /* histogram, seconds between due and started */
	METRIC_LAST_PASS,             /* gauge, unix seconds of the last run that ended well */
	METRIC_POINTS_READ,           /* counter (source) */
	METRIC_DETECTION_SECONDS,     /* counter */
	METRIC_CHANGES,               /* gauge (state) */
	METRIC_CHANGES_FOUND,         /* counter */
	METRIC_DELIVERIES,            /* counter (receiver, result) */
	METRIC_DELIVERY_QUEUE_LENGTH, /* gauge (receiver) */
	METRIC_COUNT,
};

struct metrics;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics);

/* Label values that the metric does not have are NULL. A counter is never decreased, a gauge may
 * be. */
void metrics_add(struct metrics *metrics, enum metric_id id, double value, const char *first,
	const char *second);
void metrics_set(struct metrics *metrics, enum metric_id id, double value, const char *first,
	const char *second);
void metrics_observe(struct metrics *metrics, enum metric_id id, double value, const char *first,
	const char *second);

/* Appends everything as Prometheus' text format 0.0.4, with the process' own metrics. */
void metrics_print(const struct metrics *metrics, struct buf *out);

#endif

/*
 * The agent's own metrics: counters, gauges and histograms, declared once and exposed for
 * Prometheus.
 *
 * A metric is a row of a const table in metrics.c: name, type, help, label names. There is a value
 * for each set of label values, of which a metric has a bounded number; further ones are counted
 * under the label value "other". A gauge, which cannot be summed, has no such bound: its owner
 * drops obsolete values. All functions are for the loop's thread.
 */
#ifndef AGENT_RUNTIME_METRICS_H
#define AGENT_RUNTIME_METRICS_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/base/buf.h"

/* Labels in parentheses, in the order in which their values are passed. */
enum metric_id {
	METRIC_BUILD_INFO,            /* info (version, revision, compiler) */
	METRIC_READY,                 /* gauge: 1 or 0, as /-/ready */
	METRIC_CONFIG_HASH,           /* gauge: the first 48 bits of a hash of the configuration */
	METRIC_RELOAD_SUCCESSFUL,     /* gauge: 1 or 0, of the last reload */
	METRIC_RELOAD_TIME,           /* gauge: unix seconds of the last successful reload */
	METRIC_TESTS,                 /* gauge: monitored tests */
	METRIC_RUNS,                  /* counter (source) */
	METRIC_RUNS_SKIPPED,          /* counter (source): no new points were possible */
	METRIC_RUN_FAILURES,          /* counter (source, reason) */
	METRIC_FETCH_ERRORS,          /* counter (server or source, reason: see struct task) */
	METRIC_SOURCE_UP,             /* gauge (server): 1 or 0 */
	METRIC_STALE_TESTS,           /* gauge: without new points for stale_after */
	METRIC_VANISHED_SERIES,       /* gauge: reported as ended */
	METRIC_MISSED_RUNS,           /* counter */
	METRIC_ARRIVED,               /* counter (read: yes, no): names of data that were written */
	METRIC_RUN_DURATION,          /* histogram (source), seconds */
	METRIC_SCHEDULE_LAG,          /* histogram, seconds between due and started */
	METRIC_LAST_PASS,             /* gauge, unix seconds of the last successful run */
	METRIC_POINTS_READ,           /* counter (source) */
	METRIC_DETECTION_SECONDS,     /* counter */
	METRIC_CHANGES,               /* gauge (state) */
	METRIC_CHANGES_FOUND,         /* counter */
	METRIC_CHANGES_WITHDRAWN,     /* counter */
	METRIC_CHANGES_RECOVERED,     /* counter */
	METRIC_DELIVERIES,            /* counter (receiver, result) */
	METRIC_DELIVERY_QUEUE_LENGTH, /* gauge (receiver) */
	METRIC_CLOCK_AHEAD,           /* gauge, seconds ahead of the server that answered last */
	METRIC_STORE_SIZE,            /* gauge, bytes of the state file and its log */
	METRIC_MEMORY_IN_FLIGHT,      /* gauge, bytes of answers */
	METRIC_MEMORY_WAITS,          /* counter: how often reads began to wait for memory */
	METRIC_AUTHENTICATION_FAILURES, /* counter (reason: see agent/http/access.c) */
	METRIC_SILENCES,                /* gauge (state: active, pending) */
	METRIC_SILENCED,                /* gauge: pending changes that are held back */
	METRIC_SILENCED_AGE,            /* gauge, seconds: of the oldest regression among them */
	METRIC_BISECTIONS,              /* gauge (state: waiting, running), of this agent */
	METRIC_BISECTIONS_ENDED,        /* counter (end: found, set, not_reproduced ...) */
	METRIC_BISECTION_RUNS,          /* counter (outcome: measured, untestable, failed, lost) */
	METRIC_FLEET_AGENTS,   /* gauge: that live; of a fleet, as all until METRIC_STATE_RETRIES */
	METRIC_SHARDS_HELD,    /* gauge */
	METRIC_LEASE_RENEWALS, /* counter (result: in time, late, failed, lost) */
	METRIC_DIFFERING_TESTS,   /* gauge: of which most agents have another configuration */
	METRIC_TAKE_OVERS,        /* counter: shards of agents whose lease was over */
	METRIC_FENCED_WRITES,     /* counter */
	METRIC_CLAIMS_EXPIRED,    /* counter: messages that another agent was sending */
	METRIC_STATE_ROUND_TRIPS, /* counter */
	METRIC_STATE_SECONDS,     /* counter */
	METRIC_STATE_CONNECTIONS, /* counter */
	METRIC_STATE_RETRIES,     /* counter */
	METRIC_PROCESS_CPU,       /* from here on as in every Prometheus client */
	METRIC_PROCESS_RESIDENT,
	METRIC_PROCESS_VIRTUAL,
	METRIC_PROCESS_OPEN_FDS,
	METRIC_PROCESS_MAX_FDS,
	METRIC_PROCESS_START_TIME,
	METRIC_COUNT,
};

struct metrics;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics);

/* `label`: NULL for a metric without one. Counters must not decrease, gauges may. */
void metrics_add(struct metrics *metrics, enum metric_id id, double value, const char *label);
void metrics_set(struct metrics *metrics, enum metric_id id, double value, const char *label);
void metrics_observe(struct metrics *metrics, enum metric_id id, double value, const char *label);

/* Adds 1 to a counter with two labels. */
void metrics_count(
	struct metrics *metrics, enum metric_id id, const char *first, const char *second);

/* The value, of a histogram the sum; 0 if there is none. */
double metrics_value(struct metrics *metrics, enum metric_id id, const char *label);

/* Drops the values of a gauge for which `keep`, called with the first label's value, is false. */
typedef bool metrics_keep(void *context, const char *first);
void metrics_retain(struct metrics *metrics, enum metric_id id, metrics_keep *keep, void *context);

/* Sets the process metrics from the kernel; leaves out values that it does not provide. */
void metrics_collect_process(struct metrics *metrics);

enum metrics_format { METRICS_TEXT, METRICS_OPENMETRICS };

extern const char *const metrics_content_types[]; /* by format */

/* Appends all metrics: as Prometheus' text format 0.0.4, or as OpenMetrics 1.0.0. */
void metrics_print(const struct metrics *metrics, enum metrics_format format, struct buf *out);

#endif

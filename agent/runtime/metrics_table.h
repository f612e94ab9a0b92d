/* How metrics are stored: shared by metrics.c and metrics_print.c. */
#ifndef AGENT_RUNTIME_METRICS_TABLE_H
#define AGENT_RUNTIME_METRICS_TABLE_H

#include <stdint.h>

#include "agent/runtime/metrics.h"

enum { METRIC_LABELS = 3, METRIC_BUCKETS = 14 };

enum metric_type { TYPE_COUNTER, TYPE_GAUGE, TYPE_INFO, TYPE_HISTOGRAM };

struct metric_row {
	const char *name; /* counters end with _total, infos with _info */
	enum metric_type type;
	const char *help;
	const char *labels[METRIC_LABELS];
	const char *unit; /* the suffix of the name before _total, or NULL */
};

extern const struct metric_row metric_rows[METRIC_COUNT];
extern const double metric_bounds[METRIC_BUCKETS]; /* of histograms, seconds */

/* The value for one set of label values. */
struct metric_child {
	char *values[METRIC_LABELS];
	double value;      /* a histogram's sum */
	uint64_t *buckets; /* a histogram's, not cumulated; the last: above all bounds */
};

struct metrics {
	struct metric_family {
		struct metric_child *children;
		size_t count;
	} families[METRIC_COUNT];
};

#endif

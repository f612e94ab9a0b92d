/*
 * Prometheus, and what speaks its HTTP API.
 */
#ifndef SOURCES_PROMETHEUS_H
#define SOURCES_PROMETHEUS_H

#include "sources/source.h"

struct prometheus_options {
	const char *query; /* of metrics that have none of their own */
	int64_t range;     /* ms; how far back from the end, where no since is asked for */
	int64_t step;      /* ms, or 0: raw samples */
};

extern const struct source prometheus_source;

#endif

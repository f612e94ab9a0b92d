/*
 * Prometheus and servers with its HTTP API.
 */
#ifndef SOURCES_PROMETHEUS_PROMETHEUS_H
#define SOURCES_PROMETHEUS_PROMETHEUS_H

#include "sources/source.h"

/* Values of the server's option `flavor`; also the flavor that a source has detected. */
enum prometheus_flavor { FLAVOR_AUTO, FLAVOR_PROMETHEUS, FLAVOR_VICTORIAMETRICS };

struct prometheus_options {
	const char *query; /* for metrics without a query */
	int64_t range;     /* ms before the end, if no --since is given; 0: default */
	int64_t step;      /* ms, or 0: raw samples */
	const char *base_branch;
	const char *commit_label, *version_label;
	struct strings attributes; /* further labels that become attributes of points */
	const char *build_info;  /* a query whose series have these labels, instead of those of the
				    test */
	const char *deployments; /* the same, whose values are the times of deployments */
};

struct prometheus_server {
	struct endpoint endpoint;
	int flavor;
	int partial_response; /* 1: incomplete data are accepted */
};

extern const struct source prometheus_source;

#endif

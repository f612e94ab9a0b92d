/*
 * Prometheus, and what speaks its HTTP API.
 */
#ifndef SOURCES_PROMETHEUS_PROMETHEUS_H
#define SOURCES_PROMETHEUS_PROMETHEUS_H

#include "sources/source.h"

/* Choices of the server's option `flavor`; also what a source has learnt of its server. */
enum prometheus_flavor { FLAVOR_AUTO, FLAVOR_PROMETHEUS, FLAVOR_VICTORIAMETRICS };

struct prometheus_options {
	const char *query; /* of metrics that have none of their own */
	int64_t range; /* ms; how far back from the end, where no since is asked for; 0: default */
	int64_t step;  /* ms, or 0: raw samples */
	const char *base_branch;
	const char *commit_label, *version_label;
	struct strings attributes; /* more labels that say something about points */
	const char *build_info;    /* query whose series have these labels, instead of the test's */
	const char *deployments;   /* the same, with values that are times of deployments */
};

struct prometheus_server {
	struct endpoint endpoint;
	int flavor;
	int partial_response; /* 1: data that lack a part are taken */
};

extern const struct field prometheus_fields[], prometheus_server_fields[];
extern const struct source prometheus_source;

/* The labels that say something about points, and the attributes they become; each once. */
struct pairs prometheus_said(const struct query *query);

#endif

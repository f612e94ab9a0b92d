/*
 * The state that prometheus_set_take builds up and prometheus_set_dataset turns into series;
 * private to them.
 */
#ifndef SOURCES_PROMETHEUS_SERIES_SET_H
#define SOURCES_PROMETHEUS_SERIES_SET_H

#include "agent/base/dict.h"
#include "sources/prometheus/series.h"

struct piece {
	struct piece *next;
	size_t n;
	int64_t *times;
	double *values;
	const char *
		*attributes; /* the attributes of its points, one for each point label, or NULL */
};

/* The series of one metric, and those labels of the first one that all share. */
struct family {
	const struct metric *metric;
	size_t rank; /* order of configured metrics */
	const struct collected_series *first;
	bool *common;
};

struct collected_series {
	struct collected_series *next;
	struct family *family;
	const char *identity;
	struct pair *labels;
	size_t label_count;
	size_t n;
	struct piece *pieces, **last;
};

struct prometheus_set {
	struct arena *arena;
	struct pairs point_labels;
	bool *label_seen; /* for each point label: some series had it */
	bool grid;        /* keep one of several points with the same time */
	int64_t from, to;
	const struct metric *metric; /* NULL: by name */
	struct collected_series *found, **last;
	size_t count;
	struct dict by_identity;    /* -> struct collected_series */
	const struct piece *before; /* the previous piece */
	struct dict families;       /* -> struct family, by the metric's name */
	size_t histograms, points;
	size_t max_points; /* of one series */
	const struct collected_series *too_long;
	bool too_many;
};

/* Appends the metric's name with its labels, all or those in which the metric's series differ. */
void prometheus_set_name(struct buf *out, const struct family *family, const struct pair *labels,
	size_t count, bool all);

#endif

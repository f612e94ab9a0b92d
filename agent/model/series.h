/*
 * Performance data in memory: sources produce it, detectors and reports read it.
 *
 * A dataset holds the series of one test. Each series has a value for each point of its axis;
 * series that were measured together share an axis (all columns of a CSV file), others have
 * their own (each label set of a Prometheus query). All of it lives in the job's arena.
 */
#ifndef AGENT_MODEL_SERIES_H
#define AGENT_MODEL_SERIES_H

#include <stdint.h>

#include "agent/base/field.h"

struct arena;
struct deployments; /* agent/model/attribution.h */

/* How to read and judge one metric of a test; from the configuration. */
struct metric {
	const char *name;
	int direction;           /* 1: higher is better, -1: lower is better, 0: either way */
	double scale;            /* multiplies every value */
	const char *unit;        /* or NULL */
	const char *column;      /* csv, postgres: the column, by default the name */
	const char *suffix;      /* graphite: the path after the prefix */
	const char *query;       /* prometheus: this metric's own query, or NULL */
	struct strings annotate; /* grafana tags */
};

/* A column of attributes (commit, version, branch, ...): one string per point, NULL if missing. */
struct column {
	const char *name;
	const char **values;
};

struct axis {
	size_t n;
	int64_t *times; /* ms, ascending; equal times keep the source's order */
	struct column *columns;
	size_t column_count;
	const struct deployments *deployments; /* with times of their own; NULL: only the points'
						  attributes are known */
};

/* A point covers the time from `back` before it to `on` after it; ms. */
struct window {
	int64_t back, on;
};

struct series {
	const struct metric *metric;
	const char *name;     /* display name, unique in its dataset: "p99", "p99{region=\"eu\"}" */
	const char *identity; /* key for the state: name and full sorted label set or target; stable
				 across runs */
	struct pairs labels;  /* prometheus: labels that distinguish it within its metric */
	struct axis *axis;
	double *values; /* axis->n values, scaled; NaN if missing */
	struct window window;
	int64_t pooled; /* ms between the source's points, if these are the means of hours; 0: they
			   are the source's */
};

/* The metric's; 0 without one. */
static inline int series_direction(const struct series *series)
{
	return series->metric ? series->metric->direction : 0;
}

struct dataset {
	struct series *series;
	size_t count;
};

/* The column of the attribute, or NULL. */
const struct column *axis_column(const struct axis *axis, const char *name);

/* Sorts points by time, stably, with values and attributes. Returns true if anything moved. */
bool dataset_sort(struct dataset *data, struct arena *scratch);

/* Keeps the points of [from, to) of one axis, for all series on it; copies nothing, moves
 * pointers. */
void dataset_keep(struct dataset *data, struct axis *axis, size_t from, size_t to);

/* The first index whose time is >= ms; n if there is none. */
size_t times_lower_bound(const int64_t *times, size_t n, int64_t ms);
size_t axis_lower_bound(const struct axis *axis, int64_t ms);

#endif

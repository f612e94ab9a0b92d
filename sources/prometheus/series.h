/*
 * Collects Prometheus' answers into a dataset: the pieces of a long range are joined by label set,
 * and each label set becomes a series with a name and an identity.
 */
#ifndef SOURCES_PROMETHEUS_SERIES_H
#define SOURCES_PROMETHEUS_SERIES_H

#include "agent/base/dict.h"
#include "sources/prometheus/builds.h"
#include "sources/source.h"

/* The caller sets the first part; everything lives in the arena. */
struct prometheus_set {
	struct arena *arena;
	/* Labels that become attributes of points. They do not name a series: series that differ in
	 * nothing else are one; and whether some series had each. */
	struct pairs point_labels;
	bool *label_seen;
	/* A step: such a series has one point at a time, from the one that began last, since the
	 * server repeats the last sample of those that ended. */
	bool grid;
	size_t max_points; /* of one series */
	/* The following series belong to this metric (NULL: each to a metric named by its
	 * __name__), and points outside of [from, to) are dropped. The ranges of a metric must come
	 * in order of time. */
	const struct metric *metric;
	int64_t from, to;

	size_t histograms;              /* native ones, which were skipped */
	struct collected_series *found; /* the last one first */
	size_t count, points;
	struct dict by_identity;    /* -> struct collected_series */
	struct dict families;       /* -> struct family, by the metric's name */
	const struct piece *before; /* the previous piece */
	const struct collected_series *too_long;
	bool too_many;
};

/* An answer_take; the context is the set. */
void prometheus_set_take(void *set, const struct answer_series *series);

/* Announces the labels of all series so far to the builds. */
void prometheus_set_expect_builds(const struct prometheus_set *set, struct builds *builds);

/* Fails if a limit was exceeded and data were dropped. */
bool prometheus_set_check(const struct prometheus_set *set, struct error *error) MUST_USE;

/*
 * The dataset: a series for each label set that has points, by metric and then by labels. Its name
 * is that of the metric with the labels in which the metric's series differ, its identity that of
 * the metric with all labels. Points are in order of time; duplicates are kept. Series with the
 * same time stamps and attributes share an axis. Values are scaled. With `builds` (or NULL) points
 * have the attributes of the builds that belong to their series.
 */
struct dataset prometheus_set_dataset(struct prometheus_set *set, struct builds *builds);

#endif

/*
 * Collects Prometheus' answers into a dataset: the pieces of a long range are joined by label set,
 * and each label set becomes a series with a name and an identity.
 */
#ifndef SOURCES_PROMETHEUS_SERIES_H
#define SOURCES_PROMETHEUS_SERIES_H

#include "sources/prometheus/builds.h"
#include "sources/source.h"

struct prometheus_set;

/*
 * `point_labels`: labels that become attributes of points. They do not name a series: series that
 * differ in nothing else are one. On a `grid` (a step) such a series has one point at a time, from
 * the one that began last, since the server repeats the last sample of those that ended. A series
 * may have max_points; 0: any number. Everything lives in the arena.
 */
struct prometheus_set *prometheus_set_new(
	struct arena *arena, struct pairs point_labels, bool grid, int64_t max_points);

/*
 * The following series belong to this metric (NULL: each to a metric named by its __name__), and
 * points outside of [from, to) are dropped. The ranges of a metric must come in order of time.
 */
void prometheus_set_expect(
	struct prometheus_set *set, const struct metric *metric, int64_t from, int64_t to);

/* An answer_take; the context is the set. */
void prometheus_set_take(void *set, const struct answer_series *series);

/* Native histograms that were skipped so far. */
size_t prometheus_set_histograms(const struct prometheus_set *set);

/* Announces the labels of all series so far to the builds. */
void prometheus_set_expect_builds(const struct prometheus_set *set, struct builds *builds);

/* Whether a series had that one of the point labels. */
bool prometheus_set_has_label(const struct prometheus_set *set, size_t label);

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

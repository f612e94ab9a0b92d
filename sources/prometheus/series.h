/*
 * What Prometheus answered, on its way to a dataset: the pieces of a long range are put together by
 * label set, and each label set becomes a series with a name and an identity.
 */
#ifndef SOURCES_PROMETHEUS_SERIES_H
#define SOURCES_PROMETHEUS_SERIES_H

#include "sources/prometheus/builds.h"
#include "sources/source.h"

struct prometheus_set;

/*
 * `said`: labels that say something about points, and the attributes they become. They do not name
 * a series: those that differ in nothing else are one. On a `grid` (a step) they have one point at
 * a time, that of the one that began last: the server repeats the last sample of those that ended.
 * A series may have max_points, or any number if that is 0. All of it lives in the arena.
 */
struct prometheus_set *prometheus_set_new(
	struct arena *arena, struct pairs said, bool grid, int64_t max_points);

/*
 * The series that follow are of this metric (NULL: each is of a metric named by its __name__), and
 * their points outside of [from, to) are dropped. The ranges of one metric come in order of time.
 */
void prometheus_set_expect(
	struct prometheus_set *set, const struct metric *metric, int64_t from, int64_t to);

/* An answer_take; the context is the collection. */
void prometheus_set_take(void *set, const struct answer_series *series);

/* Native histograms that were left out, since prometheus_set_new. */
size_t prometheus_set_histograms(const struct prometheus_set *set);

/* Tells the builds of the labels of all series that are there by now. */
void prometheus_set_expect_builds(const struct prometheus_set *set, struct builds *builds);

/* Whether a series had the said label of that number. */
bool prometheus_set_said(const struct prometheus_set *set, size_t label);

/* Fails if more came than is held: what came behind is not there. */
bool prometheus_set_check(const struct prometheus_set *set, struct error *error) MUST_USE;

/*
 * The dataset: a series for each label set that has points, by metric and then by labels. Its name
 * is the metric's with the labels in which the metric's series differ, its identity the metric's
 * with all labels. Points are in order of time; equal ones are kept. Series with the same time
 * stamps and attributes share an axis. Values are scaled. With `builds` (or NULL) the points have
 * the attributes of the builds that belong to their series.
 */
struct dataset prometheus_set_dataset(struct prometheus_set *set, struct builds *builds);

#endif

/*
 * Which build was running when: series like
 *
 *     shop_build_info{job="shop", revision="a60027ff", version="1.4"} 1
 *
 * say it by their labels and by the times of their samples. At a point in time it is the build
 * whose latest sample, at or before then, is the latest; of builds that were seen at the same time,
 * during a rollout, it is the one that came last.
 */
#ifndef SOURCES_PROMETHEUS_BUILDS_H
#define SOURCES_PROMETHEUS_BUILDS_H

#include "agent/core/series.h"
#include "sources/prometheus_answer.h"

enum { BUILDS_MAX = 10000, BUILDS_SAMPLES_MAX = 5000000 };

struct builds;
struct timeline;

/*
 * `said`: labels and the attributes they become. The samples are on a grid of `step` (ms), or raw
 * ones (0). With `annotations` their values are times, in seconds since 1970 or milliseconds, at
 * which something was deployed. All of it lives in the arena.
 */
struct builds *builds_new(struct arena *arena, struct pairs said, int64_t step, bool annotations);

/* An answer_take; the context is the builds. Ranges come in order of time. */
void builds_take(void *builds, const struct answer_series *series);

/*
 * The same of builds_starts_query: when each build was first seen within the step before each
 * point, to the minute or less, so that one that came and went between two points is known, and
 * when it came. It is only more exact: what is too much is left out.
 */
void builds_take_starts(void *builds, const struct answer_series *series);

/* The query, of the builds' own on a grid of `step`, for a range of that length (ms); NULL where it
 * would tell no more than that. */
const char *builds_starts_query(
	struct builds *builds, const char *query, int64_t step, int64_t range);

/* Label sets that came; with `saying`, those that have one of the labels. */
size_t builds_count(const struct builds *builds, bool saying);

/* There were more than BUILDS_MAX label sets or BUILDS_SAMPLES_MAX samples, or too many of them for
 * all the series whose timelines were asked for; not all of it is there. */
bool builds_overflow(const struct builds *builds);

/*
 * The builds that belong to a series with these labels: a label that both have, __name__ and the
 * said ones aside, must be the same. Series to which the same builds belong get the same timeline.
 */
const struct timeline *builds_timeline(
	struct builds *builds, const struct pair *labels, size_t count);

/* Gives the axis a column for each attribute that is known at one of its points, and the
 * deployments: when another commit or version began to run. */
void builds_apply(const struct builds *builds, const struct timeline *timeline, struct axis *axis);

#endif

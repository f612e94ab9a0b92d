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
#include "sources/prometheus/answer.h"

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
 * Between two points of a grid a build may come and go, and one may hide that it came. Two more
 * questions find both; what they tell makes it only more exact, and what is too much is left out.
 *
 * In which steps a build was seen at all: the query, with the step as its range, of a query that is
 * a selector; NULL of any other, and where steps are too short to look into.
 */
const char *builds_seen_query(struct builds *builds, const char *query);
void builds_take_seen(void *builds, const struct answer_series *series);

/* A series with these labels is there: builds that differ in others belong together. */
void builds_expect(struct builds *builds, const struct pair *labels, size_t count);

/* Times between points of the grid, both of them asked for. */
struct stretch {
	int64_t from, to; /* ms */
};

/*
 * The steps [begin, end) in which a build may have come: those where it was seen and had not been
 * at their beginning; all of them unless `narrow`. Few are joined to at most BUILDS_STRETCHES_MAX
 * stretches, in the arena. The first step has nothing before it.
 */
enum { BUILDS_STRETCHES_MAX = 64 };
struct stretch *builds_stretches(
	struct builds *builds, int64_t begin, int64_t end, bool narrow, size_t *count);

/* When each build was first seen within the step before each of their points, to the minute or
 * less: of builds_stretches. NULL where it would tell no more than the step. */
const char *builds_starts_query(struct builds *builds, const char *query);
void builds_take_starts(void *builds, const struct answer_series *series);

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

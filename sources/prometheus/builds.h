/*
 * Finds which build ran when, from the labels and the sample times of series like
 *
 *     shop_build_info{job="shop", revision="a60027ff", version="1.4"} 1
 *
 * At any time it is the build with the latest sample at or before that time. If several have that
 * sample, during a rollout, it is the one that started last.
 */
#ifndef SOURCES_PROMETHEUS_BUILDS_H
#define SOURCES_PROMETHEUS_BUILDS_H

#include "agent/model/series.h"
#include "sources/prometheus/answer.h"

enum { BUILDS_MAX = 10000, BUILDS_SAMPLES_MAX = 5000000 }; /* of each query */

struct builds;
struct timeline;

/*
 * `point_labels`: the labels that become attributes of points. The samples are on a grid of `step`
 * (ms), or raw samples (0). With `annotations` their values are the times of deployments, in
 * seconds or milliseconds since 1970. Everything lives in the arena.
 */
struct builds *builds_new(
	struct arena *arena, struct pairs point_labels, int64_t step, bool annotations);

/* An answer_take; the context is the builds. Ranges must come in order of time. */
void builds_take(void *builds, const struct answer_series *series);

/*
 * Between two points of a grid a build may start and stop unseen, or hide the start of another. Two
 * more queries find both. Their answers only make times more precise; what exceeds the limits is
 * ignored.
 *
 * builds_seen_query tells in which steps a build was seen: the query with the step as its range.
 * NULL if the query is not a selector or steps are too short.
 */
const char *builds_seen_query(struct builds *builds, const char *query);
void builds_take_seen(void *builds, const struct answer_series *series);

/* Adds a series with these labels: builds that differ only in other labels belong together. */
void builds_expect(struct builds *builds, struct pairs labels);

/* Times between two points of the grid, including both. */
struct stretch {
	int64_t from, to; /* ms */
};

/*
 * The steps of [begin, end) in which a build may have started: those in which it was seen but not
 * at their beginning, or all of them unless `narrow`. Adjacent ones are joined into at most
 * BUILDS_STRETCHES_MAX stretches, in the arena. Nothing is known before the first step.
 */
enum { BUILDS_STRETCHES_MAX = 64 };
struct stretch *builds_stretches(
	struct builds *builds, int64_t begin, int64_t end, bool narrow, size_t *count);

/* The query for when each build was first seen within the step before each point of
 * builds_stretches, to a minute or less. NULL if the answer could not be more precise than the
 * step. */
const char *builds_starts_query(struct builds *builds, const char *query);
void builds_take_starts(void *builds, const struct answer_series *series);

/* The number of label sets; with `labelled`, of those that have one of the point labels. */
size_t builds_count(const struct builds *builds, bool labelled);

/* Whether data were dropped: more than BUILDS_MAX label sets, more than BUILDS_SAMPLES_MAX samples,
 * or too many of them for the number of timelines. */
bool builds_overflow(const struct builds *builds);

/*
 * The builds that belong to a series with these labels: any label that both have must be equal,
 * except __name__ and the point labels. Series with the same builds share a timeline.
 */
const struct timeline *builds_timeline(struct builds *builds, struct pairs labels);

/* Adds a column to the axis for each attribute that is known at some point, and the deployments:
 * the times at which another commit or version began to run. */
void builds_apply(const struct builds *builds, const struct timeline *timeline, struct axis *axis);

#endif

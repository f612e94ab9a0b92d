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

/* `said`: labels and the attributes they become. All of it lives in the arena. */
struct builds *builds_new(struct arena *arena, struct pairs said);

/* An answer_take; the context is the builds. Ranges come in order of time. */
void builds_take(void *builds, const struct answer_series *series);

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

/* Gives the axis a column for each attribute that is known at one of its points. */
void builds_apply(const struct builds *builds, const struct timeline *timeline, struct axis *axis);

#endif

/*
 * Services that are sampled faster than they forget, judged by the hour.
 *
 * The points of a service that come every few minutes resemble their neighbours: ten of them carry
 * hardly more information than one, and every rule that counts points decides too early. Such a
 * series is judged by the means of the hours, as if it were sampled hourly; everything that counts
 * points counts hours. A value far beyond the range of the last week does not wait for the hour to
 * end: from there on single points are kept until their hours are complete.
 * docs/design/algorithms.md section 3.
 */
#ifndef AGENT_ANALYSIS_HOURLY_H
#define AGENT_ANALYSIS_HOURLY_H

#include "agent/base/arena.h"
#include "agent/model/series.h"
#include "conf/config.h"

struct scratch;

/* Whether a series is judged by the hour. It follows from its points from `since` on, once there
 * are two days of them, and once more with a week; it is frozen then, until `since` moves. All
 * zero: undecided. */
struct pace {
	bool settled;
	int64_t since; /* ms */
	int days;      /* of points that it was decided by */
	int64_t step;  /* ms between the source's points; 0: not judged by the hour */
	double memory; /* how much more an hour's mean varies than if the points in it were
			  independent: the ratio of variances */
};

/* Decides as much as the points allow; `since` is the series' anchor, or the time of its first
 * point. O(n). */
void pace_settle(struct pace *pace, const struct detection *detection, const struct series *series,
	int64_t since, struct scratch *scratch);

/* The series in the form that is judged: unchanged, or its complete hours on a separate axis, in
 * the arena. The time of an hour is its beginning, its attributes are its last point's. An hour
 * without half of its points has no value. Points before the first whole hour are left out. */
const struct series *pace_apply(
	struct arena *arena, const struct pace *pace, const struct series *series);

/* pace_settle from the first point on, and pace_apply. */
const struct series *hourly_series(struct arena *arena, const struct detection *detection,
	const struct series *series, int64_t since, struct scratch *scratch);

/* The hours of another series by which one that may be judged by the hour is explained. */
const struct series *hourly_other(
	struct arena *arena, const struct series *series, const struct series *other);

#endif

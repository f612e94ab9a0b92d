/*
 * Hunter's comparison: the level of a series at one point against the level at another.
 *
 * The level at a point is that of all points between the nearest change points around it. Two
 * levels differ if Welch's test says so. Pure functions, used by `regressions`.
 */
#ifndef AGENT_ANALYSIS_COMPARE_H
#define AGENT_ANALYSIS_COMPARE_H

#include "agent/analysis/analysis.h"

struct compare_span {
	size_t from, to; /* points [from, to) of the series' axis */
};

struct level {
	struct compare_span span;
	size_t count;        /* existing points; 0: no level */
	double mean, stddev; /* sample deviation, 0 for a single point */
};

struct comparison {
	struct level before, after;
	double pvalue;
	double percent; /* after over before, 0 if before is 0 */
	/* The same for the nearest points of both spans, with outliers clipped: see struct
	 * change. */
	double level_before, level_after, size, size_low, size_high;
};

/* From the last change point at or before `index` to the first after it, or to the ends of the
 * series. */
struct compare_span stable_span(const struct findings *found, size_t index);

/*
 * Compares two spans of the values of two series or of the same one. A side of a single point is
 * judged by the variance of the other (Student's test with n - 1 degrees of freedom); with fewer
 * than three points in all p is 1.
 */
struct comparison compare_spans(
	const double *a, struct compare_span before, const double *b, struct compare_span after);

/* Whether it is worse in the metric's direction (0: either way) with p below the threshold. */
bool comparison_is_regression(const struct comparison *comparison, int direction, double threshold);

#endif

/*
 * Hunter's comparison: the level of a series at one point against the level at another.
 *
 * The level at a point is that of all points between the nearest change points around it. Two
 * levels differ if the test of section 5 of docs/design/algorithms.md says so. Pure functions.
 */
#ifndef AGENT_ANALYSIS_COMPARE_H
#define AGENT_ANALYSIS_COMPARE_H

#include "agent/analysis/analysis.h"

/* Degrees of freedom below which the test decides nothing: with three, a difference of ten standard
 * errors has a p of 0.002. */
enum { COMPARE_LEAST = 4 };

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
	bool one; /* both are the same level of one series: nothing is compared */
	double pvalue;
	double plain_pvalue; /* that of a single point if it is not an outlier; else the same */
	double df;           /* degrees of freedom of the test */
	double percent;      /* after over before, 0 if before is 0 */
	/* The same for the nearest points of both spans, with outliers clipped: see struct
	 * change. */
	double level_before, level_after, size, size_low, size_high;
};

/* From the last change point at or before `index` to the first after it, or to the ends of the
 * series. */
struct compare_span stable_span(const struct findings *found, size_t index);

/*
 * Compares two spans of the values of two series or of the same one. Few points borrow the variance
 * of the other side, a single one takes it, and may be an outlier. With fewer than three in all, or
 * where levels that are constant differ with fewer than ten, p is 1 and df 0.
 */
struct comparison compare_spans(
	const double *a, struct compare_span before, const double *b, struct compare_span after);

/* Whether it is worse in the metric's direction (0: either way) with p below the threshold. */
bool comparison_is_regression(const struct comparison *comparison, int direction, double threshold);

#endif

/*
 * Skia Perf's step fits (Skia's "go/stepfit"): six ways to decide whether a short stretch of values
 * has a step in its middle, and the detector that slides such a stretch along a series.
 * docs/design/algorithms.md section 6.3.
 */
#ifndef DETECTORS_STEPFIT_H
#define DETECTORS_STEPFIT_H

#include "detectors/detector.h"

enum stepfit_algorithm {
	STEPFIT_ORIGINAL,
	STEPFIT_ABSOLUTE,
	STEPFIT_CONST,
	STEPFIT_PERCENT,
	STEPFIT_COHEN,
	STEPFIT_MANNWHITNEYU,
};

enum stepfit_status { STEPFIT_UNINTERESTING, STEPFIT_HIGH, STEPFIT_LOW };

struct stepfit_options {
	int algorithm;    /* enum stepfit_algorithm */
	double threshold; /* 0: the algorithm's own */
	double min_stddev;
	int64_t radius; /* points on each side of a step */
};

struct stepfit {
	double step, regression;
	enum stepfit_status status; /* high: the values went up */
};

/*
 * Fits a step in the middle of n values, NaN where missing, with the results of Skia's code, in
 * double precision. The options' threshold must be above 0; their radius is not used. The scratch
 * must be for these calls alone: each one empties it.
 */
struct stepfit stepfit_fit(const double *values, size_t n, const struct stepfit_options *options,
	struct scratch *scratch);

extern const struct detector stepfit_detector;

#endif

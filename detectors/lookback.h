/*
 * Each run against the ones just before it, as LNT (LLVM's performance tracker) compares them:
 * docs/design/algorithms.md section 6.5.
 */
#ifndef DETECTORS_LOOKBACK_H
#define DETECTORS_LOOKBACK_H

#include "detectors/detector.h"
#include "detectors/tried.h"

enum lookback_best { LOOKBACK_AUTO, LOOKBACK_MIN, LOOKBACK_MAX, LOOKBACK_MEDIAN };

struct lookback_options {
	int64_t runs; /* earlier runs that are compared with */
	int best;     /* enum lookback_best: the sample that represents a run */
	double magnitude, floor;
	double p_value;
	double deviations;
	int64_t min_samples; /* on each side, for the Mann-Whitney test */
};

/* The samples of a run, or of the runs before it. */
struct lookback_side {
	const double *values;
	size_t n;
	uint64_t hash; /* 0: unknown */
};

enum lookback_verdict { LOOKBACK_UNCHANGED, LOOKBACK_IMPROVED, LOOKBACK_REGRESSED };

struct lookback_result {
	enum lookback_verdict verdict;
	double delta; /* the run's best less the nearest earlier sample */
	double p;     /* of the Mann-Whitney test; 1 without one */
	bool tested;
	/* Why it is unchanged. */
	enum tried_fate fate;
	const char *measure;
	double measured, limit;
};

/*
 * Compares a run's samples with those of the runs before it; `direction` as in struct samples, 0
 * counting as lower is better. The scratch must be for these calls alone: each one empties it.
 */
struct lookback_result lookback_compare(const struct lookback_side *now,
	const struct lookback_side *before, int direction, const struct lookback_options *options,
	struct scratch *scratch);

extern const struct detector lookback_detector;

#endif

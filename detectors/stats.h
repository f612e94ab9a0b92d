/*
 * Statistics that detectors and reports share: moments of a sample, Student's t distribution,
 * t-tests.
 *
 * All functions are pure and give the same bits on every machine with the same libm. Deviations are
 * taken from the first value, so that constants come out exactly constant whatever their size.
 */
#ifndef DETECTORS_STATS_H
#define DETECTORS_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* A sample's size, its mean, and the sum of squared deviations from the mean. All zero for an empty
 * one. */
struct moments {
	size_t n;
	double mean;
	double squares;
};

/* The moments of n values, none missing, in two passes. */
struct moments moments_of(const double *values, size_t n);

/* The moments of both samples together (Chan, Golub and LeVeque 1983). */
struct moments moments_join(struct moments a, struct moments b);

/* squares / (n - ddof); 0 where n <= ddof. */
double moments_variance(struct moments sample, size_t ddof);
double moments_stddev(struct moments sample, size_t ddof);

/* The points that the pooled variance counts for in a moderated one. */
enum { MODERATION = 40 };

/* The variance of a side of a comparison, pulled towards the pooled one of both sides: few points
 * estimate their own badly. docs/design/algorithms.md section 2.4. */
double moments_moderated(struct moments side, double pooled);

/* A lag-1 autocorrelation among n values, corrected for its bias and lowered by a quarter of its
 * standard error: 0 to 0.9. */
double correlation_corrected(double r, double n);

/* The factor, at least 1, of the variance of a mean of n values whose autocorrelation is r^lag. */
double correlation_inflation(double r, size_t n);

/* The sum of products of successive deviations from the mean of `sample`, which are its values'
 * moments: over its squares, the autocorrelation at lag 1. */
double moments_lagged(const double *values, struct moments sample);

/* P(|T| > |t|) of Student's distribution with df > 0 degrees of freedom, to 1e-12 relative; NaN for
 * a NaN t. */
double student_two_sided(double t, double df);

/*
 * Whether t can have a two-sided p of at most `p` for any df: Student's tails are heavier than
 * normal ones, so a t that is too likely under the normal distribution is too likely here. Costs a
 * fifth of the exact p. False for a NaN t.
 */
bool student_can_be(double t, double p);

/* student_two_sided(t, df) <= p, at that lower cost where it is clearly false. */
bool student_at_most(double t, double df, double p);

struct ttest {
	double t; /* NaN when both samples are constant and equal; 0 where p = 1 because there are
		     too few points */
	double df;
	double p; /* two-sided; 1 where the samples are too small to tell, NaN with t */
};

/*
 * Student's test with pooled variance as Otava does it: the samples' *population* variances are
 * weighted with n - 1. n1 + n2 <= 2 gives p = 1, an infinite t gives 0.
 */
struct ttest ttest_pooled(struct moments a, struct moments b);

/* Whether its p is at most `p`. */
bool ttest_pooled_at_most(struct moments a, struct moments b, double p);

/*
 * Welch's test with sample variances. Where the two samples are constant: p = 1 if they are equal,
 * else 0. A sample of less than two values cannot be judged: p = 1.
 */
struct ttest ttest_welch(struct moments a, struct moments b);

/*
 * The p of Welch's test; where one sample has a single value, that of Student's test with the
 * other's variance. 1 if a sample is empty, or if there are only two values.
 */
double ttest_any(struct moments a, struct moments b);

#endif

/*
 * The Mann-Whitney U test (Mann and Whitney 1947), correct with ties and for small samples.
 */
#ifndef DETECTORS_MANNWHITNEY_H
#define DETECTORS_MANNWHITNEY_H

#include "detectors/detector.h"

struct mannwhitney {
	double u;  /* pairs in which the first sample's value is the larger one; ties count half */
	double p;  /* two-sided; 1 where a sample is empty or all values are equal */
	bool flat; /* all values are equal */
};

/*
 * The p-value is exact, ties included, if both samples have at most 50 values, or 25 if there are
 * ties; beyond that, and unless `exact`, it is the normal approximation, which costs less, with
 * corrections for ties and continuity. Infinities are values; a NaN counts as positive infinity.
 * The scratch must be for these tests alone: each one empties it. docs/design/algorithms.md section
 * 6.7.
 */
struct mannwhitney mannwhitney_test(const double *first, size_t n1, const double *second, size_t n2,
	bool exact, struct scratch *scratch);

#endif

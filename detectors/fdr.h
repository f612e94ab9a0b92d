/*
 * False discoveries among many series (Benjamini and Hochberg 1995).
 *
 * A p-value speaks of one series. Of 40,000 that are flat some look changed, so over all series of
 * a run a change has to do better the fewer others there are with it: of those that pass, at most
 * the given share is expected to be false. The procedure is valid for independent tests and for
 * positively dependent ones, which series of one machine are.
 */
#ifndef DETECTORS_FDR_H
#define DETECTORS_FDR_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/core/field.h"

struct fdr_options {
	const char *fdr; /* "off", "0.05" */
};

extern const struct field fdr_fields[];

/* Reads the option's text; *share is 0 for "off". */
bool fdr_parse(const char *text, double *share, struct error *error) MUST_USE;

/*
 * The p-value that a change has to be at or below so that at most `share` of those that pass are
 * expected to be false. `pvalues` are those of all changes found, in any order; `hypotheses` is the
 * number of places that were tested, series without a change included: at least `count`. Sorts
 * pvalues. 1 where share is 0 (off); below 0 where none passes.
 */
double fdr_limit(double *pvalues, size_t count, size_t hypotheses, double share);

/* Where a p-value stands among those that were found (it may be one of them): how many are smaller,
 * and itself, and what it has to be at or below to pass on its own. */
struct fdr_rank {
	size_t rank, hypotheses;
	double pvalue, bound, share;
};

struct fdr_rank fdr_rank(
	const double *pvalues, size_t count, double pvalue, size_t hypotheses, double share);

#endif

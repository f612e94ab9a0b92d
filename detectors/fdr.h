/*
 * False discoveries among many series (Benjamini and Hochberg 1995).
 *
 * A p-value is about one series. Of 40,000 flat series some appear to change, so the fewer changes
 * a run finds over all its series, the stronger each must be: of those that pass, at most the given
 * share is expected to be false. The procedure is valid for independent tests and for positively
 * dependent ones, such as series of one machine.
 */
#ifndef DETECTORS_FDR_H
#define DETECTORS_FDR_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/base/field.h"

struct fdr_options {
	const char *fdr; /* "off", "0.05" */
};

extern const struct field fdr_fields[];

/* Reads the option's text; *share is 0 for "off". */
bool fdr_parse(const char *text, double *share, struct error *error) MUST_USE;

/*
 * The largest p-value with which a change passes so that at most `share` of those that pass are
 * expected to be false. `pvalues` are those of all changes found, in any order; `hypotheses` is the
 * number of tested places, at least `count`, including those of series without a change. Sorts
 * pvalues. 1 if share is 0 (off); below 0 if none passes.
 */
double fdr_limit(double *pvalues, size_t count, size_t hypotheses, double share);

/* The rank of a p-value among those found (it may be one of them): one more than the number of
 * smaller ones. It passes on its own if it is at most share * rank / hypotheses. */
size_t fdr_rank(const double *pvalues, size_t count, double pvalue);

#endif

/*
 * The report of `regressions`: what got worse in each test, as Hunter prints it or as JSON.
 */
#ifndef AGENT_REPORT_REGRESSIONS_H
#define AGENT_REPORT_REGRESSIONS_H

#include <stdio.h>

#include "agent/analysis/compare.h"
#include "agent/core/buf.h"

/* The threshold for p where a metric's detector has none. */
#define REGRESSION_P_VALUE 0.001

struct regression {
	const struct series *before, *after; /* the same one, unless branches are compared */
	struct comparison comparison;
	const struct change *trend; /* in whose course it got worse, or NULL */
	struct announcement basis;  /* by which other series it was judged */
};

struct regression_report {
	FILE *out;
	bool json;
	size_t tests, regressed; /* told so far, and those with regressions */
	struct buf failed;       /* JSON: the tests that failed */
};

void regression_report_begin(struct regression_report *report);

/* `compared`: how many metrics could be compared. */
void regression_report_test(struct regression_report *report, const char *test,
	const struct regression *worse, size_t count, size_t compared);
void regression_report_failure(struct regression_report *report, const char *test, const char *why);
void regression_report_end(struct regression_report *report); /* frees what the report holds */

#endif

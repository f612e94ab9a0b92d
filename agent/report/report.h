/*
 * Reports of `analyze`: the changes of each test, as a table, JSON, CSV, or the regressions only.
 *
 * Begin a report once, add each test in the requested order, and end it. With `otava` set, each
 * form is identical to Apache Otava's output, except for trailing blanks; otherwise it is our own.
 */
#ifndef AGENT_REPORT_REPORT_H
#define AGENT_REPORT_REPORT_H

#include <stdio.h>

#include "agent/analysis/analysis.h"
#include "agent/base/buf.h"

enum report_output { REPORT_TEXT, REPORT_JSON, REPORT_CSV, REPORT_REGRESSIONS, REPORT_LOG };

extern const char *const report_output_names[]; /* in the order of the enum; NULL-terminated */

struct report {
	FILE *out;
	int output; /* enum report_output */
	bool otava, verbose, color;
	struct strings attributes; /* those to show; none: all */

	size_t tests;      /* tests reported so far */
	size_t accepted;   /* regressions in them that are accepted */
	struct buf failed; /* JSON: the tests that failed */
};

void report_begin(struct report *report);
void report_test(struct report *report, const struct analysis *analysis, struct arena *arena);
void report_failure(struct report *report, const char *test, const char *why);
void report_end(struct report *report); /* frees the memory of the report */

/* Appends {"name": .., "error": ..} to a JSON list of tests that failed. */
void report_put_failure(struct buf *list, const char *test, const char *why);

/* "trend from 100 to 200 over 2026-03-01 .. 2026-03-09, +1 a point" */
void report_put_trend(struct buf *out, const struct series *series, const struct change *change);

/* Why the change is accepted, or NULL. */
const char *change_accepted(const struct findings *findings, const struct change *change);

/* Whether a change that is not accepted made the metric worse. Without a direction none does, as in
 * Hunter. */
bool analysis_has_regression(const struct analysis *analysis);
bool change_is_regression(const struct series *series, const struct change *change);

#endif

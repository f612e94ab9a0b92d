/*
 * Reports of `analyze`: what was found in each test, as a table, as JSON, as CSV, or the
 * regressions only.
 *
 * A report is begun once, told of each test in the order asked, and ended. With `otava` set, each
 * form is what Apache Otava prints, character for character but for blanks at the ends of lines;
 * else it is our own.
 */
#ifndef AGENT_REPORT_H
#define AGENT_REPORT_H

#include <stdio.h>

#include "agent/analysis/analysis.h"
#include "agent/core/buf.h"

enum report_output { REPORT_TEXT, REPORT_JSON, REPORT_CSV, REPORT_REGRESSIONS, REPORT_LOG };

extern const char *const report_output_names[]; /* in the order of the enum, ends with NULL */

struct report {
	FILE *out;
	int output; /* enum report_output */
	bool otava, verbose, color;
	bool formulas;             /* in CSV, see csv_put_text */
	struct strings attributes; /* those to show; none: all there are */

	size_t tests;      /* told so far */
	struct buf failed; /* JSON: the tests that failed */
};

void report_begin(struct report *report);
void report_test(struct report *report, const struct analysis *analysis, struct arena *arena);
void report_failure(struct report *report, const char *test, const char *why);
void report_end(struct report *report); /* frees what the report holds */

/* Appends {"name": .., "error": ..} to a JSON list of tests that failed. */
void report_put_failure(struct buf *list, const char *test, const char *why);

/* Appends a change of the findings as a JSON object, with those of the named attributes that its
 * point has. */
void report_put_change(struct buf *out, const struct findings *findings,
	const struct change *change, const struct strings *attributes, struct arena *arena);

/* Appends what a series is (name, direction, unit, points, missing) as a JSON object that is left
 * open. */
void report_put_series(struct buf *out, const struct series *series);

/* "trend from 100 to 200 over 2026-03-01 .. 2026-03-09, +1 a point" */
void report_print_trend(const struct series *series, const struct change *change, FILE *out);

/* Whether the metric got worse; where no direction is known every change counts. */
bool change_is_regression(const struct series *series, const struct change *change);
bool analysis_has_regression(const struct analysis *analysis);

/* The longer forms, each in a file of its own; for report_test. */
void report_table(
	const struct report *report, const struct analysis *analysis, struct arena *arena);
void report_json(const struct report *report, const struct analysis *analysis, struct arena *arena);
void report_json_otava(
	const struct report *report, const struct analysis *analysis, struct arena *arena);

#endif

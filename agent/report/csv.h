/*
 * Lists as CSV, as all commands print them: from the JSON of their rows, by columns.
 */
#ifndef AGENT_REPORT_CSV_H
#define AGENT_REPORT_CSV_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#define CSV_FORMULAS_HELP                                                                          \
	"print CSV cells that begin with =, +, - or @ unchanged; by default an apostrophe is put " \
	"before them, since spreadsheets run them as formulas"

/* The number of changes that may have caused it, and their range. */
#define CSV_SUSPECTS                                                                               \
	"suspects=suspects.count", "suspects_from=suspects.from", "suspects_to=suspects.to"

/*
 * The line of names, and that of a row, by the columns of agent/report/document.h. `first`: the
 * name and the text of a column before them, or NULL. A null or missing value is an empty cell,
 * true and false are yes and no, times and numbers are as in the document.
 */
void csv_put_header(const char *first, const char *const *columns, bool formulas, FILE *out);
void csv_put_row(
	const char *first, const json_t *row, const char *const *columns, bool formulas, FILE *out);
/* The same of a row's JSON. */
void csv_put_text(
	const char *first, const char *row, const char *const *columns, bool formulas, FILE *out);

#endif

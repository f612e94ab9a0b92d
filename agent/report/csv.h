/*
 * Lists as CSV, as all commands print them: from the JSON of their rows, by columns.
 */
#ifndef AGENT_REPORT_CSV_H
#define AGENT_REPORT_CSV_H

#include <stdbool.h>
#include <stdio.h>

#define CSV_FORMULAS_HELP                                                                          \
	"print CSV cells that begin with =, +, - or @ unchanged; by default an apostrophe is put " \
	"before them, since spreadsheets run them as formulas"

/* The number of changes that may have caused it, and their range. */
#define CSV_SUSPECTS                                                                               \
	"suspects=suspects.count", "suspects_from=suspects.from", "suspects_to=suspects.to"

/*
 * The line of names, and that of a row, which is a JSON object. A column is the name of a member,
 * NAME=OBJECT.MEMBER for one of an object in the row, or =OBJECT.MEMBER, named as that is; they end
 * with NULL. `first`: the name and the text of a column before them, or NULL. What is null or
 * missing is an empty cell, true and false are yes and no, an object of texts is "region=eu,
 * zone=b".
 */
void csv_put_header(const char *first, const char *const *columns, bool formulas, FILE *out);
void csv_put_row(
	const char *first, const char *row, const char *const *columns, bool formulas, FILE *out);

#endif

/*
 * A document of the API as people read it: its values by columns, as a table, as lines, as CSV, or
 * the JSON that it came as.
 *
 * A column is the path of a value in a row, "triage.owner", or HEADER=PATH; of "=attributes.run"
 * the header is "run". Columns end with NULL. "@time" is a time, printed as commands print times;
 * "%size" a change in percent: null is "new". Numbers are printed with up to four digits, lists and
 * objects of texts as "a, b" and "region=eu, zone=b"; what is null, false or empty is blank.
 */
#ifndef AGENT_REPORT_DOCUMENT_H
#define AGENT_REPORT_DOCUMENT_H

#include <jansson.h>
#include <stdio.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"

/* Prints a row for each item of a list. Columns without a value in any row are left out. */
void document_table(
	struct arena *arena, const json_t *items, const char *const *columns, FILE *out);

/* Items that may exist only one at a time; and those of a list, which is borrowed. */
struct document_items {
	size_t count;
	json_t *(*make)(const void *context, size_t i); /* a new reference */
	const void *context;
};

struct document_items document_list(const json_t *list);

void document_table_of(struct arena *arena, const struct document_items *items,
	const char *const *columns, FILE *out);

/*
 * The same as CSV: all, or the line of names and then a line for each row, of the row's JSON, to
 * which `test` is added. A null or missing value is an empty cell, true and false are yes and no,
 * times and numbers are as in the document.
 */
void document_csv(const struct document_items *items, const char *const *columns, FILE *out);
void document_csv_header(const char *const *columns, FILE *out);
void document_csv_row(const char *test, const char *row, const char *const *columns, FILE *out);

/* The number of changes that may have caused it, and their range. */
#define DOCUMENT_SUSPECTS                                                                          \
	"suspects=suspects.count", "suspects_from=suspects.from", "suspects_to=suspects.to"

/* A part of a document: an object, or a list of them. */
struct document_section {
	const char *title, *path; /* NULL: none; the whole document */
	const char *const *columns;
};

/*
 * Prints the parts with blank lines between them: a list as a table, of an object a line for each
 * value that is not blank. A part whose first column is blank is left out. The
 * sections end with one without columns.
 */
void document_print(struct arena *arena, const json_t *document,
	const struct document_section *sections, FILE *out);

/* Appends it as JSON, with the digits that the API writes. `lines`: an item of a list each. */
void document_put(struct buf *out, json_t *value, bool lines);

#endif

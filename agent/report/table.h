/*
 * Text tables in Hunter's layout: columns two blanks apart, dashes under the headers, numbers
 * aligned at their decimal point. It is that of Python's tabulate, widths included, because
 * scripts read it.
 *
 * A table does not hold its cells. The caller passes each row twice, to measure and to print, so a
 * long table needs no memory.
 */
#ifndef AGENT_REPORT_TABLE_H
#define AGENT_REPORT_TABLE_H

#include <stdio.h>

#include "agent/base/buf.h"

enum { TABLE_SCRATCH = 32 };

struct table_column {
	const char *header; /* NULL: the column is not shown */
	bool number;        /* aligned at the decimal point; else left-aligned */
	size_t width;       /* set by table_print_header; may be increased before */
	int head, tail; /* most characters up to the point, and from it on; set by table_measure */
};

/* Zeroed but for the columns. */
struct table {
	struct table_column *columns;
	size_t column_count;
	size_t rows; /* that were measured */
};

/* Measures the cells of a row, one for each column; NULL is a blank cell. All rows are measured
 * before the header is printed, and then the rows. */
void table_measure(struct table *table, const char *const *cells);
void table_print_header(struct table *table, FILE *out);
void table_print_row(const struct table *table, const char *const *cells, FILE *out);

/* What stands between rows in a column: right-aligned texts below one another. */
struct table_note {
	const char *text, *second; /* NULL: blank; `second` only with `text` */
	const char *color;         /* of the text: an escape sequence, or NULL */
};

/* Prints the notes, one for each column, between lines of dots in the columns that have one. */
void table_print_notes(const struct table *table, const struct table_note *notes, FILE *out);

/* Terminal columns of a text: none for combining marks, two for East Asian wide characters. */
size_t text_width(const char *text);

/* The first 12 characters of a full git commit (40 hexadecimal digits), other text unchanged; full
 * commits would make the column too wide. */
const char *table_commit(const char *text, char scratch[TABLE_SCRATCH]);

/* Prints foreign text: a control character becomes a blank, each invalid byte U+FFFD. */
void text_print(const char *text, FILE *out);

/* A line of it, as printf makes it, with its end. */
void text_line(FILE *out, const char *format, ...) PRINTF_LIKE(2, 3);

/* The same, padded with blanks to `width`. */
void text_print_padded(const char *text, size_t width, FILE *out);

/* Prints the content of the buffer unchanged, and frees it. */
void text_flush(struct buf *text, FILE *out);

/* A level as number_display writes it, right-aligned, and its unit unless NULL: " 100 ms". */
void text_print_level(double value, const char *unit, FILE *out);

/* The relative change of a level with its interval, "( +20.0% [18.9, 21.2])", or "(new)" without a
 * percentage (NaN). A change is never "0.0%". */
void text_print_size(double size, double low, double high, FILE *out);

/* Whether the text is a number in the usual notation ("12", "-1.5e3", "inf"), and whether it is an
 * integer. */
bool text_is_number(const char *text);
bool text_is_integer(const char *text);

#endif

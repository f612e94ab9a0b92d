/*
 * Text tables in Hunter's layout: columns two blanks apart, dashes under the headers, numbers
 * aligned at their decimal point. It is that of Python's tabulate, widths included, because
 * scripts read it.
 *
 * A table does not hold its cells. It iterates over the rows twice, to measure and to print, so a
 * long table needs no memory.
 */
#ifndef AGENT_REPORT_TABLE_H
#define AGENT_REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct buf;

enum { TABLE_SCRATCH = 32 };

struct table_column {
	const char *header;
	bool number;  /* aligned at the decimal point; else left-aligned */
	size_t width; /* set by table_measure; may be increased before and after */
	int head;     /* most characters up to the point; set by table_measure */
	int decimals; /* most characters after the point; -1: no cell has a point */
};

struct table {
	struct table_column *columns;
	size_t column_count;
	/* Goes to the first or the next row; false if there is none. */
	bool (*next)(const void *context, bool first);
	/* The text of a cell of that row, possibly written into `scratch`. NULL is a blank cell. */
	const char *(*cell)(const void *context, size_t column, char scratch[TABLE_SCRATCH]);
	const void *context;
	bool empty; /* has no rows; set by table_measure */
};

/* A piece of a line between rows: right-aligned text in the terminal colour, or NULL for blank. */
struct table_note {
	const char *text;
	const char *color; /* escape sequence, or NULL */
};

void table_measure(struct table *table);
void table_print_header(const struct table *table, FILE *out);
void table_print_row(const struct table *table, FILE *out); /* the row `next` went to */

/* A line with one note for each column, and a line of dots in those columns that have a note. */
void table_print_notes(const struct table *table, const struct table_note *notes, FILE *out);
void table_print_dots(const struct table *table, const struct table_note *notes, FILE *out);

/* Terminal columns of a text: none for combining marks, two for East Asian wide characters. */
size_t text_width(const char *text);

/* The first 12 characters of a full git commit (40 hexadecimal digits), other text unchanged; full
 * commits would make the column too wide. */
const char *table_commit(const char *text, char scratch[TABLE_SCRATCH]);

/* Prints foreign text: a control character becomes a blank, each invalid byte U+FFFD. */
void text_print(const char *text, FILE *out);

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

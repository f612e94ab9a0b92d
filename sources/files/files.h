/*
 * The sources that read files: their options, and their parsers. These read from an input, so that
 * tests and fuzz targets need no file.
 */
#ifndef SOURCES_FILES_FILES_H
#define SOURCES_FILES_FILES_H

#include "sources/files/input.h"
#include "sources/source.h"

extern const struct source csv_source, json_source, histostat_source;

struct csv_options {
	const char *file;
	const char *time_column;
	const char *base_branch; /* default branch, or NULL */
	const char *commit_column, *version_column;
	struct strings attributes; /* further columns kept as text */
	struct pairs csv_options;  /* delimiter, quote_char (or quotechar) */
};

struct json_options {
	const char *file;
	const char *base_branch;                    /* default branch, or NULL: all branches */
	const char *commit_column, *version_column; /* attributes with these names */
	struct strings attributes;                  /* none: all there are */
};

struct histostat_options {
	const char *file;
};

/* For `reads`: the file, with which their options begin. */
bool file_reads(struct query *query, struct source_readings *out, struct error *error);

/* Fill query->data as the source's `read` does. */
bool csv_parse(struct query *query, struct input *input, struct error *error) MUST_USE;
bool json_parse(struct query *query, struct input *input, struct error *error) MUST_USE;
bool histostat_parse(struct query *query, struct input *input, struct error *error) MUST_USE;

#endif

/*
 * The columns of tables, and every field of a change once: from `change_columns` come its table in
 * both databases, the rows that are read and written, `store copy` with its comparison, `store
 * check`, and the JSON and CSV of changes. Values derived from several fields (the verdict, the
 * history) are added where they are shown.
 */
#ifndef AGENT_MODEL_COLUMNS_H
#define AGENT_MODEL_COLUMNS_H

#include <stddef.h>

#include "agent/base/buf.h"
#include "agent/base/when.h"
#include "agent/model/change_record.h"

/* Bound of times (ms, either sign) and counts: far more than needed, and sums and differences
 * cannot overflow. Values beyond are neither written nor accepted when read. */
#define ROWS_MOST (INT64_C(1) << 53)

enum column_type {
	COLUMN_ID,     /* 1 to ROWS_MOST */
	COLUMN_TIME,   /* ms, within ROWS_MOST of 0 */
	COLUMN_COUNT,  /* 0 to ROWS_MOST */
	COLUMN_CHOICE, /* `first` to `last` */
	COLUMN_NUMBER, /* NULL: NaN */
	COLUMN_TEXT,
	COLUMN_BYTES,
	/* Of a change alone; texts in SQL: */
	COLUMN_ATTRIBUTES,
	COLUMN_SUSPECTS,
	COLUMN_CULPRIT,
};

/* Bits. */
enum column_use {
	COLUMN_OPTIONAL = 1, /* NULL in SQL is 0, or no text */
	COLUMN_KEY = 2,      /* part of the table's key; keys come first */
	COLUMN_SEQUENCE = 4, /* an id that is never used again */
	COLUMN_FOUND = 8,    /* of a change: a run's finding, rewritten by the next that finds it */
	COLUMN_COMPARED = 16, /* of a change: fields that a run compares with its findings */
	COLUMN_HIDDEN = 32,   /* of a change: not shown */
};

struct stored_column {
	const char *name; /* in SQL, JSON and CSV */
	enum column_type type;
	unsigned uses;
	int first, last;     /* of COLUMN_CHOICE */
	const char *refers;  /* the table whose id it is, or NULL */
	size_t offset, size; /* in the struct of a row, bytes; size 0: in none */
	const char *const
		*names; /* of COLUMN_CHOICE: how it is shown, by value; NULL: as a number */
};

/* Ends with a row without a name. */
extern const struct stored_column change_columns[];

/* True if it is an integer; the range of its values. */
bool column_range(const struct stored_column *column, int64_t *first, int64_t *last);

/* Where it is in struct ROW. */
#define COLUMN_OF(member) .offset = offsetof(ROW, member), .size = sizeof((ROW *)0)->member

/* The member of a row, and its value by type: an integer may be of 1, 4 or 8 bytes. */
void *column_member(const struct stored_column *column, void *row);
int64_t column_integer(const struct stored_column *column, const void *row);
double column_number(const struct stored_column *column, const void *row);
const char *column_text(const struct stored_column *column, const void *row);
void column_set(const struct stored_column *column, void *row, int64_t value);

/* Whether it is shown as one value. */
bool column_is_shown(const struct stored_column *column);

/* The value as a text for people and files, which may lie in `scratch`; NULL: there is none. Not of
 * numbers. */
const char *column_format(const struct stored_column *column, const struct change_record *record,
	char scratch[WHEN_TEXT]);

/* Appends the value as JSON, after its name and a comma. */
void column_put_json(
	const struct stored_column *column, const struct change_record *record, struct buf *out);

#endif

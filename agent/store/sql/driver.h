/*
 * What the calls in SQL need of a database. A backend has a driver for its own, with the words of
 * its statements; its handle begins with a `struct tx`.
 *
 * A statement is used from `statement` to `reset`; others may be used meanwhile. Parameters and
 * columns are counted as the database's own interface for SQLite does: parameters from 1, columns
 * from 0.
 */
#ifndef AGENT_STORE_SQL_DRIVER_H
#define AGENT_STORE_SQL_DRIVER_H

#include "agent/model/columns.h"
#include "agent/store/tx.h"

struct sql_statement; /* the driver's */
struct sql_words;     /* see agent/store/sql/schema.h */

enum sql_step { SQL_ROW, SQL_DONE, SQL_FAILED };

enum sql_type { SQL_NULL, SQL_INTEGER, SQL_NUMBER, SQL_TEXT, SQL_BYTES };

/* Of a parameter or a column. Each parameter always has the same type, whatever its value: SQL_NULL
 * is an integer that is missing, any other type is missing as NaN or NULL. Of a column SQL_NULL is
 * a value of any type; a truth value is an integer. */
struct value {
	enum sql_type type;
	bool strange; /* of a parameter: out of range, the statement is not to be run */
	union {
		int64_t integer;
		double number;
		const char *text;
		const void *bytes;
	};
	size_t length; /* of bytes */
};

static inline struct value v_id(int64_t value)
{
	return (struct value){SQL_INTEGER, .integer = value};
}

static inline struct value v_time(int64_t value)
{
	return (struct value){
		SQL_INTEGER, value < -ROWS_MOST || value > ROWS_MOST, .integer = value};
}

static inline struct value v_count(int64_t value)
{
	return (struct value){SQL_INTEGER, value < 0 || value > ROWS_MOST, .integer = value};
}

static inline struct value v_null(void) /* an integer */
{
	return (struct value){.type = SQL_NULL};
}

static inline struct value v_number(double value)
{
	return (struct value){SQL_NUMBER, .number = value}; /* NaN: NULL */
}

static inline struct value v_text(const char *value)
{
	return (struct value){SQL_TEXT, .text = value}; /* borrowed until the statement has run */
}

static inline struct value v_bytes(const void *bytes, size_t length)
{
	return (struct value){SQL_BYTES, .bytes = bytes, .length = length}; /* the same */
}

struct sql_driver {
	/* All rows of an answer are in memory before the first one can be read: a long one is
	 * better asked for in pieces. */
	bool answers_whole;

	const struct sql_words *words;

	/* Takes the text of one statement. NULL if it cannot be prepared: all functions below but
	 * `step` accept that. */
	struct sql_statement *(*prepare)(struct tx *tx, const char *text);
	void (*finish)(struct sql_statement *statement);

	/* It is ready to be bound, all parameters NULL. */
	void (*clear)(struct sql_statement *statement);

	/* Texts and bytes are borrowed until `reset`. */
	void (*bind)(struct sql_statement *statement, int parameter, const struct value *value);

	/* The next row, if there is one. A statement without result columns is run by the first
	 * step. */
	enum sql_step (*step)(struct sql_statement *statement);
	void (*reset)(struct sql_statement *statement);

	/* Of the row. Texts and bytes last until the next step. */
	struct value (*column)(struct sql_statement *statement, int column);

	/* How many rows the last statement that was run inserted, updated or deleted. */
	int64_t (*changed)(struct tx *tx);

	/* NULL, or: rows that the statement, an insert with all its columns, adds from now on may
	 * be kept back until `load_end`, which finds out what fails; no other statement is used
	 * meanwhile. */
	bool (*load_begin)(struct tx *tx, struct sql_statement *insert);
	bool (*load_end)(struct tx *tx);

	/* Sets tx->error from the label, what was being done and the database's message. Always
	 * false. */
	bool (*fail)(struct tx *tx, const char *doing);
};

#endif

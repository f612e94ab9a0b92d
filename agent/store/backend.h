/*
 * What store.c and the calls in SQL need of a database. A handle begins with a struct tx, has at
 * most one transaction at a time, and is used by one thread at a time.
 *
 * A statement is used from `statement_of` to `reset`; others may be used meanwhile. Parameters and
 * columns are counted as SQLite's own interface does: parameters from 1, columns from 0.
 */
#ifndef AGENT_STORE_BACKEND_H
#define AGENT_STORE_BACKEND_H

#include "agent/store/tx.h"
#include "agent/store/value.h"

struct sql_statement; /* the backend's */
struct sql_words;     /* see agent/store/sql/schema.h */

enum sql_step { SQL_ROW, SQL_DONE, SQL_FAILED };

struct store_backend {
	/* NULL and an ERROR_STATE if it is locked, damaged, foreign, of another version or not
	 * writable. */
	struct tx *(*open)(const char *path, enum store_use use, struct error *error);
	void (*close)(struct tx *tx);

	/* A failure is tx->failed. After commit without one, the writes are durable; after one
	 * nothing was written, and the caller has to roll back. */
	void (*begin)(struct tx *tx, bool writes);
	void (*commit)(struct tx *tx);
	void (*rollback)(struct tx *tx);
	/* How many changes there are of each state, zeros before; or were a moment ago. */
	void (*count)(struct tx *tx, int64_t states[CHANGE_STATES]);
	/* Before a call is run, in the transaction: false if it is not to be run, as that was
	 * committed already, or with a failure. NULL: always true. */
	bool (*enter)(struct tx *tx, struct store_call *call);

	/* Whether the last failure would hit any call: the file is locked, the disk is full. */
	bool (*is_stuck)(const struct tx *tx);
	/* After rollback: whether to repeat a transaction that has failed so many times. May wait a
	 * little. */
	bool (*again)(struct tx *tx, int tries);

	/* Several agents can work on the state, for which each thread has a handle of its own. The
	 * calls of a fleet are in no transaction: each of their statements is one. */
	bool is_shared;

	/* All rows of an answer are in memory before the first one can be read: a long one is
	 * better asked for in pieces. */
	bool answers_whole;

	const struct sql_words *words;

	/* Takes the text of one statement. NULL if it cannot be prepared: all functions below but
	 * `step` accept that. */
	struct sql_statement *(*prepare)(struct tx *tx, const char *text);
	void (*finish)(struct sql_statement *statement);

	/* It is ready to be bound, all parameters NULL. */
	void (*reset)(struct sql_statement *statement);

	/* Texts and bytes are borrowed until `reset`. */
	void (*bind)(struct sql_statement *statement, int parameter, const struct value *value);

	/* The next row, if there is one. A statement without result columns is run by the first
	 * step. */
	enum sql_step (*step)(struct sql_statement *statement);

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

	/* store_check and store_backup; a backend without them fails with ERROR_STATE. */
	bool (*check)(const char *path, struct arena *arena, struct store_report *report,
		struct error *error);
	bool (*backup)(const char *path, const char *target, bool force, int64_t *size,
		struct error *error);

	/* store_copy: keeps agents off the state until the descriptor is closed (-1: there is no
	 * such file). False and an ERROR_STATE if one has it. NULL: `reserve` does it. */
	bool (*hold)(const char *path, int *lock, struct error *error);
	/* The same until the end of the transaction; NULL: nothing is to be done. */
	void (*reserve)(struct tx *tx);

	bool (*is_there)(const char *path); /* see store_is_there */
	/* Of all connections of this process, which has one state open. For any thread; NULL: the
	 * state is a file. */
	void (*traffic)(struct store_traffic *traffic);
	/* Bytes on the disk; for any thread: does not wait. */
	int64_t (*size)(const struct tx *tx);
};

extern const struct store_backend sqlite_backend, postgresql_backend;

/* Counts changes by state. */
void sql_count(struct tx *tx, int64_t states[CHANGE_STATES]);

/* For store_copy, between any two backends. Writes all rows of `from`, and the last id of each
 * table whose ids are never used again, into the state `to`, which fails if that is not empty. */
void sql_copy(struct tx *to, struct tx *from, struct store_copied *copied);

/* `to` fails and names the difference unless both have the same rows and last ids. */
void sql_compare(struct tx *to, struct tx *from);

#endif

/*
 * The tables of a state, once for all databases, and the statements that are made from them: those
 * that make the tables, and those that read and write whole rows of one.
 */
#ifndef AGENT_STORE_SQL_SCHEMA_H
#define AGENT_STORE_SQL_SCHEMA_H

#include "agent/base/error.h"
#include "agent/model/columns.h"
#include "agent/store/store.h"

/* A word in statements (see words.h), and its text in a database, where $1 and $2 stand for its
 * arguments. */
struct sql_word {
	const char *name, *text;
};

/* The words in which databases differ: the last has no name, the others are of tables. */
struct sql_words {
	const struct sql_word *words;
	const char *integer, *text, *number, *bytes; /* types */
	const char *length;                          /* function: of bytes */
	const char *sequence; /* an id that is never used again, and the table's key */
	const char *rows;     /* after a table with one integer as its key */
	const char *keyed;    /* after one with another key */
	const char *more;     /* a script of objects that only this one has */
};

struct sql_table {
	const char *name;
	const char *read, *insert; /* statements: @<TABLE and @+TABLE */
	const struct stored_column *columns;
};

/* Of tables whose rows are structs: environment_event, incident, condition, moment, vanished,
 * series_checkpoint (but the test, which comes first), seen_run, silence and event. */
extern const struct stored_column environment_columns[], incident_columns[], condition_columns[],
	moment_columns[], vanished_columns[], series_columns[], seen_columns[], silence_columns[],
	event_columns[];

/* Rows refer only to tables before their own. */
extern const struct sql_table schema_tables[STORE_TABLES];

/* Tables whose ids are never used again, in the order in which copy.c and check.c use them. */
enum { SCHEMA_SEQUENCES = 5 };
extern const char *const schema_sequences[SCHEMA_SEQUENCES];

/* A script that makes tables and indexes, then `more`. The caller frees it. */
char *schema_text_new(const struct sql_words *words);

/* The version of the tables: a hash of that script, 1 to INT32_MAX, which a state carries. */
int64_t schema_version(const struct sql_words *words);

/* Appends the names of columns of these uses, or all: 0, after `before` each; or as many parameters
 * from number `first` on, if that is not 0. */
void schema_put_columns(struct buf *out, const struct stored_column *columns, unsigned uses,
	const char *before, int first);

/* How many of its columns, the first ones, are its key. */
int schema_keys(const struct sql_table *table);

/* Whether the state has the tables of this build; `label` names it. */
bool schema_check(const char *label, int64_t version, const struct sql_words *words,
	struct error *error) MUST_USE;

#endif

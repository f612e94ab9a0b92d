/*
 * The tables of a state, once for all databases, and the statements that are made from them: those
 * that make the tables, and those that read and write whole rows of one.
 */
#ifndef AGENT_STORE_SQL_SCHEMA_H
#define AGENT_STORE_SQL_SCHEMA_H

#include "agent/base/error.h"
#include "agent/model/columns.h"
#include "agent/store/sql/statements.h"

/* The words in which databases differ. */
struct sql_words {
	const char *integer, *text, *number, *bytes; /* types */
	const char *length;                          /* function: of bytes */
	const char *sequence; /* an id that is never used again, and the table's key */
	const char *rows;     /* after a table with one integer as its key */
	const char *keyed;    /* after one with another key */
	const char *more;     /* a script of what only this one has */
};

struct sql_table {
	const char *name;
	const struct stored_column *columns;
};

/* Of tables whose rows are structs: environment_event, incident, condition, moment, vanished,
 * series_checkpoint (but the test, which comes first), silence and event. */
extern const struct stored_column environment_columns[], incident_columns[], condition_columns[],
	moment_columns[], vanished_columns[], series_columns[], silence_columns[], event_columns[];

/* What a row refers to is in a table before its own. */
extern const struct sql_table schema_tables[STORE_TABLES];

/* Tables whose ids are never used again, in the order of STATEMENT_LAST_IDS. */
enum { SCHEMA_SEQUENCES = 5 };
extern const char *const schema_sequences[SCHEMA_SEQUENCES];

/* A script that makes tables and indexes, then `more`. The caller frees it. */
char *schema_text_new(const struct sql_words *words);

/* The version of the tables: a hash of that script, 1 to INT32_MAX, which a state carries. */
int64_t schema_version(const struct sql_words *words);

/* The text of a statement: one of the dialect's `texts`, with the columns of changes in it, or one
 * of a table. The caller frees it. */
char *schema_statement_new(const char *const texts[STATEMENT_TEXTS], enum statement statement);

/* Whether the state has the tables of this build; `label` names it. */
bool schema_check(const char *label, int64_t version, const struct sql_words *words,
	struct error *error) MUST_USE;

#endif

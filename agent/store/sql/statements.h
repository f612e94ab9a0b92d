/*
 * Statements, from the texts where they are used (see words.h for what is replaced in those). Each
 * is prepared once for a handle, which finds it again by the place of its text: a literal.
 */
#ifndef AGENT_STORE_SQL_STATEMENTS_H
#define AGENT_STORE_SQL_STATEMENTS_H

#include "agent/store/sql/schema.h"
#include "agent/store/tx.h"

/* Ready to be bound, all parameters NULL. NULL if it cannot be prepared. */
struct sql_statement *statement_of(struct tx *tx, const char *text);

/* The handle has none any more. */
void statements_free(struct tx *tx);

/* Appends the text in the words of a database. */
void statement_put(struct buf *out, const struct sql_words *words, const char *text);

#endif

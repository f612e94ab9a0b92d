/*
 * PostgreSQL's words for statements and tables. Each statement of its script ends with a semicolon
 * at the end of a line.
 */
#ifndef AGENT_STORE_POSTGRESQL_STATEMENTS_H
#define AGENT_STORE_POSTGRESQL_STATEMENTS_H

#include "agent/store/sql/schema.h"

extern const struct sql_words postgresql_words;

/* What the word @in_order is: file.c knows statements by it. */
#define POSTGRESQL_IN_ORDER "/* in order */"

#endif

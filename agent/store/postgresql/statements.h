/*
 * PostgreSQL's words for statements and tables. Each statement of its script ends with a semicolon
 * at the end of a line.
 */
#ifndef AGENT_STORE_POSTGRESQL_STATEMENTS_H
#define AGENT_STORE_POSTGRESQL_STATEMENTS_H

#include "agent/store/sql/schema.h"

extern const struct sql_words postgresql_words;

/* What the words @counts and @in_order are: file.c knows statements by them. */
#define POSTGRESQL_COUNTS "SELECT state, count(*) FROM changes GROUP BY state"
#define POSTGRESQL_IN_ORDER "/* in order */"

#endif

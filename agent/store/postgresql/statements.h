/*
 * Texts of the statements in PostgreSQL's dialect; parameters are written ?1, ?2, ...
 */
#ifndef AGENT_STORE_POSTGRESQL_STATEMENTS_H
#define AGENT_STORE_POSTGRESQL_STATEMENTS_H

#include "agent/store/sql/schema.h"

extern const char *const postgresql_statements[STATEMENT_TEXTS];
extern const char *const fleet_statements[STATEMENT_ALL - STATEMENT_COUNT];

/* Its words for the tables. Each statement of a script ends with a semicolon at the end of a line.
 */
extern const struct sql_words postgresql_words;

#endif

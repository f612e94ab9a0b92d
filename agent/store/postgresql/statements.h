/*
 * Texts of the statements in PostgreSQL's dialect; parameters are written ?1, ?2, ...
 */
#ifndef AGENT_STORE_POSTGRESQL_STATEMENTS_H
#define AGENT_STORE_POSTGRESQL_STATEMENTS_H

#include "agent/store/sql/statements.h"

extern const char *const postgresql_statements[STATEMENT_COUNT];

#endif

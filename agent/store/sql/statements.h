/*
 * The statements of the calls, by their list in statements.inc, which has their texts, too, in
 * words that each backend defines.
 */
#ifndef AGENT_STORE_SQL_STATEMENTS_H
#define AGENT_STORE_SQL_STATEMENTS_H

#include "agent/store/store.h"

enum statement {
#define STATEMENT(name, ...) STATEMENT_##name,
#include "agent/store/sql/statements.inc"
	STATEMENT_TEXTS,                  /* how many have texts; from here on of schema_tables: */
	STATEMENT_READ = STATEMENT_TEXTS, /* a page of the first table's rows, ... */
	STATEMENT_WRITE = STATEMENT_READ + STORE_TABLES,  /* ... a row of the first table, ... */
	STATEMENT_WRITE_CHANGES = STATEMENT_WRITE + 2,    /* they come third ... */
	STATEMENT_WRITE_EXCERPTS = STATEMENT_WRITE + 5,   /* ... and sixth */
	STATEMENT_COUNT = STATEMENT_WRITE + STORE_TABLES, /* from here on PostgreSQL's alone */
	STATEMENT_BEFORE_FLEET = STATEMENT_COUNT - 1,
#include "agent/store/sql/fleet.inc"
#undef STATEMENT
	STATEMENT_ALL,
};

#endif

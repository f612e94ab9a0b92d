/*
 * The schema of the state file, by version, and the statements for it.
 */
#ifndef AGENT_STORE_SQLITE_SCHEMA_H
#define AGENT_STORE_SQLITE_SCHEMA_H

#include "agent/store/sql/statements.h"

enum { STORE_VERSION = 18, STORE_APPLICATION = 0x48554e54 };

/* Script i migrates version i to version i + 1. */
extern const char *const store_migrations[STORE_VERSION];

/* Texts of the statements in SQLite's dialect. */
extern const char *const sqlite_statements[STATEMENT_COUNT];

#endif

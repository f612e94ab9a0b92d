/*
 * A state on PostgreSQL: its statements, its transactions. For the files of this
 * folder.
 */
#ifndef AGENT_STORE_POSTGRESQL_FILE_H
#define AGENT_STORE_POSTGRESQL_FILE_H

#include "agent/store/postgresql/connection.h"
#include "agent/store/tx.h"

/* Opens an existing state of this version. */
struct tx *postgresql_open_as_it_is(const char *address, struct error *error);
void postgresql_close(struct tx *tx);

/* The connection of its transactions. */
struct connection *postgresql_connection(struct tx *tx);

/* The one number that it answers with, outside of its transactions or in them. */
bool postgresql_ask_number(
	struct tx *tx, const char *sql, int64_t *number, struct error *error) MUST_USE;

/* Implements store_check. */
bool postgresql_check(const char *address, struct arena *arena, struct store_report *report,
	struct error *error) MUST_USE;

#endif

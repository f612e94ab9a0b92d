/*
 * Where a state is that several agents share: the address of a PostgreSQL database, as libpq takes
 * it, "postgresql://user@db1,db2:5433/hunter?target_session_attrs=read-write".
 *
 * One parameter is our own: password_file, a file with nothing but the password. An address may
 * have a password in it, so it is shown only by database_shown.
 */
#ifndef AGENT_BASE_DATABASE_H
#define AGENT_BASE_DATABASE_H

#include "agent/base/arena.h"

/* Whether a state is such an address; a path else. */
bool database_is(const char *state);

/* The state for display: an address without passwords and password file, a path unchanged. */
const char *database_shown(struct arena *arena, const char *state);

/* The address with the parameter password_file. */
const char *database_with_password_file(struct arena *arena, const char *address, const char *file);

/* The address as libpq takes it, and the value of password_file, or NULL. */
const char *database_address(struct arena *arena, const char *address, const char **password_file);

#endif

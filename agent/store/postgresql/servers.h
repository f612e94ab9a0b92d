/* The servers of a database, and the connection parameters for libpq. */
#ifndef AGENT_STORE_POSTGRESQL_SERVERS_H
#define AGENT_STORE_POSTGRESQL_SERVERS_H

#include <stdint.h>

#include "agent/base/arena.h"
#include "agent/base/error.h"

enum { OPTIONS_MOST = 64 };

struct host {
	const char *name, *address, *port; /* or NULL */
};

struct servers {
	const char *shown;                                     /* as people may see it */
	const char *password_file;                             /* or NULL */
	const char *keys[OPTIONS_MOST], *values[OPTIONS_MOST]; /* without hosts and ports */
	size_t options;
	struct host *hosts; /* at least one, to be tried one by one */
	size_t host_count;
	int64_t connect_ms; /* for each of them */
};

/* Parses an address (see agent/base/database.h). ERROR_USAGE if it is malformed. */
bool servers_parse(struct arena *arena, const char *address, struct servers *servers,
	struct error *error) MUST_USE;

#endif

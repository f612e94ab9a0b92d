/*
 * The schema of a state on PostgreSQL, by version. Versions are counted together with SQLite's.
 */
#ifndef AGENT_STORE_POSTGRESQL_SCHEMA_H
#define AGENT_STORE_POSTGRESQL_SCHEMA_H

enum { POSTGRESQL_VERSION = 18, POSTGRESQL_FIRST = 16, POSTGRESQL_OLDEST_SERVER = 130000 };

/* Script 0 makes the tables of the first version, script i migrates from version FIRST + i - 1.
 * Each statement ends with a semicolon at the end of a line. */
extern const char *const postgresql_migrations[POSTGRESQL_VERSION - POSTGRESQL_FIRST + 1];

#endif

/*
 * PostgreSQL: a query whose rows are points, and the update statement that writes their changes
 * back.
 */
#ifndef SOURCES_POSTGRES_POSTGRES_H
#define SOURCES_POSTGRES_POSTGRES_H

#include "agent/model/change.h"
#include "sources/source.h"

struct postgres_server {
	const char *hostname, *username, *password, *password_file, *database;
	int64_t port; /* 0: from the environment */
	int sslmode;  /* index into postgres_ssl_modes; 0: not given */
	const char *sslrootcert, *sslcert, *sslkey;
	int64_t connect_timeout, timeout, statement_timeout; /* ms; the last 0: as timeout */
	int64_t max_rows;
	int64_t max_body; /* bytes */
};

extern const char *const postgres_ssl_modes[];

struct postgres_options {
	const char *query, *update_statement, *time_column, *base_branch;
	const char *commit_column, *version_column;
	struct strings attributes;
};

extern const struct source postgres_source;

/* The version of libpq, "15.20"; returns `out`. */
enum { POSTGRES_LIBRARY_TEXT = 24 };
const char *postgres_library(char out[POSTGRES_LIBRARY_TEXT]);

/* A change in a series of the query's dataset; its index counts on the series' axis. */
struct postgres_change {
	const struct series *series;
	const struct change *change;
};

/*
 * Fails (ERROR_USAGE) unless the test has an update statement whose placeholders are all known.
 * Needs no data.
 */
bool postgres_update_check(struct arena *arena, const struct postgres_options *options,
	const struct metric *metrics, size_t metric_count, struct error *error) MUST_USE;

/*
 * Runs the update statement for each change in one transaction, all or nothing. `query` is one that
 * postgres_source has read; its dataset may have been cut by dataset_keep. *rows is the number of
 * rows written; a change that wrote none gives a notice. Blocks.
 */
bool postgres_update(struct query *query, const struct postgres_change *changes, size_t count,
	size_t *rows, struct error *error) MUST_USE;

#endif

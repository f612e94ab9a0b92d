/*
 * Turns a statement with placeholders into one with parameters: values are bound and never become
 * part of the SQL.
 *
 * A query may contain %{BRANCH}. An update statement is written for Otava, which formats it twice:
 * {metric}, {ATTRIBUTE} and {TIME COLUMN} by Python's str.format, %s by the database driver. A
 * value that stands alone or is part of a string becomes a parameter, quoted or not. In a name
 * ({metric}_p_value) there can be no parameter, so the value may contain only letters, digits and
 * underscores; in a quoted name it is quoted.
 */
#ifndef SOURCES_POSTGRES_BIND_H
#define SOURCES_POSTGRES_BIND_H

#include "agent/base/arena.h"
#include "agent/base/field.h"

enum {
	BIND_PARAMETERS_MAX = 1000,
	BIND_NUMBERS = 3,       /* the %s of an update statement */
	BIND_TYPE_FLOAT8 = 701, /* the object id of double precision */
};

/* A statement for PQsendQueryParams; all of it lives in the arena. */
struct bound {
	const char *text;
	const char **values; /* NULL: NULL */
	unsigned *types;     /* object ids; 0: as the server infers */
	size_t count;
};

/* Whether the query contains %{BRANCH}. */
bool bind_wants_branch(const char *query);

/* `branch` may be NULL if the query has no %{BRANCH}. Fails (ERROR_USAGE) if a placeholder stands
 * where it cannot be bound, or if the query has parameters of its own. */
bool bind_query(struct arena *arena, const char *query, const char *branch, struct bound *out,
	struct error *error) MUST_USE;

/* The values of an update statement's placeholders. */
struct bind_values {
	const char *metric;
	struct pairs named;           /* attributes and time; a value may be NULL */
	double numbers[BIND_NUMBERS]; /* for %s, in their order; finite */
};

/* Fails (ERROR_USAGE) as bind_query and on an unknown name; (ERROR_DATA) if a value cannot be part
 * of a name. */
bool bind_update(struct arena *arena, const char *statement, const struct bind_values *values,
	struct bound *out, struct error *error) MUST_USE;

#endif

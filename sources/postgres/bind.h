/*
 * From a statement with placeholders to one with parameters: values are bound and never become
 * part of the SQL.
 *
 * A query may hold %{BRANCH}. An update statement is written for Otava, which formats it twice:
 * {metric}, {ATTRIBUTE} and {TIME COLUMN} by Python's str.format, %s by the database's driver.
 * Where a value stands for itself or is a part of a string it becomes a parameter, be it in quotes
 * or not. Where it is a part of a name ({metric}_p_value) no parameter can stand, so there it may
 * hold nothing but letters, digits and underscores; in a quoted name it is quoted.
 */
#ifndef SOURCES_POSTGRES_BIND_H
#define SOURCES_POSTGRES_BIND_H

#include "agent/core/arena.h"
#include "agent/core/field.h"

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

/* Does the query ask for a branch? */
bool bind_wants_branch(const char *query);

/* `branch` may be NULL where the query does not want one. Fails (ERROR_USAGE) where a placeholder
 * stands in a place that cannot be bound, and where the query has parameters of its own. */
bool bind_query(struct arena *arena, const char *query, const char *branch, struct bound *out,
	struct error *error) MUST_USE;

/* What the placeholders of an update statement stand for. */
struct bind_values {
	const char *metric;
	struct pairs named;           /* attributes and time; a value may be NULL */
	double numbers[BIND_NUMBERS]; /* for %s, in their order; finite */
};

/* Fails (ERROR_USAGE) as bind_query, and on a name that is not known; (ERROR_DATA) where a value
 * cannot be a part of a name. */
bool bind_update(struct arena *arena, const char *statement, const struct bind_values *values,
	struct bound *out, struct error *error) MUST_USE;

#endif

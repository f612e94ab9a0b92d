/*
 * From a test's options and metrics to the targets that Graphite is asked for.
 */
#ifndef SOURCES_GRAPHITE_PLAN_H
#define SOURCES_GRAPHITE_PLAN_H

#include "sources/graphite/target.h"
#include "sources/source.h"

struct graphite_plan {
	struct target *targets; /* NULL: all metrics below the prefix are wanted */
	size_t count;
	const char *prefix; /* with the branch, or NULL */
};

/* Fails (ERROR_USAGE) where the test cannot be asked for what the query wants. */
bool graphite_plan(struct query *query, struct graphite_plan *out, struct error *error) MUST_USE;

#endif

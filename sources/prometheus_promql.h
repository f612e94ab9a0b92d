/*
 * PromQL as far as a test's query has to be touched: the branch that is put into it.
 */
#ifndef SOURCES_PROMETHEUS_PROMQL_H
#define SOURCES_PROMETHEUS_PROMQL_H

#include "agent/core/arena.h"

/* Whether the query has a %{BRANCH}. */
bool promql_has_branch(const char *query);

/*
 * The query with the branch for each %{BRANCH}, without blanks at its end. Within quotes the branch
 * is escaped, behind =~ and !~ also as a regular expression, so that it stands for itself whatever
 * its characters; it cannot end the quotes. Outside of quotes, or within backquotes, it has to be
 * plain: an error says so.
 */
bool promql_fill_branch(struct arena *arena, const char *query, const char *branch,
	const char **out, struct error *error) MUST_USE;

#endif

/*
 * The part of PromQL that a test's query requires: substitution of the branch, and how far back its
 * values reach.
 */
#ifndef SOURCES_PROMETHEUS_PROMQL_H
#define SOURCES_PROMETHEUS_PROMQL_H

#include <stdint.h>

#include "agent/core/arena.h"

/* Whether the query has a %{BRANCH}. */
bool promql_has_branch(const char *query);

/* Whether it is a name with labels in braces, or one of them: a range can be put behind it. */
bool promql_is_selector(const char *query);

/*
 * The query with the branch for each %{BRANCH}, without blanks at its end. Within quotes the branch
 * is escaped, behind =~ and !~ also as a regular expression, so that it stands for itself whatever
 * its characters; it cannot end the quotes. Outside of quotes, or within backquotes, it has to be
 * plain: an error says so.
 */
bool promql_fill_branch(struct arena *arena, const char *query, const char *branch,
	const char **out, struct error *error) MUST_USE;

/*
 * How far back the values of a query reach, ms: the longest range selector, with those of the
 * subqueries and the offsets around it; -1 if there is none. `step` (ms) is the unit of MetricsQL's
 * `i`. For text that is not PromQL the result is any value from -1 on.
 */
int64_t promql_reach(const char *query, int64_t step);

#endif

/*
 * The PromQL of a test's query: substitution of the branch, and the lookback of its values.
 */
#ifndef SOURCES_PROMETHEUS_PROMQL_H
#define SOURCES_PROMETHEUS_PROMQL_H

#include <stdint.h>

#include "agent/base/arena.h"
#include "sources/source.h"

/* Whether the query has a %{BRANCH}. */
bool promql_has_branch(const char *query);

/* Whether it is a name, labels in braces, or both, so that a range can be appended. */
bool promql_is_selector(const char *query);

/*
 * Replaces each %{BRANCH} by the branch and removes trailing blanks. Within quotes the branch is
 * escaped, after =~ and !~ also as a regular expression, so it always stands for itself and cannot
 * end the quotes. Outside of quotes and within backquotes it must be plain; otherwise an error.
 */
bool promql_fill_branch(struct arena *arena, const char *query, const char *branch,
	const char **out, struct error *error) MUST_USE;

/*
 * How far back the values of a query reach, ms: the longest range selector plus the subqueries and
 * offsets around it; -1 if there is none. `step` (ms) is the unit of MetricsQL's `i`. For text that
 * is not PromQL the result is arbitrary, but at least -1.
 */
int64_t promql_reach(const char *query, int64_t step);

/* Adds the selectors of a query to `out`. Words that may be names of metrics count as such. */
void promql_reads(struct query *query, const char *text, struct source_readings *out);

#endif

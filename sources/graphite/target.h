/*
 * Targets, which Graphite renders. A target is a path (servers.web1.cpu), a path with wildcards, or
 * an expression of Graphite's functions.
 */
#ifndef SOURCES_GRAPHITE_TARGET_H
#define SOURCES_GRAPHITE_TARGET_H

#include "agent/base/arena.h"
#include "agent/model/series.h"

struct target {
	const struct metric *metric; /* NULL: each of its series is a metric of its own */
	const char *text;
	bool plain;    /* a path without wildcards, which is the name of its one series */
	bool answered; /* a series was received, with or without points */
	bool points;
};

/* Whether the text is a path without wildcards, functions and quotes. */
bool target_is_plain(const char *text);

/*
 * `text` with each %{BRANCH} replaced by `branch`, or by "main" if that is NULL. Fails
 * (ERROR_USAGE) on a branch whose name would be part of the syntax.
 */
bool target_fill_branch(struct arena *arena, const char *text, const char *branch, const char **out,
	struct error *error) MUST_USE;

/*
 * How far back the values of an expression reach through functions that look back (movingAverage,
 * timeShift, derivative ...): a time, plus so many steps of the answer.
 */
struct target_reach {
	int64_t ms, steps;
	int64_t bucket; /* ms ahead that a value covers, as in summarize(); or 0 */
};

/* The parts of an expression, by Graphite's grammar. */
struct expression {
	struct strings paths;      /* its metrics, including wildcards; in the arena */
	struct strings tagged;     /* the arguments of each seriesByTag(): "'name=a','dc=~e.*'" */
	struct target_reach reach; /* if it is malformed, of the part that was understood */
	const char *problem;       /* the problem (") is missing"), or NULL */
	size_t at;                 /* where: the character, from 1 */
};

struct expression target_read(struct arena *arena, const char *text);

/* The arguments of seriesByTag() as a list of matchers: 'name=a', 'dc=~east' is
 * name="a",dc=~"(?:east).*", since expressions of Graphite match from the beginning on, but not to
 * the end. */
const char *target_matchers(struct arena *arena, const char *arguments);

#endif

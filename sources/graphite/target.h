/*
 * Targets: what Graphite is asked to render. A target is a path (servers.web1.cpu), a path with
 * wildcards, or an expression of Graphite's functions.
 */
#ifndef SOURCES_GRAPHITE_TARGET_H
#define SOURCES_GRAPHITE_TARGET_H

#include "agent/core/arena.h"
#include "agent/core/series.h"

struct target {
	const struct metric *metric; /* NULL: each series it gives is a metric of its own */
	const char *text;
	bool plain;    /* a path without wildcards, by which its one series is called */
	bool answered; /* a series came, with points or without */
	bool points;
};

/* Whether the text is a path without wildcards, functions and quotes. */
bool target_is_plain(const char *text);

/*
 * `text` with each %{BRANCH} replaced by `branch`, or by "main" where it is NULL. A branch whose
 * name would mean something in an expression is refused (ERROR_USAGE).
 */
bool target_fill_branch(struct arena *arena, const char *text, const char *branch, const char **out,
	struct error *error) MUST_USE;

/*
 * How far back the values of an expression reach, by the functions that look back (movingAverage,
 * timeShift, derivative ...): a time, and so many of the answer's steps.
 */
struct target_reach {
	int64_t ms, steps;
	int64_t bucket; /* ms: a value is made of what lies so far ahead, as summarize says; 0 */
};

/* What an expression is made of, by Graphite's grammar. */
struct expression {
	struct strings paths; /* metrics it reads, wildcards and all; at most 20, in the arena */
	struct target_reach reach; /* of what is no expression, as far as it was understood */
	const char *problem;       /* what is wrong with it (") is missing"), or NULL */
	size_t at;                 /* where, in characters from 1 */
};

struct expression target_read(struct arena *arena, const char *text);

#endif

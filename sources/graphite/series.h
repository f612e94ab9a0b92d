/*
 * Collects Graphite's answers into a dataset: series get readable names, and those with the same
 * times share an axis.
 */
#ifndef SOURCES_GRAPHITE_SERIES_H
#define SOURCES_GRAPHITE_SERIES_H

#include "sources/graphite/answer.h"
#include "sources/graphite/events.h"
#include "sources/graphite/target.h"
#include "sources/source.h"

/* The caller sets the first part; everything lives in the query's arena. */
struct graphite_set {
	struct query *query;
	int64_t from, to; /* points outside of [from, to) are dropped */
	bool empty;       /* series without points are kept */
	/* What the following series answer: one target, to which they all belong, or several plain
	 * ones, recognised by name. They are marked as answered. */
	struct target *targets;
	size_t target_count;

	size_t count, points; /* of all series so far */
	bool overflow;        /* a test's limit of series or points was exceeded */
	struct found *found;  /* the last one first */
	size_t malformed;     /* values */
	const char *first_malformed;
};

/* A graphite_take; the context is the set. */
void graphite_set_take(void *set, const struct graphite_series *series);

/*
 * Sets query->data in the order of the targets, and adds notices about series left out. The series
 * of one target are sorted and named by their differences. Values are scaled; events, or NULL,
 * become columns.
 */
void graphite_set_finish(struct graphite_set *set, const struct graphite_events *events);

/*
 * Sets metric, name and identity of `count` series of a target from the server's names (sorted). A
 * single series has the name of its metric or, without one, the server's; several are METRIC{web1},
 * METRIC{web2} if the server's names are servers.web1.cpu and servers.web2.cpu; of tagged series
 * the tags that differ are shown: METRIC{host="a"}. Series with the same name are numbered in their
 * order; returns how many.
 */
size_t graphite_name_series(struct arena *arena, const struct target *target,
	const char *const *texts, size_t count, struct series *series);

#endif

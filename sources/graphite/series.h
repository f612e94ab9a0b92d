/*
 * Collects Graphite's answers into a dataset: series get readable names, and all series of a
 * resolution share one axis, so that the results of one run are one row; several axes if they share
 * hardly any times.
 */
#ifndef SOURCES_GRAPHITE_SERIES_H
#define SOURCES_GRAPHITE_SERIES_H

#include "sources/graphite/answer.h"
#include "sources/graphite/events.h"
#include "sources/graphite/target.h"
#include "sources/source.h"

struct graphite_set;

/* Drops points outside of [from, to); with `empty`, keeps series without points. Everything lives
 * in the query's arena. */
struct graphite_set *graphite_set_new(struct query *query, int64_t from, int64_t to, bool empty);

/*
 * The following series answer these targets: either one target, to which they all belong, or
 * several plain ones, recognised by name. Marks targets as answered.
 */
void graphite_set_expect(struct graphite_set *set, struct target *targets, size_t count);

/* A graphite_take; the context is the set. */
void graphite_set_take(void *set, const struct graphite_series *series);

/* The number of series, and of points in all of them, so far. */
size_t graphite_set_count(const struct graphite_set *set);
size_t graphite_set_points(const struct graphite_set *set);

/* Whether a test's limit of series or points was exceeded. */
bool graphite_set_overflow(const struct graphite_set *set);

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

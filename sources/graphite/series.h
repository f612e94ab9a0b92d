/*
 * What Graphite answered, on its way to a dataset: names for people, and one axis for all series of
 * a resolution, so that what was measured in one run is one row; several where they have hardly any
 * times in common.
 */
#ifndef SOURCES_GRAPHITE_SERIES_H
#define SOURCES_GRAPHITE_SERIES_H

#include "sources/graphite/answer.h"
#include "sources/graphite/events.h"
#include "sources/graphite/target.h"
#include "sources/source.h"

struct graphite_set;

/* Points outside of [from, to) are dropped; with `empty`, series without points are kept. All of
 * it lives in the query's arena. */
struct graphite_set *graphite_set_new(struct query *query, int64_t from, int64_t to, bool empty);

/*
 * The series that follow answer these targets: one target, whose series they all are, or several
 * plain ones, that are told apart by name. What comes is marked as answered.
 */
void graphite_set_expect(struct graphite_set *set, struct target *targets, size_t count);

/* A graphite_take; the context is the gathering. */
void graphite_set_take(void *set, const struct graphite_series *series);

/* How many series, and points of all of them, there are so far. */
size_t graphite_set_count(const struct graphite_set *set);
size_t graphite_set_points(const struct graphite_set *set);

/* More series or points came than there may be in one test. */
bool graphite_set_overflow(const struct graphite_set *set);

/*
 * Sets query->data, in the order of the targets, and notices about what was left out. The series of
 * one target are sorted and named by what differs between them. Values are scaled; events, or NULL,
 * become columns.
 */
void graphite_set_finish(struct graphite_set *set, const struct graphite_events *events);

#endif

/*
 * What series have in common: parts of their names, counted.
 *
 * Of series of many tests each has its test ("test=checkout.p99"), the parts of the test's name
 * ("test[1]=checkout"), its metric ("metric=latency"), each of its labels ("region=eu") and, where
 * its name is a path, the parts of that ("path[2]=web").
 *
 * Series of one test are told apart by what is between the braces of their names for people: each
 * label ("region=eu" of p99{region="eu"}), or each part of a path with its place ("web1.*" and
 * "*.eu" of cpu{web1.eu}).
 */
#ifndef CORE_LABELS_H
#define CORE_LABELS_H

#include "agent/core/arena.h"
#include "agent/core/buf.h"

struct labels;

/* What members have in common: "region=eu" with the share of the members and of all series that
 * have it. */
struct label_share {
	const char *text;
	double share, overall;
};

struct labels *labels_new(struct arena *arena);
void labels_free(struct labels *labels); /* what is not in the arena */

/* Series are numbered 0, 1, ... in the order of adding. `identity` is as in struct series. */
void labels_add(struct labels *labels, const char *test, const char *identity);

/* The same of a series of one test, by its name for people. */
void labels_add_name(struct labels *labels, const char *name);

/* What most of the members have and the others have not: at most `most`, the most telling first; in
 * the arena. */
const struct label_share *labels_shared(const struct labels *labels, struct arena *arena,
	const size_t *members, size_t count, size_t most, size_t *found);

/* What at least that share of all series has, what most have first; in the arena. The parts of a
 * path that all have are one: "*.eu.x". */
const struct label_share *labels_common(
	const struct labels *labels, struct arena *arena, double least, size_t *found);

/* Appends the name for people without those of these labels that all have: p99{instance="a"} of
 * p99{instance="a",region="eu"}. */
void labels_cut(struct buf *out, const char *name, const struct label_share *common, size_t count);

#endif

/*
 * Common labels of series: parts of their names, counted.
 *
 * Each series of several tests has its test ("test=checkout.p99"), the parts of the test's name
 * ("test[1]=checkout"), its metric ("metric=latency"), each of its labels ("region=eu") and, if
 * its name is a path, the path's parts ("path[2]=web").
 *
 * Series of one test differ between the braces of their display names: each label ("region=eu" of
 * p99{region="eu"}), or each part of a path with its position ("web1.*" and "*.eu" of
 * cpu{web1.eu}).
 */
#ifndef AGENT_MODEL_LABELS_H
#define AGENT_MODEL_LABELS_H

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/base/field.h"

struct labels;

/* A label that members share: "region=eu", with the share of the members that have it; and that of
 * all series, 0 if all are members. */
struct label_share {
	const char *text;
	double share, overall;
};

struct labels *labels_new(struct arena *arena);
void labels_free(struct labels *labels); /* frees memory outside the arena */

/* Series are numbered 0, 1, ... in the order of adding. `identity` is as in struct series. `where`:
 * with labels of the place of measurement only: without the last part of a path and of the test's
 * name, and without numbers, as in quantile="0.99". */
void labels_add(struct labels *labels, const char *test, const char *identity, bool where);

/* The labels of such a series, which is not added, that at most that share of the series has; of
 * its metric, that none has. In the arena. */
struct strings labels_rare(struct labels *labels, struct arena *arena, const char *test,
	const char *identity, double share);

/* The same as labels_add for a series of one test, by its display name. */
void labels_add_name(struct labels *labels, const char *name);

/* The labels that most members and few others have: at most `most`, the most specific first; in
 * the arena. */
const struct label_share *labels_shared(const struct labels *labels, struct arena *arena,
	const size_t *members, size_t count, size_t most, size_t *found);

/* The labels that at least that share of all series has, the most frequent first; in the arena.
 * Path parts that all series have are merged: "*.eu.x". */
const struct label_share *labels_common(
	const struct labels *labels, struct arena *arena, double least, size_t *found);

/* Appends the display name without those labels that all series have: p99{instance="a"} for
 * p99{instance="a",region="eu"}. */
void labels_cut(struct buf *out, const char *name, const struct label_share *common, size_t count);

#endif

/*
 * What series have in common: parts of their names, counted.
 *
 * A series has its test ("test=checkout.p99"), the parts of the test's name ("test[1]=checkout"),
 * its metric ("metric=latency"), each of its labels ("region=eu") and, where its name is a path,
 * the parts of that ("path[2]=web").
 */
#ifndef AGENT_SHAPES_LABELS_H
#define AGENT_SHAPES_LABELS_H

#include "agent/shapes/shapes.h"

struct labels;

struct labels *labels_new(struct arena *arena);
void labels_free(struct labels *labels); /* what is not in the arena */

/* Series are numbered 0, 1, ... in the order of adding. `identity` is as in struct series. */
void labels_add(struct labels *labels, const char *test, const char *identity);

/* What most of the members have and the others have not: at most `most`, the most telling first; in
 * the arena. */
const struct shape_label *labels_shared(const struct labels *labels, struct arena *arena,
	const size_t *members, size_t count, size_t most, size_t *found);

#endif

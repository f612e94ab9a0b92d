/*
 * The result of a bisection of a change, as stored with the change and announced.
 */
#ifndef AGENT_MODEL_CULPRIT_H
#define AGENT_MODEL_CULPRIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"

enum { CULPRIT_SET_MOST = 20 };

struct culprit_commit {
	const char *commit;
	double probability; /* of being the first bad one */
	bool broken;        /* it could not be tested */
};

struct culprit {
	int64_t bisection;   /* its id */
	const char *end;     /* "found", "set", "out_of_budget", "not_reproduced", ... */
	const char *verdict; /* one line for users */
	/* The first bad commit with its probability; NULL and 0: no single one. */
	const char *commit;
	double probability;
	const struct culprit_commit *set; /* the credible set, the most probable first */
	size_t set_count;                 /* at most CULPRIT_SET_MOST */
	size_t set_total;                 /* of which the set is the beginning */
};

/* As JSON, for the store, the API and the webhook. */
void culprit_put(struct buf *out, const struct culprit *culprit);

/* With its texts; NULL if that is NULL. */
struct culprit *culprit_copy(struct arena *arena, const struct culprit *culprit);

#endif

/*
 * Chores: work that belongs to no task: calls that may block, such as loading the configuration
 * anew, and calculations, such as finding clusters.
 *
 * All functions are for the loop's thread.
 */
#ifndef AGENT_CHORE_H
#define AGENT_CHORE_H

#include <stddef.h>

#include "agent/engine/engine.h"
#include "agent/engine/pool.h"

struct chores {
	struct pool *pool;
	struct chore *live;
	size_t count; /* under way */
};

void chores_begin(struct chores *chores, enum pool_lane lane, engine_call *work, engine_call *done,
	void *context);

/* Drops those that are under way; the pool must have stopped. */
void chores_free(struct chores *chores);

#endif

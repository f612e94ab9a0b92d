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

struct background {
	struct pool *pool;
	struct background_call *live;
	size_t count; /* under way */
};

void background_begin(struct background *background, enum pool_lane lane, engine_call *work,
	engine_call *done, void *context);

/* Drops those that are under way; the pool must have stopped. */
void background_free(struct background *background);

#endif

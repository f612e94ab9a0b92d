/*
 * A team: threads for work that is done in parts (detectors/parallel.h).
 */
#ifndef AGENT_ENGINE_PARALLEL_H
#define AGENT_ENGINE_PARALLEL_H

#include <stddef.h>

#include "detectors/parallel.h"

/* `threads`, or 0: as many as there are processors. The caller's thread is one of them. */
struct team {
	size_t threads;
};

/* Its run starts the threads anew each time, which costs some 20 us each. */
struct parallel team_parallel(struct team *team);

#endif

/* A team: threads that share the parts of a computation (detectors/parallel.h). */
#ifndef AGENT_IO_PARALLEL_H
#define AGENT_IO_PARALLEL_H

#include <stddef.h>

#include "detectors/parallel.h"

/* `threads`, the caller's included, or 0: as many as there are processors. */
struct team {
	size_t threads;
};

/* Each run starts the threads anew, at some 20 us each. */
struct parallel team_parallel(struct team *team);

#endif

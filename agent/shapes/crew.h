/*
 * A crew: threads for work that is done in parts (detectors/parallel.h).
 */
#ifndef AGENT_SHAPES_CREW_H
#define AGENT_SHAPES_CREW_H

#include <stddef.h>

#include "detectors/parallel.h"

/* `threads`, or 0: one a core. The caller's thread is one of them. */
struct crew {
	size_t threads;
};

/* Its run starts the threads anew each time, which costs some 20 us each. */
struct parallel crew_parallel(struct crew *crew);

#endif

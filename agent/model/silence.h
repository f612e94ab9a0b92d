/* A silence: which changes and notices are held back, by whom, why, and until when. */
#ifndef AGENT_MODEL_SILENCE_H
#define AGENT_MODEL_SILENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is not told for a while. */
struct silence {
	int64_t id;                          /* 0: to be added */
	const char *matchers;                /* canonical text */
	int64_t from, until;                 /* ms; until exclusive */
	const char *owner, *reason, *person; /* or NULL */
	int64_t created;                     /* ms */
	int64_t ended;                       /* ms; 0: was not ended early */
	const char *ended_by;                /* or NULL */
	bool reminded;                       /* its owner was told that it ends soon */
	bool summed;                         /* the summary at its end was queued */
};

struct silence_rows {
	struct silence *items;
	size_t count;
};

#endif

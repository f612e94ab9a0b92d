/* A silence: the changes and notices to hold back, with owner, reason and end. */
#ifndef AGENT_MODEL_SILENCE_H
#define AGENT_MODEL_SILENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A period without announcements for selected changes. */
struct silence {
	int64_t id;                          /* 0: to be added */
	const char *matchers;                /* canonical text */
	int64_t from, until;                 /* ms; until exclusive */
	const char *owner, *reason, *person; /* or NULL */
	int64_t created;                     /* ms */
	int64_t ended;                       /* ms; 0: was not ended early */
	const char *ended_by;                /* or NULL */
	bool reminded;                       /* its owner was notified of the end */
	bool summed;                         /* the summary at its end was queued */
};

struct silence_rows {
	struct silence *items;
	size_t count;
};

#endif

/*
 * Printing: transfers to standard output, written on a thread of their own, so that a reader that
 * stalls blocks nothing else.
 */
#ifndef AGENT_IO_PRINTING_H
#define AGENT_IO_PRINTING_H

#include "agent/base/transfer.h"
#include "agent/io/pool.h"

/* Shared by all prints; zeroed to begin with. */
struct printer {
	struct pool *pool;
	/* The text cut off by an error, and how much of it was written. */
	char *torn;
	size_t torn_length, torn_written;
};

/* A transfer being printed; lies within the caller's own struct. */
struct printing {
	struct job job; /* must be first */
	struct printer *printer;
	const struct transfer *transfer;
	void (*done)(struct printing *printing); /* on the loop's thread */
	struct reply reply;                      /* set when done is called */
	char problem[128];
};

/* Prints appear in the order of these calls. A print with the same text as the one that failed
 * before continues where that was cut off. */
void printing_begin(struct printing *printing, struct printer *printer,
	const struct transfer *transfer, void (*done)(struct printing *printing));

void printer_free(struct printer *printer); /* the pool has stopped */

#endif

/*
 * Answers requests for plots in any form: the state is read, the points are fetched or taken from
 * the cache (datasets.h), the plot is made (agent/monitor/plotting.h) and drawn on a worker.
 */
#ifndef AGENT_WEB_PLOTS_H
#define AGENT_WEB_PLOTS_H

#include "agent/web/api.h"

struct plots_wish {
	const char *test, *metric, *branch; /* metric, branch: or NULL */
	int64_t change;       /* id: test and series follow from it; 0: the test is given */
	int64_t since, until; /* as in struct plotting, and so are the next three */
	size_t columns, most;
	bool cleaned;
	/* On a worker. */
	bool (*draw)(const struct plot *plot, void *context, struct arena *arena, struct buf *out,
		struct error *error);
	void *context;      /* in http_arena(request) */
	const char *type;   /* content type of the picture; NULL: JSON */
	const char *policy; /* as of struct http_answer */
	bool stored; /* where the source does not answer, the points that the state keeps with the
			change are drawn, if there are any, ... */
	bool small;  /* ... and here alone, for any number of requested changes */
};

/* These parameters; the change of a path is not among them. */
#define PLOTS_PARAMETERS "test metric since until branch change width limit cleaned"
struct plots_wish plots_read(struct form *form);

/* Answers the request, now or later: with the error, if the form has failed. */
void plots_answer(
	struct http_request *request, const struct form *form, const struct plots_wish *wish);

#endif

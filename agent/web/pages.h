/* The pages for monitoring the agent: /metrics, /-/healthy and /-/ready. */
#ifndef AGENT_WEB_PAGES_H
#define AGENT_WEB_PAGES_H

#include "agent/http/request.h"
#include "agent/runtime/metrics.h"

struct pages {
	struct metrics *metrics;
	/* Why the agent is not ready, as a sentence, or NULL if it is. */
	const char *(*unready)(void *context);
	/* Called before /metrics is printed, to set gauges. */
	void (*collect)(void *context);
	void *context;
	struct api *api; /* for api_routes; NULL: they are not served */
};

/* For http_start, whose context is a struct pages. */
extern const struct route pages_routes[];

#endif

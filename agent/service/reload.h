/*
 * Reloading: the configuration is read again while the agent runs, and taken over whole or not at
 * all.
 *
 * It is read on a worker. Who asks while that goes on waits for the reading after it, since what
 * has been read may be older than the request. What cannot change while the agent runs (where it
 * listens, its state file, its threads) keeps its value, and that is said.
 */
#ifndef AGENT_SERVICE_RELOAD_H
#define AGENT_SERVICE_RELOAD_H

#include "agent/runtime/agent.h"

/* Reads the configuration again; `done` may be NULL. Not for an agent without a reloader. */
void agent_reload(struct agent *agent, reload_done *done, void *context);

struct reloader_options {
	struct config_source source;
	const struct strings *names; /* of tests and groups, as on the command line; borrowed */
	int64_t patience;            /* ms for the reading, which then has failed; 0: a minute */
	/* The agent has a new generation, and the parts shall follow it. */
	void (*adopt)(void *context);
	/* Before the reading and after the report; may be NULL. */
	void (*begun)(void *context);
	void (*ended)(void *context, const struct reload_report *report);
	void *context;
};

/* Sets agent->reloader. Requests wait for reloader_start, as long as the agent itself starts. */
struct reloader *reloader_new(struct agent *agent, const struct reloader_options *options);
void reloader_start(struct reloader *reloader);

/* Tells those who wait that the agent ends. */
void reloader_stop(struct reloader *reloader);

/* After the engine was freed. NULL is welcome. */
void reloader_free(struct reloader *reloader);

#endif

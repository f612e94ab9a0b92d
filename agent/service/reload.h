/*
 * Reloading: the configuration is read again while the agent runs, and adopted as a whole or not at
 * all.
 *
 * A worker reads it. Requests that arrive meanwhile wait for the next load, since the current one
 * may have read older files. Settings that cannot change while the agent runs (where it listens,
 * its state file, its threads) keep their values, and that is reported.
 */
#ifndef AGENT_SERVICE_RELOAD_H
#define AGENT_SERVICE_RELOAD_H

#include "agent/runtime/agent.h"

/* Reads the configuration again; `done` may be NULL. Not for an agent without a reloader. */
void agent_reload(struct agent *agent, reload_done *done, void *context);

struct reloader_options {
	struct config_source source;
	const struct strings *names; /* of tests and groups, as on the command line; borrowed */
	int64_t patience;            /* ms that loading may take; 0: a minute */
	/* The agent has a new configuration; updates the parts. Returns why agent.web_config, which
	 * is read with it, keeps its previous version, or NULL. */
	const char *(*adopt)(void *context);
	/* Before the load and after the report; may be NULL. */
	void (*begun)(void *context);
	void (*ended)(void *context, const struct reload_report *report);
	void *context;
};

/* Sets agent->reloader. Requests wait until reloader_start, while the agent itself starts. */
struct reloader *reloader_new(struct agent *agent, const struct reloader_options *options);
void reloader_start(struct reloader *reloader);

/* Answers waiting requests that the agent is stopping. */
void reloader_stop(struct reloader *reloader);

/* After the engine was freed. Accepts NULL. */
void reloader_free(struct reloader *reloader);

#endif

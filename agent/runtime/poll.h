/*
 * Polling the store: one question at a time, after events and at an alarm. What comes while one is
 * being answered makes for another.
 *
 * For the loop's thread.
 */
#ifndef AGENT_RUNTIME_POLL_H
#define AGENT_RUNTIME_POLL_H

#include "agent/runtime/agent.h"

struct poll {
	struct agent *agent;
	void (*ask)(void *context); /* followed by poll_answered */
	void *context;
	bool aside; /* its alarm does not keep the engine running */
	bool asking, again;
	struct alarm alarm;
};

/* Of a poll whose first members are set. */
void poll_now(struct poll *poll);

/* In so many ms, or sooner if it is to come sooner; WHEN_NEVER: not by itself. */
void poll_after(struct poll *poll, int64_t wait);

/* Polls again, after `wait` ms if nothing came meanwhile. */
void poll_answered(struct poll *poll, int64_t wait);

#endif

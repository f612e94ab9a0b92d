/*
 * How the agents of a fleet see sources: this one's views go to the state when they change, those
 * of all come back, and the leader judges them (conditions_judge).
 *
 * For the loop's thread; only in a fleet.
 */
#ifndef AGENT_MONITOR_VIEWS_H
#define AGENT_MONITOR_VIEWS_H

#include "agent/monitor/condition.h"
#include "agent/runtime/agent.h"

struct views;

/* `conditions` are those of this agent's tests; `tell` is called on the leader. */
struct views *views_new(struct agent *agent, struct conditions *conditions,
	void (*tell)(void *context, const struct condition *condition), void *context);
void views_free(struct views *views); /* after the engine; accepts NULL */

/* This agent's view of the source may have changed. */
void views_update(struct views *views, const char *source);

/* Forgets sources for which `keeps` is false: this agent runs no test of them. */
void views_retain(
	struct views *views, bool (*keeps)(void *context, const char *source), void *context);

/* Writes and reads all views after a change of views or agents. */
void views_read(struct views *views);

/* All that this agent has written may be gone: it is written again. */
void views_renew(struct views *views);

/* This agent becomes the leader, or stops being it. */
void views_lead(struct views *views, bool leads);

#endif

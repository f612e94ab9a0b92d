/*
 * Bisections: requested when a regression of a test with `bisect` is confirmed, begun as labs and
 * days allow, cancelled when the change is withdrawn or accepted. The store has them; this module
 * polls and runs them.
 *
 * In a fleet a bisection belongs to the agent that holds the shard of its test, and a lab has one
 * at a time among all agents: the database decides that.
 *
 * For the loop's thread.
 */
#ifndef AGENT_MONITOR_BISECTIONS_H
#define AGENT_MONITOR_BISECTIONS_H

#include "agent/runtime/agent.h"

struct bisections;

/* Sets agent->seen. */
struct bisections *bisections_new(struct agent *agent);
/* After the engine was freed. Accepts NULL. */
void bisections_free(struct bisections *bisections);

/* Of a work: it may be due sooner; it has ended, or another agent has it. */
struct bisect_work;
void bisections_work_due(struct bisections *bisections);
void bisections_work_ended(struct bisections *bisections, struct bisect_work *work);

#endif

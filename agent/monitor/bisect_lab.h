/*
 * A lab makes the runs of a bisection: each is requested as the receiver `webhook` sends it, with
 * the run as its body, and answered by the API.
 */
#ifndef AGENT_MONITOR_BISECT_LAB_H
#define AGENT_MONITOR_BISECT_LAB_H

#include "agent/base/buf.h"
#include "agent/bisect/driver.h"
#include "agent/runtime/agent.h"

/* The words of the outcomes that a lab can tell, NULL-terminated. Its answers are stored as
 * "measured 12.5", "untestable", "failed: no device". */
extern const char *const lab_outcomes[];

/* Of a work that has its setup, and which its settings give to a lab. For the loop's thread. */
struct lab;
struct bisect_work;
struct lab *lab_new(struct bisect_work *work);
void lab_free(struct lab *lab); /* accepts NULL; when idle, or after the engine was freed */

/* Of a struct lab. A worker is busy until the request for its run has been sent, too, even if the
 * run has ended. */
extern const struct bisect_runner lab_runner;

/* Reports the lab's answers, in their stored form, to the work's driver. True: there was one. */
bool lab_take(struct lab *lab, const struct bisection_lines *lines);

/* The time of the next request or give-up (engine_now); sends requests and gives up runs that are
 * due. */
int64_t lab_due(const struct lab *lab);
void lab_tick(struct lab *lab);

#endif

/*
 * A lab makes the runs of a bisection: each is requested as the receiver `webhook` sends it, with
 * the run as its body, and answered by the API.
 */
#ifndef AGENT_MONITOR_BISECT_LAB_H
#define AGENT_MONITOR_BISECT_LAB_H

#include "agent/base/buf.h"
#include "agent/bisect/driver.h"
#include "agent/runtime/agent.h"

struct lab_request {
	int64_t bisection, change;
	const char *test, *metric, *lab, *repository;
	size_t candidates;
	int64_t timeout;          /* ms */
	const char *external_url; /* of the agent, or NULL */
};

/* The words of the outcomes that a lab can tell, NULL-terminated. Its answers are stored as
 * "measured 12.5", "untestable", "failed: no device". */
extern const char *const lab_outcomes[];

struct lab_options {
	struct agent *agent;
	const void *webhook;        /* options of the receiver */
	struct lab_request request; /* what all of them have in common */
	size_t workers;             /* devices: runs at a time */
	/* A run has ended; `problem`: why there is no value, or NULL. */
	void (*ended)(void *context, const struct bisect_result *result, const char *problem);
	void (*asked)(void *context); /* lab_due may be sooner, a worker free */
	void *context;
};

/* For the loop's thread. Borrows everything that the options point to. */
struct lab;
struct lab *lab_new(const struct lab_options *options);
void lab_free(struct lab *lab); /* accepts NULL; after `asked`, or after the engine was freed */

/* Of a struct lab. A worker is busy until the request for its run has been sent, too, even if the
 * run has ended. */
extern const struct bisect_runner lab_runner;

/* The lab's answers, in their stored form; calls `ended` for each. True: there was one. */
bool lab_take(struct lab *lab, const struct bisection_lines *lines);

/* The time of the next request or give-up (engine_now); sends requests and gives up runs that are
 * due. */
int64_t lab_due(const struct lab *lab);
void lab_tick(struct lab *lab);

#endif

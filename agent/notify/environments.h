/*
 * Environments: the filter that makes one message of what hits one runner alone.
 *
 * It knows what the last run of each test with an `environment` saw, and what was told of
 * environments. By the rule of agent/analysis/environment.h changes become part of an event, whose
 * message the announcer makes; what comes later and belongs to it is told with it. A change waits
 * while the rule may come to hold: until the tests of its environment, and their counterparts, have
 * run, for an interval of its test at most, an hour at most; and while most of those that are hit
 * are not believed yet, for two points at most. Events are rows of the store, and are written with
 * the messages about them; here they are forgotten when no change can be near them any more.
 */
#ifndef AGENT_NOTIFY_ENVIRONMENTS_H
#define AGENT_NOTIFY_ENVIRONMENTS_H

#include "agent/analysis/environment.h"
#include "agent/notify/filter.h"
#include "agent/runtime/agent.h"

struct environments;

/* `look` is called when the filter should be asked again. */
struct environments *environments_new(
	struct agent *agent, void (*look)(void *context), void *context);
void environments_free(struct environments *environments);

/* What the answer to STORE_RESTORE says was told before. */
void environments_restore(struct environments *environments, const struct store_request *restored);

/* A run of the test has ended; takes the view, which is NULL of a run that failed. */
void environments_seen(
	struct environments *environments, const struct test *test, struct environment_view *view);

struct filter environments_filter(struct environments *environments);

/* The event of that id, or NULL. Valid until the filter is asked again. */
const struct environment_event *environments_event(
	const struct environments *environments, int64_t id);

/* Adds what is new of events, and of the records that are part of them, to a STORE_QUEUE. */
void environments_write(struct environments *environments, struct store_request *request,
	const struct change_record *const *records, size_t count);

/* The request is in the store, or is not: then new events have not been told, and there are none.
 */
void environments_written(struct environments *environments, bool stored);

/* Events whose threads are to be told that they were followed; one a call, NULL: no more. `value`:
 * by which environments, "runner-8, runner-9". Valid as above. */
const struct environment_event *environments_followed(
	const struct environments *environments, size_t *at, const char **value);

#endif

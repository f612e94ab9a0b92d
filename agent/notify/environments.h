/*
 * The environment filter: turns changes that hit a single runner into one message.
 *
 * It reads what the last run of each test with an `environment` saw, whichever agent has run it
 * (struct seen_run), and the announced events. The rule of agent/analysis/environment.h decides
 * which changes become part of an event; the dispatcher writes the event's message, and later
 * changes that belong to the event go into its thread. A change is held while the rule may still
 * come to apply: until the tests of its environment and their counterparts have run, at most for
 * its test's interval and an hour; and while most of the changed series are unconfirmed, at most
 * for two points. Events are rows of the store, read at the beginning of each round and written
 * together with their messages.
 */
#ifndef AGENT_NOTIFY_ENVIRONMENTS_H
#define AGENT_NOTIFY_ENVIRONMENTS_H

#include "agent/analysis/environment.h"
#include "agent/runtime/agent.h"
#include "agent/runtime/filter.h"

struct environments;

/* It hints at changes when it has to be applied again. */
struct environments *environments_new(struct agent *agent);
void environments_free(struct environments *environments);

/* A round begins: the events and the runs as they are stored. What follows lies in its arena, until
 * it ends. */
void environments_read(struct environments *environments, const struct store_pending *pending);

struct filter environments_filter(struct environments *environments);

/* The events, as known after the filter was applied. */
struct environment_rows environments_events(const struct environments *environments);

/* The event of that id, or NULL. */
const struct environment_event *environments_find(const struct environment_rows *rows, int64_t id);

/* Adds new and changed events to a store_queue, borrowed. */
void environments_write(const struct environments *environments, struct store_queue *request);

/* Iterates over events that another environment has followed since, for a reply in their threads;
 * NULL at the end. `value`: the environments, "runner-8, runner-9". */
const struct environment_event *environments_followed(
	const struct environments *environments, size_t *at, const char **value);

#endif

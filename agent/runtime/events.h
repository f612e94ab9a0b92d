/*
 * Recent events for watchers: changes that were recorded or triaged, silences, tests that fail or
 * succeed again, and reloads. Each event is a kind and a JSON object (docs/reference/api.md).
 *
 * The last events are kept, so that a watcher can resume after an interruption. Nothing waits for
 * watchers: if events come too fast to follow, the rest of a second are counted and sent as one.
 * For the loop's thread.
 */
#ifndef AGENT_RUNTIME_EVENTS_H
#define AGENT_RUNTIME_EVENTS_H

#include "agent/runtime/agent.h"

enum {
	EVENTS_KEPT = 1024,
	EVENTS_BYTES = 256 << 10, /* of those kept */
	EVENTS_A_SECOND = 100,
	EVENTS_ID = 48, /* bytes of an id as text */
};

struct event_news {
	uint64_t number; /* counts from 1 */
	const char *kind, *data;
};

/* `news`, unless NULL, is called after each event. */
struct events *events_new(struct agent *agent, void (*news)(void *context), void *context);
void events_free(struct events *events); /* accepts NULL */

/* Sources of events. Without agent->events they do nothing. */
void events_store(struct agent *agent, const struct store_call *answered);
void events_test(struct agent *agent, const char *test, bool failing, const char *problem);
void events_reload(struct agent *agent);

/* Events without details: actions of other agents. */
void events_untold(struct events *events);

/* The number of the last event, 0: none yet; whether all after `number` are still there. */
uint64_t events_last(const struct events *events);
bool events_reaches(const struct events *events, uint64_t number);

/* The event after that number; false: there is none. */
bool events_next(const struct events *events, uint64_t number, struct event_news *out);

/* A number as an id, which no other agent gives, nor this one after a restart. False: the id is not
 * of this one. */
const char *events_id(const struct events *events, uint64_t number, char text[EVENTS_ID]);
bool events_number(const struct events *events, const char *id, uint64_t *out);

#endif

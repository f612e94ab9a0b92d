/*
 * The sentinel: whoever is to know is told that a source is down, a test fails or data have
 * stopped, a series has vanished, and when that is over.
 *
 * Passes tell it how they ended; what that means is for agent/monitor/condition.h to say. A notice
 * goes to the receivers of the test, or of all tests of the source, and into the store, so that
 * neither a restart nor a run once an hour tells it again.
 */
#ifndef AGENT_MONITOR_SENTINEL_H
#define AGENT_MONITOR_SENTINEL_H

#include "agent/monitor/vanish.h"
#include "agent/notify/dispatcher.h"

struct health;

struct health *health_new(struct agent *agent, struct dispatcher *dispatcher);
void health_free(struct health *health);

/* What STORE_RESTORE says had been told; before the first pass. */
void health_restore(struct health *health, const struct store_request *restored);

/* How a pass ended: why the data could not be had, or NULL and what they are like. */
struct run_outcome {
	const char *problem;
	bool unasked;   /* nothing was asked, as there can be nothing new */
	bool answered;  /* ... though the source has answered */
	int64_t newest; /* ms, of its newest point; WHEN_ALWAYS: there is none */
	int64_t usual;  /* ms, that it may be without a new one by its rhythm; 0: nobody knows */
};

void health_note(struct health *health, const struct test *test, const struct run_outcome *run);

/* What a run of the test has to know to find vanished series, in the arena. */
struct vanish_rule health_vanish_rule(struct health *health, const struct test *test,
	const struct rhythm_bounds *bounds, struct arena *arena);

/* Tells what it found. */
void health_vanished(struct health *health, const struct test *test, const struct vanish_news *news,
	size_t count);

/* What is known by now: the source is up, the test's data are stale. */
bool health_up(const struct health *health, const char *source);
bool health_stale(const struct health *health, const char *test);

/* The agent has a new configuration: what is not in it is forgotten. */
void health_adopt(struct health *health);

#endif

/*
 * Health: notifies receivers when a source is down, a test fails, its data have stopped or a
 * series has vanished, and when that is over.
 *
 * It is fed the outcome of each run; agent/monitor/condition.h decides what that means. Notices go
 * to the receivers of the test, or of all tests of the source, and the condition is stored with it,
 * so that neither a restart nor hourly single runs report it again. A condition held by a silence
 * or mute time is reported afterwards if it persists.
 *
 * In a fleet an agent reports on the tests that it runs. It writes its view of a source to the
 * state (agent/monitor/views.h), and the leader reports on sources.
 */
#ifndef AGENT_MONITOR_HEALTH_H
#define AGENT_MONITOR_HEALTH_H

#include "agent/fleet/tests.h"
#include "agent/monitor/condition.h"
#include "agent/monitor/vanish.h"

struct health;

struct health *health_new(struct agent *agent);
void health_free(struct health *health);

/* Without a fleet: the stored conditions; before the first run. */
void health_restore(struct health *health, const struct health_rows *rows);

/* In a fleet, when tests have changed hands: forgets those that other agents run, and adopts the
 * stored conditions of those that this one runs now (NULL: none). */
void health_move(struct health *health, const struct health_rows *rows);

/* In a fleet: the stored conditions if this agent leads now; NULL if it no longer does. */
void health_lead(struct health *health, const struct health_rows *rows);

/* In a fleet: the other agents' views. */
void health_news(struct health *health, const struct fleet_news *news);

/* The outcome of a run, but for the names and clocks. */
void health_note(struct health *health, const struct test *test, const struct outcome *run);

/* The input for finding vanished series in a run of the test; in the arena. */
struct vanish_rule health_vanish_rule(struct health *health, const struct test *test,
	const struct rhythm_bounds *bounds, struct arena *arena);

/* Notifies of the series that vanished or came back. */
void health_vanished(struct health *health, const struct test *test, const struct vanish_news *news,
	size_t count);

/* Whether the test's data are stale. */
bool health_stale(const struct health *health, const struct test *test);

/* Since when the test's source is known to be down, ms; 0: it is not. */
int64_t health_down_since(const struct health *health, const struct test *test);

/* Switches to the agent's new configuration and forgets removed tests and sources. */
void health_adopt(struct health *health);

#endif

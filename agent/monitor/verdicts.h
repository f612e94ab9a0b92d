/*
 * Verdicts: a fleet's conclusion about a source from the views of its agents.
 *
 * - A source is down once more than half of the agents with a view report it, and up again once
 * fewer
 *   than half do: an agent that cannot reach a server which the others can is no outage.
 * - Many of its tests fail, or have no new data, once any agent has one that is not reported one by
 *   one. That is over when no agent has, those reported one by one are fewer than that many again,
 *   and no test is still to be run; and when nothing about it has changed for a while, since the
 *   tests of an agent that has gone have no agent for a moment.
 *
 * A pure state machine: it reads no clock and sends nothing. Reports are remembered here and
 * restored from the store.
 */
#ifndef AGENT_MONITOR_VERDICTS_H
#define AGENT_MONITOR_VERDICTS_H

#include "agent/store/store.h"

struct verdicts;

struct verdicts *verdicts_new(void);
void verdicts_free(struct verdicts *verdicts);

/* Forgets everything. */
void verdicts_clear(struct verdicts *verdicts);

/* A condition that was reported and stored; those of tests are ignored. */
void verdicts_restore(struct verdicts *verdicts, const struct condition *condition);

typedef void verdicts_turn(void *context, const struct condition *condition);

/* Judges all sources by these views; `settled`: nothing has changed for a while. Calls back for
 * each condition that begins or is over; its texts are valid during the call. */
void verdicts_judge(struct verdicts *verdicts, const struct source_view *views, size_t count,
	int64_t now, bool settled, verdicts_turn *turn, void *context);

/* Forgets sources for which `keeps` is false, as conditions_retain. */
void verdicts_retain(struct verdicts *verdicts, bool (*keeps)(void *context, const char *source),
	verdicts_turn *lost, void *context);

/* Whether many tests of some source are reported as failing, or as without new data: this ends only
 * when it is judged as settled. */
bool verdicts_wait(const struct verdicts *verdicts);

#endif

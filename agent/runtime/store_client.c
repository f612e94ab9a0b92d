/*
 * Sends calls from the loop to the store. A pending call holds the engine, as the store
 * runs on another thread.
 */
#include "agent/runtime/agent.h"

#include <string.h>

#include "agent/base/hash.h"
#include "agent/runtime/events.h"

enum { PROBE_AGAIN = 5000 };

/* The store may otherwise not be used for a long time, while /-/ready waits for it to work. */
static void probe(void *context)
{
	struct agent *agent = context;

	if (agent->store_error.kind != ERROR_NONE && !agent->stopping)
		store_client_call(agent, store_probe_new());
}

/* A successful read does not prove that the store can be written, nor does a client's mistake that
 * it cannot. */
static void note_state(struct agent *agent, const struct store_call *call)
{
	if (call->failed ? call->error->kind == ERROR_USAGE || call->fenced : !call->work->writes)
		return;
	if (call->failed && agent->store_error.kind == ERROR_NONE)
		log_event(LEVEL_ERROR, "state store unavailable",
			LOG_TEXT("problem", call->error->text));
	else if (!call->failed && agent->store_error.kind != ERROR_NONE)
		log_message(LEVEL_INFO, "state store available again");
	if (call->failed) {
		agent->store_error = *call->error;
		agent->probe.call = probe;
		agent->probe.context = agent;
		if (!agent->once)
			engine_alarm(agent->engine, &agent->probe,
				engine_now(agent->engine) + PROBE_AGAIN);
	} else {
		agent->store_error.kind = ERROR_NONE;
	}
}

static size_t triages_at(const char *test)
{
	return hash_slot(test, strlen(test)) % AGENT_TRIAGES;
}

uint64_t agent_triages(const struct agent *agent, const char *test)
{
	return agent->triages[triages_at(test)];
}

void agent_triaged(struct agent *agent)
{
	for (size_t i = 0; i < AGENT_TRIAGES; i++)
		agent->triages[i]++;
}

static void answered(struct store_call *call)
{
	struct agent *agent = call->owner;
	const struct store_triage *triage = (const struct store_triage *)call;
	const struct store_counts *counts = call->failed ? NULL : call->counts;

	engine_release(agent->engine);
	agent->asked--;
	if (agent->shared_state)
		agent->shared_state->ends(agent, call);
	if (call->fenced) {
		metrics_add(agent->metrics, METRIC_FENCED_WRITES, 1, NULL);
		log_event(LEVEL_INFO, "write rejected: another agent holds the lease",
			LOG_INT("shard", call->shard));
	}
	note_state(agent, call);
	for (int state = 1; counts && state < CHANGE_STATES; state++)
		metrics_set(agent->metrics, METRIC_CHANGES, (double)counts->states[state],
			change_state_names[state]);
	if (!call->failed && call->work == &store_triage_work && triage->changed > 0)
		for (size_t i = 0; i < triage->records.count; i++)
			agent->triages[triages_at(triage->records.items[i].item.test)]++;
	events_store(agent, call);
	if (agent->seen)
		agent->seen(agent->seer, call);
	call->reply(call);
	agent_ended(agent);
}

void store_client_call(struct agent *agent, struct store_call *call)
{
	call->first = answered;
	call->owner = agent;
	if (agent->shared_state)
		agent->shared_state->begins(agent, call);
	agent->asked++;
	engine_hold(agent->engine);
	store_submit(agent->store, call);
}

void store_client_collect(struct agent *agent)
{
	struct store_traffic traffic;

	if (!store_traffic(agent->store, &traffic))
		return;
	metrics_set(agent->metrics, METRIC_STATE_ROUND_TRIPS, (double)traffic.round_trips, NULL);
	metrics_set(agent->metrics, METRIC_STATE_SECONDS, traffic.seconds, NULL);
	metrics_set(agent->metrics, METRIC_STATE_CONNECTIONS, (double)traffic.connections, NULL);
	metrics_set(agent->metrics, METRIC_STATE_RETRIES, (double)traffic.retries, NULL);
}

int64_t agent_now(const struct agent *agent)
{
	if (agent->simulation)
		return agent->simulation->now(agent);
	return agent->shared_state ? agent->shared_state->now(agent) : agent->now();
}

bool agent_idle(const struct agent *agent)
{
	return agent->asked == 0 && agent->under_way == 0;
}

void agent_ended(struct agent *agent)
{
	if (agent->stopping && agent_idle(agent))
		engine_stop(agent->engine);
}

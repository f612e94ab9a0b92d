/* Creates the parts in the order of their dependencies and frees them in reverse. */
#include "agent/service/parts.h"

#include "agent/fleet/fleet.h"

static void post(
	void *engine, void (*call)(void *argument), void (*drop)(void *argument), void *argument)
{
	engine_post(engine, call, drop, argument);
}

bool agent_open(struct agent_parts *parts, const struct engine_options *options, const char *state,
	struct error *error)
{
	struct agent *agent = &parts->agent;

	agent->engine = engine_new(options, error);
	if (!agent->engine)
		return false;
	agent->metrics = metrics_new();
	agent->store = store_open(state, post, agent->engine, error);
	if (!agent->store || !fleet_new(agent, error))
		return false;
	parts->delivery_manager = delivery_manager_new(agent);
	parts->dispatcher = dispatcher_new(agent);
	parts->reopening = reopening_new(agent);
	parts->expected = expected_new(agent);
	parts->scheduler = scheduler_new(agent, parts->expected);
	dispatcher_filter(parts->dispatcher, scheduler_filter(parts->scheduler));
	dispatcher_filter(parts->dispatcher, expected_filter(parts->expected));
	return true;
}

void agent_start(struct agent_parts *parts, struct store_restore *restored)
{
	delivery_manager_add(parts->delivery_manager, &restored->deliveries);
	if (!fleet_is_shared(&parts->agent) &&
		restored->call.counts->due.changes + (int64_t)restored->deliveries.count > 0)
		log_event(LEVEL_INFO, "resuming pending work",
			LOG_INT("changes", restored->call.counts->due.changes),
			LOG_INT("messages", restored->deliveries.count));
	scheduler_start(parts->scheduler, restored);
	dispatcher_restore(parts->dispatcher, restored);
	agent_hint(&parts->agent, HINT_LOOK);
	store_call_free(&restored->call);
}

bool agent_stop(struct agent_parts *parts)
{
	return store_close(parts->agent.store) && engine_free(parts->agent.engine);
}

void agent_close(struct agent_parts *parts)
{
	expected_free(parts->expected);
	scheduler_free(parts->scheduler);
	reopening_free(parts->reopening);
	dispatcher_free(parts->dispatcher);
	delivery_manager_free(parts->delivery_manager);
	fleet_free(&parts->agent);
	metrics_free(parts->agent.metrics);
}

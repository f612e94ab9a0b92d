/*
 * Makes the parts in the order of their needs and frees them in the opposite one.
 */
#include "agent/service/crew.h"

static void post(void *engine, store_call *call, store_call *drop, void *argument)
{
	engine_post(engine, call, drop, argument);
}

bool crew_open(struct crew *crew, const struct engine_options *options, const char *state,
	struct error *error)
{
	struct agent *agent = &crew->agent;

	agent->engine = engine_new(options, error);
	if (!agent->engine)
		return false;
	agent->metrics = metrics_new();
	agent->store = store_open(state, post, agent->engine, error);
	if (!agent->store)
		return false;
	crew->courier = courier_new(agent);
	crew->announcer = announcer_new(agent, crew->courier);
	crew->watch = watch_new(
		agent, crew->announcer, agent->generation->tests, agent->generation->test_count);
	crew->clusters = clusters_new(agent, crew->announcer);
	return true;
}

void crew_begin(struct crew *crew, struct store_request *restored)
{
	for (size_t i = 0; i < restored->parcel_count; i++)
		courier_add(crew->courier, &restored->parcels[i]);
	if (restored->record_count + restored->parcel_count > 0)
		log_event(LEVEL_INFO, "taken up again", LOG_INT("changes", restored->record_count),
			LOG_INT("messages", restored->parcel_count));
	watch_start(crew->watch, restored);
	announcer_restore(crew->announcer, restored);
	clusters_start(crew->clusters);
}

bool crew_stop(struct crew *crew)
{
	store_close(crew->agent.store);
	return engine_free(crew->agent.engine);
}

void crew_free(struct crew *crew)
{
	clusters_free(crew->clusters);
	watch_free(crew->watch);
	announcer_free(crew->announcer);
	courier_free(crew->courier);
	metrics_free(crew->agent.metrics);
}

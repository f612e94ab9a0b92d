/*
 * The store knows the expiry times; this is only the alarm. As the wall clock may be set, it polls
 * hourly while any triage has an expiry.
 */
#include "agent/monitor/reopening.h"

#include <stdlib.h>

#include "agent/fleet/fleet.h"

enum { LOOK_ANYWAY = 3600000, LOOK_AGAIN = 30000 }; /* ms */

struct reopening {
	struct agent *agent;
	struct dispatcher *dispatcher;
	bool asking; /* waiting for the store ... */
	bool again;  /* ... and until the next try */
	struct alarm alarm;
	int64_t last_audit; /* as of the last news of a fleet */
};

static void look(void *context)
{
	reopening_look(context);
}

/* Only the leader does this. */
static void gained(
	void *context, const struct fleet_shards *shards, const struct store_restore *restored)
{
	(void)restored;
	if (shards->has[FLEET_LEADER])
		reopening_look(context);
}

/* Triage of other agents may expire before anything else does. */
static void news(void *context, const struct fleet_news *news)
{
	struct reopening *reopening = context;

	if (news->last_audit != reopening->last_audit)
		reopening_look(reopening);
	reopening->last_audit = news->last_audit;
}

struct reopening *reopening_new(struct agent *agent, struct dispatcher *dispatcher)
{
	struct reopening *reopening = memory_new(1, sizeof *reopening);

	*reopening = (struct reopening){.agent = agent,
		.dispatcher = dispatcher,
		.alarm = {.call = look, .context = reopening}};
	fleet_listen(agent,
		&(struct fleet_listener){.gained = gained, .news = news, .context = reopening});
	return reopening;
}

void reopening_free(struct reopening *reopening)
{
	free(reopening);
}

static void look_after(struct reopening *reopening, int64_t wait)
{
	struct engine *engine = reopening->agent->engine;

	if (!reopening->agent->once && !reopening->agent->stopping)
		engine_alarm(engine, &reopening->alarm, engine_now(engine) + wait);
}

static void opened(struct store_reopen_due *due)
{
	struct reopening *reopening = due->call.context;
	int64_t wait = due->next - agent_now(reopening->agent);
	bool again = reopening->again;

	reopening->asking = reopening->again = false;
	for (size_t i = 0; i < due->records.count && !due->call.failed; i++)
		log_event(LEVEL_INFO, "change reopened: its triage expired",
			LOG_INT("id", due->records.items[i].item.id),
			LOG_TEXT("test", due->records.items[i].item.test),
			LOG_TEXT("metric", due->records.items[i].item.metric));
	if (due->call.fenced)
		again = false;
	else if (due->call.failed)
		look_after(reopening, LOOK_AGAIN);
	else if (due->next != 0)
		look_after(reopening, wait < LOOK_ANYWAY ? (wait > 0 ? wait : 0) : LOOK_ANYWAY);
	if (!due->call.failed && due->pending > 0)
		dispatcher_again(reopening->dispatcher);
	store_call_free(&due->call);
	if (again)
		reopening_look(reopening);
}

void reopening_look(struct reopening *reopening)
{
	struct agent *agent = reopening->agent;
	struct store_reopen_due *due;

	reopening->again = reopening->asking;
	if (reopening->asking || agent->stopping)
		return;
	if (!fleet_holds(agent, FLEET_LEADER)) {
		look_after(reopening, LOOK_AGAIN);
		return;
	}
	reopening->asking = true;
	due = store_reopen_due_new(opened, reopening);
	due->now = agent_now(agent);
	fleet_fence(agent, &due->call, FLEET_LEADER);
	store_client_call(agent, &due->call);
}

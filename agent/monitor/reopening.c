/*
 * The store knows the expiry times; this only polls it. As the wall clock may be set, it polls
 * hourly while any triage has an expiry.
 */
#include "agent/monitor/reopening.h"

#include <stdlib.h>

#include "agent/base/when.h"
#include "agent/fleet/fleet.h"
#include "agent/runtime/poll.h"

enum { LOOK_ANYWAY = 3600000, LOOK_AGAIN = 30000 }; /* ms */

struct reopening {
	struct poll poll;
	int64_t last_audit; /* as of the last news of a fleet */
};

static void look(void *context)
{
	struct reopening *reopening = context;

	poll_now(&reopening->poll);
}

/* Only the leader does this. */
static void gained(
	void *context, const struct fleet_shards *shards, const struct store_restore *restored)
{
	(void)restored;
	if (shards->has[FLEET_LEADER])
		look(context);
}

/* Triage of other agents may expire before anything else does. */
static void news(void *context, const struct fleet_news *news)
{
	struct reopening *reopening = context;

	if (news->last_audit != reopening->last_audit)
		look(reopening);
	reopening->last_audit = news->last_audit;
}

void reopening_free(struct reopening *reopening)
{
	free(reopening);
}

static void opened(struct store_reopen_due *due)
{
	struct reopening *reopening = due->call.context;
	int64_t wait = due->next - agent_now(reopening->poll.agent);

	for (size_t i = 0; i < due->records.count && !due->call.failed; i++)
		log_event(LEVEL_INFO, "change reopened: its triage expired",
			LOG_INT("id", due->records.items[i].item.id),
			LOG_TEXT("test", due->records.items[i].item.test),
			LOG_TEXT("metric", due->records.items[i].item.metric));
	wait = wait < 0 ? 0 : wait < LOOK_ANYWAY ? wait : LOOK_ANYWAY;
	if (due->call.failed)
		wait = LOOK_AGAIN;
	else if (due->next == 0)
		wait = WHEN_NEVER;
	if (!due->call.failed && due->pending > 0)
		agent_hint(reopening->poll.agent, HINT_CHANGES);
	store_call_free(&due->call);
	poll_answered(&reopening->poll, wait);
}

static void ask(void *context)
{
	struct reopening *reopening = context;
	struct agent *agent = reopening->poll.agent;
	struct store_reopen_due *due;

	if (!fleet_holds(agent, FLEET_LEADER)) {
		poll_answered(&reopening->poll, LOOK_AGAIN);
		return;
	}
	due = store_reopen_due_new(opened, reopening);
	due->now = agent_now(agent);
	fleet_fence(agent, &due->call, FLEET_LEADER);
	store_client_call(agent, &due->call);
}

struct reopening *reopening_new(struct agent *agent)
{
	struct reopening *reopening = memory_new(1, sizeof *reopening);

	reopening->poll = (struct poll){.agent = agent, .ask = ask, .context = reopening};
	agent_listen(agent, HINT_TRIAGE, look, reopening);
	agent_listen(agent, HINT_LOOK, look, reopening);
	fleet_listen(agent,
		&(struct fleet_listener){.gained = gained, .news = news, .context = reopening});
	return reopening;
}

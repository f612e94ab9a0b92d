#include <assert.h>

#include "agent/runtime/agent.h"

void agent_listen(struct agent *agent, enum hint hint, void (*call)(void *context), void *context)
{
	size_t at = 0;

	while (at < HINT_LISTENERS && agent->listeners[hint][at].call)
		at++;
	assert(at < HINT_LISTENERS);
	agent->listeners[hint][at] = (struct hint_listener){call, context};
}

void agent_hint(const struct agent *agent, enum hint hint)
{
	const struct hint_listener *listeners = agent->listeners[hint];

	for (size_t i = 0; i < HINT_LISTENERS && listeners[i].call; i++)
		listeners[i].call(listeners[i].context);
}

void agent_awaits(struct agent *agent, int64_t changes)
{
	bool begins = agent->due.changes == 0 && changes > 0;

	agent->due.changes = changes;
	if (begins)
		agent_hint(agent, HINT_WAITING);
}

void agent_recorded(struct agent *agent, const struct store_record *recorded)
{
	const struct store_due *due;
	bool news;

	if (recorded->seen)
		agent_hint(agent, HINT_SEEN);
	if (!recorded->call.counts) /* checkpoints alone */
		return;
	due = &recorded->call.counts->due;
	/* Fewer changes wait than before: what holds the others may be over. */
	news = recorded->renewed > 0 || due->events > 0 || due->changes < agent->due.changes;
	for (size_t i = 0; i < recorded->records.count && !news; i++)
		news = recorded->records.items[i].news == NOTIFY_PENDING;
	agent_awaits(agent, due->changes);
	agent->due = *due;
	if (news)
		agent_hint(agent, HINT_CHANGES);
}

/*
 * Queries the store for one receiver at a time, then waits before the next check.
 */
#include "agent/notify/reminders.h"

#include <stdlib.h>
#include <string.h>

#include "agent/fleet/fleet.h"
#include "agent/notify/publisher.h"
#include "agent/runtime/silence.h"

enum { LOOK = 600000, LOOK_LEAST = 1000 }; /* ms between two checks */

struct reminders {
	struct agent *agent;
	struct alarm alarm;
	size_t under_way; /* calls of the store */
};

/* The next check comes well before the next reminder can be due. */
static int64_t wait_of(const struct config *config)
{
	int64_t wait = LOOK;

	for (size_t i = 0; i < config->receiver_count; i++) {
		int64_t after = config->receivers[i].remind_after;

		if (after > 0 && after / 20 < wait)
			wait = after / 20;
	}
	return wait < LOOK_LEAST ? LOOK_LEAST : wait;
}

static void ended(struct reminders *reminders)
{
	const struct agent *agent = reminders->agent;
	int64_t wait = wait_of(agent->config);

	if (--reminders->under_way > 0 || agent->stopping)
		return;
	engine_alarm(agent->engine, &reminders->alarm, engine_now(agent->engine) + wait);
}

static void queued(struct store_queue *queue)
{
	struct reminders *reminders = queue->call.context;

	if (!queue->call.failed)
		agent_hint(reminders->agent, HINT_DELIVERIES);
	store_call_free(&queue->call);
	ended(reminders);
}

static bool is_waiting(const struct reminders *reminders, const struct change_record *record)
{
	const struct agent *agent = reminders->agent;
	struct silence_target subject = silence_target_of(record);
	int64_t until;

	return change_stands(record->state) && announcement_verdict(&record->item) > 0 &&
	       triage_at(&record->triage, agent_now(agent)) == TRIAGE_OPEN &&
	       !agent->notices.holds(agent->notices.context, &subject, &until);
}

/* Adds the message's reminder; false if none is due. */
static bool remind(const struct reminders *reminders, const struct publisher *publisher,
	const struct delivery *told)
{
	const struct change_record **records = memory_new(told->record_count, sizeof *records);
	size_t count = 0;

	for (size_t i = 0; i < told->record_count; i++)
		if (is_waiting(reminders, &told->records[i]))
			records[count++] = &told->records[i];
	if (count > 0)
		publisher_reminder(publisher, told, records, count);
	free(records);
	return count > 0;
}

static void ask(struct reminders *reminders, const char *receiver, int64_t before, int64_t after);

static void found(struct store_reminders *call)
{
	struct reminders *reminders = call->call.context;
	struct agent *agent = reminders->agent;
	struct store_queue *queue = store_queue_new(queued, reminders);
	struct publisher publisher = {
		.config = agent->config, .now = agent_now(agent), .queue = queue};
	size_t count = call->call.failed || agent->stopping ? 0 : call->messages.count;
	int64_t *ids = arena_array(queue->call.arena, count, sizeof *ids);

	queue->call.shard = call->call.shard; /* from before anything was read */
	queue->call.term = call->call.term;
	publisher.router = count > 0 ? router_new(config_routing(agent->config)) : NULL;
	for (size_t i = 0; i < count; i++)
		if (remind(reminders, &publisher, &call->messages.items[i]))
			ids[queue->reminded_count++] = call->messages.items[i].id;
	router_free(publisher.router);
	if (count == STORE_REMINDERS_MOST)
		ask(reminders, call->receiver, call->before, call->messages.items[count - 1].id);
	queue->reminded = ids;
	queue->now = publisher.now;
	store_call_free(&call->call);
	if (queue->reminded_count > 0) {
		store_client_call(agent, &queue->call);
		return;
	}
	store_call_free(&queue->call);
	ended(reminders);
}

/* Queries page by page. */
static void ask(struct reminders *reminders, const char *receiver, int64_t before, int64_t after)
{
	struct store_reminders *call = store_reminders_new(found, reminders);

	fleet_fence(reminders->agent, &call->call, FLEET_LEADER);
	call->receiver = arena_strdup(call->call.arena, receiver);
	call->before = before;
	call->after = after;
	reminders->under_way++;
	store_client_call(reminders->agent, &call->call);
}

static void check_due(void *context)
{
	struct reminders *reminders = context;
	struct agent *agent = reminders->agent;

	if (agent->stopping || reminders->under_way > 0)
		return;
	if (!fleet_holds(agent, FLEET_LEADER)) {
		engine_alarm(agent->engine, &reminders->alarm,
			engine_now(agent->engine) + wait_of(agent->config));
		return;
	}
	for (size_t i = 0; i < agent->config->receiver_count; i++) {
		const struct receiver *receiver = &agent->config->receivers[i];

		if (receiver->remind_after > 0)
			ask(reminders, receiver->name, agent_now(agent) - receiver->remind_after,
				0);
	}
}

/* Only the leader reminds: it knows the threads and the silences. */
static void gained(
	void *context, const struct fleet_shards *shards, const struct store_restore *restored)
{
	(void)restored;
	if (shards->has[FLEET_LEADER])
		check_due(context);
}

struct reminders *reminders_new(struct agent *agent)
{
	struct reminders *reminders = memory_new(1, sizeof *reminders);

	*reminders = (struct reminders){.agent = agent};
	reminders->alarm = (struct alarm){.call = check_due, .context = reminders};
	fleet_listen(agent, &(struct fleet_listener){.gained = gained, .context = reminders});
	agent_listen(agent, HINT_LOOK, check_due, reminders);
	return reminders;
}

void reminders_free(struct reminders *reminders)
{
	free(reminders);
}

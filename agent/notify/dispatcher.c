/*
 * Each receiver gets the changes of the tests that name it, in groups. If a message cannot be
 * rendered for a receiver, the others still get theirs; the changes stay pending, with the list of
 * receivers that have them, until the rest can be rendered.
 *
 * One round at a time: read, ask the filters, render on a worker, queue. Later arrivals wait for
 * the next round.
 */
#include "agent/notify/dispatcher.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/order.h"
#include "agent/base/when.h"
#include "agent/decide/incident.h"
#include "agent/fleet/fleet.h"
#include "agent/io/timers.h"
#include "agent/notify/incidents.h"
#include "agent/notify/notices.h"
#include "agent/notify/publisher.h"
#include "agent/runtime/poll.h"

enum { FLUSH_AGAIN = 30000, RENDER_AGAIN = 300000 };

/* ms, in a fleet. HOLD_AGAIN: until the lease is checked again. LOOK_ANYWAY: until the next round
 * while anything is pending, independent of the turns. */
enum { HOLD_AGAIN = 1000, LOOK_ANYWAY = 60000 };

/*
 * The recovery of an environment event is announced once RECOVERY_SHARE percent of its changes have
 * recovered, or for those that have after RECOVERY_POINTS points, a day (RECOVERY_MOST, ms) at
 * most. Later ones wait until the last has recovered, or until as many have as make an event, a day
 * at most.
 */
enum { RECOVERY_SHARE = ENVIRONMENT_SHARE, RECOVERY_POINTS = 2 };
#define RECOVERY_MOST INT64_C(86400000)

/* A round over everything pending. What it has read is NULL before. */
struct round {
	struct dispatcher *dispatcher;
	struct store_pending *pending;
	struct store_incidents *incidents;
	struct store_queue *queue; /* the store's from the worker's end on: NULL */
	struct config_ref *config_ref;
	struct publisher publisher;
	struct routed_rows *routed; /* of each of the pending records */
	struct error *unwritten;    /* of each receiver: why its messages cannot be rendered */
	bool *gathered;  /* of each pending record: the receiver in turn is told it later, ... */
	int64_t until;   /* ... and when the first of all such is due, ms; 0: none */
	bool incomplete; /* for some receiver messages cannot be rendered */
};

/* When a pending change was first seen, by its id. */
struct arrival {
	int64_t id, time; /* engine_now */
};

struct dispatcher {
	struct agent *agent;
	struct filter filters[DISPATCHER_FILTERS]; /* in the order of evaluation */
	size_t filter_count;
	struct environments *environments;
	struct silences *silences;
	struct notices *notices;
	struct round round;
	bool busy;                /* a round is in progress ... */
	bool again;               /* another has to follow this one, or in a single pass the last */
	int64_t seen_until;       /* engine_now of the last round, or of the restore */
	struct arrival *arrivals; /* of the last round, by id; NULL: none yet */
	size_t arrival_count;
	struct alarm alarm; /* of the next round */
	/* In a fleet: */
	struct fleet_news news; /* the last */
	struct poll reading;    /* of silences; ... */
	uint64_t silences_seen; /* ... their version when that began */
};

static void look_alarm(void *dispatcher)
{
	dispatcher_flush(dispatcher);
}

static void look_after(struct dispatcher *dispatcher, int64_t wait)
{
	struct engine *engine = dispatcher->agent->engine;

	if (!dispatcher->agent->once)
		engine_alarm(engine, &dispatcher->alarm, engine_now(engine) + wait);
}

/* Whether this agent announces changes. */
static bool is_leader(const struct dispatcher *dispatcher)
{
	return fleet_keeps(dispatcher->agent, FLEET_LEADER);
}

/* Changes may be pending, or a filter's answers may be others: a round starts after `group_wait`.
 */
static void look_soon(void *context)
{
	struct dispatcher *dispatcher = context;

	if (dispatcher->busy || dispatcher->agent->once)
		dispatcher->again = true;
	else if (is_leader(dispatcher))
		look_after(dispatcher, dispatcher->agent->config->agent.group_wait);
}

static int64_t count_due(const struct store_due *due)
{
	return due->changes + due->events + due->held;
}

void dispatcher_restore(struct dispatcher *dispatcher, const struct store_restore *restored)
{
	silences_restore(dispatcher->silences, &restored->silences);
	if (!is_leader(dispatcher))
		return;
	dispatcher->seen_until = engine_now(dispatcher->agent->engine);
	dispatcher->arrival_count = 0;
	agent_awaits(dispatcher->agent, restored->call.counts->due.changes);
	if (count_due(&restored->call.counts->due) > 0)
		look_soon(dispatcher);
}

void dispatcher_filter(struct dispatcher *dispatcher, struct filter filter)
{
	assert(dispatcher->filter_count < DISPATCHER_FILTERS);
	memmove(dispatcher->filters + 1, dispatcher->filters,
		dispatcher->filter_count * sizeof *dispatcher->filters);
	dispatcher->filters[0] = filter;
	dispatcher->filter_count++;
}

struct silences *dispatcher_silences(const struct dispatcher *dispatcher)
{
	return dispatcher->silences;
}

struct notices *dispatcher_notices(const struct dispatcher *dispatcher)
{
	return dispatcher->notices;
}

/* Sets when this process could first see the records, from which the filters measure waits: not
 * before it was restored, as it knows of no earlier run, nor before the last round, which would
 * have had them. Kept from the first round of a record on, so that its later updates, jumps of the
 * clock and other agents' clocks move no wait. */
static void date_records(struct dispatcher *dispatcher, struct record_rows records)
{
	const struct agent *agent = dispatcher->agent;
	struct arrival *fresh = memory_new(records.count + 1, sizeof *fresh);
	int64_t now = engine_now(agent->engine);

	for (size_t i = 0; i < records.count; i++) {
		struct change_record *record = &records.items[i];
		const struct arrival *old =
			dispatcher->arrivals
				? bsearch(&record->item.id, dispatcher->arrivals,
					  dispatcher->arrival_count, sizeof *old, order_times)
				: NULL;
		int64_t age = agent_now(agent) - record->updated;
		int64_t at = now - (age > 0 ? age : 0);

		at = at < dispatcher->seen_until ? dispatcher->seen_until : at;
		record->handed = old ? old->time : at;
		fresh[i] = (struct arrival){record->item.id, record->handed};
	}
	qsort(fresh, records.count, sizeof *fresh, order_times);
	free(dispatcher->arrivals);
	dispatcher->arrivals = fresh;
	dispatcher->arrival_count = records.count;
	dispatcher->seen_until = now;
}

static void ask_filter(const struct filter *filter, struct change_record **records, size_t count)
{
	if (filter->begin)
		filter->begin(filter->context, records, count);
	for (size_t i = 0; i < count; i++) {
		struct decision decision = filter->judge(filter->context, records[i]);

		if (decision.verdict == PASS)
			continue;
		records[i]->held = decision.verdict == HOLD;
		records[i]->covered = decision.verdict == DROP;
		records[i]->noted = !order_same(records[i]->reason, decision.reason);
		records[i]->reason = decision.reason;
		log_event(LEVEL_DEBUG, records[i]->held ? "change held" : "change suppressed",
			LOG_INT("id", records[i]->item.id), LOG_TEXT("filter", filter->name),
			LOG_TEXT("reason", decision.reason));
	}
}

/* Each filter judges what those before it pass. Changes of a summary have waited and go into its
 * one message, so no further filter judges them; those that some receivers have already are
 * silenced alone: the rest of the receivers get them with the same text. */
static void ask_filters(const struct dispatcher *dispatcher, struct store_pending *pending)
{
	struct record_rows all = pending->records;
	struct change_record **records =
		arena_array(pending->call.arena, all.count, sizeof *records);

	for (size_t i = 0; i < dispatcher->filter_count; i++) {
		const struct filter *filter = &dispatcher->filters[i];
		size_t count = 0;

		for (size_t j = 0; j < all.count; j++) {
			struct change_record *record = &all.items[j];

			if (!record->held && !record->covered && !record->summary &&
				(record->told.count == 0 ||
					filter->context == dispatcher->silences))
				records[count++] = record;
		}
		ask_filter(filter, records, count);
	}
	for (size_t i = 0; i < all.count; i++)
		if (all.items[i].told.count > 0 && !all.items[i].held)
			silences_summarize(dispatcher->silences, &all.items[i]);
}

/* Until when the report of a recovery waits for others of its environment event, ms; 0: it does
 * not. */
static int64_t held_until(const struct dispatcher *dispatcher, const struct store_pending *pending,
	const struct due_event *recovered)
{
	const struct due_rows *all = &pending->events;
	const struct environment_event *event =
		environments_find(&pending->environments, recovered->record->environment_event);
	bool straggler = event && event->back > 0;
	int64_t until = INT64_MAX;
	size_t over = 0, recoveries = 0;

	if (!event || (dispatcher->agent->once && !straggler))
		return 0;
	for (size_t i = 0; i < all->count; i++) {
		const struct due_event *due = &all->items[i];
		int64_t most = RECOVERY_MOST;

		recoveries += due->event.kind == EVENT_RECOVERED;
		if (due->event.kind != EVENT_RECOVERED || !due->record ||
			due->record->environment_event != event->id)
			continue;
		if (!straggler && due->record->item.spacing < RECOVERY_MOST / RECOVERY_POINTS)
			most = RECOVERY_POINTS * due->record->item.spacing;
		until = due->event.time + most < until ? due->event.time + most : until;
		over++;
	}
	if (recoveries == STORE_DUE) /* others could not be read */
		return 0;
	if (straggler ? event->standing == 0 || over >= ENVIRONMENT_LEAST
		      : 100 * over >= RECOVERY_SHARE * event->hit)
		return 0;
	return until > agent_now(dispatcher->agent) ? until : 0;
}

/* Decides which of the events wait; those that go on waiting as they did are not written. */
static void decide_events(struct round *round)
{
	struct dispatcher *dispatcher = round->dispatcher;
	const struct store_pending *pending = round->pending;
	const struct due_rows *all = &pending->events;
	struct due_rows *out = &round->queue->events;
	int64_t now = agent_now(dispatcher->agent);

	out->items = arena_array(pending->call.arena, all->count, sizeof *out->items);
	for (size_t i = 0; i < all->count; i++) {
		struct due_event due = all->items[i];
		int64_t until = due.event.kind == EVENT_RECOVERED && due.record
					? held_until(dispatcher, pending, &due)
					: 0;

		if (until != 0)
			look_after(dispatcher, until - now);
		if (until != 0 && due.event.reason && due.event.due == until)
			continue;
		due.event.due = until;
		due.event.reason =
			until != 0 ? "waits for others of its environment to recover" : NULL;
		out->items[out->count++] = due;
	}
}

/* Whether the receiver should get the record and has not yet. */
static bool lacks(const struct round *round, size_t index, const struct receiver *receiver)
{
	const struct change_record *record = &round->pending->records.items[index];

	if (record->held || record->covered || !route_find(&round->routed[index], receiver))
		return false;
	for (size_t i = 0; i < record->told.count; i++)
		if (strcmp(record->told.items[i], receiver->name) == 0)
			return false;
	return true;
}

/* On a worker, like the functions below. */
static void route(struct round *round)
{
	struct arena *arena = round->pending->call.arena;
	struct record_rows rows = round->pending->records;

	round->routed = arena_array(arena, rows.count, sizeof *round->routed);
	for (size_t i = 0; i < rows.count; i++)
		if (!rows.items[i].held && !rows.items[i].covered)
			round->routed[i] = route_change(round->publisher.router, &rows.items[i],
				MESSAGES_OF_CHANGES, arena, NULL);
}

/* The changes that routes send to the receiver in messages of exactly these kinds. */
static bool render_kinds(
	struct round *round, const struct receiver *receiver, unsigned kinds, struct error *error)
{
	struct arena *arena = round->pending->call.arena;
	struct record_rows rows = round->pending->records;
	const struct change_record **records = arena_array(arena, rows.count, sizeof *records);
	struct strings *group_by = arena_array(arena, rows.count, sizeof *group_by);
	size_t count = 0, due;

	for (size_t i = 0; i < rows.count; i++) {
		const struct routed *routed =
			lacks(round, i, receiver) ? route_find(&round->routed[i], receiver) : NULL;

		if (!routed || routed->kinds != kinds)
			continue;
		group_by[count] = routed->group_by;
		records[count++] = &rows.items[i];
	}
	due = publisher_due(
		&round->publisher, receiver, records, group_by, count, kinds, &round->until);
	for (size_t i = due; i < count; i++) {
		struct change_record *record = &rows.items[records[i] - rows.items];

		round->gathered[records[i] - rows.items] = true;
		record->noted = !order_same(record->reason, incident_gathered);
		record->reason = incident_gathered;
	}
	return due == 0 ||
	       publisher_changes(&round->publisher, receiver, records, group_by, due, kinds, error);
}

static void render_for(struct round *round, const struct receiver *receiver)
{
	static const unsigned kinds[] = {
		MESSAGES_OF_CHANGES, 1u << MESSAGE_NEW, 1u << MESSAGE_UPDATED};
	struct delivery_rows *deliveries = &round->queue->deliveries;
	struct error *problem = &round->unwritten[receiver - round->publisher.config->receivers];
	struct record_rows rows = round->pending->records;
	size_t before = deliveries->count;

	round->gathered = arena_array(round->pending->call.arena, rows.count, sizeof(bool));
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!render_kinds(round, receiver, kinds[i], problem)) {
			deliveries->count = before;
			return;
		}
	for (size_t i = 0; i < rows.count; i++)
		if (lacks(round, i, receiver) && !round->gathered[i])
			record_told(round->pending->call.arena, &rows.items[i], receiver->name);
}

/* True if every receiver of the record has it. */
static bool is_complete(const struct round *round, size_t index)
{
	const struct change_record *record = &round->pending->records.items[index];

	if (record->held || record->covered)
		return record->covered;
	for (size_t i = 0; i < round->routed[index].count; i++)
		if (lacks(round, index, round->routed[index].items[i].receiver))
			return false;
	return true;
}

static void list_changes(struct round *round)
{
	struct store_queue *queue = round->queue;
	const struct record_rows rows = round->pending->records;
	struct decided_change *changes =
		arena_array(queue->call.arena, rows.count, sizeof *changes);

	for (size_t i = 0; i < rows.count; i++) {
		const struct change_record *record = &rows.items[i];
		bool judged = record->held || record->covered, waits = !is_complete(round, i);
		const struct decision *routed = judged ? NULL : &round->routed[i].decision;
		struct decided_change decided = {.id = record->item.id, .held = waits};

		if (routed && routed->verdict == DROP)
			log_event(LEVEL_INFO, "change matched no receiver",
				LOG_INT("id", record->item.id), LOG_TEXT("test", record->item.test),
				LOG_TEXT("metric", record->item.metric),
				LOG_TEXT("reason", routed->reason));
		if (waits && !record->noted)
			continue;
		if (judged || waits)
			decided.reason = arena_strdup(queue->call.arena, record->reason);
		else if (routed->verdict == DROP && record->told.count == 0)
			decided.reason = arena_strdup(queue->call.arena, routed->reason);
		changes[queue->change_count++] = decided;
	}
	queue->changes = changes;
}

static void render(void *context)
{
	struct round *round = context;
	const struct config *config = round->publisher.config;

	incidents_assign(round->pending, round->incidents, config, round->queue);
	round->publisher.router = router_new(config_routing(config));
	route(round);
	publisher_replies(&round->publisher, &round->queue->events);
	for (size_t i = 0; i < config->receiver_count; i++) {
		render_for(round, &config->receivers[i]);
		round->incomplete |= round->unwritten[i].kind != ERROR_NONE;
	}
	list_changes(round);
	router_free(round->publisher.router);
	round->publisher.router = NULL;
}

/* Frees what it has read. */
static void clear(struct round *round)
{
	config_ref_release(round->config_ref);
	if (round->queue)
		store_call_free(&round->queue->call);
	if (round->incidents)
		store_call_free(&round->incidents->call);
	if (round->pending)
		store_call_free(&round->pending->call);
	*round = (struct round){0};
}

/* `done`: nothing went wrong. */
static void round_end(struct dispatcher *dispatcher, bool done)
{
	bool again = dispatcher->again, incomplete = dispatcher->round.incomplete;
	int64_t until = dispatcher->round.until;

	silences_written(dispatcher->silences, done && !incomplete);
	clear(&dispatcher->round);
	dispatcher->busy = false;
	if (until != 0)
		look_after(dispatcher, until - agent_now(dispatcher->agent));
	if (!done || incomplete)
		look_after(dispatcher, done ? RENDER_AGAIN : FLUSH_AGAIN);
	if (dispatcher->agent->fleet && count_due(&dispatcher->news.due) > 0)
		look_after(dispatcher, LOOK_ANYWAY);
	dispatcher->again = false;
	if (again)
		look_soon(dispatcher);
}

static void queued(struct store_queue *queue)
{
	struct dispatcher *dispatcher = queue->call.context;
	bool stored = !queue->call.failed;

	dispatcher->agent->stateless |= !stored && !queue->call.fenced;
	for (size_t i = 0; stored && i < queue->member_count; i++)
		if (queue->members[i].inherited) {
			agent_triaged(dispatcher->agent);
			break;
		}
	if (stored)
		agent_awaits(dispatcher->agent, queue->due.changes);
	if (stored && queue->deliveries.count > 0)
		agent_hint(dispatcher->agent, HINT_DELIVERIES);
	round_end(dispatcher, stored);
	if (stored && queue->due.events > 0)
		dispatcher_flush(dispatcher);
	store_call_free(&queue->call);
}

/* Replies to an event's thread when another environment changed in the same way. */
static void publish_followed(const struct round *round)
{
	const struct environment_event *event;
	const char *value;
	size_t at = 0;

	while ((event = environments_followed(round->dispatcher->environments, &at, &value)))
		publisher_followed(&round->publisher, event, value);
}

/* Writes what the round has decided. */
static void write_round(struct round *round)
{
	struct dispatcher *dispatcher = round->dispatcher;
	struct store_queue *queue = round->queue;

	if (queue->deliveries.count + queue->change_count + queue->member_count +
			queue->events.count ==
		0) {
		round_end(dispatcher, true);
		return;
	}
	if (round->incidents) {
		environments_write(dispatcher->environments, queue);
		publish_followed(round);
	}
	round->queue = NULL;
	store_client_call(dispatcher->agent, &queue->call);
}

static void rendered(void *context)
{
	struct round *round = context;
	struct dispatcher *dispatcher = round->dispatcher;
	const struct config *config = round->publisher.config;

	dispatcher->agent->under_way--;
	for (size_t i = 0; i < config->receiver_count; i++) {
		if (round->unwritten[i].kind != ERROR_NONE)
			notices_unwritten(dispatcher->agent, &config->receivers[i],
				&round->unwritten[i], true);
		if (round->publisher.lost[i].kind != ERROR_NONE)
			notices_unwritten(dispatcher->agent, &config->receivers[i],
				&round->publisher.lost[i], false);
	}
	write_round(round);
	agent_ended(dispatcher->agent);
}

/* Whether there are messages to render. */
static bool has_messages(const struct round *round)
{
	const struct record_rows rows = round->pending->records;
	const struct due_rows *events = &round->queue->events;

	for (size_t i = 0; i < rows.count; i++)
		if (!rows.items[i].held)
			return true;
	for (size_t i = 0; i < events->count; i++)
		if (events->items[i].event.due == 0)
			return true;
	return false;
}

static void incidents_read(struct store_incidents *found)
{
	struct dispatcher *dispatcher = found->call.context;
	struct agent *agent = dispatcher->agent;
	struct round *round = &dispatcher->round;
	struct arena *arena = round->pending->call.arena;
	size_t receivers = agent->config->receiver_count;

	round->incidents = found;
	agent->stateless |= found->call.failed;
	if (found->call.failed || !is_leader(dispatcher)) {
		round_end(dispatcher, false);
		return;
	}
	round->config_ref = agent->config_ref ? config_ref_hold(agent->config_ref) : NULL;
	round->publisher = (struct publisher){.config = agent->config,
		.incidents = found,
		.pending = round->pending,
		.events = environments_events(dispatcher->environments),
		.now = agent_now(agent),
		.queue = round->queue,
		.lost = arena_array(arena, receivers, sizeof *round->publisher.lost)};
	round->unwritten = arena_array(arena, receivers, sizeof *round->unwritten);
	agent->under_way++;
	engine_compute(agent->engine, render, rendered, round);
}

static void pending_read(struct store_pending *pending)
{
	struct dispatcher *dispatcher = pending->call.context;
	struct agent *agent = dispatcher->agent;
	struct round *round = &dispatcher->round;
	struct store_incidents *request;

	round->pending = pending;
	agent->stateless |= pending->call.failed;
	if (pending->call.failed || !is_leader(dispatcher)) {
		round_end(dispatcher, false);
		return;
	}
	agent_awaits(agent, (int64_t)pending->records.count);
	date_records(dispatcher, pending->records);
	environments_read(dispatcher->environments, pending);
	ask_filters(dispatcher, pending);
	decide_events(round);
	if (!has_messages(round)) {
		list_changes(round);
		write_round(round);
		return;
	}
	request = store_incidents_new(incidents_read, dispatcher);
	request->now = agent_now(agent);
	incidents_ask(pending, request);
	store_client_call(agent, &request->call);
}

void dispatcher_flush(struct dispatcher *dispatcher)
{
	struct agent *agent = dispatcher->agent;
	struct store_queue *queue;

	if (!is_leader(dispatcher))
		return;
	dispatcher->again = dispatcher->busy;
	if (dispatcher->busy || agent->stopping)
		return;
	if (!fleet_holds(agent, FLEET_LEADER)) {
		agent->stateless |= agent->once;
		look_after(dispatcher, HOLD_AGAIN);
		return;
	}
	dispatcher->busy = true;
	queue = store_queue_new(queued, dispatcher);
	fleet_fence(agent, &queue->call, FLEET_LEADER); /* before anything is read */
	dispatcher->round = (struct round){.dispatcher = dispatcher, .queue = queue};
	store_client_call(agent, &store_pending_new(pending_read, dispatcher)->call);
}

bool dispatcher_is_due(const struct dispatcher *dispatcher)
{
	return dispatcher->again && is_leader(dispatcher);
}

/* With --once, the final round handles it. */
static void silence_over(void *context)
{
	struct dispatcher *dispatcher = context;

	if (!dispatcher->agent->once)
		dispatcher_flush(dispatcher);
}

/* In a fleet */

/* The answer may lack silences that were added here meanwhile. */
static void silences_read(struct store_silences *list)
{
	struct dispatcher *dispatcher = list->call.context;
	bool failed = list->call.failed;

	if (!failed && dispatcher->silences_seen == silences_version(dispatcher->silences))
		silences_restore(dispatcher->silences, &list->silences);
	else if (!failed)
		poll_now(&dispatcher->reading);
	store_call_free(&list->call);
	poll_answered(&dispatcher->reading, failed ? FLUSH_AGAIN : WHEN_NEVER);
}

static void read_silences(void *context)
{
	struct dispatcher *dispatcher = context;
	struct store_silences *list = store_silences_new(silences_read, dispatcher);

	dispatcher->silences_seen = silences_version(dispatcher->silences);
	list->now = agent_now(dispatcher->agent);
	store_client_call(dispatcher->agent, &list->call);
}

static void gained(
	void *context, const struct fleet_shards *shards, const struct store_restore *restored)
{
	if (shards->has[FLEET_LEADER])
		dispatcher_restore(context, restored);
}

static void lost(void *context, const struct fleet_shards *shards)
{
	struct dispatcher *dispatcher = context;

	if (!shards->has[FLEET_LEADER])
		return;
	silences_forget(dispatcher->silences);
}

static bool is_busy(void *context, int shard)
{
	const struct dispatcher *dispatcher = context;

	return shard == FLEET_LEADER && dispatcher->busy;
}

static void news(void *context, const struct fleet_news *news)
{
	struct dispatcher *dispatcher = context;
	bool due = count_due(&news->due) > 0 &&
		   (news->due_set != dispatcher->news.due_set ||
			   memcmp(&news->due, &dispatcher->news.due, sizeof news->due) != 0);

	if (news->last_audit != dispatcher->news.last_audit) {
		agent_triaged(dispatcher->agent);
		poll_now(&dispatcher->reading);
	}
	dispatcher->news = *news;
	agent_awaits(dispatcher->agent, news->due.changes);
	if (due && !dispatcher->agent->once)
		look_soon(dispatcher);
}

static void adopt(void *context)
{
	const struct dispatcher *dispatcher = context;

	silences_adopt(dispatcher->silences);
}

static void queue_notice(void *context, const struct notice *notice,
	const struct strings *receivers, struct store_queue *request)
{
	const struct dispatcher *dispatcher = context;

	notices_queue(dispatcher->notices, notice, receivers, request);
}

static bool holds_notice(void *context, const struct silence_target *subject, int64_t *until)
{
	const struct dispatcher *dispatcher = context;

	return silences_hold(dispatcher->silences, subject, until);
}

static uint64_t version_of_silences(void *context)
{
	const struct dispatcher *dispatcher = context;

	return silences_version(dispatcher->silences);
}

struct dispatcher *dispatcher_new(struct agent *agent)
{
	struct dispatcher *dispatcher = memory_new(1, sizeof *dispatcher);

	*dispatcher = (struct dispatcher){.agent = agent,
		.seen_until = engine_now(agent->engine),
		.reading = {.agent = agent, .ask = read_silences, .context = dispatcher},
		.alarm = {.call = look_alarm, .context = dispatcher}};
	dispatcher->environments = environments_new(agent);
	dispatcher->notices = notices_new(agent);
	dispatcher->silences = silences_new(agent, dispatcher->notices, silence_over, dispatcher);
	dispatcher_filter(dispatcher, environments_filter(dispatcher->environments));
	dispatcher_filter(dispatcher, silences_filter(dispatcher->silences));
	agent->notices =
		(struct notice_calls){queue_notice, holds_notice, version_of_silences, dispatcher};
	agent_listen(agent, HINT_CHANGES, look_soon, dispatcher);
	agent_listen(agent, HINT_TRIAGE, look_soon, dispatcher);
	agent_listen(agent, HINT_CONFIGURATION, adopt, dispatcher);
	fleet_listen(agent, &(struct fleet_listener){.gained = gained,
				    .lost = lost,
				    .is_busy = is_busy,
				    .news = news,
				    .context = dispatcher});
	return dispatcher;
}

void dispatcher_free(struct dispatcher *dispatcher)
{
	if (!dispatcher)
		return;
	clear(&dispatcher->round);
	environments_free(dispatcher->environments);
	silences_free(dispatcher->silences);
	notices_free(dispatcher->notices);
	free(dispatcher->arrivals);
	free(dispatcher);
}

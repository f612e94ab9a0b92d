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

#include "agent/fleet/fleet.h"
#include "agent/io/timers.h"
#include "agent/notify/incidents.h"
#include "agent/notify/notices.h"
#include "agent/notify/publisher.h"
#include "agent/runtime/store_backlog.h"

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

/* When this process first saw a pending change (engine_now); the filters measure waits from it. */
struct arrival {
	int64_t id, time;
};

/* A receiver for which a message cannot be rendered. */
struct unwritten {
	const struct receiver *receiver;
	struct error error;
};

/* A round over everything pending. Lies in the arena of `pending`. */
struct round {
	struct dispatcher *dispatcher;
	struct store_pending *pending;
	struct store_incidents *incidents; /* NULL: no change is announced */
	struct store_queue *queue;         /* the store's from the worker's end on */
	struct config_ref *config_ref;
	struct publisher publisher;
	struct routed_receivers *routed; /* of each of the pending records */
	struct unwritten *unwritten;
	size_t unwritten_count;
};

struct dispatcher {
	struct agent *agent;
	struct delivery_manager *delivery_manager;
	struct filter filters[DISPATCHER_FILTERS]; /* in the order of evaluation */
	size_t filter_count;
	struct environments *environments;
	struct silences *silences;
	struct store_backlog *backlog; /* notices, and reopened changes */
	struct notices *notices;
	struct round *round; /* being rendered, or queued */
	bool busy;           /* a round is in progress ... */
	bool again;          /* ... and another has to follow */
	int64_t began;       /* engine_now, the round */
	int64_t restored_at; /* engine_now, when earlier pending changes were restored */
	struct arrival *arrivals;
	size_t arrival_count;
	int64_t kept;       /* recoveries that are held, ... */
	int64_t kept_wait;  /* ... and ms until the first is due */
	struct alarm alarm; /* of the next round */
	/* In a fleet: */
	bool leader;             /* gained and not lost */
	bool peeking;            /* the round only determines when the next is due */
	struct store_call fence; /* of the round, taken before anything is read */
	int64_t look_at;         /* engine_now: the next round planned */
	struct fleet_news news;  /* the last */
	bool reading_silences, read_again;
	uint64_t silences_seen; /* their version when reading them began */
};

static void look_alarm(void *dispatcher)
{
	dispatcher_flush(dispatcher);
}

static void look_after(struct dispatcher *dispatcher, int64_t wait)
{
	struct engine *engine = dispatcher->agent->engine;
	int64_t at = engine_now(engine) + wait;

	if (dispatcher->agent->once)
		return;
	if (dispatcher->look_at <= engine_now(engine) || at < dispatcher->look_at)
		dispatcher->look_at = at;
	engine_alarm(engine, &dispatcher->alarm, at);
}

/* Whether this agent announces changes. */
static bool is_leader(const struct dispatcher *dispatcher)
{
	const struct agent *agent = dispatcher->agent;

	return !fleet_is_shared(agent) || dispatcher->leader;
}

/* Arrivals during a round wait for the next. */
static void look_soon(struct dispatcher *dispatcher)
{
	if (dispatcher->busy)
		dispatcher->again = true;
	else
		look_after(dispatcher, dispatcher->agent->config->agent.group_wait);
}

static void remember(struct dispatcher *dispatcher, int64_t id)
{
	dispatcher->arrivals = memory_resize(
		dispatcher->arrivals, dispatcher->arrival_count + 1, sizeof *dispatcher->arrivals);
	dispatcher->arrivals[dispatcher->arrival_count++] =
		(struct arrival){id, engine_now(dispatcher->agent->engine)};
}

void dispatcher_note(struct dispatcher *dispatcher, const struct store_record *recorded)
{
	const struct store_counts *counts = recorded->call.counts;
	const struct filter *filters = dispatcher->filters;
	const struct store_due *due;
	bool news;

	if (!counts)
		return;
	due = &counts->due;
	news = due->retractions + due->said > 0 || due->recoveries > dispatcher->kept ||
	       recorded->renewed > 0;
	for (size_t i = 0; i < dispatcher->filter_count; i++)
		if (filters[i].note)
			filters[i].note(filters[i].context, &recorded->records);
	if (!is_leader(dispatcher))
		return;
	if (due->recoveries < dispatcher->kept)
		dispatcher->kept = due->recoveries; /* some were settled otherwise */
	for (size_t i = 0; i < recorded->records.count; i++)
		if (recorded->records.items[i].news == NOTIFY_PENDING) {
			remember(dispatcher, recorded->records.items[i].item.id);
			news = true;
		}
	silences_pending(dispatcher->silences, due->changes);
	if (news)
		look_soon(dispatcher);
}

void dispatcher_again(struct dispatcher *dispatcher)
{
	if (is_leader(dispatcher))
		look_soon(dispatcher);
}

static int64_t count_due(const struct store_due *due)
{
	return due->changes + due->recoveries + due->retractions + due->said;
}

static void resume(struct dispatcher *dispatcher, const struct store_restore *restored)
{
	dispatcher->restored_at = engine_now(dispatcher->agent->engine);
	environments_restore(dispatcher->environments, &restored->environments);
	silences_restore(dispatcher->silences, &restored->silences);
	if (count_due(&restored->call.counts->due) > 0)
		look_soon(dispatcher);
}

void dispatcher_restore(struct dispatcher *dispatcher, const struct store_restore *restored)
{
	if (is_leader(dispatcher))
		resume(dispatcher, restored);
	else
		silences_restore(dispatcher->silences, &restored->silences);
}

void dispatcher_filter(struct dispatcher *dispatcher, struct filter filter)
{
	assert(dispatcher->filter_count < DISPATCHER_FILTERS);
	memmove(dispatcher->filters + 1, dispatcher->filters,
		dispatcher->filter_count * sizeof *dispatcher->filters);
	dispatcher->filters[0] = filter;
	dispatcher->filter_count++;
}

struct environments *dispatcher_environments(const struct dispatcher *dispatcher)
{
	return dispatcher->environments;
}

void dispatcher_look(struct dispatcher *dispatcher)
{
	if (dispatcher->arrival_count > 0 || dispatcher->busy)
		look_soon(dispatcher);
}

static int compare_arrivals(const void *a, const void *b)
{
	const struct arrival *left = a, *right = b;

	if (left->id != right->id)
		return left->id < right->id ? -1 : 1;
	return (left->time > right->time) - (left->time < right->time);
}

/* Arrival of a record that no run of this agent has recorded. */
static int64_t arrived_at(const struct dispatcher *dispatcher, const struct change_record *record)
{
	struct agent *agent = dispatcher->agent;
	int64_t age = agent_now(agent) - record->updated;
	int64_t at = engine_now(agent->engine) - (age > 0 ? age : 0);

	return agent->fleet && at > dispatcher->restored_at ? at : dispatcher->restored_at;
}

/* Sets the records' arrival times; keeps those of these records and of arrivals since the round
 * began. */
static void date_records(struct dispatcher *dispatcher, struct record_rows records)
{
	struct arrival *old = dispatcher->arrivals, *fresh;
	size_t count = 0, at = 0;

	fresh = memory_new(records.count + dispatcher->arrival_count, sizeof *fresh);
	if (dispatcher->arrival_count > 0)
		qsort(old, dispatcher->arrival_count, sizeof *old, compare_arrivals);
	for (size_t i = 0; i < records.count; i++) {
		struct change_record *record = &records.items[i];

		record->handed = arrived_at(dispatcher, record);
		for (; at < dispatcher->arrival_count && old[at].id <= record->item.id; at++)
			if (old[at].id == record->item.id)
				record->handed = old[at].time;
			else if (old[at].time >= dispatcher->began)
				fresh[count++] = old[at];
		fresh[count++] = (struct arrival){record->item.id, record->handed};
	}
	for (; at < dispatcher->arrival_count; at++)
		if (old[at].time >= dispatcher->began)
			fresh[count++] = old[at];
	free(old);
	dispatcher->arrivals = fresh;
	dispatcher->arrival_count = count;
}

/* Keeps the records that the filter passes and the next one judges. Those of a summary have waited
 * and go into its one message, so no further filter judges them. Returns their number. */
static size_t ask_filter(const struct filter *filter, struct change_record **records, size_t count)
{
	size_t kept = 0;

	if (filter->begin)
		filter->begin(filter->context, records, count);
	for (size_t i = 0; i < count; i++) {
		struct decision decision = filter->judge(filter->context, records[i]);

		records[i]->held = decision.verdict == HOLD;
		records[i]->covered = decision.verdict == DROP;
		records[i]->reason = decision.reason;
		if (decision.verdict == PASS)
			continue;
		log_event(LEVEL_DEBUG, records[i]->held ? "change held" : "change suppressed",
			LOG_INT("id", records[i]->item.id), LOG_TEXT("filter", filter->name),
			LOG_TEXT("reason", decision.reason));
	}
	for (size_t i = 0; i < count; i++)
		if (!records[i]->held && !records[i]->covered && !records[i]->summary)
			records[kept++] = records[i];
	return kept;
}

/* Skips changes that some receivers have already: the rest of the receivers get them with the same
 * text. */
static void ask_filters(const struct dispatcher *dispatcher, struct store_pending *pending)
{
	struct record_rows all = pending->records;
	struct change_record **records =
		arena_array(pending->call.arena, all.count, sizeof *records);
	size_t count = 0;

	for (size_t i = 0; i < all.count; i++)
		if (all.items[i].told.count == 0)
			records[count++] = &all.items[i];
	for (size_t i = 0; i < dispatcher->filter_count; i++)
		count = ask_filter(&dispatcher->filters[i], records, count);
	for (size_t i = 0; i < all.count; i++)
		if (all.items[i].told.count > 0)
			silences_summarize(dispatcher->silences, &all.items[i]);
}

/* The event as the store knows it. */
static const struct environment_event *stored_event(const struct store_pending *pending, int64_t id)
{
	for (size_t i = 0; i < pending->environments.count; i++)
		if (pending->environments.items[i].id == id)
			return &pending->environments.items[i];
	return NULL;
}

/* Events that no new change can join are kept in the store only. */
static const struct environment_event *event_of(
	const struct dispatcher *dispatcher, const struct store_pending *pending, int64_t id)
{
	const struct environment_event *event = environments_event(dispatcher->environments, id);

	return event || id == 0 ? event : stored_event(pending, id);
}

/* ms that a recovered change of an event still waits for the others; 0: none. */
static int64_t recovery_wait(
	const struct dispatcher *dispatcher, const struct change_record *record, bool straggler)
{
	int64_t now = agent_now(dispatcher->agent);
	int64_t most = record->item.spacing < RECOVERY_MOST && !straggler
			       ? RECOVERY_POINTS * record->item.spacing
			       : RECOVERY_MOST;
	int64_t left = record->updated + (most < RECOVERY_MOST ? most : RECOVERY_MOST) - now;

	return left > 0 ? left : 0;
}

/* Whether the recovery of the record's event is due. */
static bool is_due(struct dispatcher *dispatcher, const struct store_pending *pending,
	const struct change_record *record)
{
	const struct record_rows *all = &pending->recoveries;
	const struct environment_event *event =
		event_of(dispatcher, pending, record->environment_event);
	const struct environment_event *stored = stored_event(pending, record->environment_event);
	bool straggler = stored && stored->back > 0;
	int64_t least = RECOVERY_MOST;
	size_t over = 0;

	if (!event || (dispatcher->agent->once && !straggler) || all->count == STORE_RECOVERIES)
		return true;
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].environment_event == event->id) {
			int64_t left = recovery_wait(dispatcher, &all->items[i], straggler);

			least = left < least ? left : least;
			over++;
		}
	if (least == 0 || (straggler ? stored->standing == 0 || over >= ENVIRONMENT_LEAST
				     : 100 * over >= RECOVERY_SHARE * event->hit))
		return true;
	if (dispatcher->kept++ == 0 || least < dispatcher->kept_wait)
		dispatcher->kept_wait = least;
	return false;
}

static void hold_recoveries(struct dispatcher *dispatcher, struct store_pending *pending)
{
	dispatcher->kept = 0;
	for (size_t i = 0; i < pending->recoveries.count; i++) {
		struct change_record *record = &pending->recoveries.items[i];

		record->held = !is_due(dispatcher, pending, record);
	}
}

/* Whether the receiver should get the record and has not yet. */
static bool lacks(const struct round *round, size_t index, const struct receiver *receiver)
{
	const struct change_record *record = &round->pending->records.items[index];

	if (record->held || record->covered || !router_find(&round->routed[index], receiver))
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
			round->routed[i] = router_route(round->publisher.router, &rows.items[i],
				MESSAGES_OF_CHANGES, arena);
}

/* The changes that routes send to the receiver in messages of exactly these kinds. */
static bool render_kinds(
	struct round *round, const struct receiver *receiver, unsigned kinds, struct error *error)
{
	struct arena *arena = round->pending->call.arena;
	struct record_rows rows = round->pending->records;
	const struct change_record **records = arena_array(arena, rows.count, sizeof *records);
	struct strings *group_by = arena_array(arena, rows.count, sizeof *group_by);
	size_t count = 0;

	for (size_t i = 0; i < rows.count; i++) {
		const struct routed_receiver *routed =
			lacks(round, i, receiver) ? router_find(&round->routed[i], receiver) : NULL;

		if (!routed || routed->kinds != kinds)
			continue;
		group_by[count] = routed->group_by;
		records[count++] = &rows.items[i];
	}
	return count == 0 || publisher_changes(&round->publisher, receiver, records, group_by,
				     count, kinds, error);
}

static void render_for(struct round *round, const struct receiver *receiver)
{
	static const unsigned kinds[] = {
		MESSAGES_OF_CHANGES, 1u << MESSAGE_NEW, 1u << MESSAGE_UPDATED};
	struct delivery_rows *deliveries = &round->queue->deliveries;
	struct unwritten *unwritten = &round->unwritten[round->unwritten_count];
	struct record_rows rows = round->pending->records;
	size_t before = deliveries->count;

	unwritten->receiver = receiver;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!render_kinds(round, receiver, kinds[i], &unwritten->error)) {
			deliveries->count = before;
			round->unwritten_count++;
			return;
		}
	for (size_t i = 0; i < rows.count; i++)
		if (lacks(round, i, receiver))
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

static void list_told(struct round *round)
{
	struct store_queue *queue = round->queue;
	const struct store_pending *pending = round->pending;
	size_t most = pending->records.count + pending->recoveries.count;
	int64_t *told = arena_array(queue->call.arena, most, sizeof *told);
	const char **reasons = arena_array(queue->call.arena, most, sizeof *reasons);

	for (size_t i = 0; i < pending->records.count; i++) {
		const struct change_record *record = &pending->records.items[i];

		if (!is_complete(round, i))
			continue;
		if (record->covered)
			reasons[queue->told_count] =
				arena_strdup(queue->call.arena, record->reason);
		else if (round->routed[i].count == 0 && record->told.count == 0)
			reasons[queue->told_count] = "no receiver takes it";
		told[queue->told_count++] = record->item.id;
	}
	for (size_t i = 0; i < pending->recoveries.count; i++) {
		reasons[queue->told_count] =
			arena_strdup(queue->call.arena, pending->recoveries.items[i].reason);
		if (!pending->recoveries.items[i].held)
			told[queue->told_count++] = pending->recoveries.items[i].item.id;
	}
	queue->told = told;
	queue->reasons = reasons;
	queue->retracted = pending->retractions;
	queue->said = pending->said;
}

static void render(void *context)
{
	struct round *round = context;
	const struct config *config = round->publisher.config;

	if (round->incidents)
		incidents_assign(round->pending, round->incidents, config);
	round->publisher.router = router_new(config);
	route(round);
	publisher_retractions(&round->publisher, &round->pending->retractions);
	publisher_updates(&round->publisher, &round->pending->said);
	publisher_recoveries(&round->publisher, &round->pending->messages);
	for (size_t i = 0; i < config->receiver_count; i++)
		render_for(round, &config->receivers[i]);
	list_told(round);
	incidents_write(round->pending, round->incidents, round->queue);
	router_free(round->publisher.router);
	round->publisher.router = NULL;
}

static void round_end(struct dispatcher *dispatcher)
{
	bool again = dispatcher->again;

	dispatcher->busy = dispatcher->again = dispatcher->peeking = false;
	if (dispatcher->kept > 0)
		look_after(dispatcher, dispatcher->kept_wait);
	if (dispatcher->agent->fleet && count_due(&dispatcher->news.due) > 0)
		look_after(dispatcher, LOOK_ANYWAY);
	if (again && dispatcher->agent->once)
		dispatcher_flush(dispatcher);
	else if (again)
		look_soon(dispatcher);
}

static void round_free(struct round *round)
{
	if (!round)
		return;
	config_ref_release(round->config_ref);
	if (round->queue)
		store_call_free(&round->queue->call);
	if (round->incidents)
		store_call_free(&round->incidents->call);
	store_call_free(&round->pending->call);
}

/* Pending changes that no filter holds, but some receivers still lack. */
static bool has_unwritten(const struct round *round)
{
	struct record_rows records = round->pending->records;

	for (size_t i = 0; i < records.count; i++)
		if (!records.items[i].held && !is_complete(round, i))
			return true;
	return false;
}

static void queued(struct store_queue *queue)
{
	struct dispatcher *dispatcher = queue->call.context;
	struct round *round = dispatcher->round;
	bool more = false;

	dispatcher->round = NULL;
	environments_written(dispatcher->environments, !queue->call.failed);
	silences_written(dispatcher->silences, !queue->call.failed && !has_unwritten(round));
	if (queue->call.failed) {
		dispatcher->agent->stateless |= !queue->call.fenced;
		look_after(dispatcher, FLUSH_AGAIN);
	} else {
		delivery_manager_send(dispatcher->delivery_manager, &queue->deliveries);
		if (has_unwritten(round))
			look_after(dispatcher, RENDER_AGAIN);
		more = queue->due.recoveries > dispatcher->kept ||
		       queue->due.retractions + queue->due.said > 0;
	}
	round_free(round);
	store_call_free(&queue->call);
	round_end(dispatcher);
	if (more)
		dispatcher_flush(dispatcher);
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

static void log_untold(const struct round *round)
{
	struct record_rows records = round->pending->records;

	for (size_t i = 0; i < records.count; i++)
		if (!records.items[i].held && !records.items[i].covered &&
			round->routed[i].count == 0)
			log_event(LEVEL_INFO, "change matched no receiver",
				LOG_INT("id", records.items[i].item.id),
				LOG_TEXT("test", records.items[i].item.test),
				LOG_TEXT("metric", records.items[i].item.metric));
}

static void rendered(void *context)
{
	struct round *round = context;
	struct dispatcher *dispatcher = round->dispatcher;
	struct store_queue *queue = round->queue;

	dispatcher->agent->under_way--;
	log_untold(round);
	for (size_t i = 0; i < round->unwritten_count; i++)
		delivery_manager_unwritten(dispatcher->delivery_manager,
			round->unwritten[i].receiver, &round->unwritten[i].error, true);
	for (size_t i = 0; i < round->publisher.config->receiver_count; i++)
		if (round->publisher.lost[i].kind != ERROR_NONE)
			delivery_manager_unwritten(dispatcher->delivery_manager,
				&round->publisher.config->receivers[i], &round->publisher.lost[i],
				false);
	if (queue->deliveries.count + queue->told_count + queue->retracted.count +
			queue->said.count >
		0) {
		environments_write(dispatcher->environments, queue);
		publish_followed(round);
		round->queue = NULL;
		store_client_call(dispatcher->agent, &queue->call);
		return;
	}
	environments_written(dispatcher->environments, false);
	silences_written(dispatcher->silences, !has_unwritten(round));
	if (has_unwritten(round))
		look_after(dispatcher, RENDER_AGAIN);
	dispatcher->round = NULL;
	round_free(round);
	round_end(dispatcher);
	agent_ended(dispatcher->agent);
}

/* Copies the events of the records: the worker must not access the filter. */
static void add_events(struct round *round, struct record_rows records)
{
	const struct dispatcher *dispatcher = round->dispatcher;
	struct arena *arena = round->pending->call.arena;
	struct publisher *publisher = &round->publisher;
	const struct environment_event **events =
		arena_array(arena, publisher->event_count + records.count, sizeof *events);

	for (size_t i = 0; i < publisher->event_count; i++)
		events[i] = publisher->events[i];
	for (size_t i = 0, j; i < records.count; i++) {
		int64_t id = records.items[i].environment_event;
		const struct environment_event *event = event_of(dispatcher, round->pending, id);
		const struct environment_event *stored = stored_event(round->pending, id);
		struct environment_event *copy;

		for (j = 0; j < publisher->event_count && events[j]->id != id; j++)
			;
		if (!event || j < publisher->event_count)
			continue;
		copy = arena_alloc(arena, sizeof *copy);
		*copy = *event;
		copy->label = arena_strdup(arena, event->label);
		copy->value = arena_strdup(arena, event->value);
		copy->standing = stored ? stored->standing : 0;
		events[publisher->event_count++] = copy;
	}
	publisher->events = events;
}

/* Whether there are messages to render. */
static bool has_work(const struct round *round)
{
	const struct store_pending *pending = round->pending;

	for (size_t i = 0; i < pending->records.count; i++)
		if (!pending->records.items[i].held)
			return true;
	for (size_t i = 0; i < pending->recoveries.count; i++)
		if (!pending->recoveries.items[i].held)
			return true;
	return pending->retractions.count + pending->said.count > 0;
}

static void round_render(struct round *round)
{
	struct dispatcher *dispatcher = round->dispatcher;
	struct agent *agent = dispatcher->agent;

	round->queue = store_queue_new(queued, dispatcher);
	round->queue->call.shard = dispatcher->fence.shard;
	round->queue->call.term = dispatcher->fence.term;
	round->config_ref = agent->config_ref ? config_ref_hold(agent->config_ref) : NULL;
	round->publisher = (struct publisher){.config = agent->config,
		.incidents = round->incidents,
		.now = agent_now(agent),
		.queue = round->queue};
	round->unwritten = arena_array(round->pending->call.arena, agent->config->receiver_count,
		sizeof *round->unwritten);
	round->publisher.lost = arena_array(round->pending->call.arena,
		agent->config->receiver_count, sizeof *round->publisher.lost);
	add_events(round, round->pending->records);
	add_events(round, round->pending->recoveries);
	agent->under_way++;
	engine_compute(agent->engine, render, rendered, round);
}

/* Whether the round only reads, and pending changes are announced later. */
static bool has_peeked(struct dispatcher *dispatcher, const struct store_pending *pending)
{
	int64_t group_wait = dispatcher->agent->config->agent.group_wait, first = INT64_MAX, wait;
	const struct arrival *known = dispatcher->arrivals;
	size_t at = 0;

	if (!dispatcher->peeking)
		return false;
	if (dispatcher->arrival_count > 0)
		qsort(dispatcher->arrivals, dispatcher->arrival_count, sizeof *known,
			compare_arrivals);
	for (size_t i = 0; i < pending->records.count; i++) {
		const struct change_record *record = &pending->records.items[i];

		while (at < dispatcher->arrival_count && known[at].id < record->item.id)
			at++;
		if ((at == dispatcher->arrival_count || known[at].id != record->item.id) &&
			record->updated < first)
			first = record->updated;
	}
	for (size_t i = 0; i < pending->recoveries.count; i++)
		if ((int64_t)pending->recoveries.count > dispatcher->kept &&
			pending->recoveries.items[i].updated < first)
			first = pending->recoveries.items[i].updated;
	if (first == INT64_MAX && pending->retractions.count + pending->said.count > 0)
		first = agent_now(dispatcher->agent); /* pending since an unknown time */
	if (first == INT64_MAX)
		return true;
	wait = first + group_wait - agent_now(dispatcher->agent);
	if (wait > 0)
		look_after(dispatcher, wait < group_wait ? wait : group_wait);
	return wait > 0;
}

/* Nothing of it was announced. */
static void give_round_up(struct dispatcher *dispatcher)
{
	struct round *round = dispatcher->round;

	dispatcher->round = NULL;
	environments_written(dispatcher->environments, false);
	silences_written(dispatcher->silences, false);
	round_free(round);
	look_after(dispatcher, FLUSH_AGAIN);
	round_end(dispatcher);
}

static void incidents_read(struct store_incidents *found)
{
	struct dispatcher *dispatcher = found->call.context;

	dispatcher->round->incidents = found;
	if (!found->call.failed && is_leader(dispatcher)) {
		round_render(dispatcher->round);
		return;
	}
	dispatcher->agent->stateless |= found->call.failed;
	give_round_up(dispatcher);
}

/* Reads the data for rendering, then renders the round. */
static void round_tell(struct round *round)
{
	struct dispatcher *dispatcher = round->dispatcher;
	struct store_incidents *request;
	const char *value;
	size_t followed = 0;

	dispatcher->round = round;
	request = store_incidents_new(incidents_read, dispatcher);
	request->now = agent_now(dispatcher->agent);
	if (incidents_ask(round->pending, request) ||
		environments_followed(dispatcher->environments, &followed, &value)) {
		store_client_call(dispatcher->agent, &request->call);
		return;
	}
	store_call_free(&request->call);
	round_render(round);
}

static void pending_read(struct store_pending *pending)
{
	struct dispatcher *dispatcher = pending->call.context;
	struct round *round;

	if (pending->call.failed || !is_leader(dispatcher) || has_peeked(dispatcher, pending)) {
		if (pending->call.failed) {
			dispatcher->agent->stateless = true;
			look_after(dispatcher, FLUSH_AGAIN);
		}
		store_call_free(&pending->call);
		round_end(dispatcher);
		return;
	}
	round = arena_alloc(pending->call.arena, sizeof *round);
	*round = (struct round){.dispatcher = dispatcher, .pending = pending};
	date_records(dispatcher, pending->records);
	ask_filters(dispatcher, pending);
	hold_recoveries(dispatcher, pending);
	if (has_work(round)) {
		round_tell(round);
		return;
	}
	environments_written(dispatcher->environments, false);
	silences_written(dispatcher->silences, true);
	round_free(round);
	round_end(dispatcher);
}

static void begin_round(struct dispatcher *dispatcher, bool peek)
{
	struct agent *agent = dispatcher->agent;
	struct store_pending *pending;

	if (!is_leader(dispatcher))
		return;
	if (dispatcher->busy)
		dispatcher->again = true;
	if (dispatcher->busy || agent->stopping)
		return;
	if (!fleet_holds(agent, FLEET_LEADER)) {
		agent->stateless |= agent->once;
		look_after(dispatcher, HOLD_AGAIN);
		return;
	}
	dispatcher->busy = true;
	dispatcher->peeking = peek;
	dispatcher->began = engine_now(agent->engine);
	fleet_fence(agent, &dispatcher->fence, FLEET_LEADER);
	pending = store_pending_new(pending_read, dispatcher);
	store_client_call(agent, &pending->call);
}

void dispatcher_flush(struct dispatcher *dispatcher)
{
	begin_round(dispatcher, false);
}

void dispatcher_notice(struct dispatcher *dispatcher, const struct notice *notice,
	const struct strings *receivers, const struct condition *condition, const char *test)
{
	notices_queue(dispatcher->notices, notice, receivers, condition, test);
}

void dispatcher_notice_storing(struct dispatcher *dispatcher, const struct notice *notice,
	const struct strings *receivers, struct store_queue *request)
{
	notices_queue_storing(dispatcher->notices, notice, receivers, request);
}

bool dispatcher_message(struct dispatcher *dispatcher, const struct message *message,
	const struct receiver *receiver, struct store_queue *request)
{
	return notices_message(dispatcher->notices, message, receiver, request);
}

void dispatcher_silence(struct dispatcher *dispatcher, const struct silence *silence)
{
	silences_note(dispatcher->silences, silence);
}

void dispatcher_adopt(struct dispatcher *dispatcher)
{
	silences_adopt(dispatcher->silences);
}

bool dispatcher_silences(
	const struct dispatcher *dispatcher, const struct silence_target *subject, int64_t *until)
{
	return silences_hold(dispatcher->silences, subject, until);
}

uint64_t dispatcher_silences_version(const struct dispatcher *dispatcher)
{
	return silences_version(dispatcher->silences);
}

/* With --once, the final round handles it. */
static void silence_over(void *context)
{
	struct dispatcher *dispatcher = context;

	if (!dispatcher->agent->once)
		dispatcher_flush(dispatcher);
}

static void remind(void *context, const struct notice *notice, const struct strings *receivers)
{
	const struct dispatcher *dispatcher = context;

	notices_queue(dispatcher->notices, notice, receivers, NULL, NULL);
}

/* With --once there is no later round. */
static void late(void *context)
{
	struct dispatcher *dispatcher = context;

	if (dispatcher->agent->once)
		dispatcher_flush(dispatcher);
	else
		dispatcher_again(dispatcher);
}

static void reopened(struct store_reopen *request)
{
	struct dispatcher *dispatcher = request->call.context;

	if (!request->call.failed)
		dispatcher_again(dispatcher);
	store_call_free(&request->call);
}

/* Announces the changes of orphaned deliveries to the receivers that are configured. */
static void reopen(void *context)
{
	struct dispatcher *dispatcher = context;
	bool more;

	do {
		struct store_reopen *request = store_reopen_new(reopened, dispatcher);

		more = delivery_manager_orphans(dispatcher->delivery_manager, request);
		store_backlog_add(dispatcher->backlog, &request->call);
	} while (more);
}

/* In a fleet */

static void read_silences(void *context);

/* The answer may lack silences that were added here meanwhile. */
static void silences_read(struct store_silences *list)
{
	struct dispatcher *dispatcher = list->call.context;
	bool again = dispatcher->read_again ||
		     dispatcher->silences_seen != silences_version(dispatcher->silences);

	dispatcher->reading_silences = dispatcher->read_again = false;
	if (list->call.failed)
		engine_after(dispatcher->agent->engine, FLUSH_AGAIN, read_silences, dispatcher);
	else if (!again)
		silences_restore(dispatcher->silences, &list->silences);
	else
		read_silences(dispatcher);
	store_call_free(&list->call);
}

static void read_silences(void *context)
{
	struct dispatcher *dispatcher = context;
	struct agent *agent = dispatcher->agent;
	struct store_silences *list;

	dispatcher->read_again = dispatcher->reading_silences;
	if (dispatcher->reading_silences || agent->stopping)
		return;
	dispatcher->reading_silences = true;
	dispatcher->silences_seen = silences_version(dispatcher->silences);
	list = store_silences_new(silences_read, dispatcher);
	list->now = agent_now(agent);
	store_client_call(agent, &list->call);
}

static void gained(
	void *context, const struct fleet_shards *shards, const struct store_restore *restored)
{
	struct dispatcher *dispatcher = context;

	if (!shards->has[FLEET_LEADER])
		return;
	dispatcher->leader = true;
	resume(dispatcher, restored);
}

static void lost(void *context, const struct fleet_shards *shards)
{
	struct dispatcher *dispatcher = context;

	if (!shards->has[FLEET_LEADER])
		return;
	dispatcher->leader = false;
	dispatcher->arrival_count = 0;
	dispatcher->kept = 0;
	environments_forget(dispatcher->environments);
	silences_forget(dispatcher->silences);
}

static bool is_busy(void *context, int shard)
{
	const struct dispatcher *dispatcher = context;

	return shard == FLEET_LEADER && dispatcher->busy;
}

static bool same_due(const struct store_due *one, const struct store_due *other)
{
	return one->changes == other->changes && one->recoveries == other->recoveries &&
	       one->retractions == other->retractions && one->said == other->said;
}

static void news(void *context, const struct fleet_news *news)
{
	struct dispatcher *dispatcher = context;
	const struct engine *engine = dispatcher->agent->engine;
	bool due =
		count_due(&news->due) > 0 && (news->due_set != dispatcher->news.due_set ||
						     !same_due(&news->due, &dispatcher->news.due));
	bool soon = dispatcher->look_at > engine_now(engine) &&
		    dispatcher->look_at - engine_now(engine) <=
			    dispatcher->agent->config->agent.group_wait;

	if (news->last_audit != dispatcher->news.last_audit) {
		agent_triaged(dispatcher->agent);
		read_silences(dispatcher);
	}
	dispatcher->news = *news;
	if (!due || soon || !is_leader(dispatcher) || dispatcher->agent->once)
		return;
	begin_round(dispatcher, true);
}

static void listen(struct dispatcher *dispatcher)
{
	fleet_listen(dispatcher->agent, &(struct fleet_listener){.gained = gained,
						.lost = lost,
						.is_busy = is_busy,
						.news = news,
						.context = dispatcher});
}

static void ask_again(void *dispatcher)
{
	dispatcher_look(dispatcher);
}

struct dispatcher *dispatcher_new(struct agent *agent, struct delivery_manager *delivery_manager)
{
	struct dispatcher *dispatcher = memory_new(1, sizeof *dispatcher);

	*dispatcher = (struct dispatcher){.agent = agent,
		.delivery_manager = delivery_manager,
		.backlog = store_backlog_new(agent),
		.restored_at = engine_now(agent->engine),
		.alarm = {.call = look_alarm, .context = dispatcher}};
	dispatcher->environments = environments_new(agent, ask_again, dispatcher);
	dispatcher->silences =
		silences_new(agent, &(struct silences_events){silence_over, remind, dispatcher});
	dispatcher_filter(dispatcher, environments_filter(dispatcher->environments));
	dispatcher_filter(dispatcher, silences_filter(dispatcher->silences));
	dispatcher->notices = notices_new(agent, delivery_manager, dispatcher->backlog);
	delivery_manager_listen(delivery_manager, reopen, late, dispatcher);
	listen(dispatcher);
	return dispatcher;
}

void dispatcher_free(struct dispatcher *dispatcher)
{
	if (!dispatcher)
		return;
	round_free(dispatcher->round);
	environments_free(dispatcher->environments);
	silences_free(dispatcher->silences);
	notices_free(dispatcher->notices);
	store_backlog_free(dispatcher->backlog);
	free(dispatcher->arrivals);
	free(dispatcher);
}

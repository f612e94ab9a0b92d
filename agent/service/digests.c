/* The message and its time are stored in one transaction. */
#include "agent/service/digests.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/dict.h"
#include "agent/base/when.h"
#include "agent/base/zone.h"
#include "agent/fleet/fleet.h"
#include "agent/notify/announce.h"
#include "agent/notify/router.h"
#include "agent/service/remote_tests.h"
#include "notifiers/body.h"

enum {
	LOOK_AGAIN = 1000,     /* ms, while waiting for the first runs */
	WAIT_MOST = 600000,    /* ms to wait for them at most */
	LOOK_ANYWAY = 3600000, /* ms, as the wall clock may be set */
	LOOK_AT_LEAD = 30000,  /* ms, in a fleet: until the next check for the leader */
	TRY_AGAIN = 300000,    /* ms, after a failure */
	CHANGES_MOST = 1000,   /* of each list */
	LINES_MOST = 100,      /* of each section */
	NAME_MOST = 200,
};
#define MINUTE INT64_C(60000)
#define DAY INT64_C(86400000)
#define LAST "digest " /* in the store, and the receiver */

struct sent {
	char *receiver;
	int64_t last; /* ms, wall clock */
};

struct digests {
	struct agent *agent;
	struct dispatcher *dispatcher;
	const struct scheduler *scheduler;
	struct sent *sent;
	size_t count;
	int64_t started; /* engine_now */
	bool asking;     /* waiting for the store */
	struct alarm alarm;
};

static void on_alarm(void *context)
{
	digests_look(context);
}

static void gained(
	void *context, const struct fleet_shards *shards, const struct store_restore *restored);

struct digests *digests_new(
	struct agent *agent, struct dispatcher *dispatcher, const struct scheduler *scheduler)
{
	struct digests *digests = memory_new(1, sizeof *digests);

	*digests = (struct digests){.agent = agent,
		.dispatcher = dispatcher,
		.scheduler = scheduler,
		.started = engine_now(agent->engine),
		.alarm = {.call = on_alarm, .context = digests}};
	fleet_listen(agent, &(struct fleet_listener){.gained = gained, .context = digests});
	return digests;
}

void digests_free(struct digests *digests)
{
	if (!digests)
		return;
	for (size_t i = 0; i < digests->count; i++)
		free(digests->sent[i].receiver);
	free(digests->sent);
	free(digests);
}

static struct sent *sent_of(struct digests *digests, const char *receiver)
{
	for (size_t i = 0; i < digests->count; i++)
		if (strcmp(digests->sent[i].receiver, receiver) == 0)
			return &digests->sent[i];
	digests->sent = memory_resize(digests->sent, digests->count + 1, sizeof *digests->sent);
	digests->sent[digests->count] = (struct sent){memory_strdup(receiver), 0};
	return &digests->sent[digests->count++];
}

void digests_restore(struct digests *digests, const struct store_restore *restored)
{
	const size_t skip = strlen(LAST);

	for (size_t i = 0; i < restored->health.moment_count; i++)
		if (strncmp(restored->health.moments[i].name, LAST, skip) == 0)
			sent_of(digests, restored->health.moments[i].name + skip)->last =
				restored->health.moments[i].time;
}

/* The leader sends them. */
static void gained(
	void *context, const struct fleet_shards *shards, const struct store_restore *restored)
{
	struct digests *digests = context;

	if (!shards->has[FLEET_LEADER])
		return;
	digests->started = engine_now(digests->agent->engine);
	digests_restore(digests, restored);
	digests_look(digests);
}

/* The time of the digest on a local day, counted since 1970; WHEN_NEVER: not on that day. */
static int64_t time_on(const struct digest_times *times, int64_t day)
{
	int weekday = (int)(((day + 4) % 7 + 7) % 7); /* 1970-01-01 was a Thursday */

	return times->days & 1u << weekday ? zone_utc(times->zone, day * DAY + times->at * MINUTE)
					   : WHEN_NEVER;
}

static int64_t local_day(const struct digest_times *times, int64_t now)
{
	int64_t local = zone_local(times->zone, now);

	return local / DAY - (local % DAY < 0);
}

enum { DAYS_AROUND = 9 }; /* one a week, and a day that the clock skips */

int64_t digests_before(const struct digest_times *times, int64_t now)
{
	int64_t day = local_day(times, now) + 1, last = day - 2 * DAYS_AROUND;

	for (; day > last; day--) {
		int64_t time = time_on(times, day);

		if (time <= now)
			return time;
	}
	return now;
}

int64_t digests_after(const struct digest_times *times, int64_t now)
{
	int64_t day = local_day(times, now) - 1, last = day + 2 * DAYS_AROUND;

	for (; day < last; day++) {
		int64_t time = time_on(times, day);

		if (time > now && time != WHEN_NEVER)
			return time;
	}
	return WHEN_NEVER;
}

static void put_moment(struct store_queue *request, const char *receiver, int64_t now)
{
	struct arena *arena = request->call.arena;
	struct health_rows *health = &request->health;

	health->moments =
		arena_grow(arena, health->moments, health->moment_count, sizeof *health->moments);
	health->moments[health->moment_count++] =
		(struct stored_moment){arena_printf(arena, "%s%s", LAST, receiver), now};
}

/* The first receiver that is due, or NULL and the ms until one is. Notes when a receiver is seen
 * for the first time: its first digest covers the time from then on. */
static const struct receiver *find_due(
	struct digests *digests, struct store_queue *begun, int64_t *wait)
{
	const struct config *config = digests->agent->config;
	int64_t now = agent_now(digests->agent);
	const struct receiver *due = NULL;

	*wait = LOOK_ANYWAY;
	for (size_t i = 0; i < config->receiver_count; i++) {
		const struct receiver *receiver = &config->receivers[i];
		struct sent *sent;
		int64_t next;

		if (!receiver->digest)
			continue;
		sent = sent_of(digests, receiver->name);
		if (sent->last == 0) {
			sent->last = now;
			put_moment(begun, receiver->name, now);
		}
		if (sent->last > now + DAY) /* the clock was wrong then */
			sent->last = now;
		if (!due && digests_before(receiver->digest, now) > sent->last)
			due = receiver;
		next = digests_after(receiver->digest, now);
		if (next - now < *wait)
			*wait = next - now;
	}
	return due;
}

static void arm(struct digests *digests, int64_t wait)
{
	struct agent *agent = digests->agent;

	if (!agent->once && !agent->stopping)
		engine_alarm(agent->engine, &digests->alarm, engine_now(agent->engine) + wait);
}

struct ran {
	const struct agent *agent;
	bool all;
};

static void note_run(void *context, const struct scheduler_test *state)
{
	struct ran *ran = context;

	ran->all &= state->last_run != 0 || remote_test_is(ran->agent, state->test);
}

static bool have_run(const struct digests *digests)
{
	struct ran ran = {digests->agent, true};

	scheduler_each(digests->scheduler, note_run, &ran);
	return ran.all || engine_now(digests->agent->engine) - digests->started >= WAIT_MOST;
}

/* The lists queried from the store, one after the other. */
enum list { LIST_OPEN, LIST_UPDATED, LIST_ACCEPTED, LISTS };

/* A digest in preparation; its memory is that of the first list. */
struct making {
	struct digests *digests;
	struct arena *arena;
	const char *receiver;
	struct router *router;
	bool routed; /* routes lead to the receiver */
	int64_t since, now;
	struct store_list *lists[LISTS];
	enum list asked;
	struct digest_section *sections;
	size_t section_count;
	size_t open, fresh, recovered, accepted, silenced, lacking;
	struct dict sources; /* already counted */
};

static void free_lists(struct making *making)
{
	/* The last one frees the memory of `making`. */
	for (int i = LISTS - 1; i >= 0; i--) {
		struct store_list *list = making->lists[i];

		if (list)
			store_call_free(&list->call);
	}
}

/* Digests are included, so that a route for digests alone counts. */
#define KINDS (MESSAGES_OF_CHANGES | 1u << MESSAGE_NOTICE | 1u << MESSAGE_DIGEST)

static bool lists(const struct strings *notify, const char *receiver)
{
	for (size_t i = 0; notify && i < notify->count; i++)
		if (strcmp(notify->items[i], receiver) == 0)
			return true;
	return false;
}

static bool leads_to(const struct notify_route *route, size_t receiver)
{
	for (size_t i = 0; i < route->receiver_count; i++)
		if (route->receivers[i] == receiver)
			return true;
	for (size_t i = 0; i < route->count; i++)
		if (leads_to(&route->routes[i], receiver))
			return true;
	return false;
}

/* A receiver without routes gets a digest of everything routed. */
static void prepare_routes(struct making *making, const struct receiver *receiver)
{
	const struct config *config = making->digests->agent->config;

	making->router = router_new(config);
	making->routed =
		config->routes && leads_to(config->routes, (size_t)(receiver - config->receivers));
}

/* For a receiver without routes. */
static bool concerns_topic(const struct making *making, const char *topic)
{
	const struct config *config = making->digests->agent->config;
	const struct strings *notify = config_notify(config, topic);

	return lists(notify, making->receiver) || (notify && config_routed(config, topic));
}

static bool concerns(struct making *making, const struct change_record *record)
{
	struct routed_receivers told;

	if (!making->routed)
		return concerns_topic(making, record->item.test);
	told = router_route(making->router, record, KINDS, making->arena);
	return router_find(&told, agent_receiver(making->digests->agent, making->receiver)) != NULL;
}

static bool concerns_test(struct making *making, const struct test *test)
{
	struct strings told;

	if (!making->routed)
		return concerns_topic(making, test->name);
	told = router_route_notice(making->router, test->name, KINDS, making->arena);
	return lists(&told, making->receiver);
}

/* Adds a line to the last section if that has this title, else to a new one. */
static void add_line(struct making *making, const char *title, struct buf *text)
{
	struct digest_section *section =
		making->section_count > 0 ? &making->sections[making->section_count - 1] : NULL;
	const char *line = buf_keep(text, making->arena);

	if (!section || strcmp(section->title, title) != 0) {
		making->sections = arena_grow(making->arena, making->sections,
			making->section_count, sizeof *making->sections);
		section = &making->sections[making->section_count++];
		*section = (struct digest_section){.title = title};
	}
	if (section->lines.count == LINES_MOST) {
		section->more++;
		return;
	}
	section->lines.items = arena_grow(making->arena, (void *)(uintptr_t)section->lines.items,
		section->lines.count, sizeof *section->lines.items);
	((const char **)(uintptr_t)section->lines.items)[section->lines.count++] = line;
}

/* "db.read p99: +24% [21, 27]  100 → 124 ms" */
static void put_change(struct buf *out, const struct announcement *item)
{
	buf_clean(out, item->test, NAME_MOST);
	buf_char(out, ' ');
	text_change(out, item, &text_utc, "", "");
}

static void put_since(struct buf *out, const struct announcement *item)
{
	buf_text(out, ", since ");
	text_utc.time(out, item->time, false);
}

static const char *owner_of(const struct change_record *record)
{
	const char *owner = record->triage.owner && *record->triage.owner ? record->triage.owner
									  : record->item.owner;

	return owner && *owner ? owner : NULL;
}

/* Unowned changes last; otherwise the most important first. */
static int compare_open(const void *a, const void *b)
{
	const struct change_record *one = *(const struct change_record *const *)a;
	const struct change_record *other = *(const struct change_record *const *)b;
	const char *left = owner_of(one), *right = owner_of(other);
	int order = left && right ? strcmp(left, right) : !left - !right;

	return order ? order : announcement_compare_weight(&one->item, &other->item);
}

static bool is_silenced(const struct making *making, const struct change_record *record)
{
	struct silence_target subject = silence_target_of(record);
	int64_t until;

	return record->news == NOTIFY_PENDING &&
	       dispatcher_silences(making->digests->dispatcher, &subject, &until);
}

/* Calls for each record of the list that concerns the receiver, with its owner. */
static void each(struct making *making, enum list list,
	void (*call)(struct making *making, struct change_record *record))
{
	struct record_rows rows = making->lists[list]->records;

	for (size_t i = 0; i < rows.count; i++)
		if (concerns(making, &rows.items[i]))
			call(making, &rows.items[i]);
}

static void add_open(struct making *making)
{
	struct record_rows rows = making->lists[LIST_OPEN]->records;
	const struct change_record **open = arena_array(making->arena, rows.count, sizeof *open);

	for (size_t i = 0; i < rows.count; i++) {
		struct change_record *record = &rows.items[i];

		if (!concerns(making, record) || is_silenced(making, record))
			continue;
		announce_links(making->arena, making->digests->agent->config, record);
		open[making->open++] = record;
	}
	if (making->open > 1)
		qsort(open, making->open, sizeof(struct change_record *), compare_open);
	for (size_t i = 0; i < making->open; i++) {
		const char *owner = owner_of(open[i]);
		struct buf line = {0};

		put_change(&line, &open[i]->item);
		put_since(&line, &open[i]->item);
		if (open[i]->triage.version > 0) {
			buf_text(&line, ", ");
			text_triage(&line, &open[i]->triage);
		}
		add_line(making,
			owner ? arena_printf(making->arena, "open, %s", owner)
			      : "open, without an owner",
			&line);
	}
}

static bool has_event(const struct change_record *record, unsigned kinds, int64_t since)
{
	for (size_t i = 0; i < record->event_count; i++)
		if (kinds & 1u << record->events[i].kind && record->events[i].time >= since)
			return true;
	return false;
}

static void add_new(struct making *making, struct change_record *record)
{
	const unsigned found = 1u << EVENT_FOUND | 1u << EVENT_CONFIRMED | 1u << EVENT_RETURNED;
	struct buf line = {0};

	if (!change_stands(record->state) || record->news == NOTIFY_SILENT ||
		triage_is_accepted(record->triage.state) ||
		!has_event(record, found, making->since) || is_silenced(making, record))
		return;
	making->fresh++;
	put_change(&line, &record->item);
	put_since(&line, &record->item);
	add_line(making, "new", &line);
}

static void add_recovered(struct making *making, struct change_record *record)
{
	struct buf line = {0};

	if (record->state != CHANGE_RECOVERED || record->news == NOTIFY_SILENT ||
		!has_event(record, 1u << EVENT_RECOVERED, making->since))
		return;
	making->recovered++;
	put_change(&line, &record->item);
	buf_text(&line, ", ");
	text_recovery(&line, &record->item, &text_utc);
	add_line(making, "recovered", &line);
}

static void add_accepted(struct making *making, struct change_record *record)
{
	struct buf line = {0};

	if (record->triage.time < making->since)
		return;
	making->accepted++;
	put_change(&line, &record->item);
	buf_text(&line, ", ");
	text_triage(&line, &record->triage);
	add_line(making, "accepted", &line);
}

static void add_silenced(struct making *making, struct change_record *record)
{
	struct silence_target subject = silence_target_of(record);
	struct buf line = {0};
	int64_t until;

	if (record->news != NOTIFY_PENDING || record->state == CHANGE_CANDIDATE ||
		!dispatcher_silences(making->digests->dispatcher, &subject, &until))
		return;
	making->silenced++;
	put_change(&line, &record->item);
	if (until != WHEN_NEVER) {
		buf_text(&line, ", until ");
		text_utc.time(&line, until, false);
	}
	add_line(making, "silenced", &line);
}

/* Improvements only: the other list has the open regressions. */
static void add_silenced_improvement(struct making *making, struct change_record *record)
{
	if (announcement_verdict(&record->item) < 0)
		add_silenced(making, record);
}

static void add_lacking(void *context, const struct scheduler_test *seen)
{
	struct making *making = context;
	struct scheduler_test known =
		remote_test_state(making->digests->agent, seen, &making->lists[LIST_OPEN]->health);
	const struct scheduler_test *state = &known;
	const struct test *test = state->test;
	const char *source = test->server ? test->server->name : test->source->name;
	struct buf line = {0};

	if (!concerns_test(making, test))
		return;
	if (state->down_since != 0) {
		if (dict_get(&making->sources, source))
			return;
		*dict_place(&making->sources, source) = test;
		buf_clean(&line, source, NAME_MOST);
		buf_text(&line, " is down");
	} else if (state->failing) {
		buf_clean(&line, test->name, NAME_MOST);
		buf_text(&line, " fails");
		if (state->problem) {
			buf_text(&line, ": ");
			buf_clean(&line, state->problem, NAME_MOST);
		}
	} else if (state->stale) {
		buf_clean(&line, test->name, NAME_MOST);
		buf_text(&line, " has no new data");
	} else {
		return;
	}
	making->lacking++;
	add_line(making, "without data", &line);
}

static void put_count(struct buf *out, const struct making *making, enum list list, size_t count,
	const char *what)
{
	buf_printf(out, "%s%s%zu %s", out->length > 0 ? ", " : "",
		making->lists[list]->more ? "more than " : "", count, what);
}

/* "3 open, 2 new, 1 recovered, 0 accepted, 0 silenced, 0 without data since 2026-03-01 09:00 UTC"
 */
static const char *headline(struct making *making)
{
	struct buf out = {0};

	put_count(&out, making, LIST_OPEN, making->open, "open");
	put_count(&out, making, LIST_UPDATED, making->fresh, "new");
	put_count(&out, making, LIST_UPDATED, making->recovered, "recovered");
	put_count(&out, making, LIST_ACCEPTED, making->accepted, "accepted");
	put_count(&out, making, LIST_OPEN, making->silenced, "silenced");
	buf_printf(&out, ", %zu without data since ", making->lacking);
	text_utc.time(&out, making->since, false);
	return buf_keep(&out, making->arena);
}

/* False: it could not be rendered; it is retried. */
static bool send_digest(struct making *making, const struct receiver *receiver)
{
	struct digests *digests = making->digests;
	struct store_queue *request = store_queue_new(NULL, NULL);
	struct notice notice = {.subject = "digest", .time = making->now};
	struct message message = {.kind = MESSAGE_DIGEST, .notice = &notice};

	prepare_routes(making, receiver);
	add_open(making);
	each(making, LIST_UPDATED, add_new);
	each(making, LIST_UPDATED, add_recovered);
	each(making, LIST_ACCEPTED, add_accepted);
	each(making, LIST_OPEN, add_silenced);
	each(making, LIST_UPDATED, add_silenced_improvement);
	making->sources.arena = making->arena;
	scheduler_each(digests->scheduler, add_lacking, making);
	router_free(making->router);
	notice.text = headline(making);
	notice.recovered = making->open + making->lacking == 0;
	for (size_t i = 0; i < making->section_count; i++) {
		struct digest_section *section = &making->sections[i];

		section->title = arena_printf(making->arena, "%s (%zu)", section->title,
			section->lines.count + section->more);
	}
	message.sections = making->sections;
	message.section_count = making->section_count;
	put_moment(request, receiver->name, making->now);
	if (!dispatcher_message(digests->dispatcher, &message, receiver, request))
		return false;
	sent_of(digests, receiver->name)->last = making->now;
	return true;
}

static void ask(struct making *making);

static void listed(struct store_list *list)
{
	struct making *making = list->call.context;
	struct digests *digests = making->digests;
	const struct receiver *receiver = agent_receiver(digests->agent, making->receiver);
	bool failed = list->call.failed, told = true;

	if (!failed && making->asked + 1 < LISTS) {
		making->asked++;
		ask(making);
		return;
	}
	digests->asking = false;
	if (!failed && receiver && receiver->digest)
		told = send_digest(making, receiver);
	free_lists(making);
	if (!failed && told)
		digests_look(digests);
	else
		arm(digests, TRY_AGAIN);
}

static void ask(struct making *making)
{
	const unsigned accepted = 1u << TRIAGE_EXPECTED | 1u << TRIAGE_IGNORED |
				  1u << TRIAGE_INFRA | 1u << TRIAGE_FALSE | 1u << TRIAGE_FIXED;
	struct store_list *list = making->lists[making->asked];

	if (!list)
		list = making->lists[making->asked] = store_list_new(listed, making);
	list->filter.limit = CHANGES_MOST;
	list->filter.now = making->now;
	list->filter.open = making->asked == LIST_OPEN;
	if (making->digests->agent->fleet && making->asked == LIST_OPEN)
		list->about = "";
	if (making->asked == LIST_UPDATED)
		list->filter.updated = making->since;
	if (making->asked == LIST_ACCEPTED)
		list->filter.triage = accepted;
	store_client_call(making->digests->agent, &list->call);
}

static void start_digest(struct digests *digests, const struct receiver *receiver)
{
	struct store_list *first = store_list_new(listed, NULL);
	struct making *making = arena_alloc(first->call.arena, sizeof *making);

	*making = (struct making){.digests = digests,
		.arena = first->call.arena,
		.receiver = arena_strdup(first->call.arena, receiver->name),
		.since = sent_of(digests, receiver->name)->last,
		.now = agent_now(digests->agent),
		.lists = {first}};
	first->call.context = making;
	digests->asking = true;
	ask(making);
}

void digests_look(struct digests *digests)
{
	struct store_queue *begun;
	const struct receiver *due;
	int64_t wait;

	if (digests->asking || digests->agent->stopping)
		return;
	if (!fleet_holds(digests->agent, FLEET_LEADER)) {
		arm(digests, LOOK_AT_LEAD);
		return;
	}
	begun = store_queue_new(NULL, NULL);
	fleet_fence(digests->agent, &begun->call, FLEET_LEADER);
	due = find_due(digests, begun, &wait);
	if (begun->health.moment_count > 0)
		store_client_call(digests->agent, &begun->call);
	else
		store_call_free(&begun->call);
	if (due && have_run(digests))
		start_digest(digests, due);
	else
		arm(digests, due ? LOOK_AGAIN : wait);
}

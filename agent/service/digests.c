/* Open changes with their owners, and what happened since the last digest. */
#include "agent/service/digests.h"

#include <stdlib.h>
#include <string.h>

#include "agent/analysis/announce.h"
#include "agent/base/buf.h"
#include "agent/base/dict.h"
#include "agent/base/when.h"
#include "agent/base/zone.h"
#include "agent/decide/route.h"
#include "agent/monitor/condition.h"
#include "agent/service/letters.h"
#include "notifiers/body.h"

enum {
	CHANGES_MOST = 1000, /* of each list */
	LINES_MOST = 100,    /* of each section */
	NAME_MOST = 200,
};
#define MINUTE INT64_C(60000)
#define DAY INT64_C(86400000)

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

static bool times(
	const struct receiver *receiver, int64_t last, int64_t now, int64_t *before, int64_t *next)
{
	(void)last;
	if (!receiver->digest)
		return false;
	*before = digests_before(receiver->digest, now);
	*next = digests_after(receiver->digest, now);
	return true;
}

/* The lists queried from the store, one after the other. */
enum list { LIST_OPEN, LIST_UPDATED, LIST_ACCEPTED, LISTS };

/* A digest in preparation. */
struct making {
	struct letter *letter;
	struct arena *arena;
	struct router *router;
	bool routed; /* routes lead to the receiver */
	size_t open, fresh, recovered, accepted, silenced, lacking;
	struct dict sources; /* already counted */
};

/* Digests are included, so that a route for digests alone counts. */
#define KINDS (MESSAGES_OF_CHANGES | 1u << MESSAGE_NOTICE | 1u << MESSAGE_DIGEST)

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

/* For a receiver without routes. */
static bool concerns_topic(const struct making *making, const char *topic)
{
	const struct config *config = making->letter->agent->config;
	const struct strings *notify = config_notify(config, topic);

	return letter_goes_to(notify, making->letter->receiver) ||
	       (notify && config_routed(config, topic));
}

static bool concerns(struct making *making, const struct change_record *record)
{
	struct routed_rows rows;

	if (!making->routed)
		return concerns_topic(making, record->item.test);
	rows = route_change(making->router, record, KINDS, making->arena, NULL);
	return route_find(&rows, agent_receiver(making->letter->agent, making->letter->receiver)) !=
	       NULL;
}

/* Adds a line to the last section if that has this title, else to a new one. */
static void add_line(struct making *making, const char *title, struct buf *text)
{
	struct digest_section *section =
		making->letter->section_count > 0
			? &making->letter->sections[making->letter->section_count - 1]
			: NULL;
	const char *line = buf_keep(text, making->arena);

	if (!section || strcmp(section->title, title) != 0) {
		making->letter->sections = arena_grow(making->arena, making->letter->sections,
			making->letter->section_count, sizeof *making->letter->sections);
		section = &making->letter->sections[making->letter->section_count++];
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
	text_utc.time(out, item->time, TEXT_MINUTE);
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
	       silences_hold(dispatcher_silences(making->letter->dispatcher), &subject, &until);
}

/* Calls for each record of the list that concerns the receiver, with its owner. */
static void each(struct making *making, enum list list,
	void (*call)(struct making *making, struct change_record *record))
{
	struct record_rows rows = making->letter->lists[list]->records;

	for (size_t i = 0; i < rows.count; i++)
		if (concerns(making, &rows.items[i]))
			call(making, &rows.items[i]);
}

static void add_open(struct making *making)
{
	struct record_rows rows = making->letter->lists[LIST_OPEN]->records;
	const struct change_record **open = arena_array(making->arena, rows.count, sizeof *open);

	for (size_t i = 0; i < rows.count; i++) {
		struct change_record *record = &rows.items[i];

		if (!concerns(making, record) || is_silenced(making, record))
			continue;
		announce_links(making->arena, making->letter->agent->config, record);
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
		!has_event(record, found, making->letter->since) || is_silenced(making, record))
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
		!has_event(record, 1u << EVENT_RECOVERED, making->letter->since))
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

	if (record->triage.time < making->letter->since)
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
		!silences_hold(dispatcher_silences(making->letter->dispatcher), &subject, &until))
		return;
	making->silenced++;
	put_change(&line, &record->item);
	if (until != WHEN_NEVER) {
		buf_text(&line, ", until ");
		text_utc.time(&line, until, TEXT_MINUTE);
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
	struct scheduler_test state = letter_test(seen, &making->letter->lists[LIST_OPEN]->health);
	const struct test *test = state.test;
	struct strings told;
	const char *source = condition_source(test);
	struct buf line = {0};

	if (making->routed) {
		told = route_notices(making->router, &test->name, 1, KINDS, making->arena);
		if (!letter_goes_to(&told, making->letter->receiver))
			return;
	} else if (!concerns_topic(making, test->name)) {
		return;
	}
	if (state.down_since != 0) {
		if (dict_get(&making->sources, source))
			return;
		*dict_place(&making->sources, source) = test;
		buf_clean(&line, source, NAME_MOST);
		buf_text(&line, " is down");
	} else if (state.failing) {
		buf_clean(&line, test->name, NAME_MOST);
		buf_text(&line, " fails");
		if (state.problem) {
			buf_text(&line, ": ");
			buf_clean(&line, state.problem, NAME_MOST);
		}
	} else if (state.stale) {
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
		making->letter->lists[list]->more ? "more than " : "", count, what);
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
	text_utc.time(&out, making->letter->since, TEXT_MINUTE);
	return buf_keep(&out, making->arena);
}

static void write(struct letter *letter, const struct receiver *receiver)
{
	const struct config *config = letter->agent->config;
	/* A receiver without routes gets a digest of everything routed. */
	struct making writing = {.letter = letter,
		.arena = letter->arena,
		.router = router_new(config_routing(config)),
		.routed = config->routes &&
			  leads_to(config->routes, (size_t)(receiver - config->receivers)),
		.sources.arena = letter->arena};
	struct making *making = &writing;

	add_open(making);
	each(making, LIST_UPDATED, add_new);
	each(making, LIST_UPDATED, add_recovered);
	each(making, LIST_ACCEPTED, add_accepted);
	each(making, LIST_OPEN, add_silenced);
	each(making, LIST_UPDATED, add_silenced_improvement);
	scheduler_each(letter->scheduler, add_lacking, making);
	router_free(making->router);
	letter->notice.subject = "digest";
	letter->notice.text = headline(making);
	letter->notice.recovered = making->open + making->lacking == 0;
	for (size_t i = 0; i < letter->section_count; i++) {
		struct digest_section *section = &letter->sections[i];

		section->title = arena_printf(letter->arena, "%s (%zu)", section->title,
			section->lines.count + section->more);
	}
}

static void filter(const struct letter *letter, size_t number, struct change_filter *filter)
{
	filter->limit = CHANGES_MOST;
	filter->now = letter->now;
	filter->open = number == LIST_OPEN;
	if (number == LIST_UPDATED)
		filter->updated = letter->since;
	if (number == LIST_ACCEPTED)
		filter->triage = 1u << TRIAGE_EXPECTED | 1u << TRIAGE_IGNORED | 1u << TRIAGE_INFRA |
				 1u << TRIAGE_FALSE | 1u << TRIAGE_FIXED;
}

const struct letter_kind digest_letter = {.name = "digest ",
	.message = MESSAGE_DIGEST,
	.lists = LISTS,
	.times = times,
	.filter = filter,
	.write = write};

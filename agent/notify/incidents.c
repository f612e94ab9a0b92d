/*
 * Reads and writes the incidents of a round of messages; agent/decide/incident.c decides which one
 * a change joins.
 */
#include "agent/notify/incidents.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/dict.h"
#include "agent/base/log.h"
#include "agent/decide/gate.h"
#include "agent/decide/incident.h"
#include "agent/model/labels.h"

/* An incident is open for 30 days at most after a change has joined it, ms. */
#define OPEN_MOST INT64_C(2592000000)

/* The state of a round during the assignment. */
struct assigning {
	struct arena *arena;
	struct labels *labels; /* of unchanged series */
	struct incidents_open open;
};

/* By time, then id; changes that a cluster covers follow those that may be the cluster. */
static int compare_time(const void *a, const void *b)
{
	const struct change_record *left = *(struct change_record *const *)a;
	const struct change_record *right = *(struct change_record *const *)b;

	if (left->covered != right->covered)
		return left->covered - right->covered;
	if (left->item.time != right->item.time)
		return left->item.time < right->item.time ? -1 : 1;
	return (left->item.id > right->item.id) - (left->item.id < right->item.id);
}

static bool is_new(const struct change_record *record)
{
	return record->item.incident == 0 && !record->held;
}

static void add_event(struct store_incidents *request, const struct change_record *record)
{
	struct arena *arena = request->call.arena;
	int64_t margin = CHANGE_TOLERANCE * record->item.spacing;
	size_t i = 0;

	while (i < request->event_count && request->events[i].event != record->environment_event)
		i++;
	if (i == request->event_count) {
		request->events = arena_grow(
			arena, request->events, request->event_count++, sizeof *request->events);
		request->events[i] = (struct event_told){.event = record->environment_event,
			.environment = arena_strdup(arena, record->item.environment),
			.from = INT64_MAX,
			.to = INT64_MIN};
	}
	if (record->item.time - margin < request->events[i].from)
		request->events[i].from = record->item.time - margin;
	if (record->item.time + margin > request->events[i].to)
		request->events[i].to = record->item.time + margin;
}

static void add_joined(struct store_incidents *request, int64_t incident)
{
	if (incident == 0)
		return;
	request->joined = arena_grow(request->call.arena, request->joined, request->joined_count,
		sizeof *request->joined);
	request->joined[request->joined_count++] = incident;
}

void incidents_ask(const struct store_pending *pending, struct store_incidents *request)
{
	for (size_t i = 0; i < pending->records.count; i++) {
		const struct change_record *record = &pending->records.items[i];

		request->sampled = request->sampled || is_new(record);
		if (!record->held)
			add_joined(request, record->item.incident != 0 ? record->item.incident
								       : record->environment_event);
		if (!record->held && !record->covered && record->environment_event != 0)
			add_event(request, record);
	}
}

static const char *name_of(struct arena *arena, const char *test, const char *series)
{
	return arena_printf(arena, "%s\n%s", test, series);
}

static void add_unchanged(struct assigning *assigning, const struct store_pending *pending,
	const struct store_incidents *found)
{
	struct arena *arena = assigning->arena;
	struct dict changed = {.arena = arena};
	size_t count = 0;

	for (size_t i = 0; i < pending->records.count; i++) {
		const struct change_record *record = &pending->records.items[i];

		*dict_place(&changed, name_of(arena, record->item.test, record->series)) = record;
	}
	for (size_t i = 0; i < found->series_count; i++) {
		const struct series_name *at = &found->series[i];

		if (dict_get(&changed, name_of(arena, at->test, at->series)))
			continue;
		labels_add(assigning->labels, at->test, at->series, true);
		count++;
	}
	assigning->open.few = count < INCIDENT_SERIES_LEAST;
}

static struct incident_change change_of(
	const struct assigning *assigning, const struct change_record *record)
{
	return (struct incident_change){.record = record,
		.labels = labels_rare(assigning->labels, assigning->arena, record->item.test,
			record->series, INCIDENT_SHARE / 100.0)};
}

/* By default as long as confirmation may take, since the changes of one deployment are not
 * confirmed by the same points. */
int64_t incidents_interval(const struct config *config, const struct change_record *record)
{
	const struct test *test = config_test(config, record->item.test);
	int64_t interval = config_interval(config, record->item.test);
	int64_t points =
		(int64_t)confirm_most(test ? &test->detection.confirm : &config->detection.confirm);
	int64_t steps = record->item.spacing < OPEN_MOST / points ? points * record->item.spacing
								  : OPEN_MOST;

	if (config->agent.group_interval != 0)
		return config->agent.group_interval;
	return interval > steps ? interval : steps;
}

/* The changes that are in the incident already. */
static struct record_rows members_of(const struct store_incidents *found, int64_t incident)
{
	struct change_record *items = found->members.items;
	size_t low = 0, high = found->members.count, end;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (items[middle].item.incident < incident)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < found->members.count && items[end].item.incident == incident; end++)
		;
	return (struct record_rows){end > low ? items + low : NULL, end - low};
}

/* What the change inherits from the incident that it has joined; NULL: nothing. Then it is not
 * announced. */
static const struct triage *inherit(
	struct change_record *record, const struct store_incidents *found, struct arena *arena)
{
	struct record_rows members = members_of(found, record->item.incident);
	const struct change_record *from;
	struct decision decision = gate_inherit(record, &members, found->now, &from);
	struct triage *triage;

	if (decision.verdict != DROP) {
		if (decision.reason)
			log_event(LEVEL_DEBUG, "change is open", LOG_INT("id", record->item.id),
				LOG_INT("incident", record->item.incident),
				LOG_TEXT("reason", decision.reason));
		return NULL;
	}
	triage = arena_alloc(arena, sizeof *triage);
	triage->state = from->triage.state;
	triage->until = from->triage.until;
	triage->time = found->now;
	triage->note = arena_printf(arena, "inherited from i%" PRId64, record->item.incident);
	if (from->triage.note)
		triage->note = arena_printf(arena, "%s: %s", triage->note, from->triage.note);
	triage_measure(triage, &record->item.change);
	if (!record->covered)
		record->reason = arena_printf(arena, "%s, inherited from i%" PRId64,
			decision.reason, record->item.incident);
	record->covered = true;
	log_event(LEVEL_INFO, "change inherits the triage of its incident",
		LOG_INT("id", record->item.id), LOG_TEXT("test", record->item.test),
		LOG_TEXT("metric", record->item.metric), LOG_INT("from", from->item.id),
		LOG_TEXT("triage", decision.reason));
	return triage;
}

void incidents_assign(struct store_pending *pending, const struct store_incidents *found,
	const struct config *config, struct store_queue *queue)
{
	struct arena *arena = found->call.arena;
	struct record_rows rows = pending->records;
	struct change_record **records = arena_array(arena, rows.count, sizeof *records);
	struct assigning assigning = {.arena = arena, .labels = labels_new(arena)};
	struct incidents_open *open = &assigning.open;
	struct incident *incidents;
	struct store_member *members = arena_array(arena, rows.count, sizeof *members);
	size_t count = 0;

	for (size_t i = 0; i < rows.count; i++)
		if (is_new(&rows.items[i]))
			records[count++] = &rows.items[i];
	if (count > 0)
		qsort(records, count, sizeof *records, compare_time);
	add_unchanged(&assigning, pending, found);
	for (size_t i = found->incidents.count; i > 0; i--) {
		const struct opened_incident *at = &found->incidents.items[i - 1];

		open->items = arena_grow(arena, open->items, open->count, sizeof *open->items);
		open->items[open->count++] = (struct incident_open){
			.incident = at->incident, .first = change_of(&assigning, at->first)};
	}
	for (size_t i = 0; i < count; i++) {
		const struct incident_change change = change_of(&assigning, records[i]);
		const struct incident *incident = incident_take(
			arena, open, &change, found->now, incidents_interval(config, records[i]));

		records[i]->item.incident = incident ? incident->id : 0;
	}
	labels_free(assigning.labels);
	incidents = arena_array(arena, open->count, sizeof *incidents);
	for (size_t i = 0; i < open->count; i++)
		if (open->items[i].changed)
			incidents[queue->incident_count++] = open->items[i].incident;
	for (size_t i = 0; i < rows.count; i++) {
		struct change_record *record = &rows.items[i];
		struct store_member *member = &members[queue->member_count];
		bool joins = record->item.incident != record->incident_stored;

		if (!joins && record->environment_event == record->environment_stored)
			continue;
		*member = (struct store_member){.change = record->item.id,
			.incident = record->item.incident,
			.event = record->environment_event,
			.silent = record->covered && record->environment_event != 0};
		if (joins && record->triage.version == 0)
			member->inherited = inherit(record, found, queue->call.arena);
		queue->member_count++;
	}
	queue->incidents = incidents;
	queue->members = members;
}

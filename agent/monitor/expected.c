/*
 * The store settles accepted changes. The call for a change is submitted before the dispatcher
 * reads pending changes, so the filter is only for changes that the store could not write: a change
 * that is covered stays pending until it is triaged.
 *
 * It may revise only its own triage, whose author is known_changes, or the agent after an expiry. A
 * change that outgrew its accepted size was reopened by the agent, too, and needs an entry with a
 * size.
 */
#include "agent/monitor/expected.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/log.h"
#include "agent/base/when.h"
#include "agent/decide/gate.h"
#include "agent/fleet/fleet.h"

static const char person[] = KNOWN_CHANGES_PERSON;
static const char itself[] = "hunter-c"; /* author of reopenings after expiry or growth */

struct expected {
	struct agent *agent;
	struct record_rows elsewhere;
	const char *origin;
	size_t count;
};

/* The same change as one that was accepted elsewhere. */
static const struct change_record *find_elsewhere(
	const struct expected *expected, const struct change_record *record, int64_t now)
{
	for (size_t i = 0; i < expected->elsewhere.count; i++) {
		const struct change_record *other = &expected->elsewhere.items[i];

		if (strcmp(other->item.test, record->item.test) == 0 &&
			strcmp(other->series, record->series) == 0 &&
			strcmp(other->branch, record->branch) == 0 && other->sign == record->sign &&
			change_near(other->item.time, record->item.spacing, record->item.time,
				record->item.spacing) &&
			triage_is_accepted(triage_at(&other->triage, now)) &&
			!triage_outgrown(&other->triage, &record->item.change))
			return other;
	}
	return NULL;
}

static bool is_said_by(const struct change_record *record, const char *who)
{
	return record->triage.person && strcmp(record->triage.person, who) == 0;
}

/* Whether the change is open, but not because a person opened it. */
static bool is_free(const struct change_record *record, const struct known_change *entry)
{
	const struct triage *triage = &record->triage;

	if (triage->version == 0)
		return true;
	if (triage->state != TRIAGE_OPEN)
		return false;
	return is_said_by(record, person) ||
	       (is_said_by(record, itself) && (triage->renewals == 0 || entry->at_most > 0));
}

static int64_t until_of(const struct known_change *entry)
{
	return entry->until == WHEN_NEVER ? 0 : entry->until;
}

static void triaged(struct store_triage *call)
{
	struct expected *expected = call->call.context;

	for (size_t i = 0; !call->call.failed && call->changed > 0 && i < call->records.count;
		i++) {
		const struct change_record *record = &call->records.items[i];

		expected->count++;
		log_event(LEVEL_INFO, "change accepted by known_changes",
			LOG_INT("id", record->item.id), LOG_TEXT("test", record->item.test),
			LOG_TEXT("metric", record->item.metric),
			LOG_TEXT("reason", record->triage.note ? record->triage.note : ""),
			LOG_TEXT("entry", call->actor.origin));
	}
	if (!call->call.failed && call->changed > 0 && call->triage.until != 0)
		agent_hint(expected->agent, HINT_TRIAGE);
	store_call_free(&call->call);
}

/* Records the triage, unless a person was faster. */
static void submit_triage(const struct expected *expected, struct store_triage *call,
	const struct change_record *record)
{
	struct id_range *range = arena_alloc(call->call.arena, sizeof *range);

	*range = (struct id_range){record->item.id, record->item.id};
	call->ranges = range;
	call->range_count = 1;
	call->version = record->triage.version;
	call->now = agent_now(expected->agent);
	store_client_call(expected->agent, &call->call);
}

static void submit_entry(const struct expected *expected, struct store_triage *call,
	const struct change_record *record, const struct known_change *entry)
{
	struct arena *arena = call->call.arena;

	call->triage = (struct triage){.state = TRIAGE_EXPECTED,
		.note = arena_strdup(arena, entry->reason),
		.until = until_of(entry)};
	call->actor =
		(struct actor){person, arena_printf(arena, "%s:%d", entry->file, entry->line)};
	submit_triage(expected, call, record);
}

/* Triages the record. False: it is not covered, or a person has triaged it. */
static bool triage_record(struct expected *expected, const struct change_record *record)
{
	const struct config *config = expected->agent->config;
	int64_t now = agent_now(expected->agent);
	const struct change_record *other;
	const struct known_change *entry, *expired;
	struct store_triage *call;

	if (expected->agent->strict || record->state == CHANGE_WITHDRAWN ||
		record->state == CHANGE_RECOVERED)
		return false;
	entry = gate_known(
		config->known_changes, config->known_change_count, record, now, &expired);
	if (entry && is_free(record, entry)) {
		submit_entry(expected, store_triage_new(triaged, expected), record, entry);
		return true;
	}
	other = record->triage.version == 0 ? find_elsewhere(expected, record, now) : NULL;
	if (!other)
		return false;
	call = store_triage_new(triaged, expected);
	call->triage = (struct triage){.state = other->triage.state,
		.note = other->triage.note,
		.until = other->triage.until};
	call->actor = (struct actor){other->triage.person, expected->origin};
	submit_triage(expected, call, record);
	return true;
}

static void revised(struct store_triage *call)
{
	struct expected *expected = call->call.context;
	bool open = call->triage.state == TRIAGE_OPEN;

	for (size_t i = 0; !call->call.failed && call->changed > 0 && i < call->records.count; i++)
		log_event(LEVEL_INFO,
			open ? "change reopened: no longer covered by known_changes"
			     : "known_changes entry of the change was edited",
			LOG_INT("id", call->records.items[i].item.id),
			LOG_TEXT("test", call->records.items[i].item.test),
			LOG_TEXT("metric", call->records.items[i].item.metric));
	if (!call->call.failed && call->changed > 0)
		agent_hint(expected->agent, HINT_TRIAGE);
	store_call_free(&call->call);
}

/* Updates the triage of an accepted change to its entry as it is now; reopens the change if the
 * entry is gone. Entries for tests that are not configured here may be on another agent. */
static void revise(struct expected *expected, const struct change_record *record)
{
	const struct config *config = expected->agent->config;
	int64_t now = agent_now(expected->agent);
	const struct triage *triage = &record->triage;
	const struct known_change *expired;
	const struct known_change *entry = gate_known(
		config->known_changes, config->known_change_count, record, now, &expired);
	struct store_triage *call;

	if (!is_said_by(record, person))
		return;
	if (entry ? triage->until == until_of(entry) && triage->note &&
				strcmp(triage->note, entry->reason) == 0
		  : !config_test(config, record->item.test) ||
				find_elsewhere(expected, record, now))
		return;
	call = store_triage_new(revised, expected);
	if (entry) {
		submit_entry(expected, call, record, entry);
		return;
	}
	call->triage = (struct triage){.state = TRIAGE_OPEN, .note = ""};
	call->actor = (struct actor){person, "configuration"};
	submit_triage(expected, call, record);
}

static bool is_idle(const struct expected *expected)
{
	return expected->agent->config->known_change_count == 0 && expected->elsewhere.count == 0;
}

void expected_note(struct expected *expected, const struct record_rows *records)
{
	for (size_t i = 0; !is_idle(expected) && i < records->count; i++)
		(void)triage_record(expected, &records->items[i]);
}

static struct decision judge(void *context, struct change_record *record)
{
	struct expected *expected = context;

	if (is_idle(expected) || !triage_record(expected, record))
		return (struct decision){0};
	return (struct decision){HOLD, "covered by known_changes", 0};
}

static void swept(struct store_list *list)
{
	struct expected *expected = list->call.context;

	for (size_t i = 0; !list->call.failed && i < list->records.count; i++)
		if (list->records.items[i].triage.state == TRIAGE_EXPECTED)
			revise(expected, &list->records.items[i]);
		else
			(void)triage_record(expected, &list->records.items[i]);
	store_call_free(&list->call);
}

/* Reviews known open changes and those accepted by entries against known_changes. */
static void sweep(void *context)
{
	struct expected *expected = context;
	struct store_list *list;

	if (expected->agent->strict || expected->agent->stopping ||
		!fleet_holds(expected->agent, FLEET_LEADER))
		return;
	list = store_list_new(swept, expected);
	list->filter = (struct change_filter){
		.states = 1U << CHANGE_CONFIRMED | 1U << CHANGE_MOVED | 1U << CHANGE_CANDIDATE,
		.triage = 1U << TRIAGE_EXPECTED | (is_idle(expected) ? 0 : 1U << TRIAGE_OPEN)};
	store_client_call(expected->agent, &list->call);
}

/* Only the leader sweeps all known changes. */
static void gained(
	void *context, const struct fleet_shards *shards, const struct store_restore *restored)
{
	(void)restored;
	if (shards->has[FLEET_LEADER])
		sweep(context);
}

struct filter expected_filter(struct expected *expected)
{
	return (struct filter){.name = person, .judge = judge, .context = expected};
}

struct expected *expected_new(struct agent *agent)
{
	struct expected *expected = memory_new(1, sizeof *expected);

	expected->agent = agent;
	agent_listen(agent, HINT_LOOK, sweep, expected);
	fleet_listen(agent, &(struct fleet_listener){.gained = gained, .context = expected});
	return expected;
}

void expected_free(struct expected *expected)
{
	free(expected);
}

void expected_elsewhere(struct expected *expected, struct record_rows records, const char *origin)
{
	expected->elsewhere = records;
	expected->origin = origin;
}

size_t expected_count(const struct expected *expected)
{
	return expected->count;
}

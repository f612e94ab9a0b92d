#include "agent/decide/incident.h"

#include <string.h>

#include "agent/base/arena.h"

/* Why a change belongs to an incident; `words` is NULL: it does not. */
struct shared {
	enum incident_cause cause;
	const char *words;
};

static bool has_text(const char *text)
{
	return text && *text;
}

/* A deployment that may have caused both; NULL: none. */
static const char *shared_deployment(const struct announcement *a, const struct announcement *b)
{
	for (size_t i = 0; i < a->suspects.listed; i++)
		for (size_t j = 0; j < b->suspects.listed; j++) {
			const char *name = deployment_name(&a->suspects.list[i]);

			if (has_text(name) &&
				deployment_same(&a->suspects.list[i], &b->suspects.list[j]))
				return name;
		}
	if (has_text(a->commit_after) && has_text(b->commit_after) &&
		strcmp(a->commit_after, b->commit_after) == 0)
		return a->commit_after;
	return NULL;
}

/* Whether the changes may have been at the same time. */
static bool places_overlap(const struct change_record *a, const struct change_record *b)
{
	if (change_near(a->item.time, a->item.spacing, b->item.time, b->item.spacing))
		return true;
	if (a->item.place_from == 0 || b->item.place_from == 0)
		return false;
	return a->item.place_from <= b->item.place_to && b->item.place_from <= a->item.place_to;
}

static const char *shared_label(const struct strings *a, const struct strings *b)
{
	for (size_t i = 0; i < a->count; i++)
		for (size_t j = 0; j < b->count; j++)
			if (strcmp(a->items[i], b->items[j]) == 0)
				return a->items[i];
	return NULL;
}

/* Of a change that no environment event has, and no cluster. */
static struct shared shared_cause(const struct incidents_open *open,
	const struct incident_change *first, const struct incident_change *change)
{
	struct shared shared = {INCIDENT_DEPLOYMENT,
		shared_deployment(&first->record->item, &change->record->item)};

	bool others =
		first->record->item.suspects.listed > 0 &&
		change->record->item.suspects.listed > 0; /* of both the deployments are known */

	if (shared.words || others || !places_overlap(first->record, change->record))
		return shared;
	shared = (struct shared){INCIDENT_LABEL, shared_label(&first->labels, &change->labels)};
	if (!shared.words && open->few)
		shared = (struct shared){INCIDENT_TIME, ""};
	return shared;
}

static struct shared shared_with(const struct incidents_open *open,
	const struct incident_open *known, const struct incident_change *change, int64_t now)
{
	const struct change_record *record = change->record;
	const struct incident *incident = &known->incident;
	bool of_environment = incident->cause == INCIDENT_ENVIRONMENT;

	if (of_environment || record->environment_event != 0) {
		const char *words = of_environment ? incident->words : record->item.environment;

		/* The event's first change may have opened an incident before. */
		return (struct shared){
			INCIDENT_ENVIRONMENT, incident->id != record->environment_event ? NULL
					      : words                                   ? words
											: ""};
	}
	if (now > incident->until || record->item.members > 0)
		return (struct shared){0};
	if (record->covered) {
		const struct change_record *first = known->first.record;
		bool of_cluster = first->item.members > 0 && first->sign == record->sign &&
				  places_overlap(first, record);

		return (struct shared){INCIDENT_CLUSTER, of_cluster ? incident->words : NULL};
	}
	return shared_cause(open, &known->first, change);
}

static struct incident_open *find(const struct incidents_open *open,
	const struct incident_change *change, int64_t now, struct shared *shared)
{
	struct incident_open *best = NULL;

	for (size_t i = open->count; i > 0; i--) {
		struct incident_open *known = &open->items[i - 1];
		struct shared with;

		if (best && known->incident.joined <= best->incident.joined)
			continue;
		with = shared_with(open, known, change, now);
		if (!with.words)
			continue;
		best = known;
		*shared = with;
	}
	return best;
}

static struct shared own_cause(const struct change_record *record)
{
	const char *name = announcement_bad(&record->item);
	const char *shared = record->item.shared;

	if (record->environment_event != 0)
		return (struct shared){INCIDENT_ENVIRONMENT,
			record->item.environment ? record->item.environment : ""};
	if (record->item.members > 0)
		return (struct shared){INCIDENT_CLUSTER, shared ? shared : record->item.test};
	return name ? (struct shared){INCIDENT_DEPLOYMENT, name}
		    : (struct shared){INCIDENT_ALONE, ""};
}

static struct incident_open *open_one(struct arena *arena, struct incidents_open *open,
	const struct incident_change *change, int64_t now, struct shared *shared)
{
	const struct change_record *record = change->record;
	int64_t event = record->environment_event;
	struct incident_open *opened;

	*shared = own_cause(record);
	open->items = arena_grow(arena, open->items, open->count, sizeof *open->items);
	opened = &open->items[open->count++];
	*opened = (struct incident_open){
		.incident = {.id = event != 0 ? event : record->item.id, .opened = now},
		.first = *change};
	return opened;
}

bool incident_is_worse(const struct incident_worst *told, const struct incident_worst *more)
{
	if (told->regression > 0)
		return more->regression >= 2 * told->regression;
	return more->regression > 0 || more->other >= 2 * told->other;
}

const char *const incident_gathered = "some receivers get it together with others of its incident";

struct decision incident_gather(const struct incident_joiners *joiners, int64_t now)
{
	int64_t until = joiners->last + joiners->interval;

	if (incident_is_worse(&joiners->told, &joiners->more))
		return (struct decision){PASS, "worse than what was told of its incident", 0};
	if (joiners->ends)
		return (struct decision){PASS, "an end in its incident is told", 0};
	if (now >= until || now < joiners->last) /* or the clock was set back */
		return (struct decision){PASS, "group_interval after the last message", 0};
	return (struct decision){HOLD, incident_gathered, until};
}

const struct incident *incident_take(struct arena *arena, struct incidents_open *open,
	const struct incident_change *change, int64_t now, int64_t interval)
{
	struct shared shared;
	struct incident_open *at = find(open, change, now, &shared);
	struct incident *incident;

	if (!at && change->record->covered && change->record->environment_event == 0)
		return NULL;
	if (!at)
		at = open_one(arena, open, change, now, &shared);
	incident = &at->incident;
	if (incident->cause == INCIDENT_ALONE || incident->cause == shared.cause) {
		incident->cause = shared.cause;
		incident->words = shared.words;
	}
	incident->joined = now;
	if (incident->until < now + interval)
		incident->until = now + interval;
	at->changed = true;
	return incident;
}

/*
 * Options of all receivers beside their notifier's: events, reminders, digest and heartbeat. An
 * option of a single event implies that event.
 */
#include <string.h>

#include "agent/base/zone.h"
#include "conf/load.h"

enum { ALL_DAYS = 127 };

static const char *const heartbeats[] = {"off", "weekly", NULL};

const struct field receiver_fields[] = {
	OPTION_LIST(struct receiver_options, events,
		"events to send: new, updated, recovered, withdrawn, triaged, reminder, digest, "
		"notice, heartbeat; default: those of its kind"),
	OPTION_DURATION(struct receiver_options, remind_after, NULL, 60000, (double)INT64_MAX,
		"remind of regressions that stay untriaged for this long; default: never, or 3 "
		"days if events includes reminder"),
	OPTION_CHOICE(struct receiver_options, heartbeat, "off", heartbeats,
		"send a weekly heartbeat: what was read and found, and what has no data"),
	{0},
};

#define REMIND_AFTER INT64_C(259200000) /* ms, 3 days */

struct digest_options {
	const char *at, *zone;
	struct strings days;
};

const struct field digest_fields[] = {
	OPTION_STRING(struct digest_options, at, "09:00", "time of day"),
	OPTION_LIST(struct digest_options, days, "days of the week: [mon, wed:fri]; default: all",
		.initial = NULL),
	OPTION_STRING(struct digest_options, zone, "UTC", "time zone: Europe/Helsinki"),
	{0},
};

/* The bit of the event, or 0. */
static unsigned event_bit(const struct schema *schema, const char *name)
{
	for (size_t i = 0; i < schema->event_count; i++)
		if (strcmp(schema->events[i], name) == 0)
			return 1u << i;
	return 0;
}

const struct yaml_node *loader_item(
	const struct loader *loader, const struct yaml_node *list, const char *value)
{
	const char *text = config_written(loader->config, value);

	for (size_t i = 0; list->kind == YAML_LIST && i < list->count; i++)
		if (list->items[i]->kind == YAML_SCALAR && strcmp(list->items[i]->text, text) == 0)
			return list->items[i];
	return list;
}

unsigned events_read(const struct yaml_node *map, const struct scope *scope,
	const struct strings *given, unsigned able)
{
	const struct schema *schema = scope->loader->source->schema;
	const struct yaml_node *list = yaml_get(map, "events");
	unsigned events = 0;

	for (size_t i = 0; list && i < given->count; i++) {
		unsigned bit = event_bit(schema, given->items[i]);
		const struct yaml_node *where = loader_item(scope->loader, list, given->items[i]);

		if (bit == 0)
			loader_error(where, scope, "events: unknown event \"%.80s\"%s",
				where->kind == YAML_SCALAR ? where->text : "",
				loader_hint(scope->loader, given->items[i], schema->events,
					schema->event_count));
		else if ((bit & able) == 0)
			loader_error(where, scope,
				"events: not supported by receivers of this kind: \"%.80s\"",
				given->items[i]);
		events |= bit;
	}
	if (list && given->count == 0 && list->kind == YAML_LIST)
		loader_error(list, scope, "events: the list is empty; omit it for the default");
	return events;
}

static const struct digest_times *read_digest(
	const struct yaml_node *map, const struct scope *context)
{
	struct scope scope = *context;
	struct digest_options options = {0};
	struct digest_times *times = arena_alloc(context->loader->arena, sizeof *times);
	struct reading reading = {.tables = {{digest_fields, &options}}};
	struct unset unset = {0};
	const struct yaml_node *days;
	struct error error;

	scope.part = "digest";
	scope.unset = &unset;
	reading.scope = scope;
	field_defaults(digest_fields, &options);
	if (map && !loader_is_kind(
			   map, YAML_MAP, &scope, "a map such as {at: \"09:00\", days: [mon]}"))
		return NULL;
	options_read(map, map, &reading);
	if (unset.variable) {
		loader_unset(unset.where, context, unset.variable);
		return NULL;
	}
	fingerprint_fields(context->loader, NULL, digest_fields, &options);
	if (!mute_clock(options.at, &times->at) || times->at == INT64_C(1440))
		loader_error(yaml_get(map, "at"), &scope,
			"at: \"%.80s\": expected a time such as 09:00", options.at);
	if (!zone_read(context->loader->arena, NULL, options.zone, &times->zone, &error))
		loader_error(yaml_get(map, "zone"), &scope, "zone: %s", error.text);
	days = yaml_get(map, "days");
	for (size_t i = 0; days && i < options.days.count; i++)
		if (!mute_weekdays(options.days.items[i], &times->days))
			loader_error(loader_item(context->loader, days, options.days.items[i]),
				&scope, "days: expected days such as mon, or mon:fri");
	if (times->days == 0)
		times->days = ALL_DAYS;
	return times;
}

static void need_event(const struct yaml_node *map, const struct scope *scope, const char *key,
	unsigned bit, unsigned able)
{
	if ((bit & able) == 0)
		loader_error(yaml_get(map, key), scope,
			"%s: not supported by receivers of this kind", key);
}

/* Follow-up events go only to receivers that get the change. */
static void check_sequels(const struct yaml_node *map, const struct scope *scope, unsigned events)
{
	static const char *const sequels[] = {
		"updated", "recovered", "withdrawn", "triaged", "reminder"};

	if (!yaml_get(map, "events") || events & event_bit(scope->loader->source->schema, "new"))
		return;
	for (size_t i = 0; i < sizeof sequels / sizeof *sequels; i++)
		if (events & event_bit(scope->loader->source->schema, sequels[i])) {
			loader_warn(yaml_get(map, "events"), scope,
				"events: \"%s\" has no effect without \"new\": only receivers of "
				"a change get its later events",
				sequels[i]);
			return;
		}
}

void receiver_settle(const struct yaml_node *map, const struct scope *scope,
	const struct receiver_options *options, struct receiver *receiver)
{
	const struct schema *schema = scope->loader->source->schema;
	const struct yaml_node *digest = yaml_get(map, "digest");
	unsigned able, reminder = event_bit(schema, "reminder");
	unsigned digests = event_bit(schema, "digest"), beats = event_bit(schema, "heartbeat");

	schema->notifier_events(receiver->notifier, &able, &receiver->events);
	receiver->events &= ~(reminder | digests | beats);
	receiver->chose_events = options->events.count > 0;
	if (yaml_get(map, "events"))
		receiver->events = events_read(map, scope, &options->events, able);
	if (options->remind_after > 0 && options->remind_after != INT64_MAX) {
		need_event(map, scope, "remind_after", reminder, able);
		receiver->events |= reminder;
		receiver->remind_after = options->remind_after;
	} else if (options->remind_after == INT64_MAX) {
		receiver->events &= ~reminder;
	} else if (receiver->events & reminder) {
		receiver->remind_after = REMIND_AFTER;
	}
	if (digest && !yaml_is_null(digest)) {
		need_event(map, scope, "digest", digests, able);
		receiver->events |= digests;
	}
	if (receiver->events & digests)
		receiver->digest =
			read_digest(digest && yaml_is_null(digest) ? NULL : digest, scope);
	if (options->heartbeat != 0) {
		need_event(map, scope, "heartbeat", beats, able);
		receiver->events |= beats;
	}
	receiver->heartbeat = (receiver->events & beats) != 0;
	check_sequels(map, scope, receiver->events);
	fingerprint_fields(scope->loader, NULL, receiver_fields, options);
}

void receiver_report_unknown(
	const struct yaml_node *where, const struct scope *scope, const char *key, const char *name)
{
	const struct config *config = scope->loader->config;

	loader_error(where, scope, "%s: no receiver \"%.80s\"%s", key, name,
		loader_hint_in(scope->loader, name, config->receivers, config->receiver_count,
			sizeof *config->receivers));
}

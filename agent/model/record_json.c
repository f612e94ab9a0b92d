/*
 * Uses the member names of `analyze --output json` where it has them.
 */
#include "agent/model/record_json.h"

#include <inttypes.h>
#include <math.h>

#include "agent/base/when.h"
#include "agent/model/columns.h"
#include "agent/model/json_put.h"

enum { ATTRIBUTE_CHARS = 1000 };

void environment_put_json(struct buf *out, const struct environment_event *event)
{
	json_key(out, "environment");
	if (!event) {
		buf_text(out, "null");
		return;
	}
	buf_char(out, '{');
	json_put_id(out, "id", event->id);
	json_put_clean(out, "label", event->label, ATTRIBUTE_CHARS);
	json_put_clean(out, "value", event->value, ATTRIBUTE_CHARS);
	json_put_time(out, "since", event->time);
	json_put_count(out, "changed", event->hit);
	json_put_count(out, "series", event->total);
	json_put_number(out, "size", event->size);
	json_put_count(out, "worse", event->worse);
	json_put_count(out, "better", event->better);
	json_put_count(out, "elsewhere", event->elsewhere);
	json_put_count(out, "elsewhere_changed", event->elsewhere_changed);
	json_put_bool(out, "followed", event->followed);
	buf_char(out, '}');
}

void announcement_put_basis(struct buf *out, const struct announcement *item)
{
	json_put_text(out, "explained_by", item->basis == BASIS_LOAD ? item->other : NULL);
	json_put_text(out, "relative_to", item->basis == BASIS_RATIO ? item->other : NULL);
	if (item->other)
		json_put_bool(out, "other_changed", item->other_changed);
	else
		json_put_text(out, "other_changed", NULL);
	json_put_number(out, "other_size", item->other_changed ? item->other_size : (double)NAN);
}

void announcement_put_culprit(struct buf *out, const struct announcement *item)
{
	json_key(out, "culprit");
	if (item->culprit)
		culprit_put(out, item->culprit);
	else
		buf_text(out, "null");
}

static void put_deployment(struct buf *out, const struct deployment *deployment, int64_t time)
{
	buf_char(out, '{');
	json_put_clean(out, "commit", deployment->commit, ATTRIBUTE_CHARS);
	json_put_clean(out, "version", deployment->version, ATTRIBUTE_CHARS);
	json_put_time(out, "time", deployment->time);
	json_put_time(
		out, "not_before", deployment->after == INT64_MIN ? WHEN_NEVER : deployment->after);
	json_put_seconds(out, "age_seconds", time - deployment->time);
	buf_char(out, '}');
}

void announcement_put_suspects(struct buf *out, const struct attribution *suspects, int64_t time)
{
	json_key(out, "suspects");
	if (!suspects->known) {
		buf_text(out, "null");
		return;
	}
	buf_char(out, '{');
	json_put_clean(out, "from", attribution_from(suspects), ATTRIBUTE_CHARS);
	json_put_clean(out, "to", attribution_to(suspects), ATTRIBUTE_CHARS);
	json_put_count(out, "count", suspects->count);
	json_key(out, "list");
	buf_char(out, '[');
	for (size_t i = 0; i < suspects->listed; i++) {
		json_next(out);
		put_deployment(out, &suspects->list[i], time);
	}
	buf_char(out, ']');
	json_put_time(out, "since", suspects->since);
	json_put_time(out, "until", suspects->until);
	json_key(out, "last");
	if (suspects->last.time == INT64_MIN)
		buf_text(out, "null");
	else
		put_deployment(out, &suspects->last, time);
	if (suspects->share > 0)
		json_put_number(out, "share", suspects->share);
	buf_char(out, '}');
}

static void put_member(struct buf *out, const char *name, const char *value)
{
	struct buf clean = {0};

	if (!value)
		return;
	json_next(out);
	buf_clean(&clean, name, ATTRIBUTE_CHARS);
	buf_json_string(out, clean.data, clean.length);
	buf_text(out, ": ");
	buf_clear(&clean);
	buf_clean(&clean, value, ATTRIBUTE_CHARS);
	buf_json_string(out, clean.data, clean.length);
	buf_free(&clean);
}

void announcement_put_attributes(struct buf *out, const struct announcement *item)
{
	for (int after = 1; after >= 0; after--) {
		json_key(out, after ? "attributes" : "attributes_before");
		buf_char(out, '{');
		put_member(out, "commit", after ? item->commit_after : item->commit_before);
		put_member(out, "version", after ? item->version_after : item->version_before);
		for (size_t i = 0; i < item->attribute_count; i++) {
			const struct attribute *attribute = &item->attributes[i];

			put_member(
				out, attribute->name, after ? attribute->after : attribute->before);
		}
		buf_char(out, '}');
	}
}

void record_put_found(struct buf *out, const struct announcement *item)
{
	const struct change_record record = {.item = *item};

	for (const struct stored_column *column = change_columns; column->name; column++) {
		if (!(column->uses & COLUMN_FOUND) || !column_is_shown(column))
			continue;
		if (column->type == COLUMN_TEXT)
			json_put_clean(
				out, column->name, column_text(column, &record), ATTRIBUTE_CHARS);
		else
			column_put_json(column, &record, out);
	}
}

static void put_event(struct buf *out, const struct event *event)
{
	buf_char(out, '{');
	json_put_text(out, "event", event_names[event->kind]);
	json_put_time(out, "at", event->time);
	json_put_time(out, "time", event->point);
	if (event->kind == EVENT_ANNOUNCED) {
		json_put_text(out, "receiver", event->actor.person);
		json_put_text(out, "destination", event->actor.origin);
	}
	if (event->kind >= EVENT_TRIAGED) {
		json_put_text(out, "person", event->actor.person);
		json_put_text(out, "origin", event->actor.origin);
		json_put_text(out, "detail", event->detail);
	}
	buf_char(out, '}');
}

void record_hide_origins(struct arena *arena, struct record_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		struct change_record *record = &rows->items[i];
		struct event *events = arena_array(arena, record->event_count, sizeof *events);

		for (size_t j = 0; j < record->event_count; j++) {
			events[j] = record->events[j];
			if (events[j].kind >= EVENT_TRIAGED)
				events[j].actor.origin = NULL;
		}
		record->events = events;
	}
}

void triage_put_json(struct buf *out, const struct triage *triage)
{
	bool measured = triage_passes_gates(triage->state);

	buf_printf(out, ", \"triage\": {\"state\": \"%s\", \"version\": %" PRId64,
		triage_state_names[triage->state ? triage->state : TRIAGE_OPEN], triage->version);
	json_put_text(out, "owner", triage->owner);
	json_put_text(out, "note", triage->note);
	json_put_text(out, "link", triage->link);
	json_put_text(out, "person", triage->person);
	json_put_moment(out, "time", triage->time);
	json_put_moment(out, "until", triage->until);
	json_put_number(out, "size", measured ? triage->size : (double)NAN);
	json_put_number(out, "size_low", measured ? triage->size_low : (double)NAN);
	json_put_number(out, "size_high", measured ? triage->size_high : (double)NAN);
	if (triage->inherited != 0)
		buf_printf(out, ", \"inherited\": \"i%" PRId64 "\"", triage->inherited);
	else
		buf_text(out, ", \"inherited\": null");
	buf_char(out, '}');
}

void record_put_json(struct buf *out, const struct change_record *record)
{
	const struct announcement *item = &record->item;

	buf_printf(out, "{\"id\": %" PRId64, item->id);
	for (const struct stored_column *column = change_columns + 1; column->name; column++)
		if (column_is_shown(column))
			column_put_json(column, record, out);
	json_put_bool(out, "regression", announcement_verdict(item) > 0);
	json_put_number(out, "forward_change_percent", change_percent(&item->change));
	announcement_put_suspects(out, &item->suspects, item->time);
	announcement_put_culprit(out, item);
	announcement_put_attributes(out, item);
	json_put_text(out, "page", item->page);
	json_put_text(out, "dashboard", item->dashboard);
	json_put_text(out, "runbook", item->runbook);
	json_put_text(out, "owner", item->owner);
	announcement_put_basis(out, item);
	json_put_id(out, "ends", record->ends);
	json_put_moment(out, "announced", record_announced(record));
	triage_put_json(out, &record->triage);
	json_key(out, "history");
	buf_char(out, '[');
	for (size_t i = 0; i < record->event_count; i++) {
		json_next(out);
		put_event(out, &record->events[i]);
	}
	buf_text(out, "]}");
}

int64_t record_announced(const struct change_record *record)
{
	for (size_t i = 0; i < record->event_count; i++)
		if (record->events[i].kind == EVENT_ANNOUNCED)
			return record->events[i].time;
	return 0;
}

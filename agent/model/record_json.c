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
	json_put(out, "{id: %jd id", event->id);
	json_put_clean(out, "label", event->label, ATTRIBUTE_CHARS);
	json_put_clean(out, "value", event->value, ATTRIBUTE_CHARS);
	json_put(out,
		"since: %jd time, changed: %zu, series: %zu, size: %g, worse: %zu, "
		"better: %zu, elsewhere: %zu, elsewhere_changed: %zu, "
		"followed: %d bool}",
		event->time, event->hit, event->total, event->size, event->worse, event->better,
		event->elsewhere, event->elsewhere_changed, event->followed);
}

void announcement_put_basis(struct buf *out, const struct announcement *item)
{
	json_put(out, "explained_by: %s optional", item->basis == BASIS_LOAD ? item->other : "");
	json_put(out, "relative_to: %s optional", item->basis == BASIS_RATIO ? item->other : "");
	if (item->other)
		json_put(out, "other_changed: %d bool", item->other_changed);
	else
		json_put(out, "other_changed: null");
	json_put(out, "other_size: %g", item->other_changed ? item->other_size : (double)NAN);
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
	json_put(out, "time: %jd time, not_before: %jd time, age_seconds: %jd seconds}",
		deployment->time, deployment->after == INT64_MIN ? WHEN_NEVER : deployment->after,
		time - deployment->time);
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
	json_put(out, "count: %zu", suspects->count);
	json_key(out, "list");
	buf_char(out, '[');
	for (size_t i = 0; i < suspects->listed; i++) {
		json_next(out);
		put_deployment(out, &suspects->list[i], time);
	}
	json_put(out, "], since: %jd time, until: %jd time", suspects->since, suspects->until);
	json_key(out, "last");
	if (suspects->last.time == INT64_MIN)
		buf_text(out, "null");
	else
		put_deployment(out, &suspects->last, time);
	if (suspects->share > 0)
		json_put(out, "share: %g", suspects->share);
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
	json_put(out, "{event: %s, at: %jd time, time: %jd time", event_names[event->kind],
		event->time, event->point);
	if (event->kind == EVENT_ANNOUNCED) {
		json_put(out, "receiver: %s, destination: %s", event->actor.person,
			event->actor.origin);
	}
	if (event->kind >= EVENT_TRIAGED) {
		json_put(out, "person: %s, origin: %s, detail: %s", event->actor.person,
			event->actor.origin, event->detail);
	}
	json_put(out, "due: %jd moment, reason: %s}", event->due, event->reason);
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
	json_put(out,
		"triage: {state: %s, version: %jd, owner: %s, note: %s, link: %s, "
		"person: %s, time: %jd moment, until: %jd moment",
		triage_state_names[triage->state ? triage->state : TRIAGE_OPEN], triage->version,
		triage->owner, triage->note, triage->link, triage->person, triage->time,
		triage->until);
	if (triage_passes_gates(triage->state))
		json_put(out, "size: %g, size_low: %g, size_high: %g", triage->size,
			triage->size_low, triage->size_high);
	else
		json_put(out, "size: null, size_low: null, size_high: null");
	json_key(out, "inherited");
	if (triage->inherited != 0)
		buf_printf(out, "\"i%" PRId64 "\"}", triage->inherited);
	else
		buf_text(out, "null}");
}

void record_put_json(struct buf *out, const struct change_record *record)
{
	const struct announcement *item = &record->item;

	buf_printf(out, "{\"id\": %" PRId64, item->id);
	for (const struct stored_column *column = change_columns + 1; column->name; column++)
		if (column_is_shown(column))
			column_put_json(column, record, out);
	json_put(out, "regression: %d bool, forward_change_percent: %g",
		announcement_verdict(item) > 0, change_percent(&item->change));
	announcement_put_suspects(out, &item->suspects, item->time);
	announcement_put_culprit(out, item);
	announcement_put_attributes(out, item);
	json_put(out, "page: %s, dashboard: %s, runbook: %s, owner: %s", item->page,
		item->dashboard, item->runbook, item->owner);
	announcement_put_basis(out, item);
	json_put(
		out, "ends: %jd id, announced: %jd moment", record->ends, record_announced(record));
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

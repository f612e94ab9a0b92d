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

static void put_text_or_null(struct buf *out, const char *text)
{
	struct buf clean = {0};

	if (text)
		buf_clean(&clean, text, ATTRIBUTE_CHARS);
	buf_json_text(out, text ? (clean.data ? clean.data : "") : NULL);
	buf_free(&clean);
}

void environment_put_json(struct buf *out, const struct environment_event *event)
{
	char text[WHEN_TEXT];

	buf_text(out, "\"environment\": ");
	if (!event) {
		buf_text(out, "null");
		return;
	}
	buf_printf(out, "{\"id\": %lld, \"label\": ", (long long)event->id);
	put_text_or_null(out, event->label);
	buf_text(out, ", \"value\": ");
	put_text_or_null(out, event->value);
	buf_printf(out, ", \"since\": \"%s\", \"changed\": %zu, \"series\": %zu, \"size\": ",
		when_format_iso(event->time, text), event->hit, event->total);
	buf_json_number(out, event->size);
	buf_printf(out,
		", \"worse\": %zu, \"better\": %zu, \"elsewhere\": %zu,"
		" \"elsewhere_changed\": %zu, \"followed\": %s}",
		event->worse, event->better, event->elsewhere, event->elsewhere_changed,
		event->followed ? "true" : "false");
}

void announcement_put_basis(struct buf *out, const struct announcement *item)
{
	buf_text(out, ", \"explained_by\": ");
	buf_json_text(out, item->basis == BASIS_LOAD ? item->other : NULL);
	buf_text(out, ", \"relative_to\": ");
	buf_json_text(out, item->basis == BASIS_RATIO ? item->other : NULL);
	buf_printf(out, ", \"other_changed\": %s, \"other_size\": ",
		!item->other          ? "null"
		: item->other_changed ? "true"
				      : "false");
	buf_json_number(out, item->other_changed ? item->other_size : (double)NAN);
}

void announcement_put_culprit(struct buf *out, const struct announcement *item)
{
	buf_text(out, "\"culprit\": ");
	if (item->culprit)
		culprit_put(out, item->culprit);
	else
		buf_text(out, "null");
}

static void put_deployment(struct buf *out, const struct deployment *deployment, int64_t time)
{
	char text[WHEN_TEXT];

	buf_text(out, "{\"commit\": ");
	put_text_or_null(out, deployment->commit);
	buf_text(out, ", \"version\": ");
	put_text_or_null(out, deployment->version);
	buf_printf(out,
		", \"time\": \"%s\", \"not_before\": ", when_format_iso(deployment->time, text));
	if (deployment->after == INT64_MIN)
		buf_text(out, "null");
	else
		buf_printf(out, "\"%s\"", when_format_iso(deployment->after, text));
	buf_text(out, ", \"age_seconds\": ");
	buf_json_number(out, (double)(time - deployment->time) / 1000);
	buf_char(out, '}');
}

void announcement_put_suspects(struct buf *out, const struct attribution *suspects, int64_t time)
{
	char when[WHEN_TEXT];

	buf_text(out, "\"suspects\": ");
	if (!suspects->known) {
		buf_text(out, "null");
		return;
	}
	buf_text(out, "{\"from\": ");
	put_text_or_null(out, attribution_from(suspects));
	buf_text(out, ", \"to\": ");
	put_text_or_null(out, attribution_to(suspects));
	buf_printf(out, ", \"count\": %zu, \"list\": [", suspects->count);
	for (size_t i = 0; i < suspects->listed; i++) {
		buf_text(out, i > 0 ? ", " : "");
		put_deployment(out, &suspects->list[i], time);
	}
	buf_printf(out, "], \"since\": \"%s\"", when_format_iso(suspects->since, when));
	buf_printf(out, ", \"until\": \"%s\", \"last\": ", when_format_iso(suspects->until, when));
	if (suspects->last.time == INT64_MIN)
		buf_text(out, "null");
	else
		put_deployment(out, &suspects->last, time);
	if (suspects->share > 0) {
		buf_text(out, ", \"share\": ");
		buf_json_number(out, suspects->share);
	}
	buf_char(out, '}');
}

static void put_member(struct buf *out, const char *name, const char *value, bool *any)
{
	struct buf clean = {0};

	if (!value)
		return;
	buf_text(out, *any ? ", " : "");
	*any = true;
	buf_clean(&clean, name, ATTRIBUTE_CHARS);
	buf_json_string(out, clean.data, clean.length);
	buf_text(out, ": ");
	buf_clear(&clean);
	buf_clean(&clean, value, ATTRIBUTE_CHARS);
	buf_json_string(out, clean.data, clean.length);
	buf_free(&clean);
}

void announcement_put_attributes(struct buf *out, const struct announcement *item, bool after)
{
	bool any = false;

	buf_char(out, '{');
	put_member(out, "commit", after ? item->commit_after : item->commit_before, &any);
	put_member(out, "version", after ? item->version_after : item->version_before, &any);
	for (size_t i = 0; i < item->attribute_count; i++) {
		const struct attribute *attribute = &item->attributes[i];

		put_member(
			out, attribute->name, after ? attribute->after : attribute->before, &any);
	}
	buf_char(out, '}');
}

void record_put_found(struct buf *out, const struct announcement *item)
{
	const struct change_record record = {.item = *item};

	for (const struct stored_column *column = change_columns; column->name; column++)
		if (column->uses & COLUMN_FOUND && column_is_shown(column))
			column_put_json(column, &record, out);
}

static void put_event(struct buf *out, const struct event *event)
{
	char text[WHEN_TEXT];

	buf_printf(out, "{\"event\": \"%s\", \"at\": \"%s\"", event_names[event->kind],
		when_format_iso(event->time, text));
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

static void put_history(struct buf *out, const struct change_record *record)
{
	buf_text(out, ", \"history\": [");
	for (size_t i = 0; i < record->event_count; i++) {
		buf_text(out, i > 0 ? ", " : "");
		put_event(out, &record->events[i]);
	}
	buf_char(out, ']');
}

static void put_triage(struct buf *out, const struct triage *triage)
{
	bool measured = triage_passes_gates(triage->state);

	buf_printf(out, ", \"triage\": {\"state\": \"%s\", \"version\": %" PRId64,
		triage_state_names[triage->state ? triage->state : TRIAGE_OPEN], triage->version);
	json_put_text(out, "owner", triage->owner);
	json_put_text(out, "note", triage->note);
	json_put_text(out, "link", triage->link);
	json_put_text(out, "person", triage->person);
	json_put_time(out, "time", triage->time != 0 ? triage->time : WHEN_NEVER);
	json_put_time(out, "until", triage->until != 0 ? triage->until : WHEN_NEVER);
	json_put_number(out, "size", measured ? triage->size : (double)NAN);
	json_put_number(out, "size_low", measured ? triage->size_low : (double)NAN);
	json_put_number(out, "size_high", measured ? triage->size_high : (double)NAN);
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
	buf_text(out, ", ");
	announcement_put_suspects(out, &item->suspects, item->time);
	buf_text(out, ", ");
	announcement_put_culprit(out, item);
	buf_text(out, ", \"attributes\": ");
	announcement_put_attributes(out, item, true);
	buf_text(out, ", \"attributes_before\": ");
	announcement_put_attributes(out, item, false);
	json_put_text(out, "page", item->page);
	json_put_text(out, "dashboard", item->dashboard);
	json_put_text(out, "runbook", item->runbook);
	json_put_text(out, "owner", item->owner);
	announcement_put_basis(out, item);
	if (record->ends != 0)
		buf_printf(out, ", \"ends\": %" PRId64, record->ends);
	else
		json_put_text(out, "ends", NULL);
	if (record_announced(record) != 0)
		json_put_time(out, "announced", record_announced(record));
	else
		json_put_text(out, "announced", NULL);
	put_triage(out, &record->triage);
	put_history(out, record);
	buf_char(out, '}');
}

int64_t record_announced(const struct change_record *record)
{
	for (size_t i = 0; i < record->event_count; i++)
		if (record->events[i].kind == EVENT_ANNOUNCED)
			return record->events[i].time;
	return 0;
}

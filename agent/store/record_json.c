/*
 * Uses the member names of `analyze --output json` where it has them.
 */
#include "agent/store/record_json.h"

#include <inttypes.h>
#include <math.h>

#include "agent/base/when.h"
#include "agent/model/json_put.h"
#include "agent/store/columns.h"
#include "notifiers/text.h"

void record_put_description(struct buf *out, const struct announcement *item)
{
	const struct change_record record = {.item = *item};

	for (const struct store_column *column = change_columns; column->name; column++)
		if (column->uses & COLUMN_DESCRIBES)
			column_put_json(column, &record, out);
}

static void put_event(struct buf *out, const struct event *event)
{
	char text[WHEN_TEXT];

	buf_printf(out, "{\"event\": \"%s\", \"at\": \"%s\"", event_names[event->kind],
		when_format_iso(event->time, text));
	json_put_time(out, "time", event->point);
	if (event->kind == EVENT_ANNOUNCED) {
		json_put_text(out, "receiver", event->receiver);
		json_put_text(out, "destination", event->destination);
	}
	if (event->kind >= EVENT_STORED) {
		json_put_text(out, "person", event->person);
		json_put_text(out, "origin", event->origin);
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
			if (events[j].kind >= EVENT_STORED)
				events[j].origin = NULL;
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
	for (const struct store_column *column = change_columns + 1; column->name; column++)
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

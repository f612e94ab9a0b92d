/*
 * A change that moves to and fro for ever must not fill the disk: of the agent's own events only
 * the last and the announcements are kept. Triage is kept until it is pruned; a change's history
 * shows the last.
 */
#include "agent/store/sql/read.h"

#include <string.h>

enum { EVENTS_KEPT = 50 };

void event_add(struct tx *tx, const struct event *event)
{
	row_run(sql_query_of(tx,
			"INSERT INTO events (time, kind, change, point, person, origin, subject,"
			" detail, due, reason) VALUES (?1, ?2, ?3, coalesce(?4, (SELECT time FROM"
			" changes WHERE id = ?3)), ?5, ?6, coalesce(?7, (SELECT test || ' ' ||"
			" metric FROM changes WHERE id = ?3 AND ?2 >= @event{triaged})), ?8,"
			" CASE WHEN ?2 = @event{recovered} OR EXISTS (SELECT 1 FROM announced"
			" JOIN deliveries ON deliveries.id = delivery WHERE announced.change = ?3"
			" AND state != @delivery{abandoned}) THEN CAST(?9 AS BIGINT) END, ?10)"),
		event_columns + 1, event);
	if (event->kind < EVENT_TRIAGED)
		RUN(tx,
			"DELETE FROM events WHERE change = ?1 AND kind < @event{triaged} AND kind"
			" != @event{announced} AND id <= (SELECT id FROM events "
			"WHERE change = ?1"
			" AND kind < @event{triaged} ORDER BY id DESC LIMIT 1 OFFSET ?2)",
			v_int(event->change), v_int(EVENTS_KEPT));
}

void event_put_text(struct buf *detail, const char *name, const char *text)
{
	bool plain = *text != '"'; /* it cannot be taken for more than one text */

	for (const char *at = text; *at; at++)
		plain &= *at != ';' && (unsigned char)*at >= ' ' && *at != 0x7f;
	buf_printf(detail, "; %s: ", name);
	if (plain)
		buf_text(detail, text);
	else
		buf_json_string(detail, text, strlen(text));
}

void events_load(struct tx *tx, struct change_record *records, size_t count)
{
	struct owned_query rows = {0};
	struct owners owners = {0};

	if (count == 0)
		return;
	for (size_t i = 0; i < count; i++)
		owners_add(&owners, tx, records[i].item.id, i);
	owners_sort(&owners, false);
	rows.query = QUERY(tx,
		"SELECT change, @events FROM (SELECT *, row_number() OVER (PARTITION BY change,"
		" kind >= @event{triaged} ORDER BY id DESC) AS back FROM events"
		" @indexed{events_of_change} WHERE change IN @ids{?1} AND kind <"
		" @event{silenced}) AS last WHERE back <= ?2 OR kind < @event{triaged} ORDER BY"
		" change, id",
		v_owners(tx, &owners), v_int(EVENTS_KEPT));
	for (size_t i = 0; i < count; i++) {
		struct change_record *record = &records[owners.items[i].place];
		struct event *events = NULL;
		size_t many = 0;

		/* The first event is in the record itself. */
		*ADD_ROW(tx, events, many) =
			(struct event){.kind = EVENT_FOUND, .time = record->first_seen};
		while (owned_next(&rows, record->item.id)) {
			read_struct(&rows.query, event_columns, ADD_ROW(tx, events, many));
		}
		events[0].point = many > 1 ? events[1].point : record->item.time;
		record->events = events;
		record->event_count = many;
	}
}

STORE_DEFINE(audit, .lane = STORE_LISTS)
{
	bool limited = call->limit > 0 && call->limit < INT64_MAX;
	struct sql_query query = QUERY(tx,
		call->change != 0
			? "SELECT @events FROM events @indexed{events_of_change} WHERE change ="
			  " ?4 AND kind >= @event{triaged} AND time >= ?1 AND id < ?2 ORDER BY id"
			  " DESC LIMIT ?3"
			: "SELECT @events FROM events @indexed{events_audit} WHERE kind >="
			  " @event{triaged} AND time >= ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3",
		v_int(call->since != 0 ? call->since : INT64_MIN),
		v_int(call->before_id > 0 ? call->before_id : INT64_MAX),
		v_int(limited ? call->limit + 1 : INT64_MAX));

	if (call->change != 0)
		query_bind(&query, v_int(call->change));
	call->entries =
		read_structs(&query, event_columns, sizeof *call->entries, &call->entry_count);
	call->more = limited && (int64_t)call->entry_count > call->limit;
	call->entry_count -= call->more;
}

STORE_DEFINE(audit_add, .writes = true)
{
	event_add(tx, &call->entry);
}

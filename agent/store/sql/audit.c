/*
 * Rows are only added; pruning deletes the old ones.
 */
#include "agent/store/sql/audit.h"
#include "agent/store/sql/schema.h"

#include <string.h>

/* It cannot be taken for more than one text. */
static bool is_plain(const char *text)
{
	if (*text == '"')
		return false;
	for (const char *at = text; *at; at++)
		if (*at == ';' || (unsigned char)*at < ' ' || *at == 0x7f)
			return false;
	return true;
}

void audit_put_text(struct buf *detail, const char *name, const char *text)
{
	buf_printf(detail, "; %s: ", name);
	if (is_plain(text))
		buf_text(detail, text);
	else
		buf_json_string(detail, text, strlen(text));
}

void audit_add(struct tx *tx, const struct audit_entry *entry)
{
	RUN(tx, STATEMENT_AUDIT_ADD, v_time(entry->time), v_text(entry->actor.person),
		v_text(entry->actor.origin), v_text(entry->action), v_count(entry->change),
		v_text(entry->subject), v_text(entry->detail));
}

static void audit_list(struct tx *tx, void *context)
{
	struct store_audit *call = context;
	bool limited = call->limit > 0 && call->limit < INT64_MAX;
	struct sql_query query = QUERY(tx, call->change != 0 ? STATEMENT_AUDIT_OF : STATEMENT_AUDIT,
		v_id(call->since != 0 ? call->since : INT64_MIN),
		v_id(call->before_id > 0 ? call->before_id : INT64_MAX),
		v_id(limited ? call->limit + 1 : INT64_MAX));

	if (call->change != 0)
		query_bind(&query, v_id(call->change));
	call->entries =
		read_structs(&query, audit_columns, sizeof *call->entries, &call->entry_count);
	call->more = limited && (int64_t)call->entry_count > call->limit;
	call->entry_count -= call->more;
}

STORE_DEFINE(audit, .run = audit_list, .lane = STORE_LISTS);

static void read_event(struct sql_query *query, int64_t point, struct event *event)
{
	*event = (struct event){
		.kind = read_flag(query) ? EVENT_REOPENED : EVENT_TRIAGED, .point = point};
	event->time = read_time(query);
	event->person = read_text(query);
	event->origin = read_text(query);
	event->detail = read_text(query);
}

/* Both are ordered by time, but for clocks that were set back: what came later never goes before
 * the event that it follows in its own list. */
static struct event *merge(struct arena *arena, const struct event *events, size_t count,
	const struct event *said, size_t said_count)
{
	struct event *all = arena_array(arena, count + said_count, sizeof *all);
	size_t i = 0, j = 0;

	while (i < count || j < said_count)
		if (j == said_count || (i < count && events[i].time <= said[j].time)) {
			all[i + j] = events[i];
			i++;
		} else {
			all[i + j] = said[j];
			j++;
		}
	return all;
}

/* Of one record. */
static void load_said(struct owned_query *rows, struct change_record *record)
{
	struct tx *tx = rows->query.tx;
	struct event *said = NULL;
	size_t count = 0;

	while (owned_next(rows, record->item.id)) {
		read_event(&rows->query, record->item.time, ADD_ROW(tx, said, count));
	}
	if (count == 0)
		return;
	record->events = merge(tx->arena, record->events, record->event_count, said, count);
	record->event_count += count;
}

void audit_load_events(struct tx *tx, struct change_record *records, const struct owners *owners)
{
	struct owned_query rows = {
		.query = QUERY(tx, STATEMENT_AUDIT_EVENTS, v_owners(tx, owners))};

	for (size_t i = 0; i < owners->count; i++)
		load_said(&rows, &records[owners->items[i].place]);
}

static void add(struct tx *tx, void *context)
{
	audit_add(tx, &((struct store_audit_add *)context)->entry);
}

STORE_DEFINE(audit_add, .run = add, .writes = true);

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

bool audit_add(struct store_file *file, const struct audit_entry *entry, struct error *error)
{
	return RUN(file, STATEMENT_AUDIT_ADD, error, v_time(entry->time),
		v_text(entry->actor.person), v_text(entry->actor.origin), v_text(entry->action),
		v_count(entry->change), v_text(entry->subject), v_text(entry->detail));
}

static bool audit_list(struct store_file *file, void *context, struct error *error)
{
	struct store_audit *call = context;
	struct reader reader = {
		.binder = bind_to(file, call->change != 0 ? STATEMENT_AUDIT_OF : STATEMENT_AUDIT),
		.arena = call->call.arena};
	bool limited = call->limit > 0 && call->limit < INT64_MAX;

	bind_integer(&reader.binder, call->since != 0 ? call->since : INT64_MIN);
	bind_integer(&reader.binder, call->before_id > 0 ? call->before_id : INT64_MAX);
	bind_integer(&reader.binder, limited ? call->limit + 1 : INT64_MAX);
	if (call->change != 0)
		bind_integer(&reader.binder, call->change);
	call->entries = read_structs(
		&reader, audit_columns, sizeof *call->entries, &call->entry_count, error);
	call->more = limited && (int64_t)call->entry_count > call->limit;
	call->entry_count -= call->more;
	return !reader.failed;
}

const struct store_work store_audit_work = {.run = audit_list, .lane = STORE_LISTS};

static void read_event(struct reader *reader, int64_t point, struct event *event)
{
	*event = (struct event){
		.kind = read_choice(reader, 0, 1) == 1 ? EVENT_REOPENED : EVENT_TRIAGED,
		.point = point};
	event->time = read_time(reader);
	event->person = read_text(reader);
	event->origin = read_text(reader);
	event->detail = read_text(reader);
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
static void load_said(struct owned_reader *rows, struct arena *arena, struct change_record *record,
	struct error *error)
{
	struct event *said = NULL;
	size_t count = 0;

	while (owned_next(rows, record->item.id, error)) {
		said = rows_grow(arena, said, &count, sizeof *said);
		read_event(&rows->reader, record->item.time, &said[count - 1]);
	}
	if (count == 0)
		return;
	record->events = merge(arena, record->events, record->event_count, said, count);
	record->event_count += count;
}

bool audit_load_events(struct store_file *file, struct arena *arena, struct change_record *records,
	const struct owners *owners, struct error *error)
{
	struct owned_reader rows = {
		.reader = {.binder = bind_to(file, STATEMENT_AUDIT_EVENTS), .arena = arena}};

	bind_owners(&rows.reader.binder, arena, owners);
	for (size_t i = 0; i < owners->count; i++)
		load_said(&rows, arena, &records[owners->items[i].place], error);
	return !rows.reader.failed;
}

static bool add(struct store_file *file, void *context, struct error *error)
{
	return audit_add(file, &((struct store_audit_add *)context)->entry, error);
}

const struct store_work store_audit_add_work = {.run = add, .writes = true};

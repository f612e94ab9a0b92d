/*
 * Rows become structs in the call's arena. Lists are read to their end or to their limit; those
 * that can be long have one.
 */
#include "agent/store/sqlite/read.h"

#include <string.h>

#include "agent/store/sqlite/audit.h"
#include "agent/store/sqlite/rows.h"
#include "agent/store/sqlite/silences.h"

enum { MOST_LISTED = 1000000, MOST_MEMBERS = 1000 };

static struct reader open_reader(
	struct store_file *file, struct arena *arena, enum statement statement)
{
	return (struct reader){.binder = bind_to(file, statement), .arena = arena};
}

static bool load_records(struct store_file *file, struct store_pending *call, struct error *error)
{
	struct reader reader = open_reader(file, call->call.arena, STATEMENT_PENDING);

	return read_records(&reader, &call->records, error);
}

/* Merges two results that are both ordered by change. */
static bool load_told(struct store_file *file, struct store_pending *call, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct reader reader = open_reader(file, arena, STATEMENT_TOLD);
	struct change_record *record = call->records.items;
	const struct change_record *end = record + call->records.count;

	while (reader_next(&reader, error)) {
		int64_t id = read_id(&reader);

		while (record < end && record->item.id < id)
			record++;
		if (record < end && record->item.id == id)
			record_told(arena, record, read_name(&reader));
	}
	return !reader.failed;
}

static void read_delivery(struct reader *reader, struct delivery *delivery)
{
	delivery->id = read_id(reader);
	delivery->key = read_name(reader);
	delivery->receiver = read_name(reader);
	delivery->destination = read_name(reader);
	delivery->payload = read_text(reader);
	delivery->thread = read_text(reader);
	delivery->state = (enum delivery_state)read_choice(reader, 1, DELIVERY_ABANDONED);
	delivery->receipt = read_text(reader);
	delivery->attempts = read_count(reader);
	delivery->now = read_time(reader);
	delivery->begun = read_choice(reader, 0, 1) == 1;
	delivery->not_before = read_time(reader);
	delivery->kind = read_text(reader);
}

static bool read_deliveries(struct reader *reader, struct delivery_rows *out, struct error *error)
{
	*out = (struct delivery_rows){0};
	while (reader_next(reader, error)) {
		out->items = rows_grow(reader->arena, out->items, &out->count, sizeof *out->items);
		read_delivery(reader, &out->items[out->count - 1]);
	}
	return !reader->failed;
}

bool store_members(struct store_file *file, struct arena *arena, struct delivery *delivery,
	struct error *error)
{
	struct reader reader = open_reader(file, arena, STATEMENT_RECENT_RECORDS);
	struct record_rows records;
	bool done;

	bind_integer(&reader.binder, delivery->id);
	done = read_records(&reader, &records, error);
	delivery->records = records.items;
	delivery->record_count = records.count;
	return done;
}

/* Loads the records of the deliveries from the first on. */
static bool load_members(struct store_file *file, struct arena *arena,
	const struct delivery_rows *deliveries, size_t first, struct error *error)
{
	for (size_t i = first; i < deliveries->count; i++)
		if (!store_members(file, arena, &deliveries->items[i], error))
			return false;
	return true;
}

/* Deliveries that continue a queued message need its thread. */
static bool load_deliveries(
	struct store_file *file, struct store_restore *call, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct reader reader = open_reader(file, arena, STATEMENT_QUEUED);
	struct delivery_rows *deliveries = &call->deliveries;

	return read_deliveries(&reader, deliveries, error) &&
	       load_members(file, arena, deliveries,
		       deliveries->count > MOST_MEMBERS ? deliveries->count - MOST_MEMBERS : 0,
		       error);
}

static bool load_recent(struct store_file *file, struct store_restore *call, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct reader reader = open_reader(file, arena, STATEMENT_RECENT);

	if (call->since == 0)
		return true;
	bind_integer(&reader.binder, call->since);
	return read_deliveries(&reader, &call->recent, error) &&
	       load_members(file, arena, &call->recent, 0, error);
}

/* Adds the delivery with that one record. */
static void add_with(struct arena *arena, struct delivery_rows *out,
	const struct delivery *delivery, const struct change_record *record)
{
	struct delivery *added;

	out->items = rows_grow(arena, out->items, &out->count, sizeof *out->items);
	added = &out->items[out->count - 1];
	*added = *delivery;
	added->records = record;
	added->record_count = 1;
}

static bool told_by(struct store_file *file, struct store_pending *call,
	const struct change_record *record, struct error *error)
{
	struct reader reader = open_reader(file, call->call.arena, STATEMENT_TOLD_BY);
	struct delivery_rows deliveries;

	bind_integer(&reader.binder, record->item.id);
	bind_time(&reader.binder, record->updated);
	if (!read_deliveries(&reader, &deliveries, error))
		return false;
	for (size_t i = 0; i < deliveries.count; i++)
		add_with(call->call.arena, &call->messages, &deliveries.items[i], record);
	return true;
}

static bool load_environments(struct store_file *file, struct arena *arena,
	struct environment_rows *out, struct error *error)
{
	struct reader reader = open_reader(file, arena, STATEMENT_ENVIRONMENTS);

	out->count = 0;
	while (reader_next(&reader, error)) {
		struct environment_event *event;

		out->items = rows_grow(arena, out->items, &out->count, sizeof *event);
		event = &out->items[out->count - 1];
		event->id = read_id(&reader);
		event->label = read_name(&reader);
		event->value = read_name(&reader);
		event->time = read_time(&reader);
		event->spacing = read_count(&reader);
		event->hit = (size_t)read_count(&reader);
		event->total = (size_t)read_count(&reader);
		event->up = (size_t)read_count(&reader);
		event->down = (size_t)read_count(&reader);
		event->worse = (size_t)read_count(&reader);
		event->better = (size_t)read_count(&reader);
		event->size = read_number(&reader);
		event->elsewhere = (size_t)read_count(&reader);
		event->elsewhere_changed = (size_t)read_count(&reader);
		event->told = (size_t)read_count(&reader);
		event->followed = read_choice(&reader, 0, 1) == 1;
		event->created = read_time(&reader);
		event->standing = (size_t)read_count(&reader);
		event->back = (size_t)read_count(&reader);
	}
	return !reader.failed;
}

static bool load_recoveries(
	struct store_file *file, struct store_pending *call, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct reader reader = open_reader(file, arena, STATEMENT_RECOVERED);

	bind_integer(&reader.binder, STORE_RECOVERIES);
	if (!read_records(&reader, &call->recoveries, error))
		return false;
	for (size_t i = 0; i < call->recoveries.count; i++)
		if (!told_by(file, call, &call->recoveries.items[i], error))
			return false;
	return call->recoveries.count == 0 ||
	       load_environments(file, arena, &call->environments, error);
}

static bool load_record(struct store_file *file, struct arena *arena, int64_t id,
	struct delivery *delivery, struct error *error)
{
	struct reader reader = open_reader(file, arena, STATEMENT_RECORD_OF);
	struct record_rows records;

	bind_integer(&reader.binder, id);
	if (!read_records(&reader, &records, error))
		return false;
	delivery->records = records.items;
	delivery->record_count = records.count;
	return true;
}

static bool load_retractions(
	struct store_file *file, struct store_pending *call, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct reader reader = open_reader(file, arena, STATEMENT_RETRACTIONS);
	struct retraction_rows *out = &call->retractions;
	int64_t *changes = arena_array(arena, STORE_RETRACTIONS, sizeof *changes);

	bind_integer(&reader.binder, STORE_RETRACTIONS);
	while (reader_next(&reader, error)) {
		struct retraction *retraction;

		out->items = rows_grow(arena, out->items, &out->count, sizeof *out->items);
		retraction = &out->items[out->count - 1];
		read_delivery(&reader, &retraction->message);
		changes[out->count - 1] = read_id(&reader);
		retraction->corrected = read_choice(&reader, 1, 2) == 2;
	}
	for (size_t i = 0; i < out->count && !reader.failed; i++)
		reader.failed =
			!load_record(file, arena, changes[i], &out->items[i].message, error);
	return !reader.failed;
}

static bool load_said(struct store_file *file, struct store_pending *call, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct reader reader = open_reader(file, arena, STATEMENT_SAID);
	int64_t *changes = arena_array(arena, STORE_RETRACTIONS, sizeof *changes);
	struct said_rows *out = &call->said;

	bind_integer(&reader.binder, STORE_RETRACTIONS);
	while (reader_next(&reader, error)) {
		struct said *at;

		out->items = rows_grow(arena, out->items, &out->count, sizeof *out->items);
		at = &out->items[out->count - 1];
		read_delivery(&reader, &at->message);
		changes[out->count - 1] = read_id(&reader);
		at->what = (unsigned)read_choice(&reader, 1, SAID_UPDATED | SAID_TRIAGED);
	}
	for (size_t i = 0; i < out->count && !reader.failed; i++)
		reader.failed =
			!load_record(file, arena, changes[i], &out->items[i].message, error);
	return !reader.failed;
}

bool store_pending(struct store_file *file, struct store_pending *call, struct error *error)
{
	call->messages.count = call->retractions.count = call->said.count = 0;
	return load_records(file, call, error) && load_told(file, call, error) &&
	       load_recoveries(file, call, error) && load_retractions(file, call, error) &&
	       load_said(file, call, error);
}

bool store_reminders(struct store_file *file, struct store_reminders *call, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct reader reader = open_reader(file, arena, STATEMENT_TO_REMIND);

	bind_text(&reader.binder, call->receiver);
	bind_time(&reader.binder, call->before);
	bind_integer(&reader.binder, STORE_REMINDERS_MOST);
	bind_integer(&reader.binder, call->after);
	return read_deliveries(&reader, &call->messages, error) &&
	       load_members(file, arena, &call->messages, 0, error);
}

bool store_due(struct store_file *file, struct store_due *due, struct error *error)
{
	struct reader reader = {.binder = bind_to(file, STATEMENT_DUE)};

	while (reader_next(&reader, error)) {
		due->changes = read_count(&reader);
		due->recoveries = read_count(&reader);
		due->retractions = read_count(&reader);
		due->said = read_count(&reader);
	}
	return !reader.failed;
}

bool store_counts(struct store_file *file, struct store_counts *counts, struct error *error)
{
	struct reader reader = {.binder = bind_to(file, STATEMENT_COUNTS)};

	while (reader_next(&reader, error)) {
		int64_t state = read_choice(&reader, 1, CHANGE_STATES - 1);

		counts->states[state] = read_count(&reader);
	}
	return !reader.failed && store_due(file, &counts->due, error);
}

static bool load_conditions(struct store_file *file, struct arena *arena,
	struct health_rows *health, struct error *error)
{
	struct reader reader = open_reader(file, arena, STATEMENT_CONDITIONS);

	health->condition_count = 0;
	while (reader_next(&reader, error)) {
		struct condition *condition;

		health->conditions = rows_grow(
			arena, health->conditions, &health->condition_count, sizeof *condition);
		condition = &health->conditions[health->condition_count - 1];
		condition->subject = read_name(&reader);
		condition->kind =
			(enum condition_kind)read_choice(&reader, 1, CONDITION_MANY_STALE);
		condition->since = read_time(&reader);
		condition->text = read_name(&reader);
	}
	return !reader.failed;
}

static bool load_moments(struct store_file *file, struct arena *arena, struct health_rows *health,
	struct error *error)
{
	struct reader reader = open_reader(file, arena, STATEMENT_MOMENTS);

	health->moment_count = 0;
	while (reader_next(&reader, error)) {
		struct store_moment *moment;

		health->moments =
			rows_grow(arena, health->moments, &health->moment_count, sizeof *moment);
		moment = &health->moments[health->moment_count - 1];
		moment->name = read_name(&reader);
		moment->time = read_time(&reader);
	}
	return !reader.failed;
}

static bool load_vanished(struct store_file *file, struct arena *arena, struct health_rows *health,
	struct error *error)
{
	struct reader reader = open_reader(file, arena, STATEMENT_VANISHED_ALL);

	health->vanished_count = 0;
	while (reader_next(&reader, error)) {
		struct vanished *vanished;

		health->vanished = rows_grow(
			arena, health->vanished, &health->vanished_count, sizeof *vanished);
		vanished = &health->vanished[health->vanished_count - 1];
		*vanished = (struct vanished){.test = read_name(&reader)};
		vanished->series = read_name(&reader);
		vanished->ended = read_time(&reader);
	}
	return !reader.failed;
}

static bool load_health(struct store_file *file, struct arena *arena, struct health_rows *health,
	struct error *error)
{
	return load_conditions(file, arena, health, error) &&
	       load_moments(file, arena, health, error) &&
	       load_vanished(file, arena, health, error);
}

bool store_restore(struct store_file *file, struct store_restore *call, struct error *error)
{
	struct arena *arena = call->call.arena;

	return load_deliveries(file, call, error) && load_recent(file, call, error) &&
	       load_environments(file, arena, &call->environments, error) &&
	       load_health(file, arena, &call->health, error) &&
	       silences_load(file, arena, &call->silences, error) &&
	       store_counts(file, &call->counts, error);
}

bool store_known(struct store_file *file, struct store_known *call, struct error *error)
{
	struct reader reader = open_reader(file, call->call.arena, STATEMENT_KNOWN);

	bind_text(&reader.binder, call->test);
	return read_all_known(&reader, &call->records, error);
}

static bool load_checkpoints(struct store_file *file, struct arena *arena, const char *test,
	struct checkpoint_rows *out, struct error *error)
{
	struct reader reader = open_reader(file, arena, STATEMENT_CHECKPOINTS);

	bind_text(&reader.binder, test);
	out->count = 0;
	while (reader_next(&reader, error)) {
		struct series_checkpoint *checkpoint;

		out->items = rows_grow(arena, out->items, &out->count, sizeof *checkpoint);
		checkpoint = &out->items[out->count - 1];
		checkpoint->series = read_name(&reader);
		checkpoint->branch = read_name(&reader);
		checkpoint->anchor = read_time(&reader);
		checkpoint->last_point = read_time(&reader);
		checkpoint->revision = read_count(&reader);
		checkpoint->revised = read_time(&reader);
	}
	return !reader.failed;
}

bool store_checkpoints(struct store_file *file, struct store_checkpoints *call, struct error *error)
{
	return load_checkpoints(file, call->call.arena, call->test, &call->checkpoints, error);
}

/* The first event is in the record itself. */
static bool load_history(struct store_file *file, struct arena *arena, struct change_record *record,
	struct error *error)
{
	struct reader reader = open_reader(file, arena, STATEMENT_EVENTS);
	struct event *events = memory_new(1, sizeof *events);
	struct event found = {.kind = EVENT_FOUND, .time = record->first_seen};
	size_t count = 1, room = 1;

	bind_integer(&reader.binder, record->item.id);
	while (reader_next(&reader, error)) {
		struct event *event;

		events = memory_grow(events, &room, count + 1, sizeof *events);
		event = &events[count++];
		*event = (struct event){0};
		event->kind = (enum event_kind)read_choice(&reader, 1, EVENT_STORED - 1);
		event->time = read_time(&reader);
		event->point = read_time(&reader);
		event->receiver = read_text(&reader);
		event->destination = read_text(&reader);
	}
	found.point = count > 1 ? events[1].point : record->item.time;
	events[0] = found;
	record->events = rows_keep(arena, events, count, sizeof *events);
	record->event_count = count;
	return !reader.failed;
}

static bool load_events(struct store_file *file, struct arena *arena, struct change_record *record,
	struct error *error)
{
	return load_history(file, arena, record, error) &&
	       audit_load_events(file, arena, record, error);
}

static bool is_pattern(const char *text)
{
	return text && strpbrk(text, "*?[\\") != NULL;
}

/* The tests as a JSON array; NULL: all, or a pattern. */
static const char *json_of_names(struct arena *arena, const struct change_filter *filter)
{
	bool one = filter->names.count == 0 && filter->test && !is_pattern(filter->test);
	const char *const *names = one ? &filter->test : filter->names.items;
	size_t count = one ? 1 : filter->names.count;
	struct buf text = {0};
	const char *json;

	if (count == 0)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		buf_char(&text, i > 0 ? ',' : '[');
		buf_json_text(&text, names[i]);
	}
	buf_char(&text, ']');
	json = arena_strndup(arena, text.data, text.length);
	buf_free(&text);
	return json;
}

/* Chooses the index that is likely to leave the fewest rows to scan. */
static struct reader list_reader(struct store_file *file, struct store_list *call, unsigned states)
{
	const struct change_filter *filter = &call->filter;
	bool one_state = (states & (states - 1)) == 0;
	const char *names = json_of_names(call->call.arena, filter);
	bool timed = filter->since != 0 || filter->until != 0;
	struct reader reader = open_reader(file, call->call.arena,
		names       ? STATEMENT_LIST_TEST
		: timed     ? STATEMENT_LIST_TIME
		: one_state ? STATEMENT_LIST_STATE
			    : STATEMENT_LIST);

	if (names)
		bind_text(&reader.binder, names);
	else
		bind_integer(&reader.binder, states ? __builtin_ctz(states) : 0);
	return reader;
}

static bool is_regression(const struct change_record *record)
{
	return announcement_verdict(&record->item) >= 0;
}

bool store_list(struct store_file *file, struct store_list *call, struct error *error)
{
	const struct change_filter *filter = &call->filter;
	struct arena *arena = call->call.arena;
	unsigned states = filter->states ? filter->states : (1U << CHANGE_STATES) - 1;
	unsigned triage = filter->triage;
	int64_t limit =
		filter->limit > 0 && filter->limit < MOST_LISTED ? filter->limit : MOST_LISTED;
	struct reader reader;

	if (filter->open) {
		unsigned waiting = 1U << TRIAGE_OPEN | 1U << TRIAGE_ACKNOWLEDGED;

		states &= 1U << CHANGE_CONFIRMED | 1U << CHANGE_MOVED;
		triage = triage ? triage & waiting : waiting;
		if (triage == 0)
			triage = 1U << TRIAGE_STATES; /* none */
	}
	reader = list_reader(file, call, states);
	bind_integer(&reader.binder, filter->since != 0 ? filter->since : INT64_MIN);
	bind_integer(&reader.binder, filter->until != 0 ? filter->until : INT64_MAX);
	bind_integer(&reader.binder, states);
	bind_integer(&reader.binder, filter->before_id > 0 ? filter->before_id : INT64_MAX);
	bind_integer(&reader.binder, filter->open ? -1 : limit + 1);
	bind_text(&reader.binder, filter->test);
	bind_integer(&reader.binder, filter->updated != 0 ? filter->updated : INT64_MIN);
	bind_integer(&reader.binder, triage);
	bind_integer(&reader.binder, filter->now);
	if (!read_chosen(&reader, filter->open ? is_regression : NULL, (size_t)limit + 1,
		    &call->records, error))
		return false;
	call->more = call->records.count > (size_t)limit;
	if (call->more)
		call->records.count = (size_t)limit;
	for (size_t i = 0; i < call->records.count; i++) {
		record_by_clock(&call->records.items[i], filter->now);
		if (!load_events(file, arena, &call->records.items[i], error))
			return false;
	}
	return load_environments(file, arena, &call->environments, error) &&
	       (!call->about ||
		       (load_checkpoints(file, arena, call->about, &call->checkpoints, error) &&
			       load_health(file, arena, &call->health, error) &&
			       silences_load(file, arena, &call->silences, error)));
}

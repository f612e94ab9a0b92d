/*
 * Rows become structs in the request's arena. Lists are read to their end or to their limit; those
 * that can be long have one.
 */
#include "agent/store/sqlite/read.h"

#include <string.h>

#include "agent/store/sqlite/rows.h"

enum { MOST_LISTED = 1000000, MOST_MEMBERS = 1000 };

static struct reader open_reader(
	struct store_file *file, const struct store_request *request, enum statement statement)
{
	return (struct reader){.binder = bind_to(file, statement), .arena = request->arena};
}

/* Reads full records until there are no more. */
static struct change_record *read_records(struct reader *reader, size_t *count, struct error *error)
{
	struct change_record *records = NULL;
	size_t room = 0;

	*count = 0;
	while (reader_next(reader, error)) {
		records = memory_grow(records, &room, *count + 1, sizeof *records);
		records[*count] = (struct change_record){0};
		read_record(reader, &records[(*count)++]);
	}
	return rows_keep(reader->arena, records, *count, sizeof *records);
}

static bool load_pending(
	struct store_file *file, struct store_request *request, struct error *error)
{
	struct reader reader = open_reader(file, request, STATEMENT_PENDING);

	request->records = read_records(&reader, &request->record_count, error);
	return !reader.failed;
}

/* Merges two results that are both ordered by change. */
static bool load_told(struct store_file *file, struct store_request *request, struct error *error)
{
	struct reader reader = open_reader(file, request, STATEMENT_TOLD);
	size_t at = 0;

	while (reader_next(&reader, error)) {
		int64_t id = read_id(&reader);

		while (at < request->record_count && request->records[at].item.id < id)
			at++;
		if (at < request->record_count && request->records[at].item.id == id) {
			record_told(request->arena, &request->records[at], read_name(&reader));
			request->records[at].told_stored = request->records[at].told.count;
		}
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
}

static struct delivery *read_deliveries(struct reader *reader, size_t *count, struct error *error)
{
	struct delivery *deliveries = NULL;

	*count = 0;
	while (reader_next(reader, error)) {
		deliveries = rows_grow(reader->arena, deliveries, count, sizeof *deliveries);
		read_delivery(reader, &deliveries[*count - 1]);
	}
	return deliveries;
}

bool store_members(struct store_file *file, struct store_request *request,
	struct delivery *delivery, struct error *error)
{
	struct reader reader = open_reader(file, request, STATEMENT_RECENT_RECORDS);

	bind_integer(&reader.binder, delivery->id);
	delivery->records = read_records(&reader, &delivery->record_count, error);
	return !reader.failed;
}

/* Deliveries that continue a queued message need its thread. */
static bool load_deliveries(
	struct store_file *file, struct store_request *request, struct error *error)
{
	struct reader reader = open_reader(file, request, STATEMENT_PARCELS);
	size_t first;

	request->deliveries = read_deliveries(&reader, &request->delivery_count, error);
	first = request->delivery_count > MOST_MEMBERS ? request->delivery_count - MOST_MEMBERS : 0;
	for (size_t i = first; i < request->delivery_count && !reader.failed; i++)
		reader.failed = !store_members(file, request, &request->deliveries[i], error);
	return !reader.failed;
}

static bool load_recent(struct store_file *file, struct store_request *request, struct error *error)
{
	struct reader reader = open_reader(file, request, STATEMENT_RECENT);

	if (request->since == 0)
		return true;
	bind_integer(&reader.binder, request->since);
	request->recent = read_deliveries(&reader, &request->recent_count, error);
	for (size_t i = 0; i < request->recent_count && !reader.failed; i++)
		reader.failed = !store_members(file, request, &request->recent[i], error);
	return !reader.failed;
}

static void retract(struct store_request *request, const struct delivery *delivery,
	const struct change_record *record)
{
	struct delivery *retraction;

	request->retractions = rows_grow(request->arena, request->retractions,
		&request->retraction_count, sizeof *request->retractions);
	retraction = &request->retractions[request->retraction_count - 1];
	*retraction = *delivery;
	retraction->records = record;
	retraction->record_count = 1;
}

bool store_messages(
	struct store_file *file, struct store_request *request, int64_t change, struct error *error)
{
	struct reader reader = open_reader(file, request, STATEMENT_MESSAGES);
	struct delivery *deliveries;
	struct change_record *records;
	size_t delivery_count, record_count;

	if (request->retraction_count >= STORE_RETRACTIONS)
		return true;
	bind_integer(&reader.binder, change);
	deliveries = read_deliveries(&reader, &delivery_count, error);
	if (reader.failed || delivery_count == 0)
		return !reader.failed;
	reader = open_reader(file, request, STATEMENT_RECORD_OF);
	bind_integer(&reader.binder, change);
	records = read_records(&reader, &record_count, error);
	for (size_t i = 0; i < delivery_count && record_count > 0; i++)
		retract(request, &deliveries[i], &records[0]);
	return !reader.failed;
}

bool store_late(struct store_file *file, struct store_request *request,
	const struct delivery *delivery, struct error *error)
{
	struct reader reader = open_reader(file, request, STATEMENT_WITHDRAWN_OF);
	struct change_record *records;
	size_t count;

	if (!delivery->receipt)
		return true;
	bind_integer(&reader.binder, delivery->id);
	records = read_records(&reader, &count, error);
	for (size_t i = 0; i < count && request->retraction_count < STORE_RETRACTIONS; i++)
		retract(request, delivery, &records[i]);
	return !reader.failed;
}

static bool told_by(struct store_file *file, struct store_request *request,
	const struct change_record *record, struct error *error)
{
	struct reader reader = open_reader(file, request, STATEMENT_TOLD_BY);
	struct delivery *deliveries;
	size_t count;

	bind_integer(&reader.binder, record->item.id);
	bind_time(&reader.binder, record->updated);
	deliveries = read_deliveries(&reader, &count, error);
	for (size_t i = 0; i < count; i++) {
		struct delivery *delivery = &deliveries[i];

		delivery->records = record;
		delivery->record_count = 1;
		request->recent = rows_grow(request->arena, request->recent, &request->recent_count,
			sizeof *request->recent);
		request->recent[request->recent_count - 1] = *delivery;
	}
	return !reader.failed;
}

static bool load_environments(
	struct store_file *file, struct store_request *request, struct error *error)
{
	struct reader reader = open_reader(file, request, STATEMENT_ENVIRONMENTS);

	request->environment_count = 0;
	while (reader_next(&reader, error)) {
		struct environment_event *event;

		request->environments = rows_grow(request->arena, request->environments,
			&request->environment_count, sizeof *event);
		event = &request->environments[request->environment_count - 1];
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

bool store_recovered(struct store_file *file, struct store_request *request, struct error *error)
{
	struct reader reader = open_reader(file, request, STATEMENT_RECOVERED);

	bind_integer(&reader.binder, STORE_RECOVERIES);
	request->recent_count = 0;
	request->records = read_records(&reader, &request->record_count, error);
	for (size_t i = 0; i < request->record_count && !reader.failed; i++)
		reader.failed = !told_by(file, request, &request->records[i], error);
	return !reader.failed && load_environments(file, request, error);
}

bool store_recoveries(struct store_file *file, struct store_request *request, struct error *error)
{
	struct reader reader = open_reader(file, request, STATEMENT_RECOVERIES);

	while (reader_next(&reader, error))
		request->recoveries = read_count(&reader);
	return !reader.failed;
}

bool store_counts(struct store_file *file, struct store_request *request, struct error *error)
{
	struct reader reader = open_reader(file, request, STATEMENT_COUNTS);

	while (reader_next(&reader, error)) {
		int64_t state = read_choice(&reader, 1, CHANGE_STATES - 1);

		request->state_counts[state] = read_count(&reader);
	}
	return !reader.failed;
}

static bool load_conditions(
	struct store_file *file, struct store_request *request, struct error *error)
{
	struct reader reader = open_reader(file, request, STATEMENT_CONDITIONS);

	request->condition_count = 0;
	while (reader_next(&reader, error)) {
		struct condition *condition;

		request->conditions = rows_grow(request->arena, request->conditions,
			&request->condition_count, sizeof *condition);
		condition = &request->conditions[request->condition_count - 1];
		condition->subject = read_name(&reader);
		condition->kind =
			(enum condition_kind)read_choice(&reader, 1, CONDITION_MANY_STALE);
		condition->since = read_time(&reader);
		condition->text = read_name(&reader);
	}
	return !reader.failed;
}

static bool load_moments(
	struct store_file *file, struct store_request *request, struct error *error)
{
	struct reader reader = open_reader(file, request, STATEMENT_MOMENTS);

	request->moment_count = 0;
	while (reader_next(&reader, error)) {
		request->moments = rows_grow(request->arena, request->moments,
			&request->moment_count, sizeof *request->moments);
		request->moments[request->moment_count - 1] =
			(struct store_moment){.name = read_name(&reader)};
		request->moments[request->moment_count - 1].time = read_time(&reader);
	}
	return !reader.failed;
}

static bool load_vanished(
	struct store_file *file, struct store_request *request, struct error *error)
{
	struct reader reader = open_reader(file, request, STATEMENT_VANISHED_ALL);

	request->vanished_count = 0;
	while (reader_next(&reader, error)) {
		struct vanished *vanished;

		request->vanished = rows_grow(request->arena, request->vanished,
			&request->vanished_count, sizeof *vanished);
		vanished = &request->vanished[request->vanished_count - 1];
		*vanished = (struct vanished){.test = read_name(&reader)};
		vanished->series = read_name(&reader);
		vanished->ended = read_time(&reader);
	}
	return !reader.failed;
}

bool store_health(struct store_file *file, struct store_request *request, struct error *error)
{
	return load_conditions(file, request, error) && load_vanished(file, request, error);
}

bool store_restore(struct store_file *file, struct store_request *request, struct error *error)
{
	return load_pending(file, request, error) && load_told(file, request, error) &&
	       load_deliveries(file, request, error) && load_recent(file, request, error) &&
	       store_counts(file, request, error) && load_conditions(file, request, error) &&
	       load_moments(file, request, error) && load_vanished(file, request, error) &&
	       load_environments(file, request, error) && store_recoveries(file, request, error);
}

/* Series repeat from row to row; each name is copied once. */
static void read_known(
	struct reader *reader, const struct change_record *last, struct change_record *record)
{
	record->item.id = read_id(reader);
	record->series = read_name_again(reader, last ? last->series : NULL);
	record->branch = read_name_again(reader, last ? last->branch : NULL);
	read_stage(reader, record);
	record->item.change.count_after = (size_t)read_count(reader);
	record->item.change.kind = read_kind(reader);
	record->item.change.level_before = read_number(reader);
	record->item.change.level_after = read_number(reader);
	record->item.place_from = read_time_or(reader, record->item.time);
	record->item.place_to = read_time_or(reader, record->item.time);
	read_suspects(reader, &record->item.suspects);
	record->item.over.time = read_time_or(reader, 0);
	record->item.over.level = read_number(reader);
}

bool store_known(struct store_file *file, struct store_request *request, struct error *error)
{
	struct reader reader = open_reader(file, request, STATEMENT_KNOWN);

	bind_text(&reader.binder, request->test);
	request->record_count = 0;
	while (reader_next(&reader, error)) {
		size_t count = request->record_count;

		request->records = rows_grow(request->arena, request->records,
			&request->record_count, sizeof *request->records);
		read_known(&reader, count > 0 ? &request->records[count - 1] : NULL,
			&request->records[count]);
	}
	return !reader.failed;
}

bool store_checkpoints(struct store_file *file, struct store_request *request, struct error *error)
{
	struct reader reader = open_reader(file, request, STATEMENT_MARKS);

	bind_text(&reader.binder, request->test);
	request->mark_count = 0;
	while (reader_next(&reader, error)) {
		struct series_checkpoint *mark;

		request->marks = rows_grow(
			request->arena, request->marks, &request->mark_count, sizeof *mark);
		mark = &request->marks[request->mark_count - 1];
		mark->series = read_name(&reader);
		mark->branch = read_name(&reader);
		mark->anchor = read_time(&reader);
		mark->last_point = read_time(&reader);
		mark->revision = read_count(&reader);
		mark->revised = read_time(&reader);
	}
	return !reader.failed;
}

/* The first event is in the record itself. */
static bool load_events(struct store_file *file, struct store_request *request,
	struct change_record *record, struct error *error)
{
	struct reader reader = open_reader(file, request, STATEMENT_EVENTS);
	struct event *events = memory_new(1, sizeof *events);
	struct event found = {.kind = EVENT_FOUND, .time = record->first_seen};
	size_t count = 1, room = 1;

	bind_integer(&reader.binder, record->item.id);
	while (reader_next(&reader, error)) {
		struct event *event;

		events = memory_grow(events, &room, count + 1, sizeof *events);
		event = &events[count++];
		event->kind = (enum event_kind)read_choice(&reader, 1, EVENT_KINDS - 1);
		event->time = read_time(&reader);
		event->point = read_time(&reader);
		event->receiver = read_text(&reader);
		event->destination = read_text(&reader);
	}
	found.point = count > 1 ? events[1].point : record->item.time;
	events[0] = found;
	record->events = rows_keep(request->arena, events, count, sizeof *events);
	record->event_count = count;
	return !reader.failed;
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
static struct reader list_reader(
	struct store_file *file, struct store_request *request, unsigned states)
{
	const struct change_filter *filter = &request->filter;
	bool one_state = (states & (states - 1)) == 0;
	const char *names = json_of_names(request->arena, filter);
	bool timed = filter->since != 0 || filter->until != 0;
	struct reader reader = open_reader(file, request,
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

bool store_list(struct store_file *file, struct store_request *request, struct error *error)
{
	const struct change_filter *filter = &request->filter;
	unsigned states = filter->states ? filter->states : (1U << CHANGE_STATES) - 1;
	int64_t limit =
		filter->limit > 0 && filter->limit < MOST_LISTED ? filter->limit : MOST_LISTED;
	struct reader reader = list_reader(file, request, states);

	bind_integer(&reader.binder, filter->since != 0 ? filter->since : INT64_MIN);
	bind_integer(&reader.binder, filter->until != 0 ? filter->until : INT64_MAX);
	bind_integer(&reader.binder, states);
	bind_integer(&reader.binder, filter->before_id > 0 ? filter->before_id : INT64_MAX);
	bind_integer(&reader.binder, limit + 1);
	bind_text(&reader.binder, filter->test);
	bind_integer(&reader.binder, filter->updated != 0 ? filter->updated : INT64_MIN);
	request->records = read_records(&reader, &request->record_count, error);
	request->more = request->record_count > (size_t)limit;
	if (request->more)
		request->record_count = (size_t)limit;
	for (size_t i = 0; i < request->record_count && !reader.failed; i++)
		reader.failed = !load_events(file, request, &request->records[i], error);
	return !reader.failed && load_environments(file, request, error);
}

/*
 * What is to be told: what an agent resumes from, and what a round of the dispatcher reads.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/sql/read.h"
#include "agent/store/sql/schema.h"
#include "agent/store/sql/silences.h"

enum { MOST_MEMBERS = 1000 };

static bool load_records(struct store_file *file, struct store_pending *call, struct error *error)
{
	struct reader reader = open_reader(file, call->call.arena, STATEMENT_PENDING);

	return read_records(&reader, &call->records, error);
}

static int compare_down(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left < *right) - (*left > *right);
}

/* The size of a change for comparison; what has none comes first. */
static double size_of(const struct change_record *record)
{
	double size = fabs(record->item.change.size);

	return isnan(size) ? HUGE_VAL : size;
}

/* At least as large as this are the STORE_PICTURED largest. */
static double least_pictured(const struct record_rows *records)
{
	double *sizes, least;

	if (records->count <= STORE_PICTURED)
		return 0;
	sizes = memory_new(records->count, sizeof *sizes);
	for (size_t i = 0; i < records->count; i++)
		sizes[i] = size_of(&records->items[i]);
	qsort(sizes, records->count, sizeof *sizes, compare_down);
	least = sizes[STORE_PICTURED - 1];
	free(sizes);
	return least;
}

static struct packed_excerpt read_packed(
	struct owned_reader *rows, int64_t change, struct error *error)
{
	struct packed_excerpt packed = {0};

	while (owned_next(rows, change, error)) {
		const void *bytes = read_bytes(&rows->reader, &packed.length);

		if (bytes)
			packed.bytes = memcpy(arena_alloc(rows->reader.arena, packed.length), bytes,
				packed.length);
	}
	return packed;
}

/* What is packed of each change, by its place. */
bool store_load_packed(struct store_file *file, struct arena *arena, struct owners *changes,
	struct packed_excerpt *out, struct error *error)
{
	struct owned_reader rows = {.reader = open_reader(file, arena, STATEMENT_EXCERPTS_OF)};
	const struct owner *owner;

	if (changes->count == 0)
		return true;
	owners_sort(changes, false);
	owner = changes->items;
	bind_owners(&rows.reader.binder, arena, changes);
	for (size_t i = 0; i < changes->count; i++)
		out[owner[i].place] = i > 0 && owner[i].id == owner[i - 1].id
					      ? out[owner[i - 1].place]
					      : read_packed(&rows, owner[i].id, error);
	return !rows.reader.failed;
}

/* For pictures: of so many, a message shows the largest. */
static bool load_excerpts(struct store_file *file, struct store_pending *call, struct error *error)
{
	struct arena *arena = call->call.arena;
	double least = least_pictured(&call->records);
	struct packed_excerpt packed[STORE_PICTURED];
	struct owners owners = {0};
	size_t places[STORE_PICTURED];

	for (size_t i = 0; i < call->records.count && owners.count < STORE_PICTURED; i++)
		if (size_of(&call->records.items[i]) >= least) {
			places[owners.count] = i;
			owners_add(&owners, arena, call->records.items[i].item.id, owners.count);
		}
	if (!store_load_packed(file, arena, &owners, packed, error))
		return false;
	for (size_t i = 0; i < owners.count; i++)
		call->records.items[places[i]].item.excerpt = packed[i];
	return true;
}

/* Merges two results that are both ordered by change. */
static bool load_told(struct store_file *file, struct store_pending *call, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct reader reader = open_reader(file, arena, STATEMENT_TOLD);
	struct change_record *records = call->records.items;
	size_t count = call->records.count, i = 0;

	while (reader_next(&reader, error)) {
		int64_t id = read_id(&reader);

		while (i < count && records[i].item.id < id)
			i++;
		if (i < count && records[i].item.id == id)
			record_told(arena, &records[i], read_name(&reader));
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

static void read_members(struct owned_reader *rows, struct delivery *delivery, struct error *error)
{
	struct arena *arena = rows->reader.arena;
	struct growing growing = {0};
	struct record_rows records = {0};

	while (owned_next(rows, delivery->id, error))
		read_record(&rows->reader, growing_next(&growing, records.count++));
	growing_keep(&growing, arena, &records);
	delivery->records = records.items;
	delivery->record_count = records.count;
}

bool store_members(struct store_file *file, struct arena *arena, struct delivery *deliveries,
	size_t count, struct error *error)
{
	struct owned_reader rows = {.reader = open_reader(file, arena, STATEMENT_RECENT_RECORDS)};
	struct owners owners = {0};

	if (count == 0)
		return true;
	for (size_t i = 0; i < count; i++)
		owners_add(&owners, arena, deliveries[i].id, i);
	owners_sort(&owners, false);
	bind_owners(&rows.reader.binder, arena, &owners);
	for (size_t i = 0; i < count; i++)
		read_members(&rows, &deliveries[owners.items[i].place], error);
	return !rows.reader.failed;
}

/* Deliveries that continue a queued message need its thread. */
static bool load_deliveries(
	struct store_file *file, struct store_restore *call, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct reader reader = open_reader(file, arena, STATEMENT_QUEUED);
	struct delivery_rows *deliveries = &call->deliveries;
	size_t most;

	if (!read_deliveries(&reader, deliveries, error))
		return false;
	most = deliveries->count < MOST_MEMBERS ? deliveries->count : MOST_MEMBERS;
	return most == 0 || store_members(file, arena, deliveries->items + deliveries->count - most,
				    most, error);
}

static bool load_recent(struct store_file *file, struct store_restore *call, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct reader reader = open_reader(file, arena, STATEMENT_RECENT);

	if (call->since == 0)
		return true;
	bind_integer(&reader.binder, call->since);
	return read_deliveries(&reader, &call->recent, error) &&
	       store_members(file, arena, call->recent.items, call->recent.count, error);
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

/* The messages about the recoveries, which are in the order of their ids. */
static bool told_by(struct store_file *file, struct store_pending *call, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct owned_reader rows = {.reader = open_reader(file, arena, STATEMENT_TOLD_BY)};
	struct owners owners = {0};

	for (size_t i = 0; i < call->recoveries.count; i++)
		owners_add(&owners, arena, call->recoveries.items[i].item.id, i);
	bind_owners(&rows.reader.binder, arena, &owners);
	for (size_t i = 0; i < owners.count; i++)
		while (owned_next(&rows, owners.items[i].id, error)) {
			struct delivery delivery = {0};

			(void)read_choice(&rows.reader, 0, 1); /* pruned */
			read_delivery(&rows.reader, &delivery);
			add_with(arena, &call->messages, &delivery, &call->recoveries.items[i]);
		}
	return !rows.reader.failed;
}

bool store_load_environments(struct store_file *file, struct arena *arena,
	struct environment_rows *out, struct error *error)
{
	struct reader reader = open_reader(file, arena, STATEMENT_ENVIRONMENTS);

	out->count = 0;
	while (reader_next(&reader, error)) {
		struct environment_event *event;

		out->items = rows_grow(arena, out->items, &out->count, sizeof *event);
		event = &out->items[out->count - 1];
		*event = (struct environment_event){0};
		read_struct(&reader, environment_columns, event);
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
	return call->recoveries.count == 0 ||
	       (told_by(file, call, error) &&
		       store_load_environments(file, arena, &call->environments, error));
}

/* The records of the owners, by their places; NULL: there is none. */
bool store_load_records_of(struct store_file *file, struct arena *arena, struct owners *owners,
	struct change_record **out, struct error *error)
{
	struct reader reader = open_reader(file, arena, STATEMENT_RECORDS_OF);
	struct record_rows records;
	size_t at = 0;

	if (owners->count == 0)
		return true;
	owners_sort(owners, false);
	bind_owners(&reader.binder, arena, owners);
	if (!read_records(&reader, &records, error))
		return false;
	for (size_t i = 0; i < owners->count; i++) {
		const struct owner *owner = &owners->items[i];

		while (at < records.count && records.items[at].item.id < owner->id)
			at++;
		out[owner->place] = at < records.count && records.items[at].item.id == owner->id
					    ? &records.items[at]
					    : NULL;
	}
	return true;
}

static bool load_retractions(
	struct store_file *file, struct store_pending *call, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct reader reader = open_reader(file, arena, STATEMENT_RETRACTIONS);
	struct retraction_rows *out = &call->retractions;
	struct change_record *records[STORE_RETRACTIONS];
	struct owners changes = {0};

	bind_integer(&reader.binder, STORE_RETRACTIONS);
	while (reader_next(&reader, error)) {
		struct retraction *retraction;

		out->items = rows_grow(arena, out->items, &out->count, sizeof *out->items);
		retraction = &out->items[out->count - 1];
		read_delivery(&reader, &retraction->message);
		owners_add(&changes, arena, read_id(&reader), out->count - 1);
		retraction->corrected = read_choice(&reader, 1, 2) == 2;
	}
	if (reader.failed || !store_load_records_of(file, arena, &changes, records, error))
		return false;
	for (size_t i = 0; i < out->count; i++) {
		out->items[i].message.records = records[i];
		out->items[i].message.record_count = records[i] != NULL;
	}
	return true;
}

static bool load_said(struct store_file *file, struct store_pending *call, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct reader reader = open_reader(file, arena, STATEMENT_SAID);
	struct change_record *records[STORE_RETRACTIONS];
	struct said_rows *out = &call->said;
	struct owners changes = {0};

	bind_integer(&reader.binder, STORE_RETRACTIONS);
	while (reader_next(&reader, error)) {
		struct said *at;

		out->items = rows_grow(arena, out->items, &out->count, sizeof *out->items);
		at = &out->items[out->count - 1];
		read_delivery(&reader, &at->message);
		owners_add(&changes, arena, read_id(&reader), out->count - 1);
		at->what = (unsigned)read_choice(
			&reader, 1, SAID_UPDATED | SAID_TRIAGED | SAID_CULPRIT);
	}
	if (reader.failed || !store_load_records_of(file, arena, &changes, records, error))
		return false;
	for (size_t i = 0; i < out->count; i++) {
		out->items[i].message.records = records[i];
		out->items[i].message.record_count = records[i] != NULL;
	}
	return true;
}

static bool pending(struct store_file *file, void *context, struct error *error)
{
	struct store_pending *call = context;

	call->messages.count = call->retractions.count = call->said.count = 0;
	return load_records(file, call, error) && load_told(file, call, error) &&
	       load_excerpts(file, call, error) && load_recoveries(file, call, error) &&
	       load_retractions(file, call, error) && load_said(file, call, error);
}

const struct store_work store_pending_work = {.run = pending};

static bool reminders(struct store_file *file, void *context, struct error *error)
{
	struct store_reminders *call = context;
	struct arena *arena = call->call.arena;
	struct reader reader = open_reader(file, arena, STATEMENT_TO_REMIND);

	bind_text(&reader.binder, call->receiver);
	bind_time(&reader.binder, call->before);
	bind_integer(&reader.binder, STORE_REMINDERS_MOST);
	bind_integer(&reader.binder, call->after);
	return read_deliveries(&reader, &call->messages, error) &&
	       store_members(file, arena, call->messages.items, call->messages.count, error);
}

const struct store_work store_reminders_work = {.run = reminders};

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

bool store_load_health(struct store_file *file, struct arena *arena, struct health_rows *health,
	struct error *error)
{
	struct reader conditions = open_reader(file, arena, STATEMENT_CONDITIONS);
	struct reader moments = open_reader(file, arena, STATEMENT_MOMENTS);
	struct reader vanished = open_reader(file, arena, STATEMENT_VANISHED_ALL);

	health->conditions = read_structs(&conditions, condition_columns,
		sizeof *health->conditions, &health->condition_count, error);
	if (conditions.failed)
		return false;
	health->moments = read_structs(
		&moments, moment_columns, sizeof *health->moments, &health->moment_count, error);
	if (moments.failed)
		return false;
	health->vanished = read_structs(&vanished, vanished_columns, sizeof *health->vanished,
		&health->vanished_count, error);
	return !vanished.failed;
}

static bool restore(struct store_file *file, void *context, struct error *error)
{
	struct store_restore *call = context;
	struct arena *arena = call->call.arena;

	return load_deliveries(file, call, error) && load_recent(file, call, error) &&
	       store_load_environments(file, arena, &call->environments, error) &&
	       store_load_health(file, arena, &call->health, error) &&
	       silences_load(file, arena, &call->silences, error) &&
	       store_counts(file, &call->counts, error);
}

const struct store_work store_restore_work = {
	.run = restore, .is_long = true, .counts = offsetof(struct store_restore, counts)};

static bool queued(struct store_file *file, void *context, struct error *error)
{
	struct store_queued *call = context;
	struct reader reader = open_reader(file, call->call.arena, STATEMENT_QUEUED);

	return read_deliveries(&reader, &call->deliveries, error);
}

const struct store_work store_queued_work = {.run = queued};

static bool probe(struct store_file *file, void *context, struct error *error)
{
	(void)context;
	return RUN(file, STATEMENT_PROBE, error);
}

const struct store_work store_probe_work = {.run = probe, .writes = true};

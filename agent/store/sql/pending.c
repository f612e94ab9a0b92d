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

static struct packed_excerpt read_packed(struct owned_query *rows, int64_t change)
{
	struct packed_excerpt packed = {0};

	while (owned_next(rows, change)) {
		const void *bytes = read_bytes(&rows->query, &packed.length);

		if (bytes)
			packed.bytes = memcpy(arena_alloc(rows->query.tx->arena, packed.length),
				bytes, packed.length);
	}
	return packed;
}

/* What is packed of each change, by its place. */
void store_load_packed(struct tx *tx, struct owners *changes, struct packed_excerpt *out)
{
	struct owned_query rows = {0};
	const struct owner *owner;

	if (changes->count == 0)
		return;
	owners_sort(changes, false);
	owner = changes->items;
	rows.query = QUERY(tx, STATEMENT_EXCERPTS_OF, v_owners(tx, changes));
	for (size_t i = 0; i < changes->count; i++)
		out[owner[i].place] = i > 0 && owner[i].id == owner[i - 1].id
					      ? out[owner[i - 1].place]
					      : read_packed(&rows, owner[i].id);
}

/* For pictures: of so many, a message shows the largest. */
static void load_excerpts(struct tx *tx, struct store_pending *call)
{
	double least = least_pictured(&call->records);
	struct packed_excerpt packed[STORE_PICTURED];
	struct owners owners = {0};
	size_t places[STORE_PICTURED];

	for (size_t i = 0; i < call->records.count && owners.count < STORE_PICTURED; i++)
		if (size_of(&call->records.items[i]) >= least) {
			places[owners.count] = i;
			owners_add(&owners, tx, call->records.items[i].item.id, owners.count);
		}
	store_load_packed(tx, &owners, packed);
	for (size_t i = 0; i < owners.count; i++)
		call->records.items[places[i]].item.excerpt = packed[i];
}

static void load_changes(struct tx *tx, struct store_pending *call)
{
	struct sql_query changes = sql_query_of(tx, STATEMENT_PENDING);
	struct sql_query told = sql_query_of(tx, STATEMENT_TOLD);
	size_t i = 0;

	read_records(&changes, &call->records);
	while (query_next(&told)) { /* in the same order */
		int64_t id = read_id(&told);
		struct change_record *records = call->records.items;

		while (i < call->records.count && records[i].item.id < id)
			i++;
		if (i < call->records.count && records[i].item.id == id)
			record_told(tx->arena, &records[i], read_name(&told));
	}
	load_excerpts(tx, call);
}

static void read_delivery(struct sql_query *query, struct delivery *delivery)
{
	delivery->id = read_id(query);
	delivery->key = read_name(query);
	delivery->receiver = read_name(query);
	delivery->destination = read_name(query);
	delivery->payload = read_text(query);
	delivery->thread = read_text(query);
	delivery->state = (enum delivery_state)read_choice(query, 1, DELIVERY_ABANDONED);
	delivery->receipt = read_text(query);
	delivery->attempts = read_count(query);
	delivery->now = read_time(query);
	delivery->begun = read_flag(query);
	delivery->not_before = read_time(query);
	delivery->kind = read_text(query);
}

static void read_deliveries(struct sql_query *query, struct delivery_rows *out)
{
	*out = (struct delivery_rows){0};
	while (query_next(query)) {
		read_delivery(query, ADD_ROW(query->tx, out->items, out->count));
	}
}

static void read_members(struct owned_query *rows, struct delivery *delivery)
{
	struct growing growing = {0};
	struct record_rows records = {0};

	while (owned_next(rows, delivery->id))
		read_record(&rows->query, growing_next(&growing, records.count++));
	growing_keep(&growing, rows->query.tx, &records);
	delivery->records = records.items;
	delivery->record_count = records.count;
}

void store_members(struct tx *tx, struct delivery *deliveries, size_t count)
{
	struct owned_query rows = {0};
	struct owners owners = {0};

	if (count == 0)
		return;
	for (size_t i = 0; i < count; i++)
		owners_add(&owners, tx, deliveries[i].id, i);
	owners_sort(&owners, false);
	rows.query = QUERY(tx, STATEMENT_RECENT_RECORDS, v_owners(tx, &owners));
	for (size_t i = 0; i < count; i++)
		read_members(&rows, &deliveries[owners.items[i].place]);
}

/* Deliveries that continue a queued message need its thread. */
static void load_deliveries(struct tx *tx, struct store_restore *call)
{
	struct sql_query query = sql_query_of(tx, STATEMENT_QUEUED);
	struct delivery_rows *deliveries = &call->deliveries;
	size_t most;

	read_deliveries(&query, deliveries);
	most = deliveries->count < MOST_MEMBERS ? deliveries->count : MOST_MEMBERS;
	if (most != 0)
		store_members(tx, deliveries->items + deliveries->count - most, most);
}

static void load_recent(struct tx *tx, struct store_restore *call)
{
	struct sql_query query = QUERY(tx, STATEMENT_RECENT, v_id(call->since));

	if (call->since == 0)
		return;
	read_deliveries(&query, &call->recent);
	store_members(tx, call->recent.items, call->recent.count);
}

/* Adds the delivery with that one record. */
static void add_with(struct tx *tx, struct delivery_rows *out, const struct delivery *delivery,
	const struct change_record *record)
{
	struct delivery *added = ADD_ROW(tx, out->items, out->count);

	*added = *delivery;
	added->records = record;
	added->record_count = 1;
}

/* The messages about the recoveries, which are in the order of their ids. */
static void told_by(struct tx *tx, struct store_pending *call)
{
	struct owned_query rows = {0};
	struct owners owners = {0};

	for (size_t i = 0; i < call->recoveries.count; i++)
		owners_add(&owners, tx, call->recoveries.items[i].item.id, i);
	rows.query = QUERY(tx, STATEMENT_TOLD_BY, v_owners(tx, &owners));
	for (size_t i = 0; i < owners.count; i++)
		while (owned_next(&rows, owners.items[i].id)) {
			struct delivery delivery = {0};

			(void)read_flag(&rows.query); /* pruned */
			read_delivery(&rows.query, &delivery);
			add_with(tx, &call->messages, &delivery, &call->recoveries.items[i]);
		}
}

void store_load_environments(struct tx *tx, struct environment_rows *out)
{
	struct sql_query query = sql_query_of(tx, STATEMENT_ENVIRONMENTS);

	while (query_next(&query)) {
		struct environment_event *event = ADD_ROW(tx, out->items, out->count);

		read_struct(&query, environment_columns, event);
		event->standing = (size_t)read_count(&query);
		event->back = (size_t)read_count(&query);
	}
}

static void load_recoveries(struct tx *tx, struct store_pending *call)
{
	struct sql_query query = QUERY(tx, STATEMENT_RECOVERED, v_id(STORE_RECOVERIES));

	read_records(&query, &call->recoveries);
	if (call->recoveries.count != 0) {
		told_by(tx, call);
		store_load_environments(tx, &call->environments);
	}
}

/* The records of the owners, by their places; NULL: there is none. */
void store_load_records_of(struct tx *tx, struct owners *owners, struct change_record **out)
{
	struct sql_query query;
	struct record_rows records;
	size_t at = 0;

	if (owners->count == 0)
		return;
	owners_sort(owners, false);
	query = QUERY(tx, STATEMENT_RECORDS_OF, v_owners(tx, owners));
	read_records(&query, &records);
	for (size_t i = 0; i < owners->count; i++) {
		const struct owner *owner = &owners->items[i];

		while (at < records.count && records.items[at].item.id < owner->id)
			at++;
		out[owner->place] = at < records.count && records.items[at].item.id == owner->id
					    ? &records.items[at]
					    : NULL;
	}
}

static bool is_new(const struct record_rows *records)
{
	for (size_t i = 0; i < records->count; i++)
		if (records->items[i].incident == 0)
			return true;
	return false;
}

static void load_incidents(struct tx *tx, struct store_pending *call)
{
	struct sql_query incidents =
		QUERY(tx, STATEMENT_INCIDENTS, v_time(call->now), v_id(STORE_INCIDENTS));
	int64_t count = query_ask(sql_query_of(tx, STATEMENT_SERIES_COUNT));
	struct change_record *records[STORE_INCIDENTS];
	struct owners firsts = {0};
	struct sql_query sample;

	while (query_next(&incidents)) {
		struct opened_incident *at =
			ADD_ROW(tx, call->incidents.items, call->incidents.count);

		read_struct(&incidents, incident_columns, &at->incident);
		owners_add(&firsts, tx, at->incident.id, firsts.count);
	}
	store_load_records_of(tx, &firsts, records);
	for (size_t i = 0; i < call->incidents.count; i++)
		call->incidents.items[i].first = records[i];
	sample = QUERY(tx, STATEMENT_SERIES_SAMPLE, v_id(1 + count / STORE_SAMPLE));
	while (query_next(&sample)) {
		struct series_name *name = ADD_ROW(tx, call->series, call->series_count);

		name->test = read_name(&sample);
		name->series = read_name(&sample);
	}
}

/* Messages of which something is to be said, each with its one record; `most`: of `what`. */
static void load_said(struct tx *tx, enum statement statement, int64_t most, struct said_rows *out)
{
	struct sql_query query = QUERY(tx, statement, v_id(STORE_RETRACTIONS));
	struct change_record *records[STORE_RETRACTIONS];
	struct owners changes = {0};

	while (query_next(&query)) {
		struct said *at = ADD_ROW(tx, out->items, out->count);

		read_delivery(&query, &at->message);
		owners_add(&changes, tx, read_id(&query), changes.count);
		at->what = (unsigned)read_choice(&query, 1, most);
	}
	store_load_records_of(tx, &changes, records);
	for (size_t i = 0; i < out->count; i++) {
		out->items[i].message.records = records[i];
		out->items[i].message.record_count = records[i] != NULL;
	}
}

static void pending(struct tx *tx, void *context)
{
	struct store_pending *call = context;
	struct store_due due = {0};

	store_due(tx, &due); /* mostly nothing */
	if (due.changes > 0)
		load_changes(tx, call);
	if (is_new(&call->records))
		load_incidents(tx, call);
	if (due.recoveries > 0)
		load_recoveries(tx, call);
	if (due.retractions > 0)
		load_said(tx, STATEMENT_RETRACTIONS, 2, &call->retractions);
	if (due.said > 0)
		load_said(tx, STATEMENT_SAID, SAID_UPDATED | SAID_TRIAGED | SAID_CULPRIT,
			&call->said);
}

STORE_DEFINE(pending, .run = pending);

static void reminders(struct tx *tx, void *context)
{
	struct store_reminders *call = context;
	struct sql_query query = QUERY(tx, STATEMENT_TO_REMIND, v_text(call->receiver),
		v_time(call->before), v_id(STORE_REMINDERS_MOST), v_id(call->after));

	read_deliveries(&query, &call->messages);
	store_members(tx, call->messages.items, call->messages.count);
}

STORE_DEFINE(reminders, .run = reminders);

void store_due(struct tx *tx, struct store_due *due)
{
	struct sql_query query = sql_query_of(tx, STATEMENT_DUE);

	while (query_next(&query)) {
		due->changes = read_count(&query);
		due->recoveries = read_count(&query);
		due->retractions = read_count(&query);
		due->said = read_count(&query);
	}
}

void store_counts(struct tx *tx)
{
	struct store_counts *counts = arena_alloc(tx->arena, sizeof *counts);
	struct sql_query query = sql_query_of(tx, STATEMENT_COUNTS);

	while (query_next(&query)) {
		int64_t state = read_choice(&query, 1, CHANGE_STATES - 1);

		counts->states[state] = read_count(&query);
	}
	store_due(tx, &counts->due);
	tx->call->counts = counts;
}

void store_load_health(struct tx *tx, struct health_rows *health)
{
	struct sql_query conditions = sql_query_of(tx, STATEMENT_CONDITIONS);
	struct sql_query moments = sql_query_of(tx, STATEMENT_MOMENTS);
	struct sql_query vanished = sql_query_of(tx, STATEMENT_VANISHED_ALL);

	health->conditions = read_structs(&conditions, condition_columns,
		sizeof *health->conditions, &health->condition_count);
	health->moments = read_structs(
		&moments, moment_columns, sizeof *health->moments, &health->moment_count);
	health->vanished = read_structs(
		&vanished, vanished_columns, sizeof *health->vanished, &health->vanished_count);
}

static void restore(struct tx *tx, void *context)
{
	struct store_restore *call = context;

	load_deliveries(tx, call);
	load_recent(tx, call);
	store_load_environments(tx, &call->environments);
	store_load_health(tx, &call->health);
	silences_load(tx, &call->silences);
	store_counts(tx);
}

STORE_DEFINE(restore, .run = restore, .is_long = true);

static void queued(struct tx *tx, void *context)
{
	struct store_queued *call = context;
	struct sql_query query = sql_query_of(tx, STATEMENT_QUEUED);

	read_deliveries(&query, &call->deliveries);
}

STORE_DEFINE(queued, .run = queued);

static void probe(struct tx *tx, void *context)
{
	(void)context;
	RUN(tx, STATEMENT_PROBE);
}

const struct store_work store_probe_work = {.run = probe, .writes = true};

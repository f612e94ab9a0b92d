/*
 * Statements on `deliveries` and on the changes that they announce.
 */
#include "agent/store/sqlite/outbox.h"

#include "agent/store/sqlite/read.h"
#include "agent/store/sqlite/rows.h"

/* Runs a statement about the delivery, optionally with the time. */
static bool run_for(struct store_file *file, enum statement statement,
	const struct delivery *delivery, bool timed, struct error *error)
{
	struct binder binder = bind_to(file, statement);

	bind_integer(&binder, delivery->id);
	if (timed)
		bind_time(&binder, delivery->now);
	return bind_finish(&binder, error);
}

static bool load_payload(struct store_file *file, struct arena *arena, struct delivery *delivery,
	struct error *error)
{
	struct reader reader = {.binder = bind_to(file, STATEMENT_PAYLOAD), .arena = arena};

	delivery->payload = delivery->thread_receipt = NULL;
	bind_integer(&reader.binder, delivery->id);
	while (reader_next(&reader, error)) {
		delivery->payload = read_text(&reader);
		delivery->thread_receipt = read_text(&reader);
	}
	return !reader.failed && store_members(file, arena, delivery, error);
}

bool store_attempt(struct store_file *file, struct store_attempt *call, struct error *error)
{
	struct delivery *delivery = &call->delivery;

	if (!run_for(file, STATEMENT_POINTLESS, delivery, true, error))
		return false;
	delivery->state = store_file_changed(file) > 0 ? DELIVERY_ABANDONED : DELIVERY_QUEUED;
	if (!run_for(file,
		    delivery->state == DELIVERY_ABANDONED ? STATEMENT_UNTELL : STATEMENT_ATTEMPT,
		    delivery, delivery->state == DELIVERY_QUEUED, error))
		return false;
	return load_payload(file, call->call.arena, delivery, error);
}

static bool write_outcome(struct store_file *file, const struct delivery *delivery,
	enum delivery_state state, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_SETTLE);

	bind_integer(&binder, delivery->id);
	bind_integer(&binder, state);
	bind_text(&binder, delivery->receipt);
	bind_text(&binder, delivery->problem);
	bind_count(&binder, delivery->attempts);
	bind_time(&binder, delivery->now);
	bind_integer(&binder, delivery->begun);
	bind_time(&binder, delivery->not_before);
	return bind_finish(&binder, error);
}

bool store_settle(struct store_file *file, struct store_settle *call, struct error *error)
{
	const struct delivery *delivery = &call->delivery;

	call->retractions.count = 0;
	return write_outcome(file, delivery, delivery->state, error) &&
	       (delivery->state != DELIVERY_SENT ||
		       (run_for(file, STATEMENT_ARRIVED, delivery, true, error) &&
			       store_late(file, call, error)));
}

/* Adds the delivery's queued changes, except withdrawn and recovered ones, to the records and makes
 * them pending again. */
static bool reopen_changes(struct store_file *file, struct store_reopen *call,
	const struct delivery *delivery, struct error *error)
{
	struct reader reader = {
		.binder = bind_to(file, STATEMENT_RECENT_RECORDS), .arena = call->call.arena};
	struct record_rows *out = &call->records;
	struct binder reopen;

	bind_integer(&reader.binder, delivery->id);
	while (reader_next(&reader, error)) {
		struct change_record record = {0};

		read_record(&reader, &record);
		if (record.news != NOTIFY_QUEUED || record.state == CHANGE_WITHDRAWN ||
			record.state == CHANGE_RECOVERED)
			continue;
		record.news = NOTIFY_PENDING;
		out->items = rows_grow(call->call.arena, out->items, &out->count, sizeof record);
		out->items[out->count - 1] = record;
	}
	if (reader.failed)
		return false;
	reopen = bind_to(file, STATEMENT_REOPEN);
	bind_integer(&reopen, delivery->id);
	return bind_finish(&reopen, error);
}

static bool load_told(struct store_file *file, struct arena *arena, struct change_record *record,
	struct error *error)
{
	struct reader reader = {.binder = bind_to(file, STATEMENT_TOLD_OF), .arena = arena};

	bind_integer(&reader.binder, record->item.id);
	while (reader_next(&reader, error))
		record_told(arena, record, read_name(&reader));
	record->told_stored = record->told.count;
	return !reader.failed;
}

bool store_reopen(struct store_file *file, struct store_reopen *call, struct error *error)
{
	const struct delivery_rows *given_up = &call->deliveries;

	call->records.count = 0;
	for (size_t i = 0; i < given_up->count; i++)
		if (!write_outcome(file, &given_up->items[i], DELIVERY_ABANDONED, error) ||
			!reopen_changes(file, call, &given_up->items[i], error))
			return false;
	for (size_t i = 0; i < call->records.count; i++)
		if (!load_told(file, call->call.arena, &call->records.items[i], error))
			return false;
	return true;
}

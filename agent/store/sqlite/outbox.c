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

/* Its changes that were withdrawn meanwhile are to be retracted. */
static bool retract_late(struct store_file *file, struct store_settle *call, struct error *error)
{
	if (!run_for(file, STATEMENT_RETRACT_LATE, &call->delivery, false, error))
		return false;
	call->retracts = store_file_changed(file) > 0;
	return true;
}

bool store_settle(struct store_file *file, struct store_settle *call, struct error *error)
{
	const struct delivery *delivery = &call->delivery;

	return write_outcome(file, delivery, delivery->state, error) &&
	       (delivery->state != DELIVERY_SENT ||
		       (run_for(file, STATEMENT_ARRIVED, delivery, true, error) &&
			       retract_late(file, call, error)));
}

bool store_reopen(struct store_file *file, struct store_reopen *call, struct error *error)
{
	const struct delivery_rows *given_up = &call->deliveries;

	for (size_t i = 0; i < given_up->count; i++)
		if (!write_outcome(file, &given_up->items[i], DELIVERY_ABANDONED, error) ||
			!run_for(file, STATEMENT_REOPEN, &given_up->items[i], false, error))
			return false;
	return true;
}

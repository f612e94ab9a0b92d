/*
 * What receivers are told: messages are queued with all that is settled by them, attempted, and
 * settled or given up.
 */
#include <math.h>

#include "agent/store/sql/read.h"
#include "agent/store/sql/rows.h"
#include "agent/store/sql/schema.h"
#include "agent/store/sql/triage.h"

/* The change of that number is in the delivery, as its record was when the message was written. */
static bool announce(struct store_file *file, const struct delivery *delivery, size_t number,
	struct error *error)
{
	const struct change_record *as =
		number < delivery->record_count ? &delivery->records[number] : NULL;
	int64_t change = delivery->changes[number];

	if (!RUN(file, STATEMENT_ANNOUNCE, error, v_id(change), v_id(delivery->id),
		    as ? v_time(as->item.time) : v_null(),
		    v_number(as ? as->item.change.size : (double)NAN)))
		return false;
	return !as || RUN(file, STATEMENT_AMEND_STALE, error, v_id(change), v_id(delivery->id),
			      v_time(as->updated));
}

static bool queue_delivery(struct store_file *file, struct delivery *delivery, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_QUEUE);

	bind_text(&binder, delivery->key);
	bind_text(&binder, delivery->receiver);
	bind_text(&binder, delivery->destination);
	bind_text(&binder, delivery->payload);
	bind_text(&binder, delivery->thread);
	bind_time(&binder, delivery->now);
	bind_text(&binder, delivery->kind);
	if (!bind_insert(&binder, &delivery->id, error))
		return false;
	delivery->state = DELIVERY_QUEUED;
	if (delivery->id == 0) { /* one with this key is queued or sent: it covers the changes */
		delivery->state = DELIVERY_SENT;
		if (!ASK(file, STATEMENT_QUEUED_BEFORE, &delivery->id, error,
			    v_text(delivery->key)))
			return false;
	}
	for (size_t i = 0; i < delivery->change_count; i++)
		if (!announce(file, delivery, i, error))
			return false;
	/* People may have said something already, or the changes moved or ended meanwhile. */
	return delivery->change_count == 0 ||
	       RUN(file, STATEMENT_AMEND_LATE, error, v_id(delivery->id));
}

static bool write_condition(
	struct store_file *file, const struct condition *condition, struct error *error)
{
	if (condition->over)
		return RUN(file, STATEMENT_CONDITION_OVER, error, v_text(condition->subject));
	return RUN(file, STATEMENT_CONDITION, error, v_text(condition->subject),
		v_id(condition->kind), v_time(condition->since), v_text(condition->text));
}

static bool write_vanished(
	struct store_file *file, const struct vanished *vanished, struct error *error)
{
	if (vanished->back)
		return RUN(file, STATEMENT_VANISHED_BACK, error, v_text(vanished->test),
			v_text(vanished->series));
	return RUN(file, STATEMENT_VANISHED, error, v_text(vanished->test),
		v_text(vanished->series), v_time(vanished->ended));
}

static bool write_environment(
	struct store_file *file, const struct environment_event *event, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_ENVIRONMENT);

	bind_row(&binder, environment_columns, 0, event);
	return bind_finish(&binder, error);
}

static bool write_member(
	struct store_file *file, const struct store_member *member, struct error *error)
{
	struct value change = v_id(member->change), event = v_id(member->event);

	return RUN(file, STATEMENT_MEMBER, error, change, event) &&
	       (!member->silent || (RUN(file, STATEMENT_MEMBER_TOLD, error, change, event) &&
					   RUN(file, STATEMENT_AMEND, error, change)));
}

static bool write_health(
	struct store_file *file, const struct health_rows *health, struct error *error)
{
	for (size_t i = 0; i < health->condition_count; i++)
		if (!write_condition(file, &health->conditions[i], error))
			return false;
	for (size_t i = 0; i < health->moment_count; i++)
		if (!RUN(file, STATEMENT_MOMENT, error, v_text(health->moments[i].name),
			    v_time(health->moments[i].time)))
			return false;
	for (size_t i = 0; i < health->vanished_count; i++)
		if (!write_vanished(file, &health->vanished[i], error))
			return false;
	return true;
}

static bool retracted(
	struct store_file *file, const struct retraction *retraction, struct error *error)
{
	return RUN(file, STATEMENT_RETRACTED, error, v_id(retraction->message.records[0].item.id),
		v_id(retraction->message.id), v_id(retraction->corrected ? 2 : 1));
}

static bool said(struct store_file *file, const struct said *at, struct error *error)
{
	const struct change_record *record = &at->message.records[0];

	return RUN(file, STATEMENT_SAID_DONE, error, v_id(record->item.id), v_id(at->message.id),
		v_id(at->what), v_count(record->triage.version), v_time(record->item.time));
}

static bool is_health_alone(const struct store_queue *call)
{
	return call->deliveries.count + call->told_count + call->retracted.count +
		       call->said.count + call->environments.count + call->member_count +
		       call->reminded_count ==
	       0;
}

/* Members come after the messages, as silent changes count as announced by them. */
static bool queue(struct store_file *file, void *context, struct error *error)
{
	struct store_queue *call = context;

	call->due = (struct store_due){0};
	for (size_t i = 0; i < call->deliveries.count; i++)
		if (!queue_delivery(file, &call->deliveries.items[i], error))
			return false;
	for (size_t i = 0; i < call->told_count; i++)
		if (!RUN(file, STATEMENT_TELL, error, v_id(call->told[i])))
			return false;
	for (size_t i = 0; i < call->retracted.count; i++)
		if (!retracted(file, &call->retracted.items[i], error))
			return false;
	for (size_t i = 0; i < call->said.count; i++)
		if (!said(file, &call->said.items[i], error))
			return false;
	for (size_t i = 0; i < call->environments.count; i++)
		if (!write_environment(file, &call->environments.items[i], error))
			return false;
	for (size_t i = 0; i < call->member_count; i++)
		if (!write_member(file, &call->members[i], error))
			return false;
	for (size_t i = 0; i < call->reminded_count; i++)
		if (!RUN(file, STATEMENT_REMINDED, error, v_id(call->reminded[i]),
			    v_time(call->now)))
			return false;
	return write_health(file, &call->health, error) &&
	       (is_health_alone(call) || store_due(file, &call->due, error));
}

const struct store_work store_queue_work = {.run = queue, .writes = true};

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
	return !reader.failed && store_members(file, arena, delivery, 1, error);
}

static bool attempt(struct store_file *file, void *context, struct error *error)
{
	struct store_attempt *call = context;
	struct delivery *delivery = &call->delivery;

	if (!RUN(file, STATEMENT_POINTLESS, error, v_id(delivery->id), v_time(delivery->now)))
		return false;
	delivery->state = file->driver->changed(file) > 0 ? DELIVERY_ABANDONED : DELIVERY_QUEUED;
	if (delivery->state == DELIVERY_QUEUED &&
		!RUN(file, STATEMENT_ATTEMPT, error, v_id(delivery->id), v_time(delivery->now)))
		return false;
	if (delivery->state == DELIVERY_ABANDONED &&
		(!RUN(file, STATEMENT_UNTELL, error, v_id(delivery->id)) ||
			!RUN(file, STATEMENT_OWE_DELIVERY, error, v_id(delivery->id))))
		return false;
	call->worst = NULL;
	return load_payload(file, call->call.arena, delivery, error) &&
	       (!call->pictured || delivery->state != DELIVERY_QUEUED ||
		       store_worst(file, call->call.arena, delivery->records,
			       delivery->record_count, &call->worst, error));
}

const struct store_work store_attempt_work = {.run = attempt, .writes = true};

static bool write_outcome(struct store_file *file, const struct delivery *delivery,
	enum delivery_state state, struct error *error)
{
	return RUN(file, STATEMENT_SETTLE, error, v_id(delivery->id), v_id(state),
		v_text(delivery->receipt), v_text(delivery->problem), v_count(delivery->attempts),
		v_time(delivery->now), v_id(delivery->begun), v_time(delivery->not_before));
}

/* Its changes that were withdrawn meanwhile are to be retracted. */
static bool retract_late(struct store_file *file, struct store_settle *call, struct error *error)
{
	struct store_due due;

	if (!RUN(file, STATEMENT_RETRACT_LATE, error, v_id(call->delivery.id)))
		return false;
	call->retracts = file->driver->changed(file) > 0;
	if (!store_due(file, &due, error))
		return false;
	call->retracts |= due.said > 0;
	return true;
}

static bool settle(struct store_file *file, void *context, struct error *error)
{
	struct store_settle *call = context;
	const struct delivery *delivery = &call->delivery;

	return write_outcome(file, delivery, delivery->state, error) &&
	       (delivery->state != DELIVERY_SENT ||
		       (RUN(file, STATEMENT_ARRIVED, error, v_id(delivery->id),
				v_time(delivery->now)) &&
			       retract_late(file, call, error)));
}

const struct store_work store_settle_work = {.run = settle, .writes = true};

static bool reopen(struct store_file *file, void *context, struct error *error)
{
	struct store_reopen *call = context;
	const struct delivery_rows *given_up = &call->deliveries;
	size_t pending = 0;

	for (size_t i = 0; i < given_up->count; i++)
		if (!write_outcome(file, &given_up->items[i], DELIVERY_ABANDONED, error) ||
			!RUN(file, STATEMENT_REOPEN, error, v_id(given_up->items[i].id)))
			return false;
	return triage_settle(file, &pending, error);
}

const struct store_work store_reopen_work = {.run = reopen, .writes = true};

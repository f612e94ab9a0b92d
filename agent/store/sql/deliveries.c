/*
 * What receivers are told: messages are queued with all that is settled by them, attempted, and
 * settled or given up.
 */
#include <math.h>
#include <string.h>

#include "agent/store/sql/read.h"
#include "agent/store/sql/rows.h"
#include "agent/store/sql/schema.h"
#include "agent/store/sql/triage.h"

bool delivery_is_of(const struct delivery *delivery, const char *kind)
{
	return !delivery->kind || strcmp(delivery->kind, kind) == 0;
}

/* The change of that number is in the delivery, as its record was when the message was written. */
static void announce(struct tx *tx, const struct delivery *delivery, size_t number)
{
	const struct change_record *as =
		number < delivery->record_count ? &delivery->records[number] : NULL;
	int64_t change = delivery->changes[number];

	RUN(tx, STATEMENT_ANNOUNCE, v_id(change), v_id(delivery->id),
		as ? v_time(as->item.time) : v_null(),
		v_number(as ? as->item.change.size : (double)NAN));
	if (as)
		RUN(tx, STATEMENT_AMEND_STALE, v_id(change), v_id(delivery->id),
			v_time(as->updated));
}

static void queue_delivery(struct tx *tx, struct delivery *delivery)
{
	struct sql_query query =
		QUERY(tx, STATEMENT_QUEUE, v_text(delivery->key), v_text(delivery->receiver),
			v_text(delivery->destination), v_text(delivery->payload),
			v_text(delivery->thread), v_time(delivery->now), v_text(delivery->kind));

	delivery->id = query_insert(&query);
	delivery->state = DELIVERY_QUEUED;
	if (delivery->id == 0) { /* one with this key is queued or sent: it covers the changes */
		delivery->state = DELIVERY_SENT;
		delivery->id = query_ask(QUERY(tx, STATEMENT_QUEUED_BEFORE, v_text(delivery->key)));
	}
	for (size_t i = 0; i < delivery->change_count; i++)
		announce(tx, delivery, i);
	/* People may have said something already, or the changes moved or ended meanwhile. */
	if (delivery->change_count != 0)
		RUN(tx, STATEMENT_AMEND_LATE, v_id(delivery->id));
}

static void write_condition(struct tx *tx, const struct condition *condition)
{
	if (condition->over)
		RUN(tx, STATEMENT_CONDITION_OVER, v_text(condition->subject));
	else
		RUN(tx, STATEMENT_CONDITION, v_text(condition->subject), v_id(condition->kind),
			v_time(condition->since), v_text(condition->text));
}

static void write_vanished(struct tx *tx, const struct vanished *vanished)
{
	if (vanished->back)
		RUN(tx, STATEMENT_VANISHED_BACK, v_text(vanished->test), v_text(vanished->series));
	else
		RUN(tx, STATEMENT_VANISHED, v_text(vanished->test), v_text(vanished->series),
			v_time(vanished->ended));
}

static void write_environment(struct tx *tx, const struct environment_event *event)
{
	struct sql_query query = sql_query_of(tx, STATEMENT_ENVIRONMENT);

	bind_row(&query, environment_columns, 0, event);
	query_run(&query);
}

static void write_incident(struct tx *tx, const struct incident *incident)
{
	struct sql_query query = sql_query_of(tx, STATEMENT_INCIDENT);

	bind_row(&query, incident_columns, 0, incident);
	query_run(&query);
}

static void write_member(struct tx *tx, const struct store_member *member)
{
	struct value change = v_id(member->change), event = v_id(member->event);

	RUN(tx, STATEMENT_MEMBER, change, event, v_id(member->incident));
	if (member->silent) {
		RUN(tx, STATEMENT_MEMBER_TOLD, change, event);
		RUN(tx, STATEMENT_AMEND, v_text(rows_id(tx, member->change)));
	}
}

static void write_health(struct tx *tx, const struct health_rows *health)
{
	for (size_t i = 0; i < health->condition_count; i++)
		write_condition(tx, &health->conditions[i]);
	for (size_t i = 0; i < health->moment_count; i++)
		RUN(tx, STATEMENT_MOMENT, v_text(health->moments[i].name),
			v_time(health->moments[i].time));
	for (size_t i = 0; i < health->vanished_count; i++)
		write_vanished(tx, &health->vanished[i]);
}

static void said(struct tx *tx, const struct said *at)
{
	const struct change_record *record = &at->message.records[0];

	RUN(tx, STATEMENT_SAID_DONE, v_id(record->item.id), v_id(at->message.id), v_id(at->what),
		v_count(record->triage.version), v_time(record->item.time));
}

static bool is_health_alone(const struct store_queue *call)
{
	return call->deliveries.count + call->told_count + call->retracted.count +
		       call->said.count + call->environments.count + call->member_count +
		       call->reminded_count ==
	       0;
}

/* Members come after the messages, as silent changes count as announced by them. */
static void queue(struct tx *tx, void *context)
{
	struct store_queue *call = context;

	for (size_t i = 0; i < call->deliveries.count; i++)
		queue_delivery(tx, &call->deliveries.items[i]);
	for (size_t i = 0; i < call->told_count; i++)
		RUN(tx, STATEMENT_TELL, v_id(call->told[i]),
			v_text(call->reasons ? call->reasons[i] : NULL));
	for (size_t i = 0; i < call->retracted.count; i++)
		RUN(tx, STATEMENT_RETRACTED,
			v_id(call->retracted.items[i].message.records[0].item.id),
			v_id(call->retracted.items[i].message.id),
			v_id(call->retracted.items[i].what));
	for (size_t i = 0; i < call->said.count; i++)
		said(tx, &call->said.items[i]);
	for (size_t i = 0; i < call->environments.count; i++)
		write_environment(tx, &call->environments.items[i]);
	for (size_t i = 0; i < call->incident_count; i++)
		write_incident(tx, &call->incidents[i]);
	for (size_t i = 0; i < call->member_count; i++)
		write_member(tx, &call->members[i]);
	for (size_t i = 0; i < call->reminded_count; i++)
		RUN(tx, STATEMENT_REMINDED, v_id(call->reminded[i]), v_time(call->now));
	write_health(tx, &call->health);
	if (!is_health_alone(call))
		store_due(tx, &call->due);
}

STORE_DEFINE(queue, .run = queue, .writes = true);

static void load_payload(struct tx *tx, struct delivery *delivery)
{
	struct sql_query query = QUERY(tx, STATEMENT_PAYLOAD, v_id(delivery->id));

	delivery->payload = delivery->thread_receipt = NULL;
	while (query_next(&query)) {
		delivery->payload = read_text(&query);
		delivery->thread_receipt = read_text(&query);
	}
	store_members(tx, delivery, 1);
}

static void attempt(struct tx *tx, void *context)
{
	struct store_attempt *call = context;
	struct delivery *delivery = &call->delivery;

	if (CHANGED(tx, STATEMENT_POINTLESS, v_id(delivery->id), v_time(delivery->now)) > 0) {
		delivery->state = DELIVERY_ABANDONED;
		RUN(tx, STATEMENT_UNTELL, v_id(delivery->id));
		RUN(tx, STATEMENT_OWE_DELIVERY, v_id(delivery->id));
	} else {
		delivery->state = DELIVERY_QUEUED;
		RUN(tx, STATEMENT_ATTEMPT, v_id(delivery->id), v_time(delivery->now));
	}
	load_payload(tx, delivery);
	if (call->pictured && delivery->state == DELIVERY_QUEUED)
		store_worst(tx, delivery->records, delivery->record_count, &call->worst);
}

STORE_DEFINE(attempt, .run = attempt, .writes = true);

static void write_outcome(struct tx *tx, const struct delivery *delivery, enum delivery_state state)
{
	RUN(tx, STATEMENT_SETTLE, v_id(delivery->id), v_id(state), v_text(delivery->receipt),
		v_text(delivery->problem), v_count(delivery->attempts), v_time(delivery->now),
		v_id(delivery->begun), v_time(delivery->not_before));
}

/* Its changes that were withdrawn meanwhile are to be retracted. */
static void retract_late(struct tx *tx, struct store_settle *call)
{
	struct store_due due = {0};

	call->retracts = CHANGED(tx, STATEMENT_RETRACT_LATE, v_id(call->delivery.id)) > 0;
	store_due(tx, &due);
	call->retracts |= due.said > 0;
}

static void settle(struct tx *tx, void *context)
{
	struct store_settle *call = context;
	const struct delivery *delivery = &call->delivery;

	write_outcome(tx, delivery, delivery->state);
	if (delivery->state == DELIVERY_SENT) {
		RUN(tx, STATEMENT_ARRIVED, v_id(delivery->id), v_time(delivery->now));
		retract_late(tx, call);
	}
}

STORE_DEFINE(settle, .run = settle, .writes = true);

static void reopen(struct tx *tx, void *context)
{
	struct store_reopen *call = context;
	const struct delivery_rows *given_up = &call->deliveries;
	size_t pending = 0;

	for (size_t i = 0; i < given_up->count; i++) {
		write_outcome(tx, &given_up->items[i], DELIVERY_ABANDONED);
		RUN(tx, STATEMENT_REOPEN, v_id(given_up->items[i].id));
	}
	triage_settle(tx, &pending);
}

STORE_DEFINE(reopen, .run = reopen, .writes = true);

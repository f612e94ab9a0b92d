/*
 * Deliveries: messages are queued in the transaction that settles their changes, then attempted,
 * and settled or given up.
 */
#include <math.h>
#include <string.h>

#include "agent/store/sql/read.h"

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

	RUN(tx,
		"INSERT INTO announced (change, delivery, told_time, told_size) SELECT id, ?2,"
		" coalesce(?3, time), coalesce(?4, size) FROM changes WHERE id = ?1 ON CONFLICT"
		" (change, delivery) DO NOTHING",
		v_int(change), v_int(delivery->id), as ? v_int(as->item.time) : v_null(),
		v_number(as ? as->item.change.size : (double)NAN));
	if (as)
		RUN(tx,
			/* Change ?1 was written after ?3, when delivery ?2 was written about it. */
			"UPDATE deliveries SET @to_amend WHERE id = ?2 AND"
			" (SELECT updated FROM changes WHERE id = ?1) > ?3",
			v_int(change), v_int(delivery->id), v_int(as->updated));
}

static void queue_delivery(struct tx *tx, struct delivery *delivery)
{
	struct sql_query query = QUERY(tx,
		"INSERT INTO deliveries (key, receiver, destination, payload, thread, state,"
		" attempts, created, updated, kind) VALUES (?1, ?2, ?3, ?4, ?5, @delivery{queued},"
		" 0, ?6, ?6, ?7) ON CONFLICT (key) WHERE state != @delivery{abandoned} DO NOTHING"
		" RETURNING id",
		v_text(delivery->key), v_text(delivery->receiver), v_text(delivery->destination),
		v_text(delivery->payload), v_text(delivery->thread), v_int(delivery->now),
		v_text(delivery->kind));

	delivery->id = query_insert(&query);
	delivery->state = DELIVERY_QUEUED;
	if (delivery->id == 0) { /* one with this key is queued or sent: it covers the changes */
		delivery->state = DELIVERY_SENT;
		delivery->id = query_ask(QUERY(tx,
			"SELECT id FROM deliveries @indexed{deliveries_once} WHERE key = ?1 AND"
			" state != @delivery{abandoned}",
			v_text(delivery->key)));
	}
	for (size_t i = 0; i < delivery->change_count; i++)
		announce(tx, delivery, i);
	/* The changes may have been triaged, or moved or ended meanwhile. */
	if (delivery->change_count != 0)
		RUN(tx,
			/* Delivery ?1 is queued about changes that were triaged or updated since it
			 * was written. */
			"UPDATE deliveries SET @to_amend WHERE id = ?1 AND"
			" EXISTS (SELECT 1 FROM announced JOIN changes ON changes.id ="
			" announced.change" WITH_TRIAGE
			" WHERE delivery = ?1 AND (coalesce(triage, @triage{open}) !="
			" @triage{open} OR changes.state IN (@state{withdrawn}, @state{recovered})"
			" OR changes.time != told_time OR culprit IS NOT NULL))",
			v_int(delivery->id));
	if (delivery->amends)
		RUN(tx,
			"UPDATE deliveries @indexed{deliveries_of_key} SET @to_amend"
			" WHERE key = ?1 AND" AMENDABLE,
			v_text(delivery->thread));
}

static void write_member(struct tx *tx, const struct store_member *member)
{
	struct value change = v_int(member->change), event = v_int(member->event);

	RUN(tx,
		"UPDATE changes SET incident = (SELECT id FROM incidents WHERE id = ?3),"
		" environment_event = (SELECT id FROM environments WHERE id = ?2) WHERE id = ?1",
		change, event, v_int(member->incident));
	if (member->silent) {
		RUN(tx,
			/* By the first message to each destination about the other changes. */
			"INSERT INTO announced (change, delivery, told_time, told_size) SELECT"
			" ?1, min(deliveries.id), (SELECT time FROM changes WHERE id = ?1),"
			" (SELECT size FROM changes WHERE id = ?1) FROM changes"
			" @indexed{changes_of_environment} JOIN announced ON change = changes.id"
			" JOIN deliveries ON deliveries.id = delivery WHERE environment_event ="
			" ?2 AND deliveries.state != @delivery{abandoned} GROUP BY receiver,"
			" destination ON CONFLICT (change, delivery) DO NOTHING",
			change, event);
		triage_amend(tx, v_one(tx, member->change));
	}
	if (member->inherited)
		triage_inherit(tx, member->change, member->incident, member->inherited);
}

static void write_health(struct tx *tx, const struct health_rows *health)
{
	for (size_t i = 0; i < health->condition_count; i++) {
		const struct condition *condition = &health->conditions[i];

		if (condition->over)
			RUN(tx, "DELETE FROM conditions WHERE subject = ?1",
				v_text(condition->subject));
		else
			row_run(sql_query_of(tx, "@=conditions"), condition_columns, condition);
	}
	for (size_t i = 0; i < health->moment_count; i++)
		row_run(sql_query_of(tx, "@=moments"), moment_columns, &health->moments[i]);
	for (size_t i = 0; i < health->vanished_count; i++) {
		const struct vanished *vanished = &health->vanished[i];

		if (vanished->back)
			RUN(tx, "DELETE FROM vanished WHERE test = ?1 AND series = ?2",
				v_text(vanished->test), v_text(vanished->series));
		else
			row_run(sql_query_of(tx, "@=vanished"), vanished_columns, vanished);
	}
}

/* Of one that is settled the end, or that it was withdrawn, while its message was rendered, is to
 * be reported. */
static void settle_change(struct tx *tx, const struct decided_change *change)
{
	struct value id = v_int(change->id), reason = v_text(change->reason);

	if (change->held) {
		RUN(tx, "UPDATE changes SET reason = ?2 WHERE id = ?1 AND news = @news{pending}",
			id, reason);
		return;
	}
	RUN(tx,
		"UPDATE events SET due = time WHERE id = (SELECT max(id) FROM events WHERE change"
		" = ?1 AND kind IN (@event{withdrawn}, @event{recovered})) AND EXISTS (SELECT 1"
		" FROM changes WHERE id = ?1 AND news = @news{held} AND state IN"
		" (@state{withdrawn}, @state{recovered}))",
		id);
	RUN(tx, "UPDATE changes SET news = @news{queued}, reason = ?2 WHERE id = ?1", id, reason);
}

/* Members come after the messages, as silent changes count as announced by them. */
STORE_DEFINE(queue, .writes = true)
{
	for (size_t i = 0; i < call->deliveries.count; i++)
		queue_delivery(tx, &call->deliveries.items[i]);
	for (size_t i = 0; i < call->change_count; i++)
		settle_change(tx, &call->changes[i]);
	for (size_t i = 0; i < call->events.count; i++)
		RUN(tx,
			"UPDATE events SET due = nullif(?2, 0), reason = ?3 WHERE id = ?1 AND due"
			" IS NOT NULL",
			v_int(call->events.items[i].event.id),
			v_int(call->events.items[i].event.due),
			v_text(call->events.items[i].event.reason));
	for (size_t i = 0; i < call->environments.count; i++)
		row_run(sql_query_of(tx, "@=environments"), environment_columns,
			&call->environments.items[i]);
	for (size_t i = 0; i < call->incident_count; i++)
		row_run(sql_query_of(tx, "@=incidents"), incident_columns, &call->incidents[i]);
	for (size_t i = 0; i < call->member_count; i++)
		write_member(tx, &call->members[i]);
	for (size_t i = 0; i < call->reminded_count; i++)
		RUN(tx, "UPDATE deliveries SET reminded = ?2 WHERE id = ?1",
			v_int(call->reminded[i]), v_int(call->now));
	write_health(tx, &call->health);
	if (call->deliveries.count + call->change_count + call->events.count +
			call->environments.count + call->member_count + call->reminded_count >
		0)
		store_due(tx, &call->due);
}

/* Of `deliveries`: it continues a message that was given up, in whose thread no other announces
 * changes. */
#define ORPHANED                                                                                   \
	" state = @delivery{queued} AND attempt_started IS NULL AND NOT EXISTS (SELECT 1 FROM"     \
	" announced WHERE delivery = deliveries.id) AND 0 < (SELECT count(*) FROM deliveries AS"   \
	" first @indexed{deliveries_of_key} WHERE first.key = deliveries.thread) AND 0 = (SELECT"  \
	" count(*) FROM deliveries AS first @indexed{deliveries_of_key} WHERE first.key ="         \
	" deliveries.thread AND first.state != @delivery{abandoned}) AND NOT EXISTS (SELECT 1"     \
	" FROM deliveries AS more JOIN announced ON announced.delivery = more.id WHERE"            \
	" more.thread = deliveries.thread AND more.state != @delivery{abandoned})"

STORE_DEFINE(attempt, .writes = true)
{
	struct delivery *delivery = &call->delivery;
	struct sql_query query;

	if (CHANGED(tx,
		    "UPDATE deliveries SET state = @delivery{abandoned}, updated = ?2, problem ="
		    " 'its changes were withdrawn, accepted or outgrown before it was sent'"
		    " WHERE id = ?1 AND" POINTLESS,
		    v_int(delivery->id), v_int(delivery->now)) > 0 ||
		CHANGED(tx,
			"UPDATE deliveries SET state = @delivery{abandoned}, updated = ?2, problem"
			" = 'the message that it continues was given up' WHERE id = ?1 "
			"AND" ORPHANED,
			v_int(delivery->id), v_int(delivery->now)) > 0) {
		delivery->state = DELIVERY_ABANDONED;
		RUN(tx,
			"UPDATE changes SET news = @news{held} WHERE state = @state{withdrawn} AND"
			" news = @news{queued} AND id IN (SELECT change FROM announced WHERE"
			" delivery = ?1) AND NOT EXISTS (SELECT 1 FROM announced JOIN deliveries"
			" ON deliveries.id = delivery WHERE change = changes.id AND"
			" deliveries.state != @delivery{abandoned})",
			v_int(delivery->id));
		RUN(tx,
			"UPDATE triage SET owed = 1 WHERE" ACCEPTED
			" AND change IN (SELECT change FROM announced WHERE delivery = ?1)",
			v_int(delivery->id));
	} else {
		delivery->state = DELIVERY_QUEUED;
		RUN(tx,
			"UPDATE deliveries SET attempt_started = coalesce(attempt_started, ?2),"
			" not_before = NULL WHERE id = ?1",
			v_int(delivery->id), v_int(delivery->now));
	}
	query = QUERY(tx,
		"SELECT payload, " THREAD_RECEIPT " FROM deliveries WHERE id = ?1 AND state ="
		" @delivery{queued}",
		v_int(delivery->id));
	delivery->payload = delivery->thread_receipt = NULL;
	while (query_next(&query)) {
		delivery->payload = read_text(&query);
		delivery->thread_receipt = read_text(&query);
	}
	store_members(tx, delivery, 1);
	if (call->pictured && delivery->state == DELIVERY_QUEUED)
		store_worst(tx, delivery->records, delivery->record_count, &call->worst);
}

static void write_outcome(struct tx *tx, const struct delivery *delivery, enum delivery_state state)
{
	RUN(tx,
		"UPDATE deliveries SET state = ?2, receipt = coalesce(?3, receipt), problem = ?4,"
		" attempts = ?5, updated = ?6, attempt_started = CASE WHEN ?7 != 0 THEN"
		" attempt_started ELSE NULL END, not_before = nullif(?8, 0) WHERE id = ?1",
		v_int(delivery->id), v_int(state), v_text(delivery->receipt),
		v_text(delivery->problem), v_int(delivery->attempts), v_int(delivery->now),
		v_int(delivery->begun), v_int(delivery->not_before));
}

STORE_DEFINE(settle, .writes = true)
{
	const struct delivery *delivery = &call->delivery;
	size_t pending = 0;

	write_outcome(tx, delivery, delivery->state);
	if (delivery->state == DELIVERY_SENT)
		RUN(tx,
			"INSERT INTO events (time, kind, change, point, person, origin) SELECT"
			" ?2, @event{announced}, change, changes.time, receiver, destination FROM"
			" announced JOIN changes ON changes.id = change JOIN deliveries ON"
			" deliveries.id = delivery WHERE delivery = ?1 ORDER BY change",
			v_int(delivery->id), v_int(delivery->now));
	if (!call->reroutes)
		return;
	RUN(tx,
		"UPDATE changes SET news = @news{pending} WHERE news = @news{queued} AND state NOT"
		" IN (@state{withdrawn}, @state{recovered}) AND id IN (SELECT change FROM announced"
		" WHERE delivery = ?1)",
		v_int(delivery->id));
	triage_settle(tx, &pending);
}

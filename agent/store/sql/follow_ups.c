/* Sent messages with what is to be done about them: edited, read for reactions, refreshed. */
#include "agent/base/buf.h"
#include "agent/store/sql/rows.h"

/* The columns of a message that is followed up, in the order of read_followed. */
#define FOLLOWED_COLUMNS "id, key, receiver, destination, receipt, updated, coalesce(amend, 0)"

/* Of a message: it is about a change that stands and that nobody has decided about. */
#define AWAITED                                                                                    \
	" EXISTS (SELECT 1 FROM announced JOIN changes ON changes.id = "                           \
	"announced.change" WITH_TRIAGE                                                             \
	" WHERE delivery = deliveries.id AND changes.state @standing AND @waiting)"

static const char sql_to_read[] =
	"SELECT " FOLLOWED_COLUMNS
	" FROM deliveries @indexed{deliveries_settled} WHERE state != @delivery{queued} AND"
	" updated >= ?3 AND state = @delivery{sent} AND receipt IS NOT NULL AND receiver IN"
	" (SELECT value FROM @texts{?1}) AND (coalesce(reaction, '') != '' OR" AWAITED ") ORDER BY"
	" updated DESC, id DESC LIMIT ?2";

static const char sql_to_refresh[] =
	"SELECT " FOLLOWED_COLUMNS
	" FROM deliveries @indexed{deliveries_kept} WHERE state = @delivery{sent} AND receipt IS"
	" NOT NULL AND receiver IN (SELECT value FROM @texts{?1}) AND" AWAITED
	" ORDER BY id LIMIT ?2";

static void read_followed(struct sql_query *query, struct followed_message *followed)
{
	struct delivery *message = &followed->message;

	message->state = DELIVERY_SENT;
	message->id = read_id(query);
	message->key = read_name(query);
	message->receiver = read_name(query);
	message->destination = read_name(query);
	message->receipt = read_text(query);
	message->now = read_time(query);
	followed->mark = read_count(query);
}

/* Adds the messages of these receivers. */
static void list(struct tx *tx, struct store_follow_ups *call, const char *statement,
	const struct strings *receivers, int64_t limit)
{
	struct sql_query query = QUERY(tx, statement, v_names(tx, receivers), v_int(limit));

	if (receivers->count == 0)
		return;
	if (statement == sql_to_read)
		query_bind(&query, v_int(call->since));
	while (query_next(&query)) {
		struct followed_message *followed = ADD_ROW(tx, call->messages, call->count);

		read_followed(&query, followed);
		followed->answers = statement == sql_to_read;
		followed->stands = statement == sql_to_refresh;
	}
}

static size_t read_told(struct sql_query *query, struct told_record **out)
{
	size_t count = 0;

	while (query_next(query)) {
		struct told_record *told = ADD_ROW(query->tx, *out, count);

		read_record(query, &told->record);
		told->time = read_time(query);
	}
	return count;
}

static void read_one(struct tx *tx, struct store_follow_ups *call)
{
	struct value id = v_int(call->delivery);
	struct followed_message *one;
	struct sql_query told, joined,
		query = QUERY(tx,
			"SELECT " FOLLOWED_COLUMNS ", payload, reaction, coalesce(amended, 0), "
			"thread, kind FROM deliveries WHERE id"
			" = ?1 AND state = @delivery{sent}",
			id);

	while (query_next(&query)) {
		struct followed_message *followed = ADD_ROW(tx, call->messages, call->count);

		read_followed(&query, followed);
		followed->message.payload = read_text(&query);
		followed->reaction = read_text(&query);
		followed->amended = read_count(&query);
		followed->message.thread = read_text(&query);
		followed->message.kind = read_text(&query);
	}
	if (call->count == 0)
		return;
	one = &call->messages[0];
	told = QUERY(tx,
		"SELECT " RECORD_COLUMNS
		", coalesce(told_time, changes.time) FROM announced JOIN changes ON"
		" announced.change = changes.id" WITH_TRIAGE
		" WHERE delivery = ?1 ORDER BY announced.change",
		id);
	one->count = read_told(&told, &one->told);
	joined = QUERY(tx,
		"SELECT " RECORD_COLUMNS
		", changes.time FROM changes @indexed{changes_of_incident}" WITH_TRIAGE
		" WHERE incident IN (SELECT incident FROM announced JOIN changes ON changes.id ="
		" announced.change WHERE delivery = ?1) AND changes.state != @state{withdrawn} AND"
		" EXISTS (SELECT 1 FROM announced JOIN deliveries ON deliveries.id = delivery"
		" WHERE announced.change = changes.id AND thread = ?2 AND deliveries.state !="
		" @delivery{abandoned}) AND NOT EXISTS (SELECT 1 FROM announced WHERE"
		" announced.change = changes.id AND delivery = ?1) ORDER BY changes.id",
		id, v_text(one->message.key));
	one->joined_count = read_told(&joined, &one->joined);
}

STORE_DEFINE(follow_ups)
{
	struct sql_query query;

	if (call->delivery != 0) {
		read_one(tx, call);
		return;
	}
	list(tx, call,
		"SELECT " FOLLOWED_COLUMNS
		" FROM deliveries @indexed{deliveries_to_amend} WHERE amend IS NOT NULL AND state"
		" = @delivery{sent} AND receipt IS NOT NULL AND receiver IN (SELECT value FROM"
		" @texts{?1}) ORDER BY id LIMIT ?2",
		&call->amending, STORE_AMENDMENTS);
	list(tx, call, sql_to_read, &call->listening, STORE_ANSWERS);
	list(tx, call, sql_to_refresh, &call->refreshing, STORE_STANDING);
	if (!call->count_standing)
		return;
	query = sql_query_of(tx,
		/* Of all receivers, how many messages of each they are. */
		"SELECT receiver, count(*) FROM deliveries @indexed{deliveries_kept} WHERE state ="
		" @delivery{sent} AND receipt IS NOT NULL AND" AWAITED
		" GROUP BY receiver ORDER BY receiver");
	while (query_next(&query)) {
		struct standing_messages *at = ADD_ROW(tx, call->standing, call->standing_count);

		at->receiver = read_name(&query);
		at->count = read_count(&query);
	}
}

STORE_DEFINE(amended, .writes = true)
{
	RUN(tx,
		"UPDATE deliveries SET amend = CASE WHEN amend = ?2 THEN NULL ELSE amend END,"
		" amended = coalesce(amended, 0) + 1, receipt = coalesce(?3, receipt) WHERE id ="
		" ?1 AND state = @delivery{sent}",
		v_int(call->delivery), v_int(call->mark), v_text(call->receipt));
	call->marked =
		query_ask(QUERY(tx, "SELECT coalesce(amend, 0) FROM deliveries WHERE id = ?1",
			v_int(call->delivery))) > 0;
}

STORE_DEFINE(send_anew, .writes = true)
{
	call->queued =
		CHANGED(tx,
			/* As if it had never been sent. */
			"UPDATE deliveries SET state = @delivery{queued}, receipt = NULL, problem"
			" = NULL, attempts = 0, attempt_started = NULL, not_before = NULL,"
			" reaction = NULL, @to_amend WHERE id = ?1 AND state"
			" = @delivery{sent}",
			v_int(call->delivery)) > 0;
}

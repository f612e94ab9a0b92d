
#include "agent/base/buf.h"
#include "agent/store/sql/rows.h"

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
static void list(struct tx *tx, struct store_follow_ups *call, enum statement statement,
	const struct strings *receivers, int64_t limit)
{
	struct sql_query query =
		QUERY(tx, statement, v_text(rows_names(tx, receivers)), v_id(limit));

	if (receivers->count == 0)
		return;
	if (statement == STATEMENT_TO_READ)
		query_bind(&query, v_time(call->since));
	while (query_next(&query)) {
		struct followed_message *followed = ADD_ROW(tx, call->messages, call->count);

		read_followed(&query, followed);
		followed->answers = statement == STATEMENT_TO_READ;
		followed->stands = statement == STATEMENT_TO_REFRESH;
	}
}

static void read_told(struct tx *tx, struct followed_message *followed)
{
	struct sql_query query = QUERY(tx, STATEMENT_TOLD_RECORDS, v_id(followed->message.id));

	while (query_next(&query)) {
		struct told_record *told = ADD_ROW(tx, followed->told, followed->count);

		read_record(&query, &told->record);
		told->time = read_time(&query);
	}
}

static void read_one(struct tx *tx, struct store_follow_ups *call)
{
	struct sql_query query = QUERY(tx, STATEMENT_FOLLOWED, v_id(call->delivery));

	while (query_next(&query)) {
		struct followed_message *followed = ADD_ROW(tx, call->messages, call->count);

		read_followed(&query, followed);
		followed->message.payload = read_text(&query);
		followed->reaction = read_text(&query);
		followed->amended = read_count(&query);
		followed->message.thread = read_text(&query);
		followed->message.kind = read_text(&query);
	}
	if (call->count != 0)
		read_told(tx, &call->messages[0]);
}

static void count_left(struct tx *tx, struct store_follow_ups *call)
{
	struct sql_query query = sql_query_of(tx, STATEMENT_LEFT);

	while (query_next(&query)) {
		struct standing_messages *at = ADD_ROW(tx, call->standing, call->standing_count);

		at->receiver = read_name(&query);
		at->count = read_count(&query);
	}
}

static void follow_ups_read(struct tx *tx, void *context)
{
	struct store_follow_ups *call = context;

	if (call->delivery != 0) {
		read_one(tx, call);
		return;
	}
	list(tx, call, STATEMENT_TO_AMEND, &call->amending, STORE_AMENDMENTS);
	list(tx, call, STATEMENT_TO_READ, &call->listening, STORE_ANSWERS);
	list(tx, call, STATEMENT_TO_REFRESH, &call->refreshing, STORE_STANDING);
	if (call->count_standing)
		count_left(tx, call);
}

STORE_DEFINE(follow_ups, .run = follow_ups_read);

static void follow_ups_amended(struct tx *tx, void *context)
{
	struct store_amended *call = context;

	RUN(tx, STATEMENT_AMENDED, v_id(call->delivery), v_count(call->mark),
		v_text(call->receipt));
	call->marked = query_ask(QUERY(tx, STATEMENT_MARK, v_id(call->delivery))) > 0;
}

STORE_DEFINE(amended, .run = follow_ups_amended, .writes = true);

static void follow_ups_send_anew(struct tx *tx, void *context)
{
	struct store_send_anew *call = context;

	call->queued = CHANGED(tx, STATEMENT_SEND_ANEW, v_id(call->delivery)) > 0;
}

STORE_DEFINE(send_anew, .run = follow_ups_send_anew, .writes = true);

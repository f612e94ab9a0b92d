
#include "agent/base/buf.h"
#include "agent/store/sql/rows.h"

static void read_followed(struct reader *reader, struct followed_message *followed)
{
	struct delivery *message = &followed->message;

	*followed = (struct followed_message){.message = {.state = DELIVERY_SENT}};
	message->id = read_id(reader);
	message->key = read_name(reader);
	message->receiver = read_name(reader);
	message->destination = read_name(reader);
	message->receipt = read_text(reader);
	message->now = read_time(reader);
	followed->mark = read_count(reader);
}

/* Adds the messages of these receivers. */
static bool list(struct store_file *file, struct store_follow_ups *call, enum statement statement,
	const struct strings *receivers, int64_t limit, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct reader reader = {.binder = bind_to(file, statement), .arena = arena};

	if (receivers->count == 0)
		return true;
	bind_text(&reader.binder, rows_names(arena, receivers));
	bind_integer(&reader.binder, limit);
	if (statement == STATEMENT_TO_READ)
		bind_time(&reader.binder, call->since);
	while (reader_next(&reader, error)) {
		struct followed_message *followed;

		call->messages =
			rows_grow(arena, call->messages, &call->count, sizeof *call->messages);
		followed = &call->messages[call->count - 1];
		read_followed(&reader, followed);
		followed->answers = statement == STATEMENT_TO_READ;
		followed->stands = statement == STATEMENT_TO_REFRESH;
	}
	return !reader.failed;
}

static bool read_told(struct store_file *file, struct arena *arena,
	struct followed_message *followed, struct error *error)
{
	struct reader reader = {.binder = bind_to(file, STATEMENT_TOLD_RECORDS), .arena = arena};

	bind_integer(&reader.binder, followed->message.id);
	while (reader_next(&reader, error)) {
		struct told_record *told;

		followed->told = rows_grow(arena, followed->told, &followed->count, sizeof *told);
		told = &followed->told[followed->count - 1];
		*told = (struct told_record){0};
		read_record(&reader, &told->record);
		told->time = read_time(&reader);
	}
	return !reader.failed;
}

static bool read_one(struct store_file *file, struct store_follow_ups *call, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct reader reader = {.binder = bind_to(file, STATEMENT_FOLLOWED), .arena = arena};

	bind_integer(&reader.binder, call->delivery);
	while (reader_next(&reader, error)) {
		call->messages =
			rows_grow(arena, call->messages, &call->count, sizeof *call->messages);
		read_followed(&reader, &call->messages[0]);
		call->messages[0].message.payload = read_text(&reader);
		call->messages[0].reaction = read_text(&reader);
		call->messages[0].amended = read_count(&reader);
		call->messages[0].message.thread = read_text(&reader);
		call->messages[0].message.kind = read_text(&reader);
	}
	return !reader.failed &&
	       (call->count == 0 || read_told(file, arena, &call->messages[0], error));
}

static bool count_left(struct store_file *file, struct store_follow_ups *call, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct reader reader = {.binder = bind_to(file, STATEMENT_LEFT), .arena = arena};

	while (call->count_standing && reader_next(&reader, error)) {
		struct standing_messages *at;

		call->standing =
			rows_grow(arena, call->standing, &call->standing_count, sizeof *at);
		at = &call->standing[call->standing_count - 1];
		at->receiver = read_name(&reader);
		at->count = read_count(&reader);
	}
	return !reader.failed;
}

static bool follow_ups_read(struct store_file *file, void *context, struct error *error)
{
	struct store_follow_ups *call = context;

	call->messages = NULL;
	call->count = 0;
	if (call->delivery != 0)
		return read_one(file, call, error);
	return list(file, call, STATEMENT_TO_AMEND, &call->amending, STORE_AMENDMENTS, error) &&
	       list(file, call, STATEMENT_TO_READ, &call->listening, STORE_ANSWERS, error) &&
	       list(file, call, STATEMENT_TO_REFRESH, &call->refreshing, STORE_STANDING, error) &&
	       count_left(file, call, error);
}

const struct store_work store_follow_ups_work = {.run = follow_ups_read};

static bool follow_ups_amended(struct store_file *file, void *context, struct error *error)
{
	struct store_amended *call = context;
	int64_t mark = 0;

	if (!RUN(file, STATEMENT_AMENDED, error, v_id(call->delivery), v_count(call->mark),
		    v_text(call->receipt)) ||
		!ASK(file, STATEMENT_MARK, &mark, error, v_id(call->delivery)))
		return false;
	call->marked = mark > 0;
	return true;
}

const struct store_work store_amended_work = {.run = follow_ups_amended, .writes = true};

static bool follow_ups_send_anew(struct store_file *file, void *context, struct error *error)
{
	struct store_send_anew *call = context;

	if (!RUN(file, STATEMENT_SEND_ANEW, error, v_id(call->delivery)))
		return false;
	call->queued = file->driver->changed(file) > 0;
	return true;
}

const struct store_work store_send_anew_work = {.run = follow_ups_send_anew, .writes = true};

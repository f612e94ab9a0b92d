#include "agent/store/sqlite/follow_ups.h"

#include "agent/core/buf.h"
#include "agent/store/sqlite/rows.h"

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

static const char *names_json(struct arena *arena, const struct strings *names)
{
	struct buf out = {0};

	buf_char(&out, '[');
	for (size_t i = 0; i < names->count; i++) {
		buf_text(&out, i > 0 ? "," : "");
		buf_json_text(&out, names->items[i]);
	}
	buf_char(&out, ']');
	return buf_keep(&out, arena);
}

/* Binds receivers and limit, and `since` unless it is 0; adds the rows. */
static bool list(struct store_file *file, struct store_follow_ups *call, enum statement statement,
	int64_t limit, struct error *error)
{
	bool answers = statement == STATEMENT_TO_READ;
	struct arena *arena = call->call.arena;
	struct reader reader = {.binder = bind_to(file, statement), .arena = arena};

	bind_text(&reader.binder, names_json(arena, answers ? &call->listening : &call->amending));
	bind_integer(&reader.binder, limit);
	if (answers)
		bind_time(&reader.binder, call->since);
	while (reader_next(&reader, error)) {
		struct followed_message *followed;

		call->messages =
			rows_grow(arena, call->messages, &call->count, sizeof *call->messages);
		followed = &call->messages[call->count - 1];
		read_followed(&reader, followed);
		followed->answers = answers;
	}
	return !reader.failed;
}

static bool read_triages(struct store_file *file, struct arena *arena,
	struct followed_message *followed, struct error *error)
{
	struct reader reader = {.binder = bind_to(file, STATEMENT_TRIAGES_OF), .arena = arena};
	struct triage *triages = NULL;

	bind_integer(&reader.binder, followed->message.id);
	while (reader_next(&reader, error)) {
		triages = rows_grow(arena, triages, &followed->count, sizeof *triages);
		read_triage(&reader, &triages[followed->count - 1]);
	}
	followed->triages = triages;
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
	}
	return !reader.failed &&
	       (call->count == 0 || read_triages(file, arena, &call->messages[0], error));
}

bool follow_ups_read(struct store_file *file, struct store_follow_ups *call, struct error *error)
{
	call->messages = NULL;
	call->count = 0;
	if (call->delivery != 0)
		return read_one(file, call, error);
	return list(file, call, STATEMENT_TO_AMEND, STORE_AMENDMENTS, error) &&
	       list(file, call, STATEMENT_TO_READ, STORE_ANSWERS, error);
}

bool follow_ups_amended(struct store_file *file, struct store_amended *call, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_AMENDED);
	struct reader reader;

	bind_integer(&binder, call->delivery);
	bind_count(&binder, call->mark);
	if (!bind_finish(&binder, error))
		return false;
	reader =
		(struct reader){.binder = bind_to(file, STATEMENT_MARK), .arena = call->call.arena};
	bind_integer(&reader.binder, call->delivery);
	call->marked = false;
	while (reader_next(&reader, error))
		call->marked = read_count(&reader) > 0;
	return !reader.failed;
}

/*
 * See outbox.h.
 */
#include "agent/watch/outbox.h"

#include <stdlib.h>

#include "agent/core/utf8.h"

enum { SETTLE_AGAIN = 5000, NAMED = 3, LONGEST_NAME = 200 };

struct outbox {
	struct agent *agent;
	struct letter *unsettled; /* were carried out, but the store did not take it */
	struct letter *settling;  /* the store has been asked to */
};

struct outbox *outbox_new(struct agent *agent)
{
	struct outbox *outbox = memory_new(1, sizeof *outbox);

	outbox->agent = agent;
	return outbox;
}

void letters_free(struct letter *letters)
{
	for (struct letter *next; letters; letters = next) {
		next = letters->next;
		arena_free(letters->arena);
	}
}

void outbox_free(struct outbox *outbox)
{
	letters_free(outbox->unsettled);
	letters_free(outbox->settling);
	free(outbox);
}

static int cut(const char *name)
{
	return (int)utf8_cut(name, LONGEST_NAME);
}

/* "db.read p99, db.read p95 and 3 more" */
static void describe(struct letter *letter, const struct record *records, size_t count)
{
	struct buf text = {0};

	if (count == 0 || letter->what)
		return;
	for (size_t i = 0; i < count && i < NAMED; i++)
		buf_printf(&text, "%s%.*s %.*s", i > 0 ? ", " : "", cut(records[i].item.test),
			records[i].item.test, cut(records[i].item.metric), records[i].item.metric);
	if (count > NAMED)
		buf_printf(&text, " and %zu more", count - NAMED);
	letter->what = arena_strndup(letter->arena, text.data, text.length);
	buf_free(&text);
}

struct letter *letter_new(struct outbox *outbox, const struct parcel *parcel, bool whole)
{
	struct arena *arena = arena_new();
	struct letter *letter = arena_alloc(arena, sizeof *letter);

	*letter = (struct letter){.arena = arena,
		.outbox = outbox,
		.parcel = {.id = parcel->id,
			.key = arena_strdup(arena, parcel->key),
			.receiver = arena_strdup(arena, parcel->receiver),
			.destination = arena_strdup(arena, parcel->destination),
			.thread = arena_strdup(arena, parcel->thread),
			.receipt = arena_strdup(arena, parcel->receipt),
			.payload = whole ? arena_strdup(arena, parcel->payload) : NULL,
			.state = PARCEL_QUEUED,
			.attempts = parcel->attempts},
		.doubt = parcel->restored ? DOUBT_LOOK : DOUBT_NONE,
		.made = parcel->now,
		.since = engine_now(outbox->agent->engine)};
	describe(letter, parcel->records, parcel->record_count);
	return letter;
}

static void settle(struct letter *letter);

static void settle_again(void *context)
{
	struct outbox *outbox = context;
	struct letter *letter = outbox->unsettled;

	outbox->unsettled = NULL;
	for (struct letter *next; letter; letter = next) {
		next = letter->next;
		settle(letter);
	}
}

static void settled(struct store_request *request)
{
	struct letter *letter = request->context;
	struct outbox *outbox = letter->outbox;
	bool failed = request->failed;
	struct letter **link = &outbox->settling;

	while (*link != letter)
		link = &(*link)->next;
	*link = letter->next;
	store_request_free(request);
	if (!failed) {
		arena_free(letter->arena);
		return;
	}
	outbox->agent->stateless = true;
	if (!outbox->unsettled && !outbox->agent->once)
		engine_after(outbox->agent->engine, SETTLE_AGAIN, settle_again, outbox);
	letter->next = outbox->unsettled;
	outbox->unsettled = letter;
}

static void settle(struct letter *letter)
{
	struct outbox *outbox = letter->outbox;
	struct store_request *request = store_request_new(STORE_SETTLE, settled, letter);

	letter->next = outbox->settling;
	outbox->settling = letter;
	letter->parcel.now = agent_now(outbox->agent);
	request->parcels = &letter->parcel;
	request->parcel_count = 1;
	ledger_ask(outbox->agent, request);
}

void letter_settle(struct letter *letter, enum parcel_state state)
{
	letter->parcel.state = state;
	letter->parcel.payload = NULL;
	settle(letter);
}

void letter_note(const struct letter *letter)
{
	struct store_request *request = store_request_new(STORE_SETTLE, store_request_free, NULL);
	const struct parcel *parcel = &letter->parcel;

	request->parcels = arena_alloc(request->arena, sizeof *parcel);
	*request->parcels = (struct parcel){.id = parcel->id,
		.state = parcel->state,
		.attempts = parcel->attempts,
		.receipt = arena_strdup(request->arena, parcel->receipt),
		.problem = arena_strdup(request->arena, parcel->problem),
		.now = agent_now(letter->outbox->agent)};
	request->parcel_count = 1;
	ledger_ask(letter->outbox->agent, request);
}

struct fetch {
	struct letter *letter;
	letter_fetched *done;
	void *context;
};

static void fetched(struct store_request *request)
{
	struct fetch fetch = *(const struct fetch *)request->context;
	struct letter *letter = fetch.letter;
	const struct parcel *parcel = request->parcels;
	bool read = !request->failed;

	letter->outbox->agent->stateless |= !read;
	if (read) {
		letter->parcel.payload = arena_strdup(letter->arena, parcel->payload);
		describe(letter, parcel->records, parcel->record_count);
	}
	store_request_free(request);
	fetch.done(fetch.context, read);
}

void letter_fetch(struct letter *letter, letter_fetched *done, void *context)
{
	struct store_request *request = store_request_new(STORE_PAYLOAD, fetched, NULL);
	struct fetch *fetch = arena_alloc(request->arena, sizeof *fetch);

	*fetch = (struct fetch){letter, done, context};
	request->context = fetch;
	request->parcels = arena_alloc(request->arena, sizeof *request->parcels);
	request->parcels->id = letter->parcel.id;
	request->parcel_count = 1;
	ledger_ask(letter->outbox->agent, request);
}

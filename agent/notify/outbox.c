/*
 * Keeps the letters in memory and repeats what the store could not write down.
 */
#include "agent/notify/outbox.h"

#include <stdlib.h>

#include "agent/core/utf8.h"
#include "agent/notify/patience.h"

enum { SETTLE_AGAIN = 5000, NAMED = 3, LONGEST_NAME = 200 };

struct outbox {
	struct agent *agent;
	struct letter *unsettled; /* were carried out, but the store did not take it */
	struct letter *settling;  /* the store has been asked to */
	void (*late)(void *context, const struct store_request *settled);
	void *context;
};

struct outbox *outbox_new(struct agent *agent)
{
	struct outbox *outbox = memory_new(1, sizeof *outbox);

	outbox->agent = agent;
	return outbox;
}

void outbox_listen(struct outbox *outbox,
	void (*late)(void *context, const struct store_request *settled), void *context)
{
	outbox->late = late;
	outbox->context = context;
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

/* How long to leave the parcel alone that an earlier process had: what its receiver asked for is
 * still to be kept, and what may have arrived may not show yet. */
static int64_t rest_of(const struct agent *agent, const struct parcel *parcel)
{
	int64_t look = parcel->begun ? PATIENCE_LOOK : 0;
	int64_t asked = parcel->not_before > 0 ? parcel->not_before - agent_now(agent) : 0;

	asked = asked > PATIENCE_WISH ? PATIENCE_WISH : asked;
	return asked > look ? asked : look;
}

struct letter *letter_new(struct outbox *outbox, const struct parcel *parcel)
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
			.state = PARCEL_QUEUED,
			.attempts = parcel->attempts,
			.begun = parcel->begun},
		.doubt = parcel->begun ? DOUBT_LOOK : DOUBT_NONE,
		.made = parcel->now,
		.not_before = engine_now(outbox->agent->engine) + rest_of(outbox->agent, parcel)};
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
	if (!failed && request->retraction_count > 0 && outbox->late)
		outbox->late(outbox->context, request);
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
		.begun = parcel->begun,
		.not_before = parcel->not_before,
		.receipt = arena_strdup(request->arena, parcel->receipt),
		.problem = arena_strdup(request->arena, parcel->problem),
		.now = agent_now(letter->outbox->agent)};
	request->parcel_count = 1;
	ledger_ask(letter->outbox->agent, request);
}

struct start {
	struct letter *letter;
	letter_ready *done;
	void *context;
};

static void take_over(struct letter *letter, const struct parcel *parcel)
{
	letter->begun = parcel->payload && parcel->state == PARCEL_QUEUED;
	letter->parcel.state = parcel->state;
	if (!letter->parcel.payload)
		letter->parcel.payload = arena_strdup(letter->arena, parcel->payload);
	if (!letter->parcel.thread_receipt)
		letter->parcel.thread_receipt = arena_strdup(letter->arena, parcel->thread_receipt);
	describe(letter, parcel->records, parcel->record_count);
}

static void started(struct store_request *request)
{
	struct start start = *(const struct start *)request->context;
	bool written = !request->failed;

	if (written)
		take_over(start.letter, request->parcels);
	store_request_free(request);
	start.done(start.context, written);
}

void letter_begin(struct letter *letter, letter_ready *done, void *context)
{
	struct store_request *request = store_request_new(STORE_ATTEMPT, started, NULL);
	struct start *start = arena_alloc(request->arena, sizeof *start);

	*start = (struct start){letter, done, context};
	request->context = start;
	request->parcels = arena_alloc(request->arena, sizeof *request->parcels);
	request->parcels->id = letter->parcel.id;
	request->parcels->now = agent_now(letter->outbox->agent);
	request->parcel_count = 1;
	ledger_ask(letter->outbox->agent, request);
}

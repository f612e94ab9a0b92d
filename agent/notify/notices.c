/*
 * Notices that could not be rendered go first, so that nobody reads that a source has recovered
 * before reading that it was down. Requests go to the store one at a time and in order, so that
 * none overtakes one that has failed.
 */
#include "agent/notify/notices.h"

#include <stdlib.h>
#include <string.h>

#include "agent/fleet/tests.h"
#include "agent/notify/publisher.h"

enum { WRITE_AGAIN = 300000, WRITE_OTHERS = 1000, ASK_AGAIN = 30000, UNWRITTEN_MOST = 100 };

struct unwritten {
	struct arena *arena;
	struct notice notice;
	const char *receiver;
	const char *test; /* whose notice it is; NULL: the leader's */
	struct unwritten *next;
};

struct notices {
	struct agent *agent;
	struct store_call *waiting; /* requests, except the current one */
	bool asking;                /* the store has that, or it waits for its retry */
	struct unwritten *first, **last;
	size_t count;
	struct alarm alarm;
};

static void write_later(void *context);

struct notices *notices_new(struct agent *agent)
{
	struct notices *notices = memory_new(1, sizeof *notices);

	*notices = (struct notices){.agent = agent,
		.last = &notices->first,
		.alarm = {.call = write_later, .context = notices}};
	return notices;
}

void notices_free(struct notices *notices)
{
	if (!notices)
		return;
	for (struct unwritten *next, *at = notices->first; at; at = next) {
		next = at->next;
		arena_free(at->arena);
	}
	for (struct store_call *next, *at = notices->waiting; at; at = next) {
		next = at->next;
		store_call_free(at);
	}
	free(notices);
}

static struct unwritten *take_first(struct notices *notices)
{
	struct unwritten *first = notices->first;

	notices->first = first->next;
	if (!notices->first)
		notices->last = &notices->first;
	notices->count--;
	return first;
}

static void drop(struct unwritten *unwritten, const char *problem)
{
	log_event(LEVEL_ERROR, "notice given up", LOG_TEXT("receiver", unwritten->receiver),
		LOG_TEXT("text", unwritten->notice.text), LOG_TEXT("problem", problem));
	arena_free(unwritten->arena);
}

/* Behind the others. */
static void put_last(struct notices *notices, struct unwritten *unwritten, int64_t wait)
{
	struct engine *engine = notices->agent->engine;

	unwritten->next = NULL;
	*notices->last = unwritten;
	notices->last = &unwritten->next;
	notices->count++;
	engine_alarm(engine, &notices->alarm, engine_now(engine) + wait);
}

void notices_unwritten(struct agent *agent, const struct receiver *receiver,
	const struct error *error, bool retried)
{
	log_event(LEVEL_ERROR,
		retried ? "cannot render message, will retry" : "cannot render message, not sent",
		LOG_TEXT("receiver", receiver->name), LOG_TEXT("problem", error->text));
	metrics_count(agent->metrics, METRIC_DELIVERIES, receiver->name, "unwritten");
	agent->misconfigured = true;
}

static bool render(const struct notices *notices, struct store_queue *request,
	const struct receiver *receiver, const struct message *message, bool retried)
{
	struct publisher publisher = {.config = notices->agent->config,
		.now = agent_now(notices->agent),
		.queue = request};
	struct error error;

	if (publisher_message(&publisher, receiver, message, &error))
		return true;
	notices_unwritten(notices->agent, receiver, &error, retried);
	return false;
}

/* Renders the notice, or keeps it. */
static void write_notice(struct notices *notices, struct store_queue *request,
	const struct receiver *receiver, const struct notice *notice)
{
	const struct message message = {.kind = MESSAGE_NOTICE, .notice = notice};
	bool kept = !notices->agent->once;
	struct unwritten *unwritten;
	struct arena *arena;

	if (render(notices, request, receiver, &message, kept) || !kept)
		return;
	arena = arena_new();
	unwritten = arena_alloc(arena, sizeof *unwritten);
	*unwritten = (struct unwritten){.arena = arena,
		.notice = *notice,
		.receiver = arena_strdup(arena, receiver->name),
		.test = request->call.test ? arena_strdup(arena, request->call.test) : NULL};
	unwritten->notice.subject = arena_strdup(arena, notice->subject);
	unwritten->notice.text = arena_strdup(arena, notice->text);
	put_last(notices, unwritten, WRITE_AGAIN);
	if (notices->count > UNWRITTEN_MOST)
		drop(take_first(notices), "too many queued notices");
}

static void write_unwritten(struct notices *notices, struct store_queue *request)
{
	const char *test = request->call.test ? request->call.test : "";

	for (size_t left = notices->count; left > 0; left--) {
		struct unwritten *unwritten = take_first(notices);
		const char *of = unwritten->test ? unwritten->test : "";
		const struct receiver *receiver =
			agent_receiver(notices->agent, unwritten->receiver);

		/* In a fleet the agent that runs a notice's test stores it, or the leader. */
		if (notices->agent->fleet && strcmp(of, test) != 0) {
			put_last(notices, unwritten, WRITE_OTHERS);
			continue;
		}
		if (!receiver) {
			drop(unwritten, "receiver is not configured");
			continue;
		}
		write_notice(notices, request, receiver, &unwritten->notice);
		arena_free(unwritten->arena);
	}
}

static void ask_next(struct notices *notices)
{
	struct store_call *call = notices->waiting;

	if (!call || notices->asking)
		return;
	notices->asking = true;
	notices->waiting = call->next;
	store_client_call(notices->agent, call);
}

static void ask_again(void *context)
{
	struct notices *notices = context;

	notices->asking = false;
	ask_next(notices);
}

static void queued(struct store_call *call)
{
	struct notices *notices = call->context;
	struct agent *agent = notices->agent;
	bool refused = call->failed && !call->fenced;

	agent->stateless |= refused;
	if (refused && !agent->once && !agent->stopping) {
		call->next = notices->waiting;
		notices->waiting = call;
		engine_after(agent->engine, ASK_AGAIN, ask_again, notices);
		return;
	}
	if (!call->failed)
		agent_hint(agent, HINT_DELIVERIES);
	store_call_free(call);
	ask_again(notices);
}

static void submit(struct notices *notices, struct store_queue *request)
{
	struct store_call **end = &notices->waiting;

	while (*end)
		end = &(*end)->next;
	*end = &request->call;
	request->call.reply = queued;
	request->call.context = notices;
	ask_next(notices);
}

/* `test`: NULL: the leader's. */
static void fence(const struct agent *agent, struct store_call *call, const char *test)
{
	if (test)
		fleet_fence_test(agent, call, test);
	else
		fleet_fence(agent, call, FLEET_LEADER);
}

static void write_later(void *context)
{
	struct notices *notices = context;
	struct store_queue *request = store_queue_new(NULL, NULL);

	if (notices->first) {
		const char *test = notices->first->test;

		fence(notices->agent, &request->call,
			test ? arena_strdup(request->call.arena, test) : NULL);
		write_unwritten(notices, request);
	}
	if (request->deliveries.count > 0)
		submit(notices, request);
	else
		store_call_free(&request->call);
}

void notices_queue(struct notices *notices, const struct notice *notice,
	const struct strings *receivers, struct store_queue *request)
{
	log_event(notice->recovered ? LEVEL_INFO : LEVEL_WARN, "notice",
		LOG_TEXT("subject", notice->subject), LOG_TEXT("text", notice->text));
	write_unwritten(notices, request);
	for (size_t i = 0; i < receivers->count; i++) {
		const struct receiver *receiver =
			agent_receiver(notices->agent, receivers->items[i]);

		if (receiver)
			write_notice(notices, request, receiver, notice);
	}
	submit(notices, request);
}

bool notices_message(struct notices *notices, const struct message *message,
	const struct receiver *receiver, struct store_queue *request)
{
	fleet_fence(notices->agent, &request->call, FLEET_LEADER);
	if (!render(notices, request, receiver, message, !notices->agent->once)) {
		store_call_free(&request->call);
		return false;
	}
	log_event(LEVEL_INFO, message_kind_names[message->kind],
		LOG_TEXT("receiver", receiver->name), LOG_TEXT("text", message->notice->text));
	submit(notices, request);
	return true;
}

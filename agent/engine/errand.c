/*
 * A task with an HTTP source, and a delivery, run `step` on a worker until it is done, with a
 * transfer between two steps; a task's `work` follows its last step on the same worker. A task with
 * a reading source runs `read` in the lane for blocking calls (see reading.h) and `work` in the
 * other one; what a task has to `settle` after its work blocks too.
 *
 * Tasks that ask the same server are a crowd (agent/client/limiter.h), and so are those that read.
 *
 * A source's request that was answered by 429, 500 or 502 to 504, or not answered in full, is
 * repeated up to twice within the endpoint's retry_for: asking is harmless. A server that cannot be
 * reached is not asked again, as its next run comes soon enough. Deliveries are never repeated
 * here, since a notifier must look first whether the message has arrived.
 *
 * What a source asks has no end of its own: the requests of a task have a limit of time together.
 */
#include "agent/engine/errand.h"

#include <stdlib.h>
#include <string.h>

#include "agent/client/reply.h"
#include "agent/client/transfers.h"
#include "agent/core/log.h"
#include "agent/core/secret.h"
#include "agent/core/when.h"
#include "agent/engine/pool.h"

enum {
	RETRIES = 2,
	TIMEOUTS_PER_TASK = 20, /* all requests of a task together may take so many timeouts */
	BEGUN_PER_REQUEST = 2,
	BEGUN_LEAST = 32,
	BEGUN_SPARE = 2 /* reads for whoever is free next */
};

struct errand {
	struct job job;
	struct call call;
	struct errands *owner;
	struct errand *next, **link; /* among the live ones */

	/* Either a task ... */
	struct task *task;
	const struct source *source;
	struct reading *reading;
	struct member member; /* of its crowd */
	/* ... or a delivery. */
	const struct notifier *notifier;
	struct delivery *delivery;
	delivery_done *done;
	void *context;

	struct transfer transfer;
	const char *strayed;      /* the foreign host that answered a request, or NULL */
	struct printing printing; /* a transfer to standard output */
	bool replied;             /* call.reply is for the next step */
	bool uncounted;           /* by errands_work, or a delivery: it reads no test */
	unsigned retries;
	size_t requests;
	int64_t spent;       /* microseconds, in the task's requests; waits do not count */
	int64_t retry_until; /* engine_now's clock; set by the first failure */
	enum step step;
	struct error *error; /* the task's, or the delivery's own */
};

static struct errand *errand_of_job(struct job *job)
{
	return (struct errand *)((char *)job - offsetof(struct errand, job));
}

static struct errand *errand_of_call(struct call *call)
{
	return (struct errand *)((char *)call - offsetof(struct errand, call));
}

static void run_work(struct job *job, struct scratch *scratch)
{
	struct errand *errand = errand_of_job(job);
	struct task *task = errand->task;
	query_set_windows(&task->query);
	if (task->work && !task->work(task, scratch, errand->error))
		errand->step = STEP_FAILED;
}

/* Keeps what was sent out of the words of an answer that are to be shown: those of an error and of
 * the notices after the first `told`. */
static void mask_words(struct errand *errand, size_t told)
{
	const struct strings *secrets = &errand->call.reply.secrets;
	if (errand->step == STEP_FAILED)
		secret_mask(errand->error->text, strlen(errand->error->text), secrets);
	if (!errand->task || errand->task->query.notices.count <= told)
		return;
	struct query *query = &errand->task->query;
	size_t count = query->notices.count;
	const char **items = arena_array(query->arena, count, sizeof *items);
	memcpy(items, query->notices.items, count * sizeof *items);
	for (size_t i = told; i < count; i++) {
		char *text = arena_strdup(query->arena, items[i]);
		secret_mask(text, strlen(text), secrets);
		if (strcmp(text, items[i]) != 0)
			items[i] = text;
	}
	query->notices = (struct strings){items, count};
}

static struct arena *errand_arena(const struct errand *errand)
{
	return errand->task ? errand->task->query.arena : errand->delivery->arena;
}

/*
 * Shows nothing of what a host says that nobody configured, in the step that got its answer and in
 * later ones, which may repeat it. `url` is what was asked; a notifier's may be a secret.
 */
static void hide_foreign(struct errand *errand, const char *url, size_t told)
{
	const struct reply *reply = &errand->call.reply;
	struct arena *arena = errand_arena(errand);
	if (reply->redirected)
		errand->strayed = arena_strdup(arena, reply->redirected);
	if (!errand->strayed)
		return;
	const char *asked = errand->task ? transfer_safe_url(arena, url) : errand->notifier->name;
	if (errand->step == STEP_FAILED && reply->kind != REPLY_ANSWER)
		error_set(errand->error, errand->error->kind, "%s: %s", asked,
			reply->problem ? reply->problem : "no answer");
	else if (errand->step == STEP_FAILED)
		error_set(errand->error, errand->error->kind,
			"%s: status %d and an answer of no use, which is not shown (answered by "
			"%.200s after a redirect, without credentials)",
			asked, reply->status, errand->strayed);
	if (!errand->task || errand->task->query.notices.count <= told)
		return;
	errand->task->query.notices.count = told;
	errand->task->query.notices_more = NULL;
	errand->task->query.notices_dropped = 0;
	query_notice(&errand->task->query,
		"%s: notices are not shown (answered by %.200s after a redirect)", asked,
		errand->strayed);
}

static void run_step(struct job *job, struct scratch *scratch)
{
	struct errand *errand = errand_of_job(job);
	size_t told = errand->task ? errand->task->query.notices.count : 0;
	const struct reply *last = errand->replied ? &errand->call.reply : NULL;
	struct transfer *next = &errand->transfer;
	const char *asked = next->url;
	*next = (struct transfer){0};
	if (!errand->task) {
		errand->step = errand->notifier->step(errand->delivery, last, next, errand->error);
		next->once = next->method && strcmp(next->method, "GET") != 0;
	} else {
		errand->step =
			errand->source->step(&errand->task->query, last, next, errand->error);
	}
	if (last) {
		hide_foreign(errand, asked, told);
		mask_words(errand, told);
	}
	if (!errand->task)
		return;
	if (errand->step == STEP_DONE)
		run_work(job, scratch);
}

static void submit_step(struct errand *errand);
static void submit_read(struct errand *errand);

static void member_begin(struct member *member)
{
	struct errand *errand = (struct errand *)((char *)member - offsetof(struct errand, member));
	errand->task->query.learnt = crowd_learnt(member->crowd);
	if (errand->source->read)
		submit_read(errand);
	else
		submit_step(errand);
}

static void join_server(struct errand *errand)
{
	const struct endpoint *endpoint = errand->task->query.server;
	size_t limit = endpoint ? BEGUN_PER_REQUEST * (size_t)endpoint->max_concurrent : 0;
	crowd_join(&errand->owner->crowds, endpoint, limit < BEGUN_LEAST ? BEGUN_LEAST : limit,
		&errand->member);
}

static size_t most_readers(const struct errands *owner)
{
	return pool_limit(owner->pool, LANE_READ) + pool_limit(owner->pool, LANE_WORK) +
	       BEGUN_SPARE;
}

static void join_readers(struct errand *errand)
{
	struct errands *owner = errand->owner;
	crowd_join(&owner->crowds, owner, most_readers(owner), &errand->member);
}

void errands_widen(struct errands *errands)
{
	crowd_widen(&errands->crowds, errands, most_readers(errands));
}

static void errand_end(struct errand *errand)
{
	struct errands *owner = errand->owner;
	*errand->link = errand->next;
	if (errand->next)
		errand->next->link = errand->link;
	owner->count--;
	owner->uncounted -= errand->uncounted;
	owner->ended += !errand->uncounted;
	crowd_leave(&owner->crowds, &errand->member);

	bool failed = errand->step == STEP_FAILED;
	if (errand->task) {
		errand->task->failed = failed;
		errand->task->done(errand->task);
	} else {
		errand->done(errand->delivery, !failed, errand->error, errand->context);
		free(errand->error);
	}
	free(errand);
}

static void run_settle(struct job *job, struct scratch *scratch)
{
	(void)scratch;
	struct task *task = errand_of_job(job)->task;
	task->settle(task);
}

static void settle_done(struct job *job)
{
	errand_end(errand_of_job(job));
}

/* What follows the last step or work: what the task has to settle, or the end. */
static void settle_or_end(struct errand *errand)
{
	if (!errand->task || errand->step != STEP_DONE || !errand->task->settle) {
		errand_end(errand);
		return;
	}
	errand->job = (struct job){.run = run_settle, .done = settle_done};
	pool_submit(errand->owner->pool, LANE_READ, &errand->job);
}

static void start_call(void *context);

/* What the last reply says goes before what was made of it. */
static void note_trouble(struct errand *errand)
{
	struct task *task = errand->task;

	if (!task || errand->step != STEP_FAILED)
		return;
	if (errand->replied)
		task->trouble = reply_trouble(&errand->call.reply);
	if (!task->trouble)
		task->trouble = errand->error->kind == ERROR_USAGE ? "configuration" : "data";
}

static void call_release(struct errand *errand)
{
	errand->requests++;
	errand->spent += errand->call.reply.took;
	if (errand->call.reply.dated && errand->owner->dated)
		errand->owner->dated(
			errand->owner->context, errand->transfer.url, errand->call.reply.ahead);
	transfers_release(errand->owner->transfers, &errand->call);
}

/* A server that answers slowly, in pieces, must not keep a test for ever. */
static bool spent_too_much(struct errand *errand)
{
	const struct endpoint *endpoint = errand->transfer.endpoint;
	char text[WHEN_TEXT];
	if (!errand->task || !endpoint || endpoint->timeout <= 0 ||
		errand->spent / 1000 < TIMEOUTS_PER_TASK * endpoint->timeout)
		return false;
	errand->task->trouble = "timeout";
	error_set(errand->error, ERROR_DATA,
		"%s: %zu requests took %s, %d times timeout, and there are more to make: shorten "
		"range",
		transfer_safe_url(errand->task->query.arena, errand->transfer.url),
		errand->requests, when_format_duration(errand->spent / 1000, text),
		TIMEOUTS_PER_TASK);
	return true;
}

static void step_done(struct job *job)
{
	struct errand *errand = errand_of_job(job);
	note_trouble(errand);
	if (errand->replied)
		call_release(errand);
	errand->replied = false;
	errand->retries = 0;
	if (errand->step == STEP_TRANSFER && spent_too_much(errand))
		errand->step = STEP_FAILED;
	if (errand->step == STEP_TRANSFER)
		start_call(errand);
	else
		settle_or_end(errand);
}

static void read_done(void *context, bool good)
{
	struct errand *errand = context;
	errand->reading = NULL;
	errand->step = good ? STEP_DONE : STEP_FAILED;
	note_trouble(errand);
	if (!good || !errand->task->work) {
		settle_or_end(errand);
		return;
	}
	errand->job = (struct job){.run = run_work, .done = step_done};
	pool_submit(errand->owner->pool, LANE_WORK, &errand->job);
}

static void submit_read(struct errand *errand)
{
	errand->reading = reading_begin(
		&errand->owner->readings, errand->task, errand->source, read_done, errand);
}

/* A task that is to go no further stays among the live ones. */
static bool is_closed(const struct errand *errand)
{
	return errand->task && errand->owner->crowds.closed;
}

static void submit_step(struct errand *errand)
{
	if (is_closed(errand))
		return;
	errand->job = (struct job){.run = run_step, .done = step_done};
	pool_submit(errand->owner->pool, LANE_WORK, &errand->job);
}

static void start_again(void *context)
{
	struct errand *errand = context;
	errand->owner->waiting--;
	start_call(errand);
}

/* Has the request made again later; false if it is not worth while or no time is left. */
static bool retry(struct errand *errand)
{
	const struct reply *reply = &errand->call.reply;
	if (!errand->task || errand->retries == RETRIES || !reply_worth_repeating(reply))
		return false;
	struct errands *owner = errand->owner;
	int64_t now = engine_now(owner->engine);
	int64_t wait = reply_wait(reply, owner->retry_delay << errand->retries, &owner->seed);
	if (errand->retries == 0)
		errand->retry_until = now + errand->transfer.endpoint->retry_for;
	int64_t left = errand->retry_until - now - wait;
	if (left <= 0)
		return false;
	log_event(LEVEL_DEBUG, "a request failed and is repeated",
		LOG_TEXT("test", errand->task->test->name), LOG_INT("status", reply->status),
		LOG_TEXT("problem", reply->problem ? reply->problem : ""),
		LOG_INT("wait_ms", wait));
	errand->retries++;
	errand->transfer.timeout = left;
	call_release(errand);
	owner->waiting++;
	engine_after(owner->engine, wait, start_again, errand);
	return true;
}

static void call_done(struct call *call)
{
	struct errand *errand = errand_of_call(call);
	if (retry(errand))
		return;
	errand->replied = true;
	submit_step(errand);
}

static void print_done(struct printing *printing)
{
	struct errand *errand =
		(struct errand *)((char *)printing - offsetof(struct errand, printing));
	errand->call.reply = printing->reply;
	errand->replied = true;
	submit_step(errand);
}

static void start_call(void *context)
{
	struct errand *errand = context;
	struct errands *owner = errand->owner;
	if (is_closed(errand))
		return;
	if (errand->transfer.kind == TRANSFER_STDOUT) {
		printing_begin(&errand->printing, &owner->printer, &errand->transfer, print_done);
		return;
	}
	errand->call = (struct call){.transfer = &errand->transfer, .done = call_done};
	transfers_start(owner->transfers, &errand->call);
}

static struct errand *errand_new(struct errands *errands)
{
	struct errand *errand = memory_new(1, sizeof *errand);
	errand->owner = errands;
	errand->link = &errands->live;
	errand->next = errands->live;
	if (errand->next)
		errand->next->link = &errand->next;
	errands->live = errand;
	errands->count++;
	return errand;
}

void errands_task(struct errands *errands, struct task *task)
{
	struct errand *errand = errand_new(errands);
	errand->task = task;
	errand->error = &task->error;
	errand->source = source_find(task->test->source->name);
	errand->member.begin = member_begin;
	if (errand->source->read)
		join_readers(errand);
	else
		join_server(errand);
}

void errands_work(struct errands *errands, struct task *task)
{
	struct errand *errand = errand_new(errands);
	errand->task = task;
	errand->error = &task->error;
	errand->step = STEP_DONE;
	errand->uncounted = true;
	errands->uncounted++;
	errand->job = (struct job){.run = run_work, .done = step_done};
	pool_submit(errands->pool, LANE_WORK, &errand->job);
}

void errands_deliver(struct errands *errands, const struct notifier *notifier,
	struct delivery *delivery, delivery_done *done, void *context)
{
	struct errand *errand = errand_new(errands);
	errand->uncounted = true;
	errands->uncounted++;
	errand->notifier = notifier;
	errand->delivery = delivery;
	errand->error = memory_new(1, sizeof *errand->error);
	errand->done = done;
	errand->context = context;
	submit_step(errand);
}

void errands_free(struct errands *errands)
{
	for (struct errand *errand = errands->live, *next; errand; errand = next) {
		next = errand->next;
		transfers_release(errands->transfers, &errand->call);
		reading_free(errand->reading);
		if (errand->task)
			task_free(errand->task);
		else
			free(errand->error);
		free(errand);
	}
	crowds_free(&errands->crowds);
	readings_free(&errands->readings);
	printer_free(&errands->printer);
	errands->live = NULL;
	errands->count = 0;
}

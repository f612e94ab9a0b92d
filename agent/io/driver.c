/*
 * A task with an HTTP source, and a delivery, run `step` on a worker until it is done, with a
 * transfer between two steps; a task's `work` follows its last step on the same worker. A task
 * with a reading source runs `read` in the lane for blocking calls and `work` in the lane for
 * computation; `settle`, after the work, runs in the lane for blocking calls, too.
 *
 * A read has a deadline and works on a copy of the task's query, with its own arena, which the task
 * takes over when the read ends in time. Otherwise the task fails and the driver is abandoned: from
 * then on the read touches nothing but the driver. The task's memory, from which the query borrows,
 * is kept until it ends, and the test is not read again before, so a test costs one thread at most.
 * Sources observe their deadline themselves wherever they can; a read that is abandoned is stuck in
 * the kernel.
 *
 * The limiter (agent/io/limiter.h) bounds how many tasks per server, and how many reads, are
 * in progress at once.
 *
 * A source's request that is answered by 429, 500 or 502 to 504, or not answered in full, is
 * repeated up to twice within the endpoint's retry_for, as reading is harmless. A server that
 * cannot be reached is not retried, as the next run comes soon enough. Deliveries are never
 * repeated here, since a notifier must first check whether the message has arrived.
 *
 * All requests of a task together have a time limit.
 */
#include "agent/io/driver.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/log.h"
#include "agent/base/secret.h"
#include "agent/base/transfer.h"
#include "agent/base/when.h"
#include "agent/io/limiter.h"
#include "agent/io/mail.h"
#include "agent/io/pool.h"
#include "agent/io/transfers.h"
#include "detectors/random.h"

/* How to handle a reply to a source's request: whether to retry, when, and how to classify a
 * failure. */

static bool reply_worth_repeating(const struct reply *reply)
{
	if (reply->kind == REPLY_AMBIGUOUS)
		return true;
	if (reply->kind != REPLY_ANSWER)
		return false;
	return reply->status == 429 || reply->status == 500 ||
	       (reply->status >= 502 && reply->status <= 504);
}

/* For task.trouble; NULL: the reply itself is fine. */
static const char *reply_trouble(const struct reply *reply)
{
	if (reply->kind == REPLY_UNREACHABLE)
		return "unreachable";
	if (reply->kind == REPLY_AMBIGUOUS)
		return "no_answer";
	if (reply->kind == REPLY_TOO_BIG)
		return "too_big";
	if (reply->status == 429)
		return "limited";
	if (reply->status >= 500)
		return "server_error";
	return reply->status == 401 || reply->status == 403 || reply->status == 407 ? "denied"
										    : NULL;
}

enum {
	RETRIES = 2,
	TIMEOUTS_PER_TASK = 20, /* timeouts that all requests of a task together may take */
	BEGUN_PER_REQUEST = 2,
	BEGUN_LEAST = 32,
	BEGUN_SPARE = 2,  /* extra reads, ready for the next idle thread */
	MOST_GRACE = 5000 /* ms, for a read that observes the deadline itself */
};

struct driver {
	struct job job; /* must be first */
	struct client_request call;
	struct drivers *owner;
	struct driver *next, **link; /* in the list of live or of abandoned drivers */

	/* Either a task ... */
	struct task *task;
	const struct source *source;
	struct query query;         /* that `read` works on */
	struct limiter_slot member; /* in the limiter */
	/* ... or a delivery. */
	const struct notifier *notifier;
	struct attempt *attempt;
	attempt_done *done;
	void *context;

	struct transfer transfer;
	const char *strayed;        /* the unconfigured host that answered a request, or NULL */
	struct execution execution; /* a transfer to a command */
	bool replied;               /* call.reply is input of the next step */
	bool uncounted;             /* it reads no test, or is a delivery */
	bool abandoned;             /* it has ended, and its read is still blocked */
	unsigned retries;
	size_t requests;
	int64_t spent;       /* microseconds, in the task's requests without waits between them */
	int64_t retry_until; /* engine_now's clock; set by the first failure */
	enum step step;
	struct error error;
};

static void run_work(struct job *job, struct scratch *scratch)
{
	struct driver *driver = (struct driver *)job;
	struct task *task = driver->task;
	query_set_windows(&task->query);
	if (task->work && !task->work(task, scratch, &driver->error))
		driver->step = STEP_FAILED;
}

/* Masks sent secrets in text taken from an answer: the error, and notices from index `first_notice`
 * on. */
static void mask_words(struct driver *driver, size_t first_notice)
{
	const struct strings *secrets = &driver->call.reply.secrets;
	if (driver->step == STEP_FAILED)
		secret_mask(driver->error.text, strlen(driver->error.text), secrets);
	for (size_t i = first_notice; driver->task && i < driver->task->query.notices.count; i++) {
		char *text = (char *)(uintptr_t)driver->task->query.notices.items[i];
		secret_mask(text, strlen(text), secrets);
	}
}

static struct arena *driver_arena(const struct driver *driver)
{
	return driver->task ? driver->task->query.arena : driver->attempt->arena;
}

/* Hides text from a host that was not configured, in the step that got its answer and in later
 * ones, which may repeat it. `url` is the request's; a notifier's may be a secret. */
static void hide_foreign(struct driver *driver, const char *url, size_t first_notice)
{
	const struct reply *reply = &driver->call.reply;
	struct arena *arena = driver_arena(driver);
	if (reply->redirected)
		driver->strayed = arena_strdup(arena, reply->redirected);
	if (!driver->strayed)
		return;
	const char *asked = driver->task
				    ? transfer_shown_url(arena, driver->task->query.server, url)
				    : driver->notifier->plugin.name;
	if (driver->step == STEP_FAILED && reply->kind != REPLY_ANSWER)
		error_set(&driver->error, driver->error.kind, "%s: %s", asked,
			reply->problem ? reply->problem : "no answer");
	else if (driver->step == STEP_FAILED)
		error_set(&driver->error, driver->error.kind,
			"%s: status %d with an invalid response, omitted (response of %.200s after "
			"a redirect, without credentials)",
			asked, reply->status, driver->strayed);
	if (!driver->task || driver->task->query.notices.count <= first_notice)
		return;
	driver->task->query.notices.count = first_notice;
	driver->task->query.notices_more = NULL;
	driver->task->query.notices_dropped = 0;
	query_notice(&driver->task->query,
		"%s: notices omitted (response of %.200s after a redirect)", asked,
		driver->strayed);
}

static void run_step(struct job *job, struct scratch *scratch)
{
	struct driver *driver = (struct driver *)job;
	size_t first_notice = driver->task ? driver->task->query.notices.count : 0;
	const struct reply *last = driver->replied ? &driver->call.reply : NULL;
	struct transfer *next = &driver->transfer;
	const char *asked = next->url;
	*next = (struct transfer){0};
	if (!driver->task) {
		driver->attempt->answered = last && last->kind == REPLY_ANSWER &&
					    last->status < 500 && last->status != 429;
		driver->step = notifier_step(
			driver->notifier, driver->attempt, last, next, &driver->error);
		next->once = next->method && strcmp(next->method, "GET") != 0;
	} else {
		driver->step =
			driver->source->step(&driver->task->query, last, next, &driver->error);
	}
	if (last) {
		hide_foreign(driver, asked, first_notice);
		mask_words(driver, first_notice);
	}
	if (!driver->task)
		return;
	if (driver->step == STEP_DONE)
		run_work(job, scratch);
}

static void submit_step(struct driver *driver);

static void run_job(struct driver *driver, enum pool_lane lane,
	void (*run)(struct job *job, struct scratch *scratch), void (*done)(struct job *job))
{
	driver->job = (struct job){.run = run, .done = done};
	pool_submit(driver->owner->pool, lane, &driver->job);
}

static void link_driver(struct driver *driver, struct driver **list)
{
	driver->link = list;
	driver->next = *list;
	if (driver->next)
		driver->next->link = &driver->next;
	*list = driver;
}

static void unlink_driver(struct driver *driver)
{
	*driver->link = driver->next;
	if (driver->next)
		driver->next->link = driver->link;
}

static void driver_end(struct driver *driver)
{
	struct drivers *owner = driver->owner;
	bool abandoned = driver->abandoned, failed = abandoned || driver->step == STEP_FAILED;

	unlink_driver(driver);
	if (abandoned)
		link_driver(driver, &owner->abandoned);
	owner->count--;
	owner->uncounted -= driver->uncounted;
	owner->ended += !driver->uncounted;
	limiter_leave(&owner->limiter, &driver->member);
	if (driver->task) {
		driver->task->failed = failed;
		if (failed && !abandoned)
			driver->task->error = driver->error;
		driver->task->done(driver->task);
	} else {
		driver->done(driver->attempt, !failed, &driver->error, driver->context);
	}
	if (!abandoned)
		free(driver);
}

static void run_settle(struct job *job, struct scratch *scratch)
{
	(void)scratch;
	struct task *task = ((struct driver *)job)->task;
	task->settle(task);
}

static void settle_done(struct job *job)
{
	driver_end((struct driver *)job);
}

/* After the last step or `work`: starts the task's `settle`, or ends. */
static void settle_or_end(struct driver *driver)
{
	if (driver->task && driver->step == STEP_DONE && driver->task->settle)
		run_job(driver, LANE_READ, run_settle, settle_done);
	else
		driver_end(driver);
}

static void start_call(void *context);

/* The last reply's failure takes precedence over errors in processing it. */
static void note_trouble(struct driver *driver)
{
	struct task *task = driver->task;

	if (!task || driver->step != STEP_FAILED)
		return;
	if (driver->replied)
		task->trouble = reply_trouble(&driver->call.reply);
	if (!task->trouble)
		task->trouble = driver->error.kind == ERROR_USAGE ? "configuration" : "data";
}

static void call_release(struct driver *driver)
{
	driver->requests++;
	driver->spent += driver->call.reply.took;
	if (driver->call.reply.dated && driver->owner->dated)
		driver->owner->dated(
			driver->owner->context, driver->transfer.url, driver->call.reply.ahead);
	transfers_release(driver->owner->transfers, &driver->call);
}

/* A server that answers slowly, in pieces, must not occupy a test for ever. */
static bool spent_too_much(struct driver *driver)
{
	const struct endpoint *endpoint = driver->transfer.endpoint;
	char text[WHEN_TEXT];
	if (!driver->task || !endpoint || endpoint->timeout <= 0 ||
		driver->spent / 1000 < TIMEOUTS_PER_TASK * endpoint->timeout)
		return false;
	driver->task->trouble = "timeout";
	error_set(&driver->error, ERROR_DATA,
		"%s: %zu requests took %s, %d times timeout, and more are needed: shorten "
		"range",
		transfer_shown_url(driver->task->query.arena, endpoint, driver->transfer.url),
		driver->requests, when_format_duration(driver->spent / 1000, text),
		TIMEOUTS_PER_TASK);
	return true;
}

static void step_done(struct job *job)
{
	struct driver *driver = (struct driver *)job;
	note_trouble(driver);
	if (driver->replied)
		call_release(driver);
	driver->replied = false;
	driver->retries = 0;
	if (driver->step == STEP_TRANSFER && spent_too_much(driver))
		driver->step = STEP_FAILED;
	if (driver->step == STEP_TRANSFER)
		start_call(driver);
	else
		settle_or_end(driver);
}

static void run_read(struct job *job, struct scratch *scratch)
{
	(void)scratch;
	struct driver *driver = (struct driver *)job;
	bool good = driver->source->read(&driver->query, &driver->error);
	driver->step = good ? STEP_DONE : STEP_FAILED;
}

static void free_abandoned(struct driver *driver)
{
	unlink_driver(driver);
	driver->task->abandoned = false;
	if (driver->task->freed)
		task_free(driver->task);
	arena_free(driver->query.arena);
	free(driver);
}

static void read_done(struct job *job)
{
	struct driver *driver = (struct driver *)job;
	struct task *task = driver->task;
	struct arena *arena = task->query.arena;
	if (driver->abandoned) {
		free_abandoned(driver);
		return;
	}
	arena_join(arena, driver->query.arena);
	task->query = driver->query;
	task->query.arena = arena;
	driver->query.arena = NULL;
	note_trouble(driver);
	if (driver->step == STEP_DONE && task->work)
		run_job(driver, LANE_WORK, run_work, step_done);
	else
		settle_or_end(driver);
}

static void read_overdue(struct job *job, bool running)
{
	struct driver *driver = (struct driver *)job;
	struct task *task = driver->task;
	char duration[WHEN_TEXT];
	if (running) {
		error_set(&task->error, ERROR_DATA,
			"read timed out after %s (unresponsive disk or server?)",
			when_format_duration(job->limit, duration));
		task->trouble = "timeout";
		driver->abandoned = task->abandoned = true;
	} else {
		error_set(&driver->error, ERROR_DATA, "skipped: %d earlier reads are still blocked",
			POOL_LOST);
		driver->step = STEP_FAILED;
		note_trouble(driver);
		arena_free(driver->query.arena);
	}
	driver_end(driver);
}

/* Whether a read of that test is still blocked, also after a reload that did not change the
 * test. */
static bool is_blocked(const struct drivers *drivers, const struct test *test)
{
	for (const struct driver *driver = drivers->abandoned; driver; driver = driver->next) {
		const struct test *other = driver->task->test;
		if (other == test || (other->fingerprint == test->fingerprint &&
					     strcmp(other->name, test->name) == 0))
			return true;
	}
	return false;
}

static void submit_read(struct driver *driver)
{
	const struct source *source = driver->source;
	struct drivers *owner = driver->owner;
	struct query *query = &driver->query;
	*query = driver->task->query;
	query->arena = arena_new();
	query->timeout = owner->read_timeout;
	query->server_flavor = NULL; /* the read may outlive the limiter's flag */
	driver->job = (struct job){.run = run_read, .done = read_done};
	if (is_blocked(owner, driver->task->test)) {
		error_set(&driver->error, ERROR_DATA,
			"skipped: the previous read timed out and is still blocked");
		driver->step = STEP_FAILED;
		pool_return(owner->pool, &driver->job);
		return;
	}
	int64_t limit = source->timeout ? source->timeout(query) : owner->read_timeout;
	if (limit > 0) {
		driver->job.overdue = read_overdue;
		driver->job.limit = limit + (limit < MOST_GRACE ? limit : MOST_GRACE);
	}
	pool_submit(owner->pool, LANE_READ, &driver->job);
}

static void member_begin(struct limiter_slot *member)
{
	struct driver *driver = (struct driver *)((char *)member - offsetof(struct driver, member));
	driver->task->query.server_flavor = limiter_flavor(member->queue);
	if (driver->source->read)
		submit_read(driver);
	else
		submit_step(driver);
}

static size_t most_readers(const struct drivers *owner)
{
	return pool_limit(owner->pool, LANE_READ) + pool_limit(owner->pool, LANE_WORK) +
	       BEGUN_SPARE;
}

void drivers_widen(struct drivers *drivers)
{
	limiter_widen(&drivers->limiter, drivers, most_readers(drivers));
}

/* Tasks that may go no further stay in the list. */
static bool is_closed(const struct driver *driver)
{
	return driver->task && driver->owner->limiter.closed;
}

static void submit_step(struct driver *driver)
{
	if (!is_closed(driver))
		run_job(driver, LANE_WORK, run_step, step_done);
}

static void start_again(void *context)
{
	struct driver *driver = context;
	driver->owner->waiting--;
	start_call(driver);
}

/* Schedules the request again; false if that is pointless or no time is left. */
static bool retry(struct driver *driver)
{
	const struct reply *reply = &driver->call.reply;
	if (!driver->task || driver->retries == RETRIES || !reply_worth_repeating(reply))
		return false;
	struct drivers *owner = driver->owner;
	int64_t now = engine_now(owner->engine);
	/* Half to one and a half times the delay, but not before the server's Retry-After */
	int64_t delay = owner->retry_delay << driver->retries;
	int64_t wait = delay / 2 + (int64_t)(random_next(&owner->seed) % (uint64_t)(delay + 1));
	wait = wait > reply->retry_after ? wait : reply->retry_after;
	if (driver->retries == 0)
		driver->retry_until = now + driver->transfer.endpoint->retry_for;
	int64_t left = driver->retry_until - now - wait;
	if (left <= 0)
		return false;
	log_event(LEVEL_DEBUG, "request failed, retrying",
		LOG_TEXT("test", driver->task->test->name), LOG_INT("status", reply->status),
		LOG_TEXT("problem", reply->problem ? reply->problem : ""),
		LOG_INT("wait_ms", wait));
	driver->retries++;
	driver->transfer.timeout = left;
	call_release(driver);
	owner->waiting++;
	engine_after(owner->engine, wait, start_again, driver);
	return true;
}

/* Gives the next step the reply. */
static void answer(struct driver *driver)
{
	driver->replied = true;
	submit_step(driver);
}

static void call_done(struct client_request *call)
{
	struct driver *driver = (struct driver *)((char *)call - offsetof(struct driver, call));
	if (!retry(driver))
		answer(driver);
}

static void execute_done(struct execution *execution)
{
	struct driver *driver =
		(struct driver *)((char *)execution - offsetof(struct driver, execution));
	driver->call.reply = execution->reply;
	answer(driver);
}

static void run_mail(struct job *job, struct scratch *scratch)
{
	(void)scratch;
	struct driver *driver = (struct driver *)job;
	mail_send(&driver->transfer, driver_arena(driver), &driver->call.reply);
}

/* Returns the bytes written; fewer than all after an error, which is in errno. The descriptor stays
 * blocking, as it may be shared with the shell; if it is non-blocking, poll() waits. */
static size_t print(const char *text, size_t length)
{
	size_t written = 0;
	while (written < length) {
		ssize_t count = write(STDOUT_FILENO, text + written, length - written);
		if (count >= 0) {
			written += (size_t)count;
		} else if (errno == EAGAIN) {
			struct pollfd ready = {.fd = STDOUT_FILENO, .events = POLLOUT};
			poll(&ready, 1, -1);
		} else if (errno != EINTR) {
			break;
		}
	}
	return written;
}

/* The lane has one thread, which keeps the order. What follows a text that an error has cut off has
 * lines of its own. */
static void run_print(struct job *job, struct scratch *scratch)
{
	(void)scratch;
	struct driver *driver = (struct driver *)job;
	const struct transfer *transfer = &driver->transfer;
	bool *torn = &driver->owner->torn;
	char text[96];
	*torn = *torn && print("\n", 1) < 1;
	size_t written = *torn ? 0 : print(transfer->body, transfer->body_length);
	driver->call.reply =
		(struct reply){.kind = REPLY_ANSWER, .status = 200, .retry_after = -1, .body = ""};
	if (!*torn && written == transfer->body_length)
		return;
	*torn = *torn || written > 0;
	driver->call.reply = (struct reply){
		.kind = written > 0 ? REPLY_AMBIGUOUS : REPLY_UNREACHABLE,
		.retry_after = -1,
		.problem = arena_printf(driver_arena(driver), "standard output: %s",
			strerror_r(errno, text, sizeof text)),
	};
}

static void reply_done(struct job *job)
{
	answer((struct driver *)job);
}

static void start_call(void *context)
{
	struct driver *driver = context;
	struct drivers *owner = driver->owner;
	const struct transfer *transfer = &driver->transfer;
	if (is_closed(driver))
		return;
	switch (transfer->kind) {
	case TRANSFER_STDOUT: /* a reader that stalls blocks nothing else */
		run_job(driver, LANE_WRITE, run_print, reply_done);
		break;
	case TRANSFER_EXEC:
		execution_begin(&driver->execution, &owner->executor, transfer, execute_done);
		break;
	case TRANSFER_SMTP: /* blocks, for as long as its server takes */
		transfers_prepare(owner->transfers);
		run_job(driver, LANE_READ, run_mail, reply_done);
		break;
	case TRANSFER_HTTP:
		driver->call = (struct client_request){.transfer = transfer, .done = call_done};
		transfers_start(owner->transfers, &driver->call);
		break;
	}
}

static struct driver *driver_new(struct drivers *drivers, struct task *task, bool counted)
{
	struct driver *driver = memory_new(1, sizeof *driver);
	driver->owner = drivers;
	driver->task = task;
	driver->uncounted = !counted;
	link_driver(driver, &drivers->live);
	drivers->count++;
	drivers->uncounted += !counted;
	return driver;
}

void engine_submit(struct engine *engine, struct task *task)
{
	struct drivers *drivers = &engine->drivers;
	struct driver *driver = driver_new(drivers, task, true);
	const struct endpoint *endpoint = task->query.server;
	size_t limit = endpoint ? BEGUN_PER_REQUEST * (size_t)endpoint->max_concurrent : 0;
	driver->source = source_find(task->test->source->name);
	driver->member.begin = member_begin;
	if (driver->source->read)
		limiter_join(&drivers->limiter, drivers, most_readers(drivers), &driver->member);
	else
		limiter_join(&drivers->limiter, endpoint, limit < BEGUN_LEAST ? BEGUN_LEAST : limit,
			&driver->member);
}

void engine_work(struct engine *engine, struct task *task)
{
	struct driver *driver = driver_new(&engine->drivers, task, false);
	driver->step = STEP_DONE;
	run_job(driver, LANE_WORK, run_work, step_done);
}

void engine_deliver(struct engine *engine, const struct notifier *notifier, struct attempt *attempt,
	attempt_done *done, void *context)
{
	struct driver *driver = driver_new(&engine->drivers, NULL, false);
	driver->notifier = notifier;
	driver->attempt = attempt;
	driver->done = done;
	driver->context = context;
	submit_step(driver);
}

void drivers_free(struct drivers *drivers)
{
	while (drivers->live) {
		struct driver *driver = drivers->live;
		unlink_driver(driver);
		transfers_release(drivers->transfers, &driver->call);
		arena_free(driver->query.arena);
		task_free(driver->task);
		free(driver);
	}
	while (drivers->abandoned)
		free_abandoned(drivers->abandoned);
	limiter_free(&drivers->limiter);
	drivers->count = 0;
}

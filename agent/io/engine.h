/*
 * The engine: the loop, the worker pool and the transfers.
 *
 * A task takes one test from query to result: the source's steps, the transfers between them,
 * and then `work` on the data. Steps and work run on pool workers, blocking reads in a lane of
 * their own, transfers and `done` on the loop's thread. A task owns its arena; only the task's
 * current holder (loop or worker) may touch it. One-shot commands and the agent use the same
 * engine.
 */
#ifndef AGENT_IO_ENGINE_H
#define AGENT_IO_ENGINE_H

#include "agent/base/arena.h"
#include "conf/config.h"
#include "detectors/detector.h"
#include "notifiers/notifier.h"
#include "sources/source.h"

struct companions;
struct engine;

struct task {
	/* Set by the caller of task_new, before engine_submit. */
	const struct test *test;
	struct query query; /* task_new fills in arena, test, options, server and now */
	bool (*work)(struct task *task, struct scratch *scratch,
		struct error *error);      /* on a worker; may be NULL */
	void (*settle)(struct task *task); /* after work that succeeded; may block, may be NULL */
	void (*done)(struct task
			*task); /* on the loop's thread; frees the task by task_free, or keeps it */
	void *context;          /* the caller's */
	/* Called, unless NULL, once nothing uses the task and the test any more: after
	 * task_free, and after an abandoned read has returned. */
	void (*release)(void *holder);
	void *holder;

	/* Data of other tests that it needs, see agent/analysis/companions.h; task_free calls
	 * `forget`. */
	struct companions *companions;
	void (*forget)(struct companions *companions);

	/* Set when done is called. */
	void *result; /* of `work`; in the task's arena */
	bool failed;
	struct error error;
	const char *trouble; /* why it failed, in a word: "unreachable", "no_answer", "denied",
				"limited", "server_error", "too_big", "timeout", "configuration" or
				"data" */

	/* The engine's: an abandoned read still uses the task's memory. */
	bool abandoned, freed;
};

/* Makes a task for a test; the caller owns it until engine_submit, and again from `done` on.
 * `now` is in ms. */
struct task *task_new(const struct test *test, int64_t now);
void task_free(struct task *task);

struct engine_options {
	size_t jobs;                   /* worker threads; 0: one per processor */
	bool progress;                 /* show a progress line on stderr after a second */
	bool catch_signals;            /* SIGINT and SIGTERM end engine_run; see there */
	void (*hangup)(void *context); /* with catch_signals: called from the loop at SIGHUP, unless
					  NULL */
	void *context;                 /* for hangup and dated */
	/* Called when an answer from that URL, which may hold secrets, shows that this machine's
	 * clock is ahead of the server's by that many ms; may be NULL. */
	void (*dated)(void *context, const char *url, int64_t ahead);
	int64_t retry_delay;  /* ms before a source's request is retried, doubled each time; 0: 500
			       */
	int64_t read_timeout; /* ms that a source's read may take; 0: no limit. See query.timeout */
	int64_t max_memory;   /* bytes of answers in flight, see transfers.h; 0: TRANSFERS_MEMORY */
	/* A simulated clock: it stands still while anything is in progress, and jumps to the
	 * next timer when nothing is, so a year passes in the time its work takes. For replay
	 * and tests. */
	bool jumping;
};

/* NULL and an error if out of descriptors. Threads are started on demand. */
struct engine *engine_new(const struct engine_options *options, struct error *error);

/* Waits at most a second for the workers; frees the tasks that are not done, drops deliveries,
 * background calls and timers. False: a worker is stuck in a call or a computation. Then nothing is
 * freed, the tasks' data must stay, and the program should exit by cli_leave. */
bool engine_free(struct engine *engine);

/* The engine owns the task until `done`; the source's requests are retried up to twice where
 * that may help. */
void engine_submit(struct engine *engine, struct task *task);

/* Runs the task's `work`, which the caller may have changed, on a worker once more, then `done`:
 * for a task that has its data. The engine owns it until then. */
void engine_work(struct engine *engine, struct task *task);

/* Carries out a delivery, or its follow-up, by the notifier's steps (on workers) and the transfers
 * between them, then calls done on the loop's thread. The caller keeps the delivery, which must
 * live until then. Nothing is retried. */
typedef void attempt_done(
	struct attempt *attempt, bool sent, const struct error *error, void *context);
void engine_deliver(struct engine *engine, const struct notifier *notifier, struct attempt *attempt,
	attempt_done *done, void *context);

typedef void engine_call(void *context);

/* Calls back once on the loop's thread after `delay` ms of the engine's clock; a pending timer
 * keeps engine_run going. */
void engine_after(struct engine *engine, int64_t delay, engine_call *call, void *context);

/* Sets an alarm (see agent/io/timers.h) to a time of engine_now; it must outlive the engine. */
struct alarm;
void engine_alarm(struct engine *engine, struct alarm *alarm, int64_t due);

/* The same, but it does not keep engine_run going. Of the monotonic clock, also with `jumping`. */
void engine_alarm_aside(struct engine *engine, struct alarm *alarm, int64_t due);

/* Calls back on the loop's thread soon; the only function here for any thread. If the engine is
 * freed first, `drop` is called instead, unless it is NULL. */
void engine_post(struct engine *engine, engine_call *call, engine_call *drop, void *context);

/* Runs `work`, which may block, on a worker, then `done` on the loop's thread. If the engine is
 * freed first, `done` is not called. Keeps engine_run going. */
void engine_run_blocking(
	struct engine *engine, engine_call *work, engine_call *done, void *context);

/* Likewise, for computation. */
void engine_compute(struct engine *engine, engine_call *work, engine_call *done, void *context);

/* Runs a command (agent/io/execution.h), which is ended when the engine is freed; then `done`
 * is not called. The execution must live until either. Keeps engine_run going. */
struct execution;
void engine_execute(struct engine *engine, struct execution *execution,
	const struct transfer *transfer, void (*done)(struct execution *execution));

/* Starts no more tasks; those in progress stay where they are until the engine is freed.
 * Deliveries continue. */
void engine_close(struct engine *engine);

/* Changes read_timeout for reads that start from now on. */
void engine_set_read_timeout(struct engine *engine, int64_t timeout);

/* Changes max_memory; and returns the bytes in use, and how often reads began to wait for
 * memory. */
void engine_set_max_memory(struct engine *engine, int64_t bytes);
struct engine_memory {
	int64_t used;
	uint64_t waits;
};
struct engine_memory engine_memory(const struct engine *engine);

/* Each server's limit of requests in flight is shared by so many programs: this one makes that part
 * of them, but at least one at a time. */
void engine_share(struct engine *engine, size_t programs);

/* Keeps engine_run going while another thread has something to post; each hold needs its
 * release. Loop's thread only. */
void engine_hold(struct engine *engine);
void engine_release(struct engine *engine);

/* A guest: a foreign descriptor that the loop serves (libmicrohttpd's). `serve` is called at the
 * start, when `fd` is readable and when its timeout expires, and returns the next timeout in ms,
 * -1: none. A guest does not keep engine_run going. */
typedef int64_t engine_serve(void *context);
void engine_host(struct engine *engine, int fd, engine_serve *serve, void *context);
void engine_unhost(struct engine *engine, int fd);
void engine_rouse(struct engine *engine, int fd); /* serve the guest soon */

/* Milliseconds of the engine's clock: the monotonic one, or with `jumping` the simulated one,
 * which begins at 0. */
int64_t engine_now(const struct engine *engine);

/* Runs the loop until nothing is left to do or engine_stop is called (true), or a signal comes
 * (false). It may be called again, to finish what is in progress. Without catch_signals SIGINT
 * and SIGTERM end the process at once, as usual, which is what a one-shot command wants: it has
 * nothing to save, and the shell sees 130. */
bool engine_run(struct engine *engine);
void engine_stop(struct engine *engine);

#endif

/*
 * The engine: the one loop, the worker pool and the transfers.
 *
 * A task is one test's way from question to result: the source's steps, the transfers between them,
 * and then `work` on the data. Steps and work run on pool workers, blocking reads in a lane of
 * their own, transfers and `done` on the loop's thread. A task owns its arena; whoever holds the
 * task (loop or worker) is the only one to touch it. One-shot commands and the agent use the same
 * engine.
 */
#ifndef AGENT_ENGINE_H
#define AGENT_ENGINE_H

#include "agent/core/arena.h"
#include "conf/config.h"
#include "detectors/detector.h"
#include "notifiers/notifier.h"
#include "sources/source.h"

struct companions;
struct engine;

struct task {
	/* Set by the caller of task_new, before engine_submit. */
	const struct test *test;
	struct query query; /* arena, test, options, server, now are filled by task_new */
	bool (*work)(struct task *task, struct scratch *scratch,
		struct error *error);      /* on a worker; may be NULL */
	void (*settle)(struct task *task); /* after work that went well; may block, may be NULL */
	void (*done)(struct task
			*task); /* on the loop's thread; frees the task by task_free, or keeps it */
	void *context;          /* the caller's */
	/* Called, unless NULL, once nothing uses the task and the test any more: after task_free,
	 * and after the end of a read that was given up. */
	void (*release)(void *holder);
	void *holder;

	/* What it needs of other tests, see agent/analysis/companions.h; `forget` is called by
	 * task_free.
	 */
	struct companions *companions;
	void (*forget)(struct companions *companions);

	/* Set when done is called. */
	void *result; /* of work; in the task's arena */
	bool failed;
	struct error error;
	const char *trouble; /* of a failed one, in a word: "unreachable", "no_answer", "denied",
				"limited", "server_error", "too_big", "timeout", "configuration"
				or "data" */

	/* The engine's: a read that was given up still uses the task's memory. */
	bool lent, freed;
};

/* A task for a test; the caller owns it until engine_submit, and again from done on. `now` is in
 * ms. */
struct task *task_new(const struct test *test, int64_t now);
void task_free(struct task *task);

struct engine_options {
	size_t jobs;                   /* worker threads; 0: one a processor */
	bool progress;                 /* a progress line on stderr after a second */
	bool catch_signals;            /* SIGINT and SIGTERM end engine_run; see there */
	void (*hangup)(void *context); /* with catch_signals: called from the loop at SIGHUP, unless
					  NULL */
	void *context;                 /* of hangup and dated */
	/* An answer to that URL, which may hold secrets, says that this machine's clock is ahead of
	 * the server's by so many ms; NULL: nobody wants to know. */
	void (*dated)(void *context, const char *url, int64_t ahead);
	int64_t retry_delay;  /* ms before a source's request is tried again, doubled each time; 0:
				 500 */
	int64_t read_timeout; /* ms a source may take to read; 0: no limit. See query.timeout */
	int64_t max_memory;   /* bytes of answers in flight, see transfers.h; 0: TRANSFERS_MEMORY */
	/*
	 * The clock stands still while anything is under way, and jumps to the next timer when
	 * nothing is: a year passes in the time its work takes. For replay and tests.
	 */
	bool jumping;
};

/* NULL and an error if descriptors cannot be had. Threads are started when there is work for them.
 */
struct engine *engine_new(const struct engine_options *options, struct error *error);

/*
 * Waits for the workers, but no longer than a second; frees the tasks that are not done, drops
 * deliveries, calls and timers. False: a worker is in a call or a calculation that does not end.
 * Then nothing is freed, what tasks use must stay, and the program should leave by cli_leave.
 */
bool engine_free(struct engine *engine);

/* The task is the engine's until done; the source's requests are repeated up to twice where that
 * may help. */
void engine_submit(struct engine *engine, struct task *task);

/* Runs the task's `work`, which the caller may have changed, on a worker once more, then done: for
 * a task that has its data. It is the engine's until then. */
void engine_work(struct engine *engine, struct task *task);

/*
 * Carries a delivery out by the notifier's steps (on workers) and the transfers between them, then
 * calls done on the loop's thread. The delivery stays the caller's and must live until then.
 * Nothing is tried twice.
 */
typedef void attempt_done(
	struct attempt *attempt, bool sent, const struct error *error, void *context);
void engine_deliver(struct engine *engine, const struct notifier *notifier, struct attempt *attempt,
	attempt_done *done, void *context);

typedef void engine_call(void *context);

/* Calls back once on the loop's thread after `delay` ms of the engine's clock; an open timer keeps
 * engine_run going. */
void engine_after(struct engine *engine, int64_t delay, engine_call *call, void *context);

/* Sets an alarm (see agent/engine/timers.h) to a time of engine_now; it must outlive the engine. */
struct alarm;
void engine_alarm(struct engine *engine, struct alarm *alarm, int64_t due);

/* Calls back on the loop's thread soon; the only function here that other threads may call. If the
 * engine is freed first, `drop` is called instead, unless it is NULL. */
void engine_post(struct engine *engine, engine_call *call, engine_call *drop, void *context);

/* Runs `work` on a worker for calls that may block, then `done` on the loop's thread. If the engine
 * is freed first, `done` is not called; keeps engine_run going. */
void engine_run_blocking(
	struct engine *engine, engine_call *work, engine_call *done, void *context);

/* Likewise, on a worker that has a processor. */
void engine_compute(struct engine *engine, engine_call *work, engine_call *done, void *context);

/* Begins no task any more; those under way are left where they are until the engine is freed.
 * Deliveries go on. */
void engine_close(struct engine *engine);

/* Sets what read_timeout set, for reads that begin from now on. */
void engine_set_read_timeout(struct engine *engine, int64_t timeout);

/* Sets what max_memory set. What is in use of it, and how often reads began to wait for it. */
void engine_set_max_memory(struct engine *engine, int64_t bytes);
struct engine_memory {
	int64_t used;
	uint64_t waits;
};
struct engine_memory engine_memory(const struct engine *engine);

/* Keeps engine_run going while another thread has something to post; each hold needs its release.
 * Loop's thread only. */
void engine_hold(struct engine *engine);
void engine_release(struct engine *engine);

/*
 * A descriptor of somebody else's that the loop serves (libmicrohttpd's): `serve` is called at the
 * start, when `fd` is readable and when the time it asked for is over, and returns the ms it wants
 * to wait at most, -1: no limit. A guest does not keep engine_run going.
 */
typedef int64_t engine_serve(void *context);
void engine_host(struct engine *engine, int fd, engine_serve *serve, void *context);
void engine_unhost(struct engine *engine, int fd);
void engine_rouse(struct engine *engine, int fd); /* the guest wants to be served soon */

/* Milliseconds of the engine's clock: the monotonic one, or with `jumping` one that begins at 0. */
int64_t engine_now(const struct engine *engine);

/*
 * Runs the loop until nothing is left to do or engine_stop is called (true), or a signal comes
 * (false). It may be called again, to finish what is under way. Without catch_signals SIGINT and
 * SIGTERM keep their usual meaning and end the process at once, which is what a one-shot command
 * wants: it has nothing to save, and the shell sees 130.
 */
bool engine_run(struct engine *engine);
void engine_stop(struct engine *engine);

#endif

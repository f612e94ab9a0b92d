/*
 * Execution: transfers to a command, which reads the body on its standard input.
 *
 * Each command is watched by a thread of its own, so that a slow one delays nothing else. It runs
 * in a process group of its own, with no descriptor but 0 to 2 and an environment of a few
 * variables and those of the transfer. At its time limit the whole group gets SIGTERM, and SIGKILL
 * after EXECUTION_GRACE. Of its output the first line is kept, or as much as the transfer wants;
 * the rest is read and dropped.
 *
 * Processes that a command leaves in the background when it exits are left alone. A transfer may
 * choose other terms (struct command_options).
 */
#ifndef AGENT_IO_EXECUTION_H
#define AGENT_IO_EXECUTION_H

#include <pthread.h>

#include "agent/base/buf.h"
#include "agent/base/transfer.h"
#include "agent/io/pool.h"

enum {
	EXECUTION_GRACE = 5000,      /* ms */
	EXECUTION_LAST_GRACE = 1000, /* ms, when it is cancelled or the engine freed */
	EXECUTION_LINE = 300         /* bytes that are kept of a line */
};

struct execution;

/* Shared by all executions; zeroed to begin with, but for `pool`. */
struct executor {
	struct pool *pool;
	struct execution *live;
	int stop; /* readable once all must end; 0: not created yet */
};

/* A command being run; lies within the caller's own struct. */
struct execution {
	struct job job; /* must be first */
	struct executor *executor;
	struct execution *next;
	pthread_t thread;
	bool watched; /* has a thread */
	const struct transfer *transfer;
	void (*done)(struct execution *execution); /* on the loop's thread */
	/*
	 * Set when done is called. An answer's status is the exit status, or 128 and the number of
	 * the signal that ended it; `body` is the first line of its output, `problem` that of its
	 * errors or what ended it. REPLY_AMBIGUOUS: it timed out. REPLY_UNREACHABLE: it did not
	 * start, with status EXECUTION_NOT_FOUND, EXECUTION_REFUSED, or 0 (out of resources).
	 */
	struct reply reply;
	char output_line[EXECUTION_LINE + 1], problem[EXECUTION_LINE + 1];
	struct buf output; /* if the transfer wants more than a line; the caller's */
	int cancel;        /* readable once it must end; -1: it cannot be cancelled */
};

/* As a shell's exit status. */
enum { EXECUTION_REFUSED = 126, EXECUTION_NOT_FOUND = 127 };

void execution_begin(struct execution *execution, struct executor *executor,
	const struct transfer *transfer, void (*done)(struct execution *execution));

/* Ends a cancellable command like one that timed out, but within EXECUTION_LAST_GRACE; `done` is
 * called, with REPLY_AMBIGUOUS. Only before `done`, on the loop's thread; repeating it has no
 * effect. */
void execution_cancel(struct execution *execution);

/* Ends all commands and their threads; `done` is not called any more. */
void executor_stop(struct executor *executor);

#endif

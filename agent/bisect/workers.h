/*
 * Workers make one run at a time each: check the commit out in a work tree, run the command there
 * with a time limit, keep its output in a bounded file, and extract the value.
 *
 * The command is given to /bin/sh -c, in the work tree, with these variables: HUNTER_COMMIT (full
 * id), HUNTER_BISECT_POSITION, HUNTER_BISECT_RUN (its id), HUNTER_WORKER (from 1),
 * HUNTER_BISECT_WORK (the folder), and HUNTER_TEST and HUNTER_METRIC if it is about a change.
 * Nothing of the repository is ever part of a command line. Exit status 0: measured; 125: the
 * commit cannot be tested; else the run has failed. At its time limit its whole process group is
 * ended.
 *
 * A worker with a command line of its own (`ssh dev1`) runs that line instead, likewise in its work
 * tree and with the variables, and with one more argument: shell code that sets the same variables
 * and runs the command. All users of a machine can see arguments, so that code reads secrets from
 * its standard input, which ssh passes on.
 */
#ifndef AGENT_BISECT_WORKERS_H
#define AGENT_BISECT_WORKERS_H

#include "agent/base/field.h"
#include "agent/bisect/driver.h"

struct engine;
struct workers;

struct workers_options {
	struct engine *engine;
	/* The repository, the command and how its value is read, its time limit, the number of
	 * workers: those of this machine first, then those with a line. */
	const struct journal_setup *setup;
	const char *folder;   /* absolute, exists; gets worker-N/ and logs/ */
	struct pairs secrets; /* more variables for the command: masked in reports */
	/* Started at a terminal: the command inherits all variables of this program (else see
	 * agent/io/execution.h), and a checkout may fetch what a partial clone lacks. */
	bool by_hand;
};

/* The result of a run; valid during the call. */
struct worker_report {
	struct bisect_result result;
	const char *problem; /* why there is no value, one sentence; or NULL */
	const char *log;     /* the file with the output; NULL: none */
	/* Not the commit's fault (disk full, git fails): the bisection should stop, and resume when
	 * that is fixed. The outcome is BISECT_LOST. */
	bool hopeless;
};

typedef void workers_done(void *context, const struct worker_report *report);

/* Borrows everything that the options point to. Processes of runs that a killed program left behind
 * in this folder are ended first. NULL and an error if `extract` is wrong or the folder cannot be
 * used. */
struct workers *workers_new(const struct workers_options *options, workers_done *done,
	void *context, struct error *error);
/* After the engine was freed. Accepts NULL. */
void workers_free(struct workers *workers);

/* Makes the runs of a driver, whose `runs` is a struct workers; `done` is called for each on the
 * loop's thread, never before `begin` returns, and reports it. A worker is gone that has not
 * answered several times in a row (its line ended with status 255, as ssh does that cannot
 * connect). A run that is stopped ends with all its processes; a command line must end its own on
 * other machines. */
extern const struct bisect_runner workers_runner;

/* Removes the work trees, as worktrees_remove; none may be busy. */
void workers_remove_trees(
	struct workers *workers, void (*done)(void *context, const char *problem), void *context);

#endif

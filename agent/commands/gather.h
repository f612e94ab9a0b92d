/*
 * Gather: runs tests once through the engine and hands the results back in the order requested.
 *
 * Shared by the one-shot commands. Tests run in parallel; at most a window of them is in
 * progress or waiting for its turn, so that memory does not depend on their number.
 */
#ifndef AGENT_COMMANDS_GATHER_H
#define AGENT_COMMANDS_GATHER_H

#include "agent/cli/cli.h"
#include "agent/io/engine.h"

enum { GATHER_PARTS = 2 };

struct gather {
	const struct test *const *tests;
	size_t count;
	const struct config *config;

	/* Also read the controls of the series. */
	bool judges;

	/* Optional: tasks the test needs, at most GATHER_PARTS; by default one. */
	size_t (*parts)(const void *context, const struct test *test);

	/* Sets the query and the work of one of the test's tasks, the `part`-th, and takes its
	 * context. */
	void (*prepare)(void *context, struct task *task);

	/* Called on the caller's thread with the test's tasks, ending with NULL, when it is its
	 * turn; they are freed afterwards. */
	void (*ready)(void *context, struct task *const *tasks);
	void *context;

	/* Filled as it goes. */
	size_t part;
	struct strings failed; /* names of the tests that failed; borrowed from the configuration */
	int code;              /* EXIT_NOTHING, EXIT_DATA or EXIT_USAGE */
};

/* Also prints which of several tests failed. False after an error that was printed, if nothing
 * could be started: the code is then its exit code. */
bool gather_run(struct gather *gather, struct cli *cli);

/* Logs the notices of a task's source, and its error if it failed, as "test "x": ..."; returns
 * false if it failed. */
bool gather_log(const struct task *task);

/* The more severe of two exit codes: 2 over 1 over 3 over 0. */
int exit_stronger(int a, int b);

#endif

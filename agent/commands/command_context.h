/*
 * The resolved options of a one-shot command: which tests, which of their points, and which
 * detection. All of it is checked before any data is read.
 */
#ifndef AGENT_COMMANDS_COMMAND_CONTEXT_H
#define AGENT_COMMANDS_COMMAND_CONTEXT_H

#include "agent/analysis/select.h"
#include "agent/cli/cli.h"
#include "agent/cli/detection_flags.h"

struct task;

struct command_context {
	struct cli *cli;
	const struct schema *schema;
	struct config *config;
	const struct test *const *tests; /* in the order requested, without duplicates */
	size_t count;
	struct selection selection;
	struct setting settings[DETECTION_FLAG_SETTINGS]; /* from the command line, overriding every
							     detection */
	size_t setting_count;
	bool otava; /* --profile otava, which is also an output format */
};

/* Loads the configuration, with the `known_changes` files, and resolves the command's flags. False
 * after an error that was printed; *code is set then. */
bool command_context_prepare(struct command_context *ask, struct cli *cli,
	const struct selection_flags *selection, const struct detection_flags *detection,
	const struct strings *known_changes, int *code) MUST_USE;

/* The only test of that name or group, of the configuration that was read; NULL and an error for
 * none or several. */
const struct test *single_test(struct cli *cli, const char *name, struct error *error);

/* Whether a name is, or matches, the pattern. */
bool any_matches(const struct strings *names, const char *pattern);

/* The text of an option of a test's source; NULL if it is not set or there is no such option. */
const char *test_option(const struct test *test, const char *name);

/* ERROR_DATA: there are no points in the range, on the branch if one is requested. */
bool command_lacks_data(const struct task *task, struct error *error);

#endif

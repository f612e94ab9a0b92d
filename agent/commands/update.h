/*
 * `analyze --update-postgres`: changes are written back to the database they were found in.
 */
#ifndef AGENT_COMMANDS_UPDATE_H
#define AGENT_COMMANDS_UPDATE_H

#include "agent/analysis/analysis.h"
#include "agent/commands/command_context.h"

/* How the update of one test went. A zeroed struct: there was none. */
struct update {
	bool done, failed;
	size_t changes, rows;
	struct error error;
};

/* Before anything is read: at least one of the tests can be updated, and all that can be have a
 * statement that is fit for it. Tests of other types are named in the log. */
bool update_check(const struct command_context *ask, struct error *error) MUST_USE;

/* Is it a test that can be updated? */
bool update_applies(const struct test *test);

/* Writes the changes of one test. Blocks. */
void update_run(struct query *query, const struct analysis *analysis, struct update *out);

/* Logs how it went; false if it failed. */
bool update_log(const struct test *test, const struct update *update);

#endif

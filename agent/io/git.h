/*
 * git as a command of the engine, run so that a clone cannot make it run other programs: without
 * its hooks, file system monitor, pager, signature checks or submodules, and with the filters of
 * the user and the system only. It never prompts for a password.
 */
#ifndef AGENT_IO_GIT_H
#define AGENT_IO_GIT_H

#include <stdbool.h>

#include "agent/base/transfer.h"

struct arena;
struct buf;
struct execution;

/*
 * A transfer that runs `git -C FOLDER ARGUMENTS...` (which end with NULL); the caller sets
 * most_output and timeout. Unless it `fetches`, objects that a partial clone lacks are not fetched,
 * by any protocol.
 */
struct transfer git_transfer(
	struct arena *arena, const char *folder, const char *const *arguments, bool fetches);

/*
 * Commands that compare or write files run the configured filters. So git first runs with the
 * arguments git_filters, which list them (there may be none). Their output gives the arguments to
 * put first, which undo settings of the clone's own configuration; NULL: a name contains "=", or
 * the output is cut.
 */
enum { GIT_FILTERS_MOST = 1 << 20 }; /* bytes of the output */
extern const char *const git_filters[];
bool git_listed_filters(const struct reply *reply);
const char *const *git_without_filters(
	struct arena *arena, const struct buf *listed, const char *const *arguments);

/* Why git ended with a status other than 0, as a sentence. */
const char *git_problem(struct arena *arena, const struct execution *execution);

/* git's output up to `end`, printable text only, cut after `most` characters. */
const char *git_text(struct arena *arena, const char *text, const char *end, size_t most);

#endif

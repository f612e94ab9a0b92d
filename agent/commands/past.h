/*
 * The past of a replay: what the sources give for the whole time, asked once, and what of it had
 * arrived by a time within.
 */
#ifndef AGENT_COMMANDS_PAST_H
#define AGENT_COMMANDS_PAST_H

#include "agent/commands/gather.h"

struct past;

/*
 * Reads all that the tests look at from `from` to `until` (ms). Tests that fail are logged, counted
 * in `code` and have no past. NULL and an error if nothing could be started.
 */
struct past *past_gather(struct cli *cli, const struct config *config,
	const struct test *const *tests, size_t count, int64_t from, int64_t until,
	enum exit_code *code, struct error *error);
void past_free(struct past *past);

/* Whether the test's data could be had. */
bool past_has(const struct past *past, const char *test);

/* The test's points of [since, until), without copies of them, in `arena`. */
void past_view(const struct past *past, const char *test, int64_t since, int64_t until,
	struct arena *arena, struct dataset *out);

/* The time of the test's first point at or after `time`, ms; WHEN_NEVER: there is none. */
int64_t past_next(const struct past *past, const char *test, int64_t time);

#endif

/*
 * The past of a replay: what the sources give for the whole time, asked once, and what of it had
 * arrived by a time within.
 */
#ifndef AGENT_COMMANDS_REPLAY_DATA_H
#define AGENT_COMMANDS_REPLAY_DATA_H

#include "agent/commands/gather.h"

struct replay_data;

/*
 * Reads all that the tests look at from `from` to `until` (ms). Tests that fail are logged, counted
 * in `code` and have no past. NULL and an error if nothing could be started.
 */
struct replay_data *replay_data_gather(struct cli *cli, const struct config *config,
	const struct test *const *tests, size_t count, int64_t from, int64_t until,
	enum exit_code *code, struct error *error);
void replay_data_free(struct replay_data *past);

/* Whether the test's data could be had. */
bool replay_data_has(const struct replay_data *past, const char *test);

/* The test's points of [since, until), without copies of them, in `arena`. */
void replay_data_view(const struct replay_data *past, const char *test, int64_t since,
	int64_t until, struct arena *arena, struct dataset *out);

/* The time of the test's first point at or after `time`, ms; WHEN_NEVER: there is none. */
int64_t replay_data_next(const struct replay_data *past, const char *test, int64_t time);

#endif

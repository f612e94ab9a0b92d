/*
 * The data of a replay: what the sources return for the whole period, fetched once, and the part
 * of it that had arrived by a given time.
 */
#ifndef AGENT_COMMANDS_REPLAY_DATA_H
#define AGENT_COMMANDS_REPLAY_DATA_H

#include "agent/commands/gather.h"

struct replay_data;

/*
 * Reads all that the tests need from `from` to `until` (ms). Tests that fail are logged, counted
 * in `code` and have no data. NULL and an error if nothing could be started.
 */
struct replay_data *replay_data_gather(struct cli *cli, const struct config *config,
	const struct test *const *tests, size_t count, int64_t from, int64_t until,
	enum exit_code *code, struct error *error);
void replay_data_free(struct replay_data *past);

/* Whether the test's data could be read. */
bool replay_data_has(const struct replay_data *past, const char *test);

/* The test's points of [since, until), not copied, in `arena`. */
void replay_data_view(const struct replay_data *past, const char *test, int64_t since,
	int64_t until, struct arena *arena, struct dataset *out);

/* The time of the test's first point at or after `time`, ms; WHEN_NEVER: there is none. */
int64_t replay_data_next(const struct replay_data *past, const char *test, int64_t time);

#endif

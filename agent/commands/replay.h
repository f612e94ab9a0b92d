/* The parts of `hunter-c replay`: the data, the run under a simulated clock, and the report. */
#ifndef AGENT_COMMANDS_REPLAY_H
#define AGENT_COMMANDS_REPLAY_H

#include <stdio.h>

#include "agent/commands/gather.h"
#include "agent/store/store.h"

/*
 * The data of a replay: the sources' answers for the whole period, fetched once, and the part of
 * them that had arrived by a given time.
 */
struct replay_data;

/* From when on the test's data is needed for an agent that starts at `from` (ms); WHEN_ALWAYS: all
 * of it. */
int64_t replay_since(const struct test *test, int64_t from);

/*
 * Reads all that the tests need from `from` to `until` (ms). Tests that fail are logged, counted
 * in `code` and have no data. NULL after an error that was printed.
 */
struct replay_data *replay_data_gather(struct cli *cli, const struct config *config,
	const struct test *const *tests, size_t count, int64_t from, int64_t until, int *code);
void replay_data_free(struct replay_data *past);

/* Whether the test's data could be read. */
bool replay_data_has(const struct replay_data *past, const char *test);

/* The test's points of [since, until), not copied, in `arena`. */
void replay_data_view(const struct replay_data *past, const char *test, int64_t since,
	int64_t until, struct arena *arena, struct dataset *out);

/* The time of the test's first point at or after `time`, ms; WHEN_NEVER: there is none. */
int64_t replay_data_next(const struct replay_data *past, const char *test, int64_t time);

struct replay_notice {
	const char *subject, *text;
	int64_t told, since; /* ms */
	bool recovered;
	struct replay_notice *next;
};

struct replay_report {
	int64_t from, until; /* ms; until: how far it got */
	bool interrupted;
	size_t tests, runs;
	struct replay_notice *notices; /* in the order sent */
	size_t notice_count;
	struct record_rows records; /* from the store, with their history, the latest first */
	size_t messages;            /* about changes */
};

/* The summary at the end of the messages, or all as one JSON document. */
void replay_print(const struct replay_report *report, FILE *out);
void replay_print_json(const struct replay_report *report, FILE *out);

#endif

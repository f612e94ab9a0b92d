/* The parts of `hunter-c replay`: the run under a simulated clock, and the report. */
#ifndef AGENT_COMMANDS_REPLAY_H
#define AGENT_COMMANDS_REPLAY_H

#include <stdio.h>

#include "agent/commands/gather.h"
#include "agent/store/store.h"

/* From when on the test's data is needed for an agent that starts at `from` (ms); WHEN_ALWAYS: all
 * of it. */
int64_t replay_since(const struct test *test, int64_t from);

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

/* The result of a replay. */
#ifndef AGENT_COMMANDS_REPLAY_H
#define AGENT_COMMANDS_REPLAY_H

#include <stdio.h>

#include "agent/store/store.h"

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
	const struct change_record *
		*records; /* from the store, with their history, in the order recorded */
	size_t record_count;
	size_t messages; /* about changes */
	bool more;       /* there were more messages than could be counted */
};

/* The summary at the end of the messages, or all as one JSON document. */
void replay_print(const struct replay_report *report, FILE *out);
void replay_print_json(const struct replay_report *report, FILE *out);

#endif

/*
 * Environment events in the reports of one-shot commands: a line of its own at the end for
 * changes that hit one environment alone; lists and exit code are not affected.
 */
#ifndef AGENT_COMMANDS_ENVIRONMENT_REPORT_H
#define AGENT_COMMANDS_ENVIRONMENT_REPORT_H

#include <stdio.h>

#include "agent/analysis/analysis.h"

/* Zeroed: nothing seen. */
struct environment_report {
	struct arena *arena; /* of the views */
	const struct environment_view **views;
	size_t count;
};

/* Records a test's changes; ignores tests without an environment. Copies. */
void environment_report_add(struct environment_report *report, const struct analysis *analysis);

/* Prints a line for each environment with such an event at or after `since` (ms). */
void environment_report_print(const struct environment_report *report, int64_t since, FILE *out);

void environment_report_free(struct environment_report *report);

#endif

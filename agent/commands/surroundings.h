/*
 * Environment events in the reports of one-shot commands: a line of its own at the end for
 * changes that hit one environment alone; lists and exit code are not affected.
 */
#ifndef AGENT_COMMANDS_SURROUNDINGS_H
#define AGENT_COMMANDS_SURROUNDINGS_H

#include <stdio.h>

#include "agent/analysis/analysis.h"

/* Zeroed: nothing seen. */
struct surroundings {
	struct environment_view **views;
	size_t count;
};

/* Records a test's changes; ignores tests without an environment. Copies. */
void surroundings_add(struct surroundings *surroundings, const struct analysis *analysis);

/* Prints a line for each environment with such an event at or after `since` (ms). */
void surroundings_print(const struct surroundings *surroundings, int64_t since, FILE *out);

void surroundings_free(struct surroundings *surroundings);

#endif

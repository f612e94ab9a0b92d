/*
 * What hit one environment alone, in the reports of commands that answer at once: a line of its own
 * at the end, with nothing taken from the lists and the exit code.
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

/* Notes a test's changes; of one without an environment nothing. Copies. */
void surroundings_add(struct surroundings *surroundings, const struct analysis *analysis);

/* Prints a line for each environment that alone changed at or after `since` (ms). */
void surroundings_print(const struct surroundings *surroundings, int64_t since, FILE *out);

void surroundings_free(struct surroundings *surroundings);

#endif

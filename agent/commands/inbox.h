/*
 * Changes for people who judge them, as a table: from the API's JSON, so that it is the same for an
 * agent elsewhere and a state file here.
 */
#ifndef AGENT_COMMANDS_INBOX_H
#define AGENT_COMMANDS_INBOX_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/base/arena.h"

/* The worst first: the largest in percent; without a percentage before those with one. */
void inbox_sort(json_t *changes);

/* Prints the changes, an array of the objects of /api/v1/changes. `now`: ms, for their age. */
void inbox_print(const json_t *changes, int64_t now, struct arena *arena, FILE *out);

#endif

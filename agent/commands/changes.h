/*
 * What `changes` prints: records of the store as a table, JSON or CSV.
 */
#ifndef AGENT_COMMANDS_CHANGES_H
#define AGENT_COMMANDS_CHANGES_H

#include <stdio.h>

#include "agent/store/store.h"

enum changes_output { CHANGES_TEXT, CHANGES_JSON, CHANGES_CSV };

extern const char *const changes_output_names[]; /* in the order of the enum, ends with NULL */

/* Prints the records of a store_list, sorted by time, latest first; takes memory from its arena.
 * `formulas`: see csv_put_text. */
void changes_print(
	const struct store_list *list, enum changes_output output, bool formulas, FILE *out);

#endif

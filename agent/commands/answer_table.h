/* A table of what an agent's API answers: a row for each object of an array, a column for a key. */
#ifndef AGENT_COMMANDS_ANSWER_TABLE_H
#define AGENT_COMMANDS_ANSWER_TABLE_H

#include <jansson.h>

#include "agent/cli/cli.h"
#include "agent/report/table.h"

enum { ANSWER_COLUMNS_MOST = 12 };

struct answer_column {
	const char *header, *key;
	bool number;
	bool optional; /* left out if it and those after it have text in no row */
	/* The cell's text, possibly in `scratch` or the arena, or NULL for a blank one. Without it:
	 * text as it is, and numbers without decimals. `value` may be NULL. */
	const char *(*text)(struct arena *arena, const json_t *item, const json_t *value,
		char scratch[TABLE_SCRATCH]);
};

/* Prints it, with a header. Columns: up to ANSWER_COLUMNS_MOST, ended by one without a key. */
void answer_table_print(
	const struct cli *cli, const json_t *items, const struct answer_column *columns);

/* For `text`: a time of the answer, as commands print times. */
const char *answer_table_time(
	struct arena *arena, const json_t *item, const json_t *value, char scratch[TABLE_SCRATCH]);

#endif

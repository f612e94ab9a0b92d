/* A table of what an agent's API answers: a row for each object of an array, a column for a key. */
#ifndef AGENT_COMMANDS_ANSWER_TABLE_H
#define AGENT_COMMANDS_ANSWER_TABLE_H

#include <jansson.h>

#include "agent/base/buf.h"
#include "agent/cli/cli.h"

struct answer_cell {
	struct arena *arena;
	const json_t *value; /* what the row has under the key, or NULL */
};

struct answer_column {
	const char *header, *key; /* "owner", or "triage.owner" of an object in the item */
	bool number;
	bool optional; /* left out if it has text in no row */
	/* The cell's text, static or in the arena, or NULL for a blank one. Without it: text as it
	 * is, and numbers without decimals. */
	const char *(*text)(const struct answer_cell *cell);
};

/*
 * Prints the document as it is, or its items with a header, as a table or CSV. The columns end with
 * one without a key; CSV has the values under the keys.
 */
void answer_emit(const struct cli *cli, json_t *answer, const json_t *items,
	const struct answer_column *columns, enum cli_output output);

/* Appends a value of a document, with the digits that the API writes. */
void answer_put(struct buf *out, json_t *value);

/* The document alone. */
void answer_print(const struct cli *cli, json_t *answer);

/* For `text`: a time of the answer, as commands print times. */
const char *answer_time(const struct answer_cell *cell);

#endif

/*
 * Changes for people who judge them, as a table: from the API's JSON, so that it is the same for an
 * agent elsewhere and a state file here.
 */
#ifndef AGENT_COMMANDS_INBOX_H
#define AGENT_COMMANDS_INBOX_H

#include "agent/commands/answer_table.h"

/* The worst first: the largest in percent; without a percentage before those with one. */
void inbox_sort(json_t *changes);

/* The columns of an array of the objects of /api/v1/changes. */
extern const struct answer_column inbox_columns[];

#endif

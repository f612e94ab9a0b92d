/* What an agent's API answers, as the command's --output has it. */
#ifndef AGENT_COMMANDS_ANSWER_TABLE_H
#define AGENT_COMMANDS_ANSWER_TABLE_H

#include <jansson.h>

#include "agent/cli/cli.h"

/* Prints the document as it is, or its items with a header, as a table or CSV of the columns, see
 * agent/report/document.h. */
void answer_emit(const struct cli *cli, json_t *answer, const json_t *items,
	const char *const *columns, enum cli_output output);

/* The document alone. */
void answer_print(const struct cli *cli, json_t *answer);

#endif

/* Recorded changes as an agent's API answers with them. */
#ifndef AGENT_COMMANDS_RECORDS_H
#define AGENT_COMMANDS_RECORDS_H

#include <jansson.h>

#include "agent/model/change_record.h"

/* A record from a change in the API's JSON; false if it is not one. Sets the fields with a column,
 * triage, owner, range of suspects and time of the announcement. Texts are copied to the arena. */
bool record_read(struct arena *arena, const json_t *object, struct change_record *out);

/* Columns (agent/report/document.h) for people: what was found, and for those who triage it. */
extern const char *const records_list[], *const records_inbox[];

/* All of a change, and what is derived from it: those of the CSV. */
const char *const *records_columns(struct arena *arena);

#endif

/* Recorded changes as tables, and read from what an agent's API answers. */
#ifndef AGENT_COMMANDS_RECORDS_H
#define AGENT_COMMANDS_RECORDS_H

#include <jansson.h>
#include <stdio.h>

#include "agent/cli/agent_api.h"
#include "agent/model/change_record.h"

/* A record from a change in the API's JSON; false if it is not one. What has a column, triage,
 * owner, range of suspects and time of the announcement are set. Texts are copied to the arena. */
bool record_read(struct arena *arena, const json_t *object, struct change_record *out);

/* Lists changes of an agent, by the parameters of its API, see agent_api_changes. `take` gets each,
 * of which it borrows the object, until it wants no more. Records lie in the arena. */
bool records_of_agent(struct arena *arena, struct agent_api *api, const struct pairs *form,
	bool (*take)(void *context, const struct change_record *record, json_t *object),
	void *context, bool *more, struct error *error) MUST_USE;

enum record_view {
	RECORDS_LIST = 1, /* what was found */
	RECORDS_INBOX,    /* for people who judge it */
};

struct record_row {
	struct change_record record;
	const char *json; /* as an agent gave it; NULL: as record_put_json makes it */
};

/* Appends it as JSON. */
void record_row_put(struct buf *out, const struct record_row *row);

/* `now`: ms. Take memory from the arena. The CSV has all fields, whatever the view. */
void records_print(struct arena *arena, const struct record_row *rows, size_t count,
	enum record_view view, int64_t now, FILE *out);
void records_print_csv(
	struct arena *arena, const struct record_row *rows, size_t count, bool formulas, FILE *out);

#endif

/* The change in the API's JSON, from the agent or made of what the state has. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/bisect.h"
#include "agent/commands/records.h"
#include "agent/commands/state_file.h"
#include "agent/model/record_json.h"
#include "agent/store/store.h"

/* Without an agent. */
static bool perform(void *context, const char *state, const struct config *config,
	struct buf *answer, struct error *error)
{
	struct store_excerpts *found = store_excerpts_new(NULL, NULL);
	const int64_t *id = context;
	bool read;

	(void)config;
	found->changes = id;
	found->change_count = 1;
	read = store_tx(state, STORE_READ, &found->call, error);
	if (read && found->count == 0)
		read = error_set(error, ERROR_USAGE, "--change: there is no change %" PRId64, *id);
	if (read) {
		buf_text(answer, "{\"change\": ");
		record_put_json(answer, &found->items[0].record);
		buf_char(answer, '}');
	}
	store_call_free(&found->call);
	return read;
}

bool bisect_change_read(
	struct cli *cli, const char *text, struct change_record *out, struct error *error)
{
	const struct bisect_flags *flags = cli->options;
	int64_t id = 0;
	struct state_request request = {.flags = &flags->state,
		.key = "change",
		.reads = true,
		.perform = perform,
		.context = &id};
	json_t *answer;
	bool read;

	if (strspn(text, "0123456789") == strlen(text) && strlen(text) <= 18)
		id = strtoll(text, NULL, 10);
	if (id <= 0)
		return error_set(error, ERROR_USAGE, "--change takes the id of a change");
	request.path = arena_printf(cli->arena, "/api/v1/changes/%" PRId64, id);
	answer = state_request(cli, &request, error);
	if (!answer)
		return false;
	read = record_read(cli->arena, json_object_get(answer, "change"), out) ||
	       error_set(error, ERROR_STATE,
		       "%s: the response is not a change: is it a hunter-c of this version?",
		       flags->state.agent.agent ? flags->state.agent.agent : "the agent");
	json_decref(answer);
	return read;
}

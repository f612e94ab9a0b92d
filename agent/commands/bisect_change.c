/* The change in the API's JSON, from the agent or made of what the state has. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/bisect.h"
#include "agent/commands/records.h"
#include "agent/commands/state_file.h"
#include "agent/model/record_json.h"
#include "agent/store/store.h"

static void take_change(const struct change_record *record, struct bisect_change *out)
{
	const struct change *change = &record->item.change;

	out->test = record->item.test;
	out->metric = record->item.metric;
	out->step = change->size / 100;
	out->spread = change->mean_before != 0 ? fabs(change->stddev_before / change->mean_before)
					       : (double)NAN;
	out->direction = (out->step > 0) - (out->step < 0);
	if (!(out->spread > 0))
		out->spread = (double)NAN;
}

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

/* The configuration, if it was read, has the path of the test's clone. */
bool bisect_change_read(
	struct cli *cli, const char *id, struct bisect_change *out, struct error *error)
{
	const struct bisect_flags *flags = cli->options;
	const struct test *test;
	struct change_record record;
	struct state_request request = {.flags = &flags->state,
		.key = "change",
		.reads = true,
		.perform = perform,
		.context = &out->id};
	json_t *answer;
	bool read;

	*out = (struct bisect_change){.step = (double)NAN, .spread = (double)NAN};
	if (strspn(id, "0123456789") == strlen(id) && strlen(id) <= 18)
		out->id = strtoll(id, NULL, 10);
	if (out->id <= 0)
		return error_set(error, ERROR_USAGE, "--change takes the id of a change");
	request.path = arena_printf(cli->arena, "/api/v1/changes/%" PRId64, out->id);
	answer = state_request(cli, &request, error);
	if (!answer)
		return false;
	read = record_read(cli->arena, json_object_get(answer, "change"), &record) ||
	       error_set(error, ERROR_STATE,
		       "%s: the response is not a change: is it a hunter-c of this version?",
		       flags->state.agent.agent ? flags->state.agent.agent : "the agent");
	if (read) {
		take_change(&record, out);
		announcement_range(&record.item, &out->from, &out->to);
		test = cli->config ? config_test(cli->config, out->test) : NULL;
		out->repository = test ? test->repository : NULL;
	}
	json_decref(answer);
	return read;
}

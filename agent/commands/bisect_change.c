/* The change in the API's JSON, from the agent or made of what the state has. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/bisect.h"
#include "agent/commands/records.h"
#include "agent/commands/state_file.h"
#include "agent/model/announcement.h"
#include "agent/store/store.h"

static void take_change(
	struct arena *arena, const struct change_record *record, struct bisect_change *out)
{
	const struct change *change = &record->item.change;

	out->test = arena_strdup(arena, record->item.test);
	out->metric = arena_strdup(arena, record->item.metric);
	out->step = change->size / 100;
	out->spread = change->mean_before != 0 ? fabs(change->stddev_before / change->mean_before)
					       : (double)NAN;
	out->direction = (out->step > 0) - (out->step < 0);
	if (!(out->spread > 0))
		out->spread = (double)NAN;
}

static bool read_state(
	struct arena *arena, const char *path, struct bisect_change *out, struct error *error)
{
	struct store_excerpts *found = store_excerpts_new(NULL, NULL);
	bool read;

	found->changes = &out->id;
	found->change_count = 1;
	read = store_tx(path, STORE_READ, &found->call, error);
	if (read && found->count == 0)
		read = error_set(error, ERROR_USAGE, "there is no change %" PRId64, out->id);
	if (read) {
		const struct change_record *record = &found->items[0].record;
		const char *from, *to;

		take_change(arena, record, out);
		announcement_range(&record->item, &from, &to);
		out->from = arena_strdup(arena, from);
		out->to = arena_strdup(arena, to);
	}
	store_call_free(&found->call);
	return read;
}

static json_t *get(struct agent_api *api, const char *path, const char *key, struct error *error)
{
	struct agent_api_answer answer = {0};

	return agent_api_call(api, path, NULL, key, &answer, error) ? answer.document : NULL;
}

static bool read_agent(
	struct arena *arena, struct agent_api *api, struct bisect_change *out, struct error *error)
{
	const char *path = arena_printf(arena, "/api/v1/changes/%" PRId64, out->id);
	json_t *story = get(api, path, "change", error);
	json_t *range =
		story ? get(api, arena_printf(arena, "%s/commits", path), "from", error) : NULL;
	struct change_record record;
	bool read = range != NULL;

	if (read && !record_read(arena, json_object_get(story, "change"), &record))
		read = error_set(error, ERROR_STATE,
			"%s: its answer is not a change: is it a hunter-c of this version?",
			agent_api_name(api));
	if (read) {
		take_change(arena, &record, out);
		out->from = arena_strdup(arena, json_string_value(json_object_get(range, "from")));
		out->to = arena_strdup(arena, json_string_value(json_object_get(range, "to")));
	}
	json_decref(story);
	json_decref(range);
	return read;
}

static bool ask_agent(struct cli *cli, const struct config *config, struct bisect_change *out,
	struct error *error)
{
	const struct bisect_flags *flags = cli->options;
	struct agent_api *api = agent_api_new(&flags->state.agent, config, error);
	bool read = api && read_agent(cli->arena, api, out, error);

	agent_api_free(api);
	return read;
}

static bool parse_id(const char *text, int64_t *id, struct error *error)
{
	*id = strspn(text, "0123456789") == strlen(text) && strlen(text) <= 18
		      ? strtoll(text, NULL, 10)
		      : 0;
	return *id > 0 || error_set(error, ERROR_USAGE, "--change takes the id of a change");
}

/* The configuration says where the state is, and where the test's clone is; of an agent elsewhere
 * only that says anything. */
bool bisect_change_read(
	struct cli *cli, const char *id, struct bisect_change *out, struct error *error)
{
	const struct bisect_flags *flags = cli->options;
	const struct config *config = NULL;
	const char *path;
	const struct test *test = NULL;
	bool agent, read;

	*out = (struct bisect_change){.step = (double)NAN, .spread = (double)NAN};
	if (!parse_id(id, &out->id, error) || !state_of_agent(&flags->state, &agent, error))
		return false;
	if (!agent && !flags->state.state_file && !(config = cli_config(cli)))
		return error_set(error, ERROR_USAGE,
			"--change needs the configuration, --state-file or --agent");
	path = flags->state.state_file ? flags->state.state_file
	       : config                ? config->agent.state
				       : NULL;
	if (agent || (config && state_is_hidden(path)))
		read = ask_agent(cli, config, out, error);
	else
		read = read_state(cli->arena, path, out, error);
	if (read && config)
		test = config_test(config, out->test);
	out->repository = test ? test->repository : NULL;
	return read;
}

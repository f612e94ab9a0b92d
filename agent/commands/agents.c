/* `agents`: who shares the state, what each agent holds, how late it is; read from the state
 * itself, or from an agent. */
#include <inttypes.h>
#include <string.h>

#include "agent/base/database.h"
#include "agent/commands/answer_table.h"
#include "agent/commands/commands.h"
#include "agent/commands/state_file.h"
#include "agent/store/forms.h"

enum { OUTPUT_TEXT, OUTPUT_JSON };

static const char *const outputs[] = {"text", "json", NULL};

struct agents_options {
	struct agent_api_options api;
	int output;
	const char *state_file;
};

static const struct field agents_fields[] = {
	OPTION_CHOICE(struct agents_options, output, "text", outputs, "output format"),
	OPTION_STRING(struct agents_options, state_file, NULL, STATE_FILE_HELP, .metavar = "PATH"),
	{0},
};

static const char *ago(
	struct arena *arena, const json_t *item, const json_t *value, char scratch[TABLE_SCRATCH])
{
	(void)arena;
	(void)item;
	snprintf(scratch, TABLE_SCRATCH, "%.1f s ago", json_number_value(value));
	return scratch;
}

static const char *leader(
	struct arena *arena, const json_t *item, const json_t *value, char scratch[TABLE_SCRATCH])
{
	(void)arena;
	(void)item;
	(void)scratch;
	return json_is_true(value) ? "leader" : NULL;
}

static const struct answer_column columns[] = {
	{.header = "agent", .key = "name"},
	{.header = "state", .key = "state"},
	{.header = "shards", .key = "shards", .number = true},
	{.header = "", .key = "leader", .text = leader},
	{.header = "tests", .key = "tests", .number = true},
	{.header = "lease renewed", .key = "renewed_seconds_ago", .text = ago},
	{.header = "late", .key = "late_renewals", .number = true},
	{.header = "joined", .key = "joined", .text = answer_table_time},
	{.header = "version", .key = "version"},
	{0},
};

static int print_answer(struct cli *cli, json_t *answer)
{
	const struct agents_options *options = cli->options;
	json_int_t shards = json_integer_value(json_object_get(answer, "shards"));
	json_int_t held = json_integer_value(json_object_get(answer, "held"));

	if (options->output == OUTPUT_JSON) {
		json_dumpf(answer, cli->out, JSON_REAL_PRECISION(17));
		putc('\n', cli->out);
	} else if (!json_is_true(json_object_get(answer, "shared"))) {
		fprintf(cli->out, "The state is a file, for one agent.\n");
	} else {
		answer_table_print(cli, json_object_get(answer, "agents"), columns);
		if (held < shards)
			fprintf(cli->out,
				"\n%" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
				" shards are held by nobody: their tests do not run.\n",
				shards - held, shards);
	}
	json_decref(answer);
	return EXIT_NOTHING;
}

static json_t *ask_agent(
	const struct agents_options *options, const struct config *config, struct error *error)
{
	struct agent_api *api = agent_api_new(&options->api, config, error);
	struct agent_api_answer answer = {0};

	if (api && !agent_api_call(api, "/api/v1/agents", NULL, &answer, error))
		answer.document = NULL;
	agent_api_free(api);
	return answer.document;
}

static json_t *read_state(const char *state, struct error *error)
{
	struct store_turn *turn = store_turn_new(NULL, NULL);
	struct buf text = {0};
	json_t *document = NULL;

	if (!database_is(state)) {
		document = json_pack("{s:b, s:[]}", "shared", 0, "agents");
	} else if (store_tx(state, STORE_READ, &turn->call, error)) {
		agents_put_json(&text, turn, 0);
		document = json_loadb(text.data, text.length, 0, NULL);
	}
	buf_free(&text);
	store_call_free(&turn->call);
	return document;
}

static int run(struct cli *cli)
{
	const struct agents_options *options = cli->options;
	struct config *config = NULL;
	struct error error;
	json_t *document;
	bool agent;

	if (!state_of_agent(&options->api, options->state_file, &agent, &error))
		return cli_fail(&error);
	if (!agent && !options->state_file && !(config = cli_config(cli)))
		return EXIT_USAGE;
	document = agent ? ask_agent(options, config, &error)
			 : read_state(config ? config->agent.state : options->state_file, &error);
	config_free(config);
	return document ? print_answer(cli, document) : cli_fail(&error);
}

static const struct option_part parts[] = {
	{agents_fields, 0}, {agent_api_fields, offsetof(struct agents_options, api)}, {0}};

const struct command agents_command = {
	.name = "agents",
	.summary = "Show the agents that share a state",
	.details =
		"Lists the agents that work on the same database (agent.state): whether each is "
		"alive, how many of the 256 shards of the work it holds, which one is the leader "
		"(groups, digests, silences), how many tests it knows, when it renewed its lease "
		"last and how often that was late. An agent is late if its lease is over and "
		"nobody has taken over yet; those that are gone are listed for a day.\n\n"
		"The state is read directly, or the agent of --agent is asked.",
	.parts = parts,
	.options_size = sizeof(struct agents_options),
	.run = run,
};

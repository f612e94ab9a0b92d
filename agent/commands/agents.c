/* `agents`: the agents that share a state, with the shards and the delay of each; read from the
 * state itself, or from an agent. */
#include <string.h>

#include "agent/base/database.h"
#include "agent/commands/commands.h"
#include "agent/commands/state_file.h"
#include "agent/web/forms.h"

struct agents_options {
	struct state_flags state;
	int output;
};

static const struct field agents_fields[] = {
	OPTION_CHOICE(struct agents_options, output, "text", cli_list_outputs, "output format"),
	{0},
};

static const char *const columns[] = {"agent=name", "state", "shards", "leader", "tests",
	"renewed s ago=renewed_seconds_ago", "late=late_renewals", "@joined", "version", NULL};

static int print_answer(struct cli *cli, json_t *answer)
{
	const struct agents_options *options = cli->options;
	json_int_t shards = json_integer_value(json_object_get(answer, "shards"));
	json_int_t held = json_integer_value(json_object_get(answer, "held"));

	bool text = options->output == OUTPUT_TEXT;

	if (text && !json_is_true(json_object_get(answer, "shared"))) {
		fprintf(cli->out, "The state is a file: it serves a single agent.\n");
	} else {
		state_emit(
			cli, answer, json_object_get(answer, "agents"), columns, options->output);
		if (text && held < shards)
			fprintf(cli->out,
				"\n%" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
				" shards have no holder: their tests do not run.\n",
				shards - held, shards);
	}
	json_decref(answer);
	return EXIT_NOTHING;
}

static bool read_state(void *context, const char *state, const struct config *config,
	struct buf *answer, struct error *error)
{
	struct store_turn *turn = store_turn_new(NULL, NULL);
	bool shared = database_is(state),
	     read = !shared || store_tx(state, STORE_READ, &turn->call, error);

	(void)context, (void)config;
	if (shared && read)
		agents_put_json(answer, turn, 0);
	else if (read)
		buf_text(answer, "{\"shared\": false, \"agents\": []}");
	store_call_free(&turn->call);
	return read;
}

static int run(struct cli *cli)
{
	const struct agents_options *options = cli->options;
	const struct state_request request = {.flags = &options->state,
		.path = "/api/v1/agents",
		.key = "agents",
		.reads = true,
		.perform = read_state};
	struct error error;
	json_t *answer = state_request(cli, &request, &error);

	return answer ? print_answer(cli, answer) : state_fail(&error);
}

static const struct option_part parts[] = {
	{agents_fields, 0}, {state_fields, offsetof(struct agents_options, state)}, {0}};

const struct command agents_command = {
	.name = "agents",
	.summary = "Show the agents that share a state",
	.details = "Lists the agents that share a database (agent.state): whether each is alive, "
		   "how many of the 256 shards it holds, which one is the leader (groups, digests, "
		   "silences), how many tests it has configured, when it last renewed its lease "
		   "and how often it renewed late. An agent is late if its lease has expired and "
		   "no other agent has taken over yet. Stopped agents remain listed for a day.\n"
		   "\n"
		   "Reads the state directly, or from the agent of --agent.",
	.parts = parts,
	.options_size = sizeof(struct agents_options),
	.run = run,
};

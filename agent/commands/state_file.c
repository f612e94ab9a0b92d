/* Loads the configuration only if --state-file does not name the file. */
#include "agent/commands/state_file.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/database.h"
#include "agent/report/document.h"
#include "agent/report/table.h"
#include "agent/store/store.h"

/* Another command may have the state for a moment. */
enum { TRIES = 50, LEFT = 3, PAUSE = 100000000 /* ns */ };

const struct field state_fields[] = {
	OPTION_STRING(struct state_flags, state_file, NULL, STATE_FILE_HELP, .metavar = "PATH"),
	OPTION_STRING_AS("agent", struct state_flags, agent.agent, NULL,
		"running agent: a URL or unix:/path; default: agent.listen of the configuration",
		.variable = "HUNTER_AGENT", .metavar = "URL"),
	OPTION_STRING_AS("token_file", struct state_flags, agent.token_file, NULL,
		"file with its access token", .variable = "HUNTER_TOKEN_FILE", .metavar = "PATH"),
	OPTION_STRING_AS("ca_file", struct state_flags, agent.ca_file, NULL,
		"CA certificates to verify its certificate, instead of the system's",
		.variable = "HUNTER_CA_FILE", .metavar = "PATH"),
	{0},
};

const char *state_file(struct cli *cli, const char *path)
{
	const struct config *config = path ? NULL : cli_config(cli);

	return config ? config->agent.state : path;
}

bool state_of_agent(const struct state_flags *flags, bool *agent, struct error *error)
{
	const char *variable = getenv("HUNTER_AGENT");

	*agent = flags->agent.agent != NULL;
	if (!*agent || !flags->state_file)
		return true;
	if (!variable || strcmp(variable, flags->agent.agent) != 0)
		return error_set(
			error, ERROR_USAGE, "--agent and a state file are mutually exclusive");
	*agent = false;
	return true;
}

bool state_list(struct cli *cli, const char *given, struct store_list *list, bool *there,
	struct error *error)
{
	const char *path = given ? given : cli->config->agent.state;
	bool read;

	*there = given || store_is_there(path);
	read = !*there || store_tx(path, STORE_READ, &list->call, error);
	arena_join(cli->arena, list->call.arena);
	return read;
}

bool state_is_hidden(const char *path)
{
	return !database_is(path) && access(path, R_OK) != 0 && errno == EACCES;
}

const char *state_person(struct arena *arena)
{
	const struct passwd *user = getpwuid(geteuid());
	const char *before = getenv("SUDO_USER");

	if (geteuid() == 0 && before && *before)
		return arena_strdup(arena, before);
	return user ? arena_strdup(arena, user->pw_name)
		    : arena_printf(arena, "uid %lu", (unsigned long)geteuid());
}

const char *state_form(void *form, const char *name)
{
	const struct pairs *pairs = form;

	for (size_t i = 0; i < pairs->count; i++)
		if (strcmp(pairs->items[i].key, name) == 0)
			return pairs->items[i].value;
	return NULL;
}

/* The agent of the options, else that of the configuration. */
static json_t *ask_agent(const struct state_request *request,
	const struct agent_api_options *options, const struct config *config, struct error *error)
{
	struct agent_api *api = agent_api_new(options, config, error);
	json_t *document =
		api ? agent_api_call(api, request->path, request->form, request->key, error) : NULL;

	agent_api_free(api);
	return document;
}

static json_t *perform(const struct state_request *request, const char *state,
	const struct config *config, struct error *error)
{
	struct buf answer = {0};
	json_t *document = NULL;

	if ((request->creates || request->reads || store_expect(state, error)) &&
		request->perform(request->context, state, config, &answer, error))
		document = json_loadb(answer.data, answer.length, 0, NULL);
	buf_free(&answer);
	return document;
}

/* The state is in use: uses the configured agent. */
static json_t *ask_holder(const struct state_request *request, const char *state,
	const struct config *config, struct error *error)
{
	struct agent_api_options options = request->flags->agent;
	json_t *document = NULL;

	options.agent = NULL;
	if (config)
		document = ask_agent(request, &options, config, error);
	else
		(void)error_set(error, ERROR_STATE,
			"its address is unknown: give --agent, or --config instead of "
			"--state-file");
	if (!document && error->kind == ERROR_STATE)
		(void)error_prefix(error, "an agent is using the state %s%s, and ",
			database_is(state) ? "database" : "file ", database_is(state) ? "" : state);
	return document;
}

static json_t *ask_either(const struct state_request *request, const char *state,
	const struct config *config, struct error *error)
{
	const struct timespec pause = {.tv_nsec = PAUSE};
	json_t *document;

	/* Another command may have released the state file meanwhile. Only repeated failures while
	 * no process holds it are failures of the state. A database is never held exclusively. */
	for (int tries = 0, left = 0;; tries++) {
		bool held;

		document = perform(request, state, config, error);
		if (document || error->kind != ERROR_STATE || database_is(state))
			return document;
		held = store_is_held(state);
		left = held ? 0 : left + 1;
		if (left > LEFT)
			return NULL;
		if (held)
			document = ask_holder(request, state, config, error);
		if (document || error->kind != ERROR_STATE || tries == TRIES)
			return document;
		nanosleep(&pause, NULL);
	}
}

/* The form's error begins with "until: "; the user gave --until. */
static void name_flag(const struct cli *cli, struct error *error)
{
	size_t length = strcspn(error->text, ":");

	for (const struct option_part *part = cli->command->parts; part->fields; part++)
		for (const struct field *field = part->fields; field->name; field++)
			if (strncmp(field->name, error->text, length) == 0 &&
				!field->name[length]) {
				(void)error_prefix(error, "--");
				return;
			}
}

void state_emit(const struct cli *cli, json_t *answer, const json_t *items,
	const char *const *columns, int output)
{
	const struct document_items list = document_list(items);
	struct buf text = {0};

	if (output == OUTPUT_JSON) {
		document_put(&text, answer, true);
		buf_char(&text, '\n');
		text_flush(&text, cli->out);
	} else if (output == OUTPUT_CSV) {
		document_csv(&list, columns, cli->out);
	} else {
		document_table_of(cli->arena, &list, columns, cli->out);
	}
}

int state_fail(const struct error *error)
{
	return error->kind == ERROR_NONE ? EXIT_USAGE : cli_fail(error);
}

json_t *state_request(struct cli *cli, const struct state_request *request, struct error *error)
{
	const struct config *config = NULL;
	json_t *document;
	const char *path;
	bool agent;

	if (!state_of_agent(request->flags, &agent, error))
		return NULL;
	if (agent)
		return ask_agent(request, &request->flags->agent, NULL, error);
	if (!request->flags->state_file && !(config = cli_config(cli))) {
		error->kind = ERROR_NONE; /* was printed */
		return NULL;
	}
	path = config ? config->agent.state : request->flags->state_file;
	if (!request->reads)
		document = ask_either(request, path, config, error);
	else if (config && state_is_hidden(path))
		document = ask_agent(request, &request->flags->agent, config, error);
	else
		document = perform(request, path, config, error);
	if (!document)
		name_flag(cli, error);
	return document;
}

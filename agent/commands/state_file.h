/*
 * Which state file a command means, and how it changes the state: through the API of the agent that
 * has it, or itself where none does.
 */
#ifndef AGENT_COMMANDS_STATE_FILE_H
#define AGENT_COMMANDS_STATE_FILE_H

#include "agent/base/buf.h"
#include "agent/cli/agent_api.h"
#include "agent/cli/cli.h"

#define STATE_FILE_HELP "state file; default: agent.state of the configuration"

/* Where a command finds the state: an agent, or a file. */
struct state_flags {
	struct agent_api_options agent;
	const char *state_file;
};

extern const struct field state_fields[];

/* `path`, or the configuration's, in the command's arena. NULL after an error, which was printed;
 * the exit code is then EXIT_USAGE. */
const char *state_file(struct cli *cli, const char *path);

/* Whether the options name an agent, to be used instead of a state file. $HUNTER_AGENT yields to
 * --state-file; both flags are an error. */
bool state_of_agent(const struct state_flags *flags, bool *agent, struct error *error) MUST_USE;

/* Reads a list from the state that --state-file names, or else from the configuration's if it
 * exists
 * (*there); its memory is the command's then. */
struct store_list;
bool state_list(struct cli *cli, const char *given, struct store_list *list, bool *there,
	struct error *error) MUST_USE;

/* Whether this user may not read the file, in which case the agent may show its content. */
bool state_is_hidden(const char *path);

/* The text of a form's field, as forms.h expects it; `form`: struct pairs. */
const char *state_form(void *form, const char *name);

/* The user's name, as far as it is known: the person of requests without authentication. */
const char *state_person(struct arena *arena);

/* Something to be read from the state, or changed in it. */
struct state_request {
	const struct state_flags *flags;
	const char *path; /* of the API */
	bool creates;     /* the state, if there is none: what is written refers to nothing */
	const char *key;  /* that its answer has, see agent_api_call */
	const struct pairs *form; /* NULL: it is read */
	bool reads; /* also while an agent runs, which is used only if this user may not read the
		       file */
	/* The same without an agent: appends the answer of the API. */
	bool (*perform)(void *context, const char *state, const struct config *config,
		struct buf *answer, struct error *error);
	void *context;
};

/*
 * Makes the request to --agent, to the agent that has the state file, or performs it. The document
 * is the caller's, for json_decref; with an "error" in it nothing was changed. NULL and an error as
 * for agent_api_call, for state_fail.
 */
json_t *state_request(struct cli *cli, const struct state_request *request, struct error *error);

/* Prints an answer as --output (enum cli_output) has it: as it is, or its items by columns, see
 * agent/report/document.h. */
void state_emit(const struct cli *cli, json_t *answer, const json_t *items,
	const char *const *columns, int output);

/* Prints the error, unless it was, and returns its exit code. */
int state_fail(const struct error *error);

#endif

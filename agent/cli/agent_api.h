/*
 * A running agent as a command sees it: where it listens, with which credentials, and blocking
 * requests to its API (docs/reference/api.md).
 *
 * Its address is that of --agent or $HUNTER_AGENT, otherwise the configuration's agent.listen: a
 * Unix socket, then a loopback address, then another one. The token is sent to no other
 * server.
 */
#ifndef AGENT_CLI_AGENT_API_H
#define AGENT_CLI_AGENT_API_H

#include <jansson.h>

#include "agent/base/arena.h"
#include "agent/base/field.h"
#include "conf/config.h"

/* Its address and credentials, from a command's flags. */
struct agent_api_options {
	const char *agent;      /* a URL or unix:/path, or NULL */
	const char *token_file; /* or NULL */
	const char *ca_file;    /* or NULL */
};

struct agent_api;

/*
 * The agent at options->agent, otherwise that of the configuration (which may be NULL). The
 * options and the configuration are borrowed. NULL and ERROR_USAGE if the address or the token is
 * malformed, ERROR_STATE if no address is known, with advice. Sends nothing.
 */
struct agent_api *agent_api_new(
	const struct agent_api_options *options, const struct config *config, struct error *error);
void agent_api_free(struct agent_api *api); /* accepts NULL */

/* The address in use, for messages; the arena is the agent_api's. */
const char *agent_api_name(const struct agent_api *api);

/*
 * Sends a GET of `path`, or a POST if `form` is not NULL, and waits for the answer. Parameters
 * without a value are left out. `key`: a member that the document of a 2xx answer has, else it is
 * no answer to that request. The document is the caller's, for json_decref; NULL and an error,
 * unless the status is 2xx, or 409 with an "error":
 * - ERROR_STATE: the agent cannot be reached or did not answer in time, is stopping or busy, or
 *   something else answers there;
 * - ERROR_USAGE: it refused the credentials, the role or the request; the text has the reason. A
 * POST that was not answered may have been carried out.
 */
json_t *agent_api_call(struct agent_api *api, const char *path, const struct pairs *form,
	const char *key, struct error *error) MUST_USE;

/*
 * Lists changes in pages, as long as `keep` wants more of them; it borrows the page, an array, and
 * fails if that has something else than changes. `form`: the parameters but limit and before.
 * *more: there are others beyond those that `keep` wanted. False and an error as above, also if its
 * pages do not end.
 */
bool agent_api_changes(struct agent_api *api, const struct pairs *form,
	bool (*keep)(void *context, json_t *page, bool *wanted), void *context, bool *more,
	struct error *error) MUST_USE;

#endif

/*
 * The triaged changes of tests, and the other changes of these tests, from a state file or a
 * running agent.
 */
#ifndef AGENT_COMMANDS_TRIAGE_LIST_H
#define AGENT_COMMANDS_TRIAGE_LIST_H

#include "agent/cli/agent_api.h"
#include "agent/store/store.h"

struct triage_list;

/* Of these tests, from the agent unless it is NULL, else from the state. NULL and an error,
 * ERROR_STATE if the state or the agent is unavailable. */
struct triage_list *triage_list_read(
	const char *path, struct agent_api *api, const struct strings *tests, struct error *error);
void triage_list_free(struct triage_list *triaged); /* accepts NULL */

/* Those of a test; none without `triaged`. Only the members in the API's JSON are set. */
struct record_rows triage_list_rows(const struct triage_list *triaged, const char *test);
struct record_rows triage_list_all(const struct triage_list *triaged);

#endif

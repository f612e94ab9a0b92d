/*
 * The changes of tests about which people have said something, and the others of these tests, as a
 * state file or a running agent knows them.
 */
#ifndef AGENT_COMMANDS_TRIAGE_LIST_H
#define AGENT_COMMANDS_TRIAGE_LIST_H

#include "agent/cli/agent_api.h"
#include "agent/store/store.h"

struct triage_list;

/* Of the tests of those names, from the agent unless it is NULL, else from the state. NULL and an
 * error, ERROR_STATE if the state or the agent is not available. */
struct triage_list *triage_list_read(
	const char *path, struct agent_api *api, const struct strings *tests, struct error *error);
void triage_list_free(struct triage_list *triaged); /* accepts NULL */

/* Those of a test; none without `triaged`. Only what the API tells of a record is set. */
struct record_rows triage_list_rows(const struct triage_list *triaged, const char *test);
struct record_rows triage_list_all(const struct triage_list *triaged);

#endif

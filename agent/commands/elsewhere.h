/*
 * The changes of tests about which people have said something, and the others of these tests, as a
 * state file or a running agent knows them.
 */
#ifndef AGENT_COMMANDS_ELSEWHERE_H
#define AGENT_COMMANDS_ELSEWHERE_H

#include "agent/cli/agent_api.h"
#include "agent/store/store.h"

struct elsewhere;

/* Of the tests of those names. NULL and an error, ERROR_STATE if the state or the agent is not
 * available. */
struct elsewhere *elsewhere_of_state(
	const char *path, const struct strings *tests, struct error *error);
struct elsewhere *elsewhere_of_agent(
	struct agent_api *api, const struct strings *tests, struct error *error);
void elsewhere_free(struct elsewhere *elsewhere); /* accepts NULL */

/* A record from a change in the API's JSON; false if it is not one. Only what identifies the change
 * and what is said of it is set, with its sizes and commits. Texts are copied to the arena. */
bool elsewhere_record(struct arena *arena, const json_t *object, struct change_record *out);

/* Those of a test; none without `elsewhere`. Only what the API tells of a record is set. */
struct record_rows elsewhere_rows(const struct elsewhere *elsewhere, const char *test);
struct record_rows elsewhere_all(const struct elsewhere *elsewhere);

#endif

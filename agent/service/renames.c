/*
 * Two histories of one name cannot be told apart later, so what is known of a name
 * that has changes of its own stays where it is, and somebody has to decide.
 */
#include "agent/service/renames.h"

#include <string.h>

static void applied(struct store_request *request)
{
	struct agent *agent = request->context;

	for (size_t i = 0; i < request->rename_count && !request->failed; i++) {
		const struct store_rename *rename = &request->renames[i];

		if (rename->moved)
			log_event(LEVEL_INFO, "renamed", LOG_TEXT("test", rename->test),
				LOG_TEXT("metric", rename->metric ? rename->metric : ""),
				LOG_TEXT("was", rename->was));
		if (!rename->taken)
			continue;
		log_event(LEVEL_ERROR,
			"was: the new name has changes of its own already, so those of the old "
			"one stay where they are",
			LOG_TEXT("test", rename->test),
			LOG_TEXT("metric", rename->metric ? rename->metric : ""),
			LOG_TEXT("was", rename->was));
		agent->misconfigured = true;
	}
	store_request_free(request);
}

void renames_apply(struct agent *agent)
{
	const struct config *config = agent->config;
	struct store_request *request;

	if (config->rename_count == 0)
		return;
	request = store_request_new(STORE_RENAME, applied, agent);
	request->renames =
		arena_array(request->arena, config->rename_count, sizeof *request->renames);
	for (size_t i = 0; i < config->rename_count; i++)
		request->renames[i] = (struct store_rename){
			.test = arena_strdup(request->arena, config->renames[i].test),
			.metric = arena_strdup(request->arena, config->renames[i].metric),
			.was = arena_strdup(request->arena, config->renames[i].was)};
	request->rename_count = config->rename_count;
	store_client_call(agent, request);
}

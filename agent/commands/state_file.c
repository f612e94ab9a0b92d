/* Loads the configuration only if --state does not name the file. */
#include "agent/commands/state_file.h"

const char *state_file(struct cli *cli, const char *path)
{
	struct config *config;

	if (path)
		return path;
	config = cli_config(cli);
	if (!config)
		return NULL;
	path = arena_strdup(cli->arena, config->agent.state);
	config_free(config);
	return path;
}

/*
 * The file of agent.web_config, of any bytes: it gives a configuration or problems, and what it
 * gives can be relied on.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "conf/web_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_config(const struct web_config *config)
{
	check(!config->cert_file == !config->key_file);
	check(config->user_header && *config->user_header);
	check(!config->role_header || *config->role_header);
	for (size_t i = 0; i < config->user_count; i++) {
		check(*config->users[i].name && strlen(config->users[i].hash) == 60);
		check(config->users[i].cost >= 4 && config->users[i].cost <= 15);
	}
	for (size_t i = 0; i < config->token_count; i++)
		check(config->tokens[i].name && config->tokens[i].file &&
			config->tokens[i].role >= ROLE_VIEWER);
	for (size_t i = 0; i < config->role_count; i++)
		check(web_config_role(config, config->roles[i].name) == config->roles[i].role);
	for (size_t i = 0; i < config->proxy_count; i++)
		check(config->proxies[i].bits > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct problems problems = {.arena = arena_new()};
	struct web_config *config = web_config_parse(
		"/x/web.yaml", size > 0 ? (const char *)data : "", size, &problems);

	check(!config == (problems.errors > 0));
	if (config)
		check_config(config);
	web_config_free(config);
	arena_free(problems.arena);
	return 0;
}

/* The servers share the routes' context. That of `agent.metrics_listen` has only the routes for
 * monitoring. */

#include <stdlib.h>

#include "agent/base/arena.h"
#include "agent/runtime/events.h"
#include "agent/runtime/repository.h"
#include "agent/web/api.h"
#include "agent/web/assets.h"

struct web {
	struct agent *agent;
	struct api api;
	struct access *access;
	struct http **https; /* one for each address of `agent.listen` */
	size_t count;
	struct http *metrics;
};

static bool open_listed(struct web *web, struct error *error)
{
	const struct agent_settings *settings = &web->agent->config->agent;

	web->access = access_new(&(struct access_options){.engine = web->agent->engine,
					 .metrics = web->agent->metrics,
					 .path = settings->web_config},
		error);
	if (!web->access)
		return error_prefix(error, "agent.web_config: ");
	const struct web_config *config = access_config(web->access);
	bool signs_in = config && web_config_signs_in(config);
	bool takes_secrets = config && config->user_count + config->token_count > 0;

	web->https = memory_new(settings->listen.count, sizeof *web->https);
	for (size_t i = 0; i < settings->listen.count; i++) {
		const struct http_options options = {
			.listen = {.address = settings->listen.items[i],
				.open = web->api.options.insecure || signs_in,
				.mode = settings->socket_mode,
				.owner = settings->socket_owner},
			.access = web->access,
			.external_url = settings->external_url,
			.routes = {pages_routes, api_routes, asset_routes, picture_routes},
			.context = &web->api,
			.ending = &web->agent->stopping};

		web->https[i] = http_start(web->agent->engine, &options, error);
		if (!web->https[i])
			return error_prefix(error, "agent.listen: ");
		web->count++;
		if (http_is_reachable(web->https[i]) && takes_secrets && !access_tls(web->access))
			log_event(LEVEL_WARN,
				"public address without TLS: passwords and tokens are sent "
				"unencrypted (set tls_server_config in agent.web_config)",
				LOG_TEXT("listen", settings->listen.items[i]));
	}
	return true;
}

static bool open_metrics(struct web *web, struct error *error)
{
	const char *listen = web->agent->config->agent.metrics_listen;

	if (!listen)
		return true;
	web->metrics = http_start(web->agent->engine,
		&(struct http_options){.listen = {.address = listen, .open = true},
			.routes = {pages_routes},
			.context = &web->api},
		error);
	return web->metrics || error_prefix(error, "agent.metrics_listen: ");
}

struct web *web_open(struct agent *agent, struct scheduler *scheduler,
	const struct web_options *options, struct error *error)
{
	struct web *web = memory_new(1, sizeof *web);

	*web = (struct web){.agent = agent,
		.api = {.agent = agent, .scheduler = scheduler, .options = *options}};
	web->api.watchers = watchers_new(agent);
	web->api.datasets = datasets_new(agent);
	web->api.repositories = repositories_new(agent);
	web->api.arrivals = arrivals_new(&web->api);
	if (open_listed(web, error) && open_metrics(web, error))
		return web;
	web_free(web);
	return NULL;
}

void web_stop(struct web *web)
{
	if (!web)
		return;
	for (size_t i = 0; i < web->count; i++)
		http_stop(web->https[i]);
	http_stop(web->metrics);
}

void web_free(struct web *web)
{
	if (!web)
		return;
	repositories_free(web->api.repositories);
	for (size_t i = 0; i < web->count; i++)
		http_free(web->https[i]);
	http_free(web->metrics);
	watchers_free(web->api.watchers);
	datasets_free(web->api.datasets);
	access_free(web->access);
	api_silences_free(&web->api);
	arrivals_free(web->api.arrivals);
	free(web->https);
	free(web);
}

const char *web_adopt(struct web *web)
{
	const char *problem = access_reload(web->access);

	events_reload(web->agent);
	for (size_t i = 0; i < web->count; i++)
		http_end_streams(web->https[i]);
	return problem;
}

uint16_t web_port(const struct web *web)
{
	uint16_t port = 0;

	for (size_t i = 0; web && i < web->count && port == 0; i++)
		port = http_port(web->https[i]);
	return port;
}

uint16_t web_metrics_port(const struct web *web)
{
	return web && web->metrics ? http_port(web->metrics) : 0;
}

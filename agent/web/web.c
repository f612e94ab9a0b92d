/* The two servers share the pages' context. The second has only the read-only routes. */
#include "agent/web/web.h"

#include <stdlib.h>

#include "agent/core/arena.h"
#include "agent/web/api.h"

struct web {
	struct agent *agent;
	struct web_options options;
	struct api api;
	struct pages pages;
	struct http *http, *metrics;
};

static void collect(void *context)
{
	struct web *web = context;
	struct metrics *metrics = web->agent->metrics;

	metrics_set(metrics, METRIC_STORE_SIZE, (double)store_size(web->agent->store), NULL, NULL);
	struct engine_memory memory = engine_memory(web->agent->engine);

	metrics_set(metrics, METRIC_MEMORY_IN_FLIGHT, (double)memory.used, NULL, NULL);
	metrics_set(metrics, METRIC_MEMORY_WAITS, (double)memory.waits, NULL, NULL);
	if (web->options.collect)
		web->options.collect(web->options.context);
}

static const char *unready(void *context)
{
	const struct web *web = context;

	return web->options.unready ? web->options.unready(web->options.context) : NULL;
}

static bool open_both(struct web *web, struct error *error)
{
	const struct agent_settings *settings = &web->agent->config->agent;
	struct engine *engine = web->agent->engine;
	struct http_options options = {.listen = settings->listen,
		.open = web->options.insecure,
		.routes = pages_routes,
		.more = api_routes,
		.context = &web->pages};

	web->http = http_start(engine, &options, error);
	if (!web->http)
		return error_prefix(error, "agent.listen: ");
	if (!settings->metrics_listen)
		return true;
	options = (struct http_options){.listen = settings->metrics_listen,
		.open = true,
		.routes = pages_routes,
		.context = &web->pages};
	web->metrics = http_start(engine, &options, error);
	return web->metrics || error_prefix(error, "agent.metrics_listen: ");
}

struct web *web_open(struct agent *agent, struct scheduler *scheduler,
	const struct web_options *options, struct error *error)
{
	struct web *web = memory_new(1, sizeof *web);

	*web = (struct web){.agent = agent,
		.options = *options,
		.api = {.agent = agent, .scheduler = scheduler, .reload = options->reload},
		.pages = {.metrics = agent->metrics,
			.unready = unready,
			.collect = collect,
			.context = web,
			.api = &web->api}};
	if (open_both(web, error))
		return web;
	web_free(web);
	return NULL;
}

void web_stop(struct web *web)
{
	if (!web)
		return;
	http_stop(web->http);
	http_stop(web->metrics);
}

void web_free(struct web *web)
{
	if (!web)
		return;
	http_free(web->http);
	http_free(web->metrics);
	free(web);
}

uint16_t web_port(const struct web *web)
{
	return web && web->http ? http_port(web->http) : 0;
}

uint16_t web_metrics_port(const struct web *web)
{
	return web && web->metrics ? http_port(web->metrics) : 0;
}

/*
 * The two servers share the pages' context. The second has no routes but those for reading.
 */
#include "agent/web/face.h"

#include <stdlib.h>

#include "agent/core/arena.h"
#include "agent/web/api.h"

struct face {
	struct agent *agent;
	struct face_options options;
	struct api api;
	struct pages pages;
	struct http *http, *metrics;
};

static void collect(void *context)
{
	struct face *face = context;
	struct metrics *metrics = face->agent->metrics;

	metrics_set(metrics, METRIC_STORE_SIZE, (double)store_size(face->agent->store), NULL, NULL);
	struct engine_memory memory = engine_memory(face->agent->engine);

	metrics_set(metrics, METRIC_MEMORY_IN_FLIGHT, (double)memory.used, NULL, NULL);
	metrics_set(metrics, METRIC_MEMORY_WAITS, (double)memory.waits, NULL, NULL);
	if (face->options.collect)
		face->options.collect(face->options.context);
}

static const char *unready(void *context)
{
	const struct face *face = context;

	return face->options.unready ? face->options.unready(face->options.context) : NULL;
}

static bool open_both(struct face *face, struct error *error)
{
	const struct agent_settings *settings = &face->agent->config->agent;
	struct engine *engine = face->agent->engine;
	struct http_options options = {.listen = settings->listen,
		.open = face->options.insecure,
		.routes = pages_routes,
		.more = api_routes,
		.context = &face->pages};

	face->http = http_start(engine, &options, error);
	if (!face->http)
		return error_prefix(error, "agent.listen: ");
	if (!settings->metrics_listen)
		return true;
	options = (struct http_options){.listen = settings->metrics_listen,
		.open = true,
		.routes = pages_routes,
		.context = &face->pages};
	face->metrics = http_start(engine, &options, error);
	return face->metrics || error_prefix(error, "agent.metrics_listen: ");
}

struct face *face_open(struct agent *agent, struct watch *watch, const struct face_options *options,
	struct error *error)
{
	struct face *face = memory_new(1, sizeof *face);

	*face = (struct face){.agent = agent,
		.options = *options,
		.api = {.agent = agent, .watch = watch, .reload = options->reload},
		.pages = {.metrics = agent->metrics,
			.unready = unready,
			.collect = collect,
			.context = face,
			.api = &face->api}};
	if (open_both(face, error))
		return face;
	face_free(face);
	return NULL;
}

void face_stop(struct face *face)
{
	if (!face)
		return;
	http_stop(face->http);
	http_stop(face->metrics);
}

void face_free(struct face *face)
{
	if (!face)
		return;
	http_free(face->http);
	http_free(face->metrics);
	free(face);
}

uint16_t face_port(const struct face *face)
{
	return face && face->http ? http_port(face->http) : 0;
}

uint16_t face_metrics_port(const struct face *face)
{
	return face && face->metrics ? http_port(face->metrics) : 0;
}

/*
 * Healthy means that the loop runs, which this answer proves. Ready means that changes will be
 * recorded, as the agent reports.
 */
#include "agent/http/head.h"
#include "agent/web/api.h"

static void get_metrics(struct http_request *request)
{
	const struct api *api = api_of(request);
	struct metrics *metrics = api->agent->metrics;
	const char *accept = http_header(request, "Accept");
	double open = http_quality(request->arena, accept, "application/openmetrics-text", "1.0.0");
	double text = http_quality(request->arena, accept, "text/plain", "0.0.4");
	/* OpenMetrics only for clients that name it and do not prefer the older format. */
	enum metrics_format format = open > 0 && open >= text ? METRICS_OPENMETRICS : METRICS_TEXT;
	struct http_answer answer = {.type = metrics_content_types[format]};

	api->options.collect(api->options.context);
	metrics_set(metrics, METRIC_READY, !api->options.unready(api->options.context), NULL);
	metrics_collect_process(metrics);
	metrics_print(metrics, format, &answer.body);
	http_answer(request, &answer);
}

static void answer_line(struct http_request *request, int status, const char *line)
{
	struct http_answer answer = {.status = status, .type = "text/plain; charset=utf-8"};

	buf_printf(&answer.body, "%s\n", line);
	http_answer(request, &answer);
}

static void get_healthy(struct http_request *request)
{
	answer_line(request, 200, "healthy");
}

static void get_ready(struct http_request *request)
{
	const struct web_options *options = &api_of(request)->options;
	const char *why = options->unready(options->context);

	answer_line(request, why ? 503 : 200, why ? why : "ready");
}

const struct route pages_routes[] = {
	{"/metrics", HTTP_READ | HTTP_OPEN, ROLE_VIEWER, 0, NULL, get_metrics},
	{"/-/healthy", HTTP_READ | HTTP_OPEN, ROLE_ANYBODY, 0, NULL, get_healthy},
	{"/-/ready", HTTP_READ | HTTP_OPEN, ROLE_ANYBODY, 0, NULL, get_ready},
	{0},
};

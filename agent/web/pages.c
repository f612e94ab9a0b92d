/*
 * Healthy means that the loop runs, which this answer proves. Ready means that changes will be
 * recorded, as the agent reports.
 */
#include "agent/web/pages.h"

#include "agent/http/head.h"

static const char *why_unready(const struct pages *pages)
{
	return pages->unready ? pages->unready(pages->context) : NULL;
}

/* OpenMetrics only for clients that name it and do not prefer the older format. */
static enum metrics_format format_for(const char *accept)
{
	struct http_preference open = http_accept(accept, "application/openmetrics-text", "1.0.0");
	struct http_preference text = http_accept(accept, "text/plain", "0.0.4");

	return open.named && open.quality > 0 && open.quality >= text.quality ? METRICS_OPENMETRICS
									      : METRICS_TEXT;
}

static void get_metrics(struct http_request *request)
{
	const struct pages *pages = http_context(request);
	enum metrics_format format = format_for(http_header(request, "Accept"));
	struct http_answer answer = {.type = metrics_content_types[format]};

	if (pages->collect)
		pages->collect(pages->context);
	metrics_set(pages->metrics, METRIC_READY, why_unready(pages) ? 0 : 1, NULL, NULL);
	metrics_collect_process(pages->metrics);
	metrics_print(pages->metrics, format, &answer.body);
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
	const char *why = why_unready(http_context(request));

	answer_line(request, why ? 503 : 200, why ? why : "ready");
}

const struct route pages_routes[] = {
	{.path = "/metrics", .methods = HTTP_READ, .serve = get_metrics, .needs = ROLE_VIEWER},
	{.path = "/-/healthy", .methods = HTTP_READ, .serve = get_healthy, .needs = ROLE_ANYBODY},
	{.path = "/-/ready", .methods = HTTP_READ, .serve = get_ready, .needs = ROLE_ANYBODY},
	{0},
};

/*
 * Healthy means that the loop turns: this answer is the proof. Ready means that what is found will
 * be recorded, which the agent says by itself.
 */
#include "agent/watch/pages.h"

static void get_metrics(void *context, struct http_answer *answer)
{
	const struct pages *pages = context;
	if (pages->collect)
		pages->collect(pages->context);
	metrics_collect_process(pages->metrics);
	answer->type = metrics_content_types[METRICS_TEXT];
	metrics_print(pages->metrics, METRICS_TEXT, &answer->body);
}

static void get_healthy(void *context, struct http_answer *answer)
{
	(void)context;
	buf_text(&answer->body, "healthy\n");
}

static void get_ready(void *context, struct http_answer *answer)
{
	const struct pages *pages = context;
	const char *why = pages->unready ? pages->unready(pages->context) : NULL;
	answer->status = why ? 503 : 200;
	buf_printf(&answer->body, "%s\n", why ? why : "ready");
}

const struct route pages_routes[] = {
	{"/metrics", get_metrics}, {"/-/healthy", get_healthy}, {"/-/ready", get_ready}, {0}};

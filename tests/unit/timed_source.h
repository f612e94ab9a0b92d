/*
 * A source as small as they get: an HTTP server's lines "TIME VALUE", in seconds since 1970. This
 * is all that a new source is, beside its line in the registry.
 */
#include <stdlib.h>
#include <string.h>

#include "sources/http.h"
#include "sources/source.h"

struct timed_options {
	const char *path;
};

static const struct field timed_fields[] = {
	OPTION_STRING(struct timed_options, path, NULL, "where on the server the lines are",
		.flags = FIELD_REQUIRED),
	{0},
};

/* Reads a line; false at the first that is none. */
static bool timed_line(const char **text, int64_t *time, double *value)
{
	char *end;
	long long seconds = strtoll(*text, &end, 10);
	if (end == *text || *end != ' ' || seconds < 0 || seconds > INT64_MAX / 1000)
		return false;
	*time = seconds * 1000;
	*text = end;
	*value = strtod(*text, &end);
	bool good = end != *text && *end == '\n';
	*text = end + good;
	return good;
}

static void timed_read(struct query *query, const char *text)
{
	struct series *series = arena_alloc(query->arena, sizeof *series);
	struct axis *axis = arena_alloc(query->arena, sizeof *axis);
	size_t room = strlen(text);
	axis->times = arena_array(query->arena, room + 1, sizeof *axis->times);
	*series = (struct series){.metric = query->metrics,
		.name = query->metrics->name,
		.identity = query->metrics->name,
		.axis = axis,
		.values = arena_array(query->arena, room + 1, sizeof *series->values)};
	while (timed_line(&text, &axis->times[axis->n], &series->values[axis->n]))
		series->values[axis->n++] *= series->metric->scale;
	if (*text)
		query_notice(query, "what follows \"%.40s\" was not read", text);
	query->data = (struct dataset){series, 1};
	dataset_sort(&query->data, query->arena);
}

static enum step timed_step(
	struct query *query, const struct reply *last, struct transfer *next, struct error *error)
{
	const struct timed_options *options = query->options;
	const struct endpoint *server = query->server;
	*next = (struct transfer){.endpoint = server,
		.method = "GET",
		.url = arena_printf(query->arena, "%s/%s", server->url, options->path)};
	if (!last)
		return STEP_TRANSFER;
	if (last->kind != REPLY_ANSWER || last->status != 200)
		return http_error_answer(server->url, last, NULL, NULL, error) ? STEP_DONE
									       : STEP_FAILED;
	timed_read(query, last->body);
	return STEP_DONE;
}

static bool timed_check_metrics(
	const void *options, const struct metric *metrics, size_t count, struct error *error)
{
	(void)options, (void)metrics;
	return count == 1 || error_set(error, ERROR_USAGE, "metrics: one is needed");
}

static const struct source timed_source = {
	.plugin = {.name = "timed",
		.summary = "lines of time and value over HTTP",
		.fields = timed_fields,
		.options_size = sizeof(struct timed_options),
		.server_size = sizeof(struct endpoint),
		.endpoint = true,
		.check_metrics = timed_check_metrics},
	.step = timed_step,
};

/*
 * A test without a step is read as raw samples: an instant query of `selector[range]` answers with
 * every sample at its true time, be they a minute or a day apart. With a step it is `query_range`
 * on a grid of multiples of the step, so that the result does not depend on the time of asking,
 * split under the 11,000 points a series may have in one answer. Requests follow one another,
 * metric by metric and piece by piece.
 */
#include "sources/prometheus.h"

#include <stdio.h>
#include <string.h>

#include "agent/core/buf.h"
#include "agent/core/when.h"
#include "sources/prometheus_series.h"
#include "sources/refuse.h"

enum {
	PIECE_POINTS = 11000, /* Prometheus' limit */
	GRID_POINTS_MAX = 1000000,
	GET_URL_MAX = 2000, /* longer ones go by POST */
};

#define OPTION(member) offsetof(struct prometheus_options, member)

static const struct field prometheus_fields[] = {
	{.name = "query",
		.type = FIELD_STRING,
		.offset = OPTION(query),
		.metavar = "PROMQL",
		.help = "PromQL; every label set it returns is a metric of its own"},
	{.name = "range",
		.type = FIELD_DURATION,
		.offset = OPTION(range),
		.initial = "30d",
		.min = 1000,
		.max = 315360000e3,
		.help = "how far back to look where no --since is given"},
	{.name = "step",
		.type = FIELD_DURATION,
		.offset = OPTION(step),
		.max = 315360000e3,
		.help = "distance of the points; without it the query is a selector, and its raw "
			"samples are read with their true time stamps"},
	{0}};

/* What is asked next: the piece [from, to) of the range [begin, end) of metric `at`. */
struct asking {
	struct collection *collection;
	size_t at;
	const char *query;
	int64_t begin, end;
	int64_t from, to;
	const char *address; /* for messages, without the query */
	bool raw;
};

/* Rounds up to a multiple, for times before 1970 too. */
static int64_t round_up(int64_t value, int64_t step)
{
	int64_t rest = value % step;
	if (rest == 0)
		return value;
	return rest > 0 ? value - rest + step : value - rest;
}

static bool set_range(struct query *query, struct asking *asking, struct error *error)
{
	const struct prometheus_options *options = query->options;
	int64_t end = query->until == WHEN_NEVER ? query->now + 1 : query->until;
	int64_t begin = query->since == WHEN_ALWAYS ? end - options->range : query->since;
	if (begin < 0)
		begin = 0;
	if (options->step > 0) {
		begin = round_up(begin, options->step);
		if (begin < end && (end - 1 - begin) / options->step >= GRID_POINTS_MAX)
			return error_set(error, ERROR_USAGE,
				"range and step ask for more than %d points: raise step",
				GRID_POINTS_MAX);
	}
	asking->begin = asking->from = begin;
	asking->end = end;
	asking->raw = options->step == 0;
	return true;
}

static bool find_query(const struct query *query, struct asking *asking, struct error *error)
{
	const struct prometheus_options *options = query->options;
	const struct metric *metric = query->metric_count ? &query->metrics[asking->at] : NULL;
	size_t sharing = 0;
	for (size_t i = 0; i < query->metric_count; i++)
		sharing += !query->metrics[i].query;
	asking->query = metric && metric->query ? metric->query : options->query;
	if (!asking->query)
		return metric ? error_set(error, ERROR_USAGE,
					"metric \"%s\" has no query, and the test neither",
					metric->name)
			      : error_set(error, ERROR_USAGE, "the test has no query");
	if (sharing > 1)
		return error_set(error, ERROR_USAGE,
			"%zu metrics have no query of their own, so they would be the same",
			sharing);
	return true;
}

/* Seconds with up to three decimals, as the API takes times. */
static void write_seconds(struct buf *out, const char *name, int64_t ms)
{
	buf_printf(out, "&%s=%lld", name, (long long)(ms / 1000));
	if (ms % 1000)
		buf_printf(out, ".%03d", (int)(ms % 1000));
}

static const char *parameters(const struct query *query, struct asking *asking)
{
	const struct prometheus_options *options = query->options;
	const struct endpoint *endpoint = query->server;
	struct buf promql = {0}, out = {0};
	buf_text(&promql, asking->query);
	if (asking->raw) {
		asking->to = asking->end;
		buf_printf(&promql, "[%lldms]", (long long)(asking->to - asking->from));
	}
	buf_text(&out, "query=");
	transfer_encode(&out, promql.data);
	if (asking->raw) {
		write_seconds(&out, "time", asking->to - 1);
	} else {
		int64_t left = (asking->end - 1 - asking->from) / options->step + 1;
		int64_t points = left < PIECE_POINTS ? left : PIECE_POINTS;
		asking->to = asking->from + points * options->step;
		write_seconds(&out, "start", asking->from);
		write_seconds(&out, "end", asking->to - options->step);
		write_seconds(&out, "step", options->step);
	}
	buf_printf(&out, "&timeout=%lldms", (long long)endpoint->timeout);
	const char *text = arena_strndup(query->arena, out.data, out.length);
	buf_free(&promql);
	buf_free(&out);
	return text;
}

static void ask(struct query *query, struct asking *asking, struct transfer *next)
{
	static const struct pair form[] = {{"Content-Type", "application/x-www-form-urlencoded"}};
	const struct endpoint *endpoint = query->server;
	const char *address = transfer_join_url(
		query->arena, endpoint->url, asking->raw ? "api/v1/query" : "api/v1/query_range");
	const char *text = parameters(query, asking);
	asking->address = address;
	*next = (struct transfer){.kind = TRANSFER_HTTP, .endpoint = endpoint};
	if (strlen(address) + strlen(text) < GET_URL_MAX) {
		next->method = "GET";
		next->url = arena_printf(query->arena, "%s?%s", address, text);
	} else {
		next->method = "POST";
		next->url = address;
		next->headers = (struct pairs){form, 1};
		next->body = text;
		next->body_length = strlen(text);
	}
	collection_expect(asking->collection,
		query->metric_count ? &query->metrics[asking->at] : NULL, asking->from, asking->to);
}

/* What to do about an answer that is no success, where this source knows more than others. */
static const char *advice(const struct asking *asking, const struct reply *reply, const char *said)
{
	if (strstr(said, "too many samples"))
		return ": shorten range, or raise step";
	if (reply->status == 400 && asking->raw && !strstr(said, "HTTPS server"))
		return " (without step the query must be a selector, as its raw samples are read: "
		       "add step to the test)";
	return NULL;
}

static enum step refuse(const struct asking *asking, const struct reply *reply, const char *said,
	struct error *error)
{
	return refuse_answer(asking->address, reply, said, advice(asking, reply, said), error);
}

static enum step take_answer(struct query *query, const struct reply *reply, struct error *error)
{
	struct asking *asking = query->state;
	struct answer answer = {0};
	if (reply->kind != REPLY_ANSWER) {
		error_set(error, ERROR_DATA, "%s", reply->problem);
		return STEP_FAILED;
	}
	if (refuse_is_page(reply))
		return refuse(asking, reply, "", error);
	bool read = answer_read(query->arena, reply->body, reply->length, collection_take,
		asking->collection, &answer, error);
	if (reply->status != 200 || (read && answer.failure))
		return refuse(asking, reply,
			refuse_line(query->arena,
				read && answer.failure ? answer.failure : reply->body),
			error);
	if (!read) {
		error_prefix(error, "%s: ", asking->address);
		return STEP_FAILED;
	}
	if (!answer.type || strcmp(answer.type, "matrix") != 0) {
		error_set(error, ERROR_DATA, "%s: the query gives a %s and no series over time",
			asking->address, answer.type ? answer.type : "nothing");
		return STEP_FAILED;
	}
	for (size_t i = 0; i < answer.warnings.count; i++)
		query_notice(query, "the server warns: %s",
			refuse_line(query->arena, answer.warnings.items[i]));
	return STEP_DONE;
}

static void finish(struct query *query, const struct asking *asking)
{
	size_t histograms = collection_histograms(asking->collection);
	query->data = collection_dataset(asking->collection);
	if (histograms > 0)
		query_notice(query,
			"%zu native histograms were left out: ask for histogram_quantile() or "
			"histogram_count() of them",
			histograms);
	if (query->data.count == 0)
		query_notice(query, "no data: %s",
			asking->raw
				? "no series matches the selector, or none has samples in the range"
				: "the query gives nothing in the range (a point is found if a "
				  "sample is at "
				  "most 5 minutes older; without step raw samples are read)");
}

/* Moves on to the next piece or metric; false if all was asked. */
static bool advance(const struct query *query, struct asking *asking)
{
	asking->from = asking->to;
	if (asking->from < asking->end)
		return true;
	asking->from = asking->begin;
	return ++asking->at < query->metric_count;
}

static enum step prometheus_step(
	struct query *query, const struct reply *last, struct transfer *next, struct error *error)
{
	struct asking *asking = query->state;
	const struct endpoint *endpoint = query->server;
	if (!last) {
		asking = query->state = arena_alloc(query->arena, sizeof *asking);
		asking->collection = collection_new(query->arena);
		if (!endpoint || !endpoint->url) {
			error_set(
				error, ERROR_USAGE, "no server: set url in the prometheus section");
			return STEP_FAILED;
		}
		if (!set_range(query, asking, error))
			return STEP_FAILED;
	} else {
		if (take_answer(query, last, error) == STEP_FAILED)
			return STEP_FAILED;
		if (!advance(query, asking)) {
			finish(query, asking);
			return STEP_DONE;
		}
	}
	if (asking->begin >= asking->end) {
		finish(query, asking);
		return STEP_DONE;
	}
	if (!find_query(query, asking, error))
		return STEP_FAILED;
	ask(query, asking, next);
	return STEP_TRANSFER;
}

const struct source prometheus_source = {
	.name = "prometheus",
	.summary = "Prometheus, VictoriaMetrics, Thanos, Mimir: PromQL over HTTP",
	.fields = prometheus_fields,
	.options_size = sizeof(struct prometheus_options),
	.server_size = sizeof(struct endpoint),
	.step = prometheus_step,
};

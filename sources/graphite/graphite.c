/*
 * A test takes up to four kinds of requests: /metrics/find for the metrics below a prefix, if the
 * test lists none; /render for the series: many plain paths at once, but each expression alone,
 * since only paths can be recognised in the answer; /metrics/find again to explain missing series;
 * /events/get_data for commits and versions.
 *
 * The raw format is preferred. JSON is used if a server lacks it, and if raw answers are almost
 * empty or too large for a single metric, since JSON can omit missing values; also if nothing marks
 * the end of the answer, since a raw answer may have been cut at the end of a line, which JSON's
 * brackets would show. The number of paths in a request follows from the size of the last answer.
 */
#include "sources/graphite/graphite.h"

#include <stdio.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/utf8.h"
#include "agent/base/when.h"
#include "sources/graphite/answer.h"
#include "sources/graphite/events.h"
#include "sources/graphite/find.h"
#include "sources/graphite/series.h"
#include "sources/graphite/target.h"
#include "sources/http.h"
#include "sources/source.h"

/*
 * Turns a test's options and metrics into targets.
 *
 * Branches are part of paths, as in Hunter: a branch has its own prefix, or its name is part of the
 * prefix. Otherwise a test cannot be read for a branch.
 */

struct graphite_plan {
	struct target *targets; /* NULL: all metrics below the prefix */
	size_t count;
	const char *prefix; /* with the branch, or NULL */
};

static bool branch_missing(const char *option, struct error *error)
{
	return error_set(error, ERROR_USAGE,
		"the test does not support branches (--branch or $BRANCH): set branch_prefix, or "
		"use %%{BRANCH} in its "
		"%s",
		option);
}

static bool find_prefix(const struct query *query, const char **out, struct error *error)
{
	const struct graphite_options *options = query->options;
	const char *prefix = options->prefix;
	if (query->branch && options->branch_prefix)
		prefix = options->branch_prefix;
	else if (query->branch && prefix && !strstr(prefix, "%{BRANCH}"))
		return branch_missing("prefix", error);
	*out = prefix;
	return !prefix || target_fill_branch(query->arena, prefix, query->branch, out, error);
}

static bool find_target(
	const struct query *query, const char *text, struct target *out, struct error *error)
{
	if (query->branch && !strstr(text, "%{BRANCH}"))
		return branch_missing("target", error);
	if (!target_fill_branch(query->arena, text, query->branch, &out->text, error))
		return false;
	out->plain = target_is_plain(out->text);
	return true;
}

/* The target of a metric: its own, prefix and suffix, or that of the test. */
static bool metric_target(const struct query *query, const struct metric *metric,
	const char *prefix, struct target *out, struct error *error)
{
	const struct graphite_options *options = query->options;
	out->metric = metric;
	if (metric->query)
		return find_target(query, metric->query, out, error);
	if (metric->suffix && prefix) {
		const char *suffix;
		if (!target_fill_branch(
			    query->arena, metric->suffix, query->branch, &suffix, error))
			return false;
		out->text = arena_printf(query->arena, "%s.%s", prefix, suffix);
		out->plain = target_is_plain(out->text);
		return true;
	}
	if (options->target && !metric->suffix)
		return find_target(query, options->target, out, error);
	return error_set(error, ERROR_USAGE, "metric \"%s\" has no %s", metric->name,
		metric->suffix ? "prefix is missing in the test" : "suffix and no target");
}

/* Fails (ERROR_USAGE) if the test cannot serve the query. */
static bool graphite_plan(struct query *query, struct graphite_plan *out, struct error *error)
{
	const struct graphite_options *options = query->options;
	size_t sharing = 0;
	for (size_t i = 0; i < query->metric_count; i++)
		sharing += !query->metrics[i].query && !query->metrics[i].suffix;
	if (sharing > 1 && options->target)
		return error_set(error, ERROR_USAGE,
			"%zu metrics have no target of their own, so they would be equal", sharing);
	if (!find_prefix(query, &out->prefix, error))
		return false;
	out->targets = arena_array(
		query->arena, query->metric_count ? query->metric_count : 1, sizeof *out->targets);
	out->count = query->metric_count;
	for (size_t i = 0; i < query->metric_count; i++)
		if (!metric_target(query, &query->metrics[i], out->prefix, &out->targets[i], error))
			return false;
	if (query->metric_count > 0)
		return true;
	if (options->target) {
		out->count = 1;
		return find_target(query, options->target, out->targets, error);
	}
	out->targets = NULL;
	return out->prefix ||
	       error_set(error, ERROR_USAGE, "the test has neither prefix nor target");
}

enum {
	TARGETS_AT_FIRST = 10,
	TARGETS_AT_ONCE = 100,
	SPARSE_LEAST = 1 << 20, /* bytes of a raw answer from which JSON is worth considering */
	JSON_POINT = 32,        /* most bytes of a point in JSON, nearly always */
	SHOWN = 200,
};

static const int64_t day = 86400000;
static const int64_t deployed_before = INT64_C(31) * 86400000; /* ms */
static const int64_t earliest = 100000000; /* s; Graphite takes eight digits and fewer for a date */

static const char *const event_modes[] = {"deployments", "per_run", NULL};

static const struct field graphite_fields[] = {
	OPTION_STRING(struct graphite_options, prefix, NULL,
		"path before the suffixes of the metrics; may contain %{BRANCH}"),
	OPTION_STRING(struct graphite_options, branch_prefix, NULL, "prefix for a given branch"),
	OPTION_STRING(struct graphite_options, target, NULL,
		"Graphite expression, instead of a prefix; each returned series is a metric"),
	OPTION_DURATION(struct graphite_options, range, "365d", 1000, 315360000e3,
		"time range to read unless --since is given"),
	OPTION_CHOICE(struct graphite_options, events, "deployments", event_modes,
		"meaning of events: deployments (all later points are of that commit), or per_run "
		"(each event belongs to one point)"),
	{0},
};

enum phase { WALK, RENDER, DIAGNOSE, EVENTS, END };

struct graphite_request {
	enum phase phase;
	int64_t begin, end; /* ms, [begin, end) */
	struct metric_walk walk;
	struct target *targets;
	size_t target_count;
	size_t at, batch; /* the current request is for targets [at, at + batch) */
	size_t at_once,
		limit; /* paths in one request; answers that are too large lower the limit */
	bool json;
	struct graphite_set set;
	struct diagnosis diagnosis;
	struct graphite_events events;
	const char *address; /* without the query, for messages */
};

static void set_range(const struct query *query, struct graphite_request *request)
{
	const struct graphite_options *options = query->options;
	int64_t end = query->until == WHEN_NEVER ? query->now + 1 : query->until;
	int64_t begin = query->since == WHEN_ALWAYS ? end - options->range : query->since;
	if (query->listing)
		begin = end - day;
	request->begin = begin > earliest * 1000 ? begin : earliest * 1000;
	request->end = end;
}

static bool start(struct query *query, struct error *error)
{
	const struct endpoint *endpoint = query->server;
	struct graphite_request *request = query->state =
		arena_alloc(query->arena, sizeof *request);
	struct graphite_plan plan;
	if (!endpoint || !endpoint->url)
		return error_set(error, ERROR_USAGE, "no server: set url in the graphite section");
	request->at_once = TARGETS_AT_FIRST;
	request->limit = TARGETS_AT_ONCE;
	set_range(query, request);
	request->set = (struct graphite_set){.query = query,
		.from = request->begin,
		.to = request->end,
		.empty = query->listing};
	if (!graphite_plan(query, &plan, error))
		return false;
	request->targets = plan.targets;
	request->target_count = plan.count;
	request->phase = plan.targets ? RENDER : WALK;
	request->walk = (struct metric_walk){.arena = query->arena,
		.prefix = plan.prefix,
		.folders = {plan.prefix},
		.folder_count = 1};
	if (request->begin >= request->end)
		request->phase = END;
	return true;
}

/* Graphite excludes `from` and includes `until`, both in seconds. */
static void ask_render(struct query *query, struct transfer *next)
{
	struct graphite_request *request = query->state;
	struct target *targets = request->targets + request->at;
	struct buf parameters = {0};
	request->batch = 1;
	while (targets[0].plain && request->batch < request->at_once &&
		request->at + request->batch < request->target_count &&
		targets[request->batch].plain)
		request->batch++;
	for (size_t i = 0; i < request->batch; i++) {
		buf_text(&parameters, "target=");
		transfer_encode(&parameters, targets[i].text);
		buf_char(&parameters, '&');
	}
	int64_t from = (request->begin - 1) / 1000, until = (request->end - 1) / 1000;
	buf_printf(&parameters, "from=%lld&until=%lld&format=%s", (long long)from,
		(long long)(until > from ? until : from + 1),
		request->json ? "json&noNullPoints=true" : "raw");
	request->set.targets = targets;
	request->set.target_count = request->batch;
	request->address = http_ask(query, "render", &parameters, next);
}

/* An event may come up to a day after its point's bucket begins. The version of the first point was
 * deployed before it. */
static void ask_events(struct query *query, struct transfer *next)
{
	struct graphite_request *request = query->state;
	struct buf parameters = {0};
	const struct graphite_options *options = query->options;
	int64_t until = request->end + day < query->now ? request->end + day : query->now;
	int64_t from = options->events == EVENTS_PER_RUN ? request->begin
							 : request->begin - deployed_before;
	from = from > earliest * 1000 ? from : earliest * 1000;
	buf_text(&parameters, "tags=");
	bool listed = false;
	for (size_t i = 0; i < query->tags.count; i++) {
		buf_text(&parameters, i ? "%20" : "");
		transfer_encode(&parameters, query->tags.items[i]);
		listed = listed ||
			 (query->branch && strcmp(query->branch, query->tags.items[i]) == 0);
	}
	if (query->branch && !listed) {
		buf_text(&parameters, "%20");
		transfer_encode(&parameters, query->branch);
	}
	buf_printf(&parameters, "&set=intersection&from=%lld&until=%lld", (long long)(from / 1000),
		(long long)((until > request->begin ? until : request->begin) / 1000));
	request->address = http_ask(query, "events/get_data", &parameters, next);
}

static void notice_missing(struct query *query, const struct graphite_request *request)
{
	bool noticed = query->notices.count > 0;
	for (size_t i = 0; i < request->target_count; i++) {
		const struct target *target = &request->targets[i];
		if (!target->answered || target->points || !target->metric)
			continue;
		query_notice(query, "no values of \"%.*s\" in the range",
			(int)utf8_cut(target->text, SHOWN), target->text);
		noticed = true;
	}
	if (query->data.count == 0 && !noticed && !query->incomplete)
		query_notice(query, "no data: %s",
			request->target_count == 0 ? "the server has no metrics below the prefix"
						   : "the series have no values in the range");
}

/* Decides on the next request, or ends. */
static enum step proceed(struct query *query, struct transfer *next, struct error *error)
{
	struct graphite_request *request = query->state;
	const char *pattern = NULL;
	if (request->phase == WALK) {
		pattern = metric_walk_ask(&request->walk);
		if (!pattern) {
			request->targets =
				metric_walk_targets(&request->walk, &request->target_count);
			request->phase = RENDER;
		}
	}
	if (request->phase == RENDER && request->at == request->target_count) {
		request->diagnosis = (struct diagnosis){.query = query,
			.targets = request->targets,
			.count = request->target_count};
		request->phase = DIAGNOSE;
	}
	if (request->phase == DIAGNOSE) {
		if (!diagnosis_ask(&request->diagnosis, &pattern, error))
			return STEP_FAILED;
		if (!pattern)
			request->phase =
				query->tags.count > 0 && !query->listing && request->set.count > 0
					? EVENTS
					: END;
	}
	if (pattern) {
		struct buf parameters = {0};
		buf_text(&parameters, "query=");
		transfer_encode(&parameters, pattern);
		request->address = http_ask(query, "metrics/find", &parameters, next);
	} else if (request->phase == RENDER) {
		ask_render(query, next);
	} else if (request->phase == EVENTS) {
		ask_events(query, next);
	} else {
		const struct graphite_options *options = query->options;
		request->events.per_run = options->events == EVENTS_PER_RUN;
		graphite_set_finish(&request->set, query->tags.count > 0 ? &request->events : NULL);
		if (request->begin < request->end && !query->listing)
			notice_missing(query, request);
		return STEP_DONE;
	}
	return STEP_TRANSFER;
}

/* Whether to repeat the request in another form. */
static bool change_form(struct graphite_request *request, const struct reply *reply)
{
	if (request->phase != RENDER)
		return false;
	if (reply->kind == REPLY_TOO_BIG && request->batch > 1) {
		request->at_once = request->limit = request->batch / 2;
		return true;
	}
	if (request->json)
		return false;
	bool image = reply->kind == REPLY_ANSWER && reply->content_type &&
		     strncmp(reply->content_type, "image/", 6) == 0;
	bool refused = reply->kind == REPLY_ANSWER && reply->status == 400 &&
		       strstr(reply->body, "format");
	bool cut = reply->kind == REPLY_ANSWER && reply->status == 200 && reply->open_ended;
	request->json = reply->kind == REPLY_TOO_BIG || image || refused || cut;
	return request->json;
}

/* Sizes the next batch so that its answer takes half of max_body. */
static void adapt_batch(struct graphite_request *request, const struct endpoint *endpoint,
	size_t length, size_t points)
{
	size_t each = length / request->batch + 1, room = (size_t)endpoint->max_body / 2;
	bool sparse = length >= SPARSE_LEAST && points < length / JSON_POINT / 4;
	if (sparse && !request->json) {
		request->json = true;
		each = points * JSON_POINT / request->batch + 1;
	}
	request->at_once = request->limit;
	if (room > 0 && room / each < request->limit)
		request->at_once = room / each > 0 ? room / each : 1;
}

static bool take_render(struct query *query, const struct reply *reply, struct error *error)
{
	struct graphite_request *request = query->state;
	const struct endpoint *endpoint = query->server;
	const char *text = reply->body + strspn(reply->body, " \t\r\n");
	bool json = request->json || *text == '[';
	size_t before = request->set.points;
	if (!(json ? graphite_read_json : graphite_read_raw)(reply->body, reply->length,
		    endpoint->max_points, graphite_set_take, &request->set, error))
		return false;
	if (request->set.overflow)
		return error_set(error, ERROR_DATA,
			"more than 10,000 series or 20,000,000 points: narrow the target, or "
			"shorten range");
	adapt_batch(request, endpoint, reply->length, request->set.points - before);
	request->at += request->batch;
	return true;
}

static bool take_find(struct query *query, const struct reply *reply, struct error *error)
{
	struct graphite_request *request = query->state;
	struct graphite_nodes nodes;
	if (!graphite_find_read(query->arena, reply->body, reply->length, &nodes, error))
		return false;
	if (nodes.unusable > 0 && request->phase == WALK) {
		query->incomplete = true;
		query_notice(query, "%s: %zu metrics left out: their names are not Unicode text",
			request->address, nodes.unusable);
	}
	if (request->phase == WALK)
		return metric_walk_take(&request->walk, &nodes, error);
	diagnosis_take(&request->diagnosis, &nodes);
	return true;
}

static bool take_events(struct query *query, const struct reply *reply, struct error *error)
{
	struct graphite_request *request = query->state;
	request->phase = END;
	if (!graphite_events_read(
		    query->arena, reply->body, reply->length, &request->events, error))
		return false;
	if (request->events.unusable > 0)
		query_notice(query, "%s: %zu events left out: they are not Unicode text",
			request->address, request->events.unusable);
	return true;
}

/* Handles a server that has only the render API: points are valid without events, and missing
 * series stay unexplained. */
static bool without_endpoint(struct query *query, const struct reply *reply)
{
	struct graphite_request *request = query->state;
	if (reply->status != 404 || (request->phase != EVENTS && request->phase != DIAGNOSE))
		return false;
	if (request->phase == DIAGNOSE) {
		request->diagnosis.no_find = true;
		return true;
	}
	query_notice(query, "%s: the server has no events, so commits and versions are unknown",
		request->address);
	request->phase = END;
	return true;
}

static bool take_answer(struct query *query, const struct reply *reply, struct error *error)
{
	struct graphite_request *request = query->state;
	bool taken;
	if (change_form(request, reply))
		return true;
	if (reply->kind != REPLY_ANSWER)
		return error_set(error, ERROR_DATA, "%s", reply->problem);
	if (without_endpoint(query, reply))
		return true;
	if (reply->status != 200 || http_error_is_page(reply))
		return http_error_answer(request->address, reply,
			http_error_line(query->arena, reply, reply->body), NULL, error);
	if (request->phase == RENDER)
		taken = take_render(query, reply, error);
	else if (request->phase == EVENTS)
		taken = take_events(query, reply, error);
	else
		taken = take_find(query, reply, error);
	return taken || error_prefix(error, "%s: ", request->address);
}

static enum step graphite_step(
	struct query *query, const struct reply *last, struct transfer *next, struct error *error)
{
	return (last ? take_answer(query, last, error) : start(query, error))
		       ? proceed(query, next, error)
		       : STEP_FAILED;
}

static bool graphite_check(const void *options, struct error *error)
{
	const struct graphite_options *own = options;
	if (!own->prefix && !own->target)
		return error_set(error, ERROR_USAGE, "\"prefix\" or \"target\" is missing");
	if (own->prefix && own->target)
		return error_set(
			error, ERROR_USAGE, "\"prefix\" and \"target\" are mutually exclusive");
	return true;
}

/* The names in an expression: paths, and series by tags. */
static void read_target(struct query *query, const char *text, struct source_readings *out)
{
	struct expression expression = target_read(query->arena, text);
	for (size_t i = 0; i < expression.paths.count; i++)
		query_reads(query, out,
			(struct source_reading){READING_PATH, expression.paths.items[i], NULL});
	for (size_t i = 0; i < expression.tagged.count; i++)
		query_reads(query, out,
			(struct source_reading){READING_TAGGED, NULL,
				target_matchers(query->arena, expression.tagged.items[i])});
}

static bool graphite_reads(struct query *query, struct source_readings *out, struct error *error)
{
	struct graphite_plan plan;
	if (!graphite_plan(query, &plan, error))
		return false;
	for (size_t i = 0; i < plan.count && plan.targets; i++)
		read_target(query, plan.targets[i].text, out);
	if (!plan.targets)
		query_reads(query, out, (struct source_reading){READING_BELOW, plan.prefix, NULL});
	return true;
}

const struct source graphite_source = {
	.plugin = {.name = "graphite",
		.summary = "Graphite: paths with suffixes, or any expression of its functions",
		.fields = graphite_fields,
		.options_size = sizeof(struct graphite_options),
		.server_size = sizeof(struct endpoint),
		.check = graphite_check,
		.endpoint = true},
	.step = graphite_step,
	.asks = true,
	.reads = graphite_reads,
};

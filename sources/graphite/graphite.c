/*
 * A test is asked in up to four kinds of requests: /metrics/find for what is below a prefix, where
 * the test names no metrics; /render for the series, plain paths many at once, each expression
 * alone, as only paths can be told apart by their answers; /metrics/find again about what gave
 * nothing; /events/get_data for commits and versions.
 *
 * The raw format is asked for. A server that lacks it is asked for JSON, and so is one whose raw
 * answers hold next to nothing or are too large for a single metric: JSON can leave the missing
 * values out. Where nothing says where a raw answer ends, it may have been cut at the end of a
 * line; JSON's own brackets tell. How many paths are asked for at once follows from how large the
 * last answer was.
 */
#include "sources/graphite/graphite.h"

#include <stdio.h>
#include <string.h>

#include "agent/core/buf.h"
#include "agent/core/utf8.h"
#include "agent/core/when.h"
#include "sources/graphite/find.h"
#include "sources/graphite/series.h"
#include "sources/graphite/target.h"
#include "sources/http_error.h"
#include "sources/source.h"

/*
 * From a test's options and metrics to the targets that Graphite is asked for.
 *
 * Branches are part of paths, as in Hunter: a branch has a prefix of its own, or its name stands in
 * the prefix. A test that has no place for it cannot be asked about a branch.
 */

struct graphite_plan {
	struct target *targets; /* NULL: all metrics below the prefix are wanted */
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

/* The target of a metric: its own, its suffix behind the prefix, or the test's. */
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
		metric->suffix ? "prefix: the test lacks it" : "suffix and no target");
}

/* Fails (ERROR_USAGE) where the test cannot be asked for what the query wants. */
static bool graphite_plan(struct query *query, struct graphite_plan *out, struct error *error)
{
	const struct graphite_options *options = query->options;
	size_t sharing = 0;
	for (size_t i = 0; i < query->metric_count; i++)
		sharing += !query->metrics[i].query && !query->metrics[i].suffix;
	if (sharing > 1 && options->target)
		return error_set(error, ERROR_USAGE,
			"%zu metrics have no target of their own, so they would be the same",
			sharing);
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
	GET_URL_MAX = 2000, /* longer ones go by POST */
	TARGETS_AT_FIRST = 10,
	TARGETS_AT_ONCE = 100,
	SPARSE_LEAST = 1 << 20, /* bytes of a raw answer that is worth another form */
	JSON_POINT = 32,        /* bytes at most of a point in JSON, nearly always */
	SHOWN = 200,
};

static const int64_t day = 86400000;
static const int64_t deployed_before = INT64_C(31) * 86400000; /* ms */
static const int64_t earliest = 100000000; /* s; of eight digits and fewer Graphite makes dates */

static const char *const event_modes[] = {"deployments", "per_run", NULL};

static const struct field graphite_fields[] = {
	OPTION_STRING(struct graphite_options, prefix, NULL,
		"path before the suffixes of the metrics; may hold %{BRANCH}", .metavar = "PATH"),
	OPTION_STRING(struct graphite_options, branch_prefix, NULL,
		"the prefix where a branch is asked for", .metavar = "PATH"),
	OPTION_STRING(struct graphite_options, target, NULL,
		"any expression of Graphite instead of a prefix; each series it gives is a metric "
		"of its own",
		.metavar = "TARGET"),
	OPTION_DURATION(struct graphite_options, range, "365d", 1000, 315360000e3,
		"how far back to look where no --since is given"),
	OPTION_CHOICE(struct graphite_options, events, "deployments", event_modes,
		"what events are: deployments, from which on all points are of that commit, or one "
		"per_run, of which one point is the result"),
	{0},
};

enum phase { LEAVES, RENDER, INQUIRE, EVENTS, END };

struct asking {
	enum phase phase;
	int64_t begin, end; /* ms, [begin, end) */
	struct metric_walk *leaves;
	struct target *targets;
	size_t target_count;
	size_t at, batch;      /* targets that are asked for: [at, at + batch) */
	size_t at_once, limit; /* paths in one request; the limit is lowered by answers too large */
	bool json;
	struct graphite_set *set;
	struct diagnosis *diagnosis;
	struct graphite_events events;
	const char *address; /* for messages, without the query */
};

static void set_range(const struct query *query, struct asking *asking)
{
	const struct graphite_options *options = query->options;
	int64_t end = query->until == WHEN_NEVER ? query->now + 1 : query->until;
	int64_t begin = query->since == WHEN_ALWAYS ? end - options->range : query->since;
	if (query->listing)
		begin = end - day;
	asking->begin = begin > earliest * 1000 ? begin : earliest * 1000;
	asking->end = end;
}

static bool start(struct query *query, struct error *error)
{
	const struct endpoint *endpoint = query->server;
	struct asking *asking = query->state = arena_alloc(query->arena, sizeof *asking);
	struct graphite_plan plan;
	if (!endpoint || !endpoint->url)
		return error_set(error, ERROR_USAGE, "no server: set url in the graphite section");
	asking->at_once = TARGETS_AT_FIRST;
	asking->limit = TARGETS_AT_ONCE;
	set_range(query, asking);
	asking->set = graphite_set_new(query, asking->begin, asking->end, query->listing);
	if (!graphite_plan(query, &plan, error))
		return false;
	asking->targets = plan.targets;
	asking->target_count = plan.count;
	asking->phase = plan.targets ? RENDER : LEAVES;
	if (!plan.targets)
		asking->leaves = metric_walk_new(query->arena, plan.prefix);
	if (asking->begin >= asking->end)
		asking->phase = END;
	return true;
}

/* Sets *next to ask for `path` with the parameters, which it frees. */
static void ask(
	struct query *query, const char *path, struct buf *parameters, struct transfer *next)
{
	static const struct pair form[] = {{"Content-Type", "application/x-www-form-urlencoded"}};
	struct asking *asking = query->state;
	const struct endpoint *endpoint = query->server;
	asking->address = transfer_join_url(query->arena, endpoint->url, path);
	*next = (struct transfer){.kind = TRANSFER_HTTP, .endpoint = endpoint};
	if (strlen(asking->address) + parameters->length < GET_URL_MAX) {
		next->method = "GET";
		next->url = arena_printf(query->arena, "%s?%s", asking->address, parameters->data);
	} else {
		next->method = "POST";
		next->url = asking->address;
		next->headers = (struct pairs){form, 1};
		next->body = arena_strndup(query->arena, parameters->data, parameters->length);
		next->body_length = parameters->length;
	}
	buf_free(parameters);
}

static void ask_find(struct query *query, const char *pattern, struct transfer *next)
{
	struct buf parameters = {0};
	buf_text(&parameters, "query=");
	transfer_encode(&parameters, pattern);
	ask(query, "metrics/find", &parameters, next);
}

/* Graphite leaves `from` out and takes `until` in, both in seconds. */
static void ask_render(struct query *query, struct transfer *next)
{
	struct asking *asking = query->state;
	struct target *targets = asking->targets + asking->at;
	struct buf parameters = {0};
	asking->batch = 1;
	while (targets[0].plain && asking->batch < asking->at_once &&
		asking->at + asking->batch < asking->target_count && targets[asking->batch].plain)
		asking->batch++;
	for (size_t i = 0; i < asking->batch; i++) {
		buf_text(&parameters, "target=");
		transfer_encode(&parameters, targets[i].text);
		buf_char(&parameters, '&');
	}
	int64_t from = (asking->begin - 1) / 1000, until = (asking->end - 1) / 1000;
	buf_printf(&parameters, "from=%lld&until=%lld&format=%s", (long long)from,
		(long long)(until > from ? until : from + 1),
		asking->json ? "json&noNullPoints=true" : "raw");
	graphite_set_expect(asking->set, targets, asking->batch);
	ask(query, "render", &parameters, next);
}

/* An event comes up to a day after the beginning of its point's bucket. What ran at the first point
 * was deployed before it. */
static void ask_events(struct query *query, struct transfer *next)
{
	const struct asking *asking = query->state;
	struct buf parameters = {0};
	const struct graphite_options *options = query->options;
	int64_t until = asking->end + day < query->now ? asking->end + day : query->now;
	int64_t from =
		options->events == EVENTS_PER_RUN ? asking->begin : asking->begin - deployed_before;
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
		(long long)((until > asking->begin ? until : asking->begin) / 1000));
	ask(query, "events/get_data", &parameters, next);
}

static void say_what_lacks(struct query *query, const struct asking *asking)
{
	bool said = query->notices.count > 0;
	for (size_t i = 0; i < asking->target_count; i++) {
		const struct target *target = &asking->targets[i];
		if (!target->answered || target->points || !target->metric)
			continue;
		query_notice(query, "no values of \"%.*s\" in the range",
			(int)utf8_cut(target->text, SHOWN), target->text);
		said = true;
	}
	if (query->data.count == 0 && !said)
		query_notice(query, "no data: %s",
			asking->leaves && asking->target_count == 0
				? "the server has no metrics below the prefix"
				: "the series have no values in the range");
}

/* Decides what to ask next, or that all is known. */
static enum step proceed(struct query *query, struct transfer *next, struct error *error)
{
	struct asking *asking = query->state;
	const char *pattern = NULL;
	if (asking->phase == LEAVES) {
		pattern = metric_walk_ask(asking->leaves);
		if (!pattern) {
			asking->targets =
				metric_walk_targets(asking->leaves, &asking->target_count);
			asking->phase = RENDER;
		}
	}
	if (asking->phase == RENDER && asking->at == asking->target_count) {
		asking->diagnosis = diagnosis_new(query, asking->targets, asking->target_count);
		asking->phase = INQUIRE;
	}
	if (asking->phase == INQUIRE) {
		if (!diagnosis_ask(asking->diagnosis, &pattern, error))
			return STEP_FAILED;
		if (!pattern)
			asking->phase = query->tags.count > 0 && !query->listing &&
							graphite_set_count(asking->set) > 0
						? EVENTS
						: END;
	}
	if (pattern) {
		ask_find(query, pattern, next);
	} else if (asking->phase == RENDER) {
		ask_render(query, next);
	} else if (asking->phase == EVENTS) {
		ask_events(query, next);
	} else {
		const struct graphite_options *options = query->options;
		asking->events.per_run = options->events == EVENTS_PER_RUN;
		graphite_set_finish(asking->set, query->tags.count > 0 ? &asking->events : NULL);
		if (asking->begin < asking->end && !query->listing)
			say_what_lacks(query, asking);
		return STEP_DONE;
	}
	return STEP_TRANSFER;
}

/* Whether the same is to be asked for again, in another form. */
static bool ask_otherwise(struct asking *asking, const struct reply *reply)
{
	if (asking->phase != RENDER)
		return false;
	if (reply->kind == REPLY_TOO_BIG && asking->batch > 1) {
		asking->at_once = asking->limit = asking->batch / 2;
		return true;
	}
	if (asking->json)
		return false;
	bool image = reply->kind == REPLY_ANSWER && reply->content_type &&
		     strncmp(reply->content_type, "image/", 6) == 0;
	bool refused = reply->kind == REPLY_ANSWER && reply->status == 400 &&
		       strstr(reply->body, "format");
	bool cut = reply->kind == REPLY_ANSWER && reply->status == 200 && reply->open_ended;
	asking->json = reply->kind == REPLY_TOO_BIG || image || refused || cut;
	return asking->json;
}

/* The next answer is to be half as large as may be. */
static void learn(
	struct asking *asking, const struct endpoint *endpoint, size_t length, size_t points)
{
	size_t each = length / asking->batch + 1, room = (size_t)endpoint->max_body / 2;
	bool sparse = length >= SPARSE_LEAST && points < length / JSON_POINT / 4;
	if (sparse && !asking->json) {
		asking->json = true;
		each = points * JSON_POINT / asking->batch + 1;
	}
	asking->at_once = asking->limit;
	if (room > 0 && room / each < asking->limit)
		asking->at_once = room / each > 0 ? room / each : 1;
}

static bool take_render(struct query *query, const struct reply *reply, struct error *error)
{
	struct asking *asking = query->state;
	const struct endpoint *endpoint = query->server;
	const char *text = reply->body + strspn(reply->body, " \t\r\n");
	bool json = asking->json || *text == '[';
	size_t before = graphite_set_points(asking->set);
	if (!(json ? graphite_read_json : graphite_read_raw)(reply->body, reply->length,
		    endpoint->max_points, graphite_set_take, asking->set, error))
		return false;
	if (graphite_set_overflow(asking->set))
		return error_set(error, ERROR_DATA,
			"more than 10,000 series or 20,000,000 points: ask for fewer of them, or "
			"shorten range");
	learn(asking, endpoint, reply->length, graphite_set_points(asking->set) - before);
	asking->at += asking->batch;
	return true;
}

static bool take_find(struct query *query, const struct reply *reply, struct error *error)
{
	struct asking *asking = query->state;
	struct graphite_nodes nodes;
	if (!graphite_find_read(query->arena, reply->body, reply->length, &nodes, error))
		return false;
	if (asking->phase == LEAVES)
		return metric_walk_take(asking->leaves, &nodes, error);
	diagnosis_take(asking->diagnosis, &nodes);
	return true;
}

static bool take_events(struct query *query, const struct reply *reply, struct error *error)
{
	struct asking *asking = query->state;
	asking->phase = END;
	return graphite_events_read(
		query->arena, reply->body, reply->length, &asking->events, error);
}

/* A server that speaks the render API only: the points are true without events, and without a
 * reason why there are none. */
static bool render_only(struct query *query, const struct reply *reply)
{
	struct asking *asking = query->state;
	if (reply->status != 404 || (asking->phase != EVENTS && asking->phase != INQUIRE))
		return false;
	if (asking->phase == INQUIRE) {
		diagnosis_blind(asking->diagnosis);
		return true;
	}
	query_notice(
		query, "%s: the server has no events, so no commits and versions", asking->address);
	asking->phase = END;
	return true;
}

static enum step take_answer(struct query *query, const struct reply *reply, struct error *error)
{
	struct asking *asking = query->state;
	bool taken;
	if (ask_otherwise(asking, reply))
		return STEP_DONE;
	if (reply->kind != REPLY_ANSWER) {
		error_set(error, ERROR_DATA, "%s", reply->problem);
		return STEP_FAILED;
	}
	if (render_only(query, reply))
		return STEP_DONE;
	if (reply->status != 200 || http_error_is_page(reply))
		return http_error_answer(asking->address, reply,
			http_error_line(query->arena, reply, reply->body), NULL, error);
	if (asking->phase == RENDER)
		taken = take_render(query, reply, error);
	else if (asking->phase == EVENTS)
		taken = take_events(query, reply, error);
	else
		taken = take_find(query, reply, error);
	if (taken)
		return STEP_DONE;
	error_prefix(error, "%s: ", asking->address);
	return STEP_FAILED;
}

static enum step graphite_step(
	struct query *query, const struct reply *last, struct transfer *next, struct error *error)
{
	if (!last && !start(query, error))
		return STEP_FAILED;
	if (last && take_answer(query, last, error) == STEP_FAILED)
		return STEP_FAILED;
	return proceed(query, next, error);
}

static bool graphite_check(const void *options, struct error *error)
{
	const struct graphite_options *own = options;
	if (!own->prefix && !own->target)
		return error_set(error, ERROR_USAGE, "\"prefix\" or \"target\" is missing");
	if (own->prefix && own->target)
		return error_set(error, ERROR_USAGE, "\"prefix\" and \"target\" are both given");
	return true;
}

const struct source graphite_source = {
	.name = "graphite",
	.summary = "Graphite: paths with suffixes, or any expression of its functions",
	.fields = graphite_fields,
	.options_size = sizeof(struct graphite_options),
	.server_size = sizeof(struct endpoint),
	.step = graphite_step,
	.asks = true,
	.check = graphite_check,
};

/*
 * A test without a step reads raw samples: an instant query of `selector[range]` returns every
 * sample at its true time, whether they are a minute or a day apart. VictoriaMetrics would evaluate
 * an expression on a grid of its own instead of refusing it, so it is detected and its export is
 * used. With a step it is `query_range` on multiples of the step.
 *
 * Requests are made one after the other: query by query, and in pieces of the range, whose limits
 * on a grid are multiples of the step, so that the result does not depend on the time of the
 * request. A piece that is too large for the server or for us is split in halves.
 */
#include "sources/prometheus/prometheus.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/log.h"
#include "agent/base/when.h"
#include "sources/http.h"
#include "sources/prometheus/answer.h"
#include "sources/prometheus/builds.h"
#include "sources/prometheus/promql.h"
#include "sources/prometheus/series.h"

enum request_mode { REQUEST_GRID, REQUEST_RAW, REQUEST_EXPORT };

/* The piece [from, to) of the range [begin, end) of one query. Times in ms. */
struct piece_of_range {
	enum request_mode how;
	int64_t begin, end;
	int64_t step;  /* of the grid on which `begin` and `from` lie */
	int64_t limit; /* the longest piece */
	int64_t from, to;
};

static const struct field prometheus_fields[] = {
	OPTION_STRING(struct prometheus_options, query, NULL,
		"PromQL; each returned label set is a metric; %{BRANCH} is the requested branch"),
	OPTION_DURATION(struct prometheus_options, range, NULL, 1000, 315360000e3,
		"time range to read unless --since is given; default: 365 days, with a step at "
		"most 11,000 steps"),
	OPTION_DURATION(struct prometheus_options, step, NULL, 0, 315360000e3,
		"step of the query; without it the query is a selector whose raw samples are read "
		"with their own timestamps"),
	OPTION_STRING(struct prometheus_options, base_branch, "main",
		"value of %{BRANCH} without --branch"),
	OPTION_STRING(struct prometheus_options, commit_label, NULL,
		"label of a point's commit; not part of the series' name"),
	OPTION_STRING(struct prometheus_options, version_label, NULL,
		"label of a point's version; not part of the series' name"),
	OPTION_LIST(struct prometheus_options, attributes,
		"further labels that describe points and are shown with a change; not part of the "
		"series' name"),
	OPTION_STRING(struct prometheus_options, build_info, NULL,
		"query for build information: each point gets the labels of the build running at "
		"its time (default: revision and version)"),
	OPTION_STRING(struct prometheus_options, deployments, NULL,
		"instead of build_info: query whose values are deployment times in Unix seconds "
		"and whose labels name the commit and version"),
	{0},
};

static const char *const flavors[] = {"auto", "prometheus", "victoriametrics", NULL};
static const char *const partial_responses[] = {"fail", "allow", NULL};

static const struct field prometheus_server_fields[] = {
	OPTION_CHOICE(struct prometheus_server, flavor, "auto", flavors,
		"kind of server; auto: detected when needed"),
	OPTION_CHOICE(struct prometheus_server, partial_response, "fail", partial_responses,
		"accept responses marked as partial by the server"),
	{0},
};

/* The labels that become attributes of points, and the attributes' names; each once. */
static struct pairs point_labels(const struct query *query)
{
	const struct prometheus_options *options = query->options;
	const char *commit = options->commit_label, *version = options->version_label;
	if ((options->build_info || options->deployments) && !commit && !version &&
		options->attributes.count == 0) {
		commit = options->build_info ? "revision" : "commit";
		version = "version";
	}
	return attribute_names(query->arena, commit, version, options->attributes);
}

/*
 * Recognises why servers with Prometheus' API refuse a request, and the remedy.
 *
 * Limits are recognised by the servers' messages, which differ between Prometheus, Thanos, Mimir
 * and VictoriaMetrics. Of proxies' HTML pages only statuses about load and size are used.
 */

/* The server's message; VictoriaMetrics repeats the request before it. */
static const char *refusal_words(const char *message)
{
	const char *repeated = strstr(message, "requestURI: ");
	const char *end = repeated ? strstr(repeated, "; ") : NULL;
	return end && strncmp(message, "remoteAddr: ", 12) == 0 ? end + 2 : message;
}

/* Whether a shorter range may succeed; `message` is the whole body of an HTML page. */
static bool refusal_too_much(const struct reply *reply, const char *message)
{
	static const char *const words[] = {"too many samples", "exceeded maximum resolution",
		"exceeds the limit", "-search.max", "max-query-length", "timed out", "timeout"};
	if (reply->kind == REPLY_TOO_BIG)
		return true;
	if (reply->kind != REPLY_ANSWER || reply->status < 400 || reply->status == 401 ||
		reply->status == 403 || reply->status == 429)
		return false;
	if (reply->status == 413 || reply->status == 504)
		return true;
	if (reply->status != 503 && http_error_is_page(reply))
		return false;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strstr(message, words[i]))
			return true;
	return false;
}

/* Advice for an error response, or NULL if there is none beyond the generic one. */
static const char *refusal_advice(
	enum request_mode how, const struct reply *reply, const char *message)
{
	bool raw = how != REQUEST_GRID;
	if (refusal_too_much(reply, message))
		return raw ? ": shorten range, or narrow query"
			   : ": shorten range, raise step, or narrow query";
	if (reply->status == 400 && raw && !strstr(message, "HTTPS server"))
		return " (without step the query must be a selector, as its raw samples are read: "
		       "add step to the test)";
	if (reply->status == 404 && how == REQUEST_EXPORT)
		return ": detected as VictoriaMetrics; if it is not, set flavor: prometheus";
	return NULL;
}

enum {
	HALVINGS_MAX = 6,
	HALVINGS_AFTER_TIMEOUTS = 3,
	DENSE_POINTS = 20000,
	STARTS_STEPS = 12,  /* in one request for starts, whose cost grows with the square, */
	STARTS_PIECES = 64, /* unless that takes more than about twice as many requests */
};

enum stage {
	AT_FLAVOR,  /* detects the server */
	AT_METRICS, /* queries one metric after the other */
	AT_BUILDS,  /* queries the build at each point, */
	AT_SEEN,    /* which ones ran within each step, */
	AT_STARTS,  /* and when each of these started */
};

/* The state of a query: the next request, and its piece of the range. */
struct prometheus_request {
	enum stage stage;
	struct piece_of_range range;
	struct prometheus_set set;
	struct builds *builds;           /* or NULL */
	struct pairs point_labels;       /* labels that become attributes of points */
	size_t at;                       /* metric */
	const struct stretch *stretches; /* in which starts are searched */
	size_t stretch, stretch_count;
	const char *query, *builds_query;
	const char *address; /* for messages, without the query */
	int halvings;
};

enum { PIECE_POINTS = 11000 }; /* Prometheus' limit */

static const int64_t year = INT64_C(365) * 24 * 3600 * 1000;

/* Rounds up to a multiple, also before 1970. */
static int64_t round_up(int64_t value, int64_t step)
{
	int64_t rest = value % step;
	if (rest == 0)
		return value;
	return rest > 0 ? value - rest + step : value - rest;
}

/* The range of the query: from `since`, otherwise from `range` before its end. */
static bool find_range(const struct query *query, struct piece_of_range *range, struct error *error)
{
	const struct prometheus_options *options = query->options;
	const struct endpoint *endpoint = query->server;
	int64_t step = options->step, most = endpoint->max_points;
	int64_t back = options->range;
	if (back <= 0) /* a year; for a grid at most what one answer can hold */
		back = step == 0 || step > year / PIECE_POINTS ? year : step * PIECE_POINTS;
	int64_t end = query->until == WHEN_NEVER ? query->now + 1 : query->until;
	int64_t begin = query->since == WHEN_ALWAYS ? end - back : query->since;
	if (begin < 0)
		begin = 0;
	if (step > 0) {
		begin = round_up(begin, step);
		if (begin < end && most > 0 && (end - 1 - begin) / step >= most)
			return error_set(error, ERROR_USAGE,
				"range and step give more points than max_points, %lld: raise "
				"step",
				(long long)most);
	}
	*range = (struct piece_of_range){
		.how = step > 0 ? REQUEST_GRID : REQUEST_RAW,
		.begin = begin,
		.end = end,
		.step = step,
		.limit = step > 0 ? PIECE_POINTS * step : INT64_MAX,
		.from = begin,
	};
	return true;
}

/* Halves the limit to less than the piece; false if it cannot be shorter. */
static bool halve(struct piece_of_range *range)
{
	int64_t unit = range->how == REQUEST_GRID ? range->step : 1;
	int64_t half = (range->to - range->from) / unit / 2;
	if (half == 0)
		return false;
	range->limit = half * unit;
	return true;
}

/* Seconds with up to three decimals, as the API takes times. */
static void write_seconds(struct buf *out, const char *name, int64_t ms)
{
	buf_printf(out, "&%s=%lld", name, (long long)(ms / 1000));
	if (ms % 1000)
		buf_printf(out, ".%03d", (int)(ms % 1000));
}

/* The request for a piece. Returns its address without the query, for messages. */
static const char *request_piece(const struct query *query, const struct piece_of_range *range,
	const char *promql, struct transfer *next)
{
	static const char *const paths[] = {
		[REQUEST_GRID] = "api/v1/query_range",
		[REQUEST_RAW] = "api/v1/query",
		[REQUEST_EXPORT] = "api/v1/export",
	};
	/* The server should time out before we do, so that it can report why. */
	const struct endpoint *endpoint = query->server;
	int64_t timeout = endpoint->timeout - endpoint->timeout / 10;
	struct buf out = {0};
	buf_text(&out, range->how == REQUEST_EXPORT ? "match[]=" : "query=");
	transfer_encode(&out, promql);
	switch (range->how) {
	case REQUEST_RAW:
		if (strchr(promql, '#')) /* ends a comment */
			transfer_encode(&out, "\n");
		buf_printf(&out, "%%5B%lldms%%5D", (long long)(range->to - range->from));
		write_seconds(&out, "time", range->to - 1);
		break;
	case REQUEST_GRID:
		write_seconds(&out, "start", range->from);
		write_seconds(&out, "end", range->to - range->step);
		write_seconds(&out, "step", range->step);
		break;
	case REQUEST_EXPORT:
		write_seconds(&out, "start", range->from);
		write_seconds(&out, "end", range->to - 1);
		break;
	}
	if (range->how != REQUEST_EXPORT)
		buf_printf(&out, "&timeout=%lldms", (long long)timeout);
	return http_ask(query, paths[range->how], &out, next);
}

static bool fill_query(struct query *query, const char *text, const char **out, struct error *error)
{
	const struct prometheus_options *options = query->options;
	const char *branch = query->branch ? query->branch : options->base_branch;
	return promql_fill_branch(query->arena, text, branch, out, error);
}

/* Checks that each metric has a query of its own. */
static bool check_queries(const struct prometheus_options *options, const struct metric *metrics,
	size_t count, struct error *error)
{
	size_t sharing = 0;
	if (options->build_info && options->deployments)
		return error_set(error, ERROR_USAGE,
			"deployments: build_info and deployments are mutually exclusive");
	if (count == 0 && !options->query)
		return error_set(error, ERROR_USAGE, "the test has no query");
	if (options->query && !*options->query)
		return error_set(error, ERROR_USAGE, "query: it is empty");
	for (size_t i = 0; i < count; i++) {
		if (metrics[i].query && !*metrics[i].query)
			return error_set(error, ERROR_USAGE, "metric \"%s\": query: it is empty",
				metrics[i].name);
		if (!metrics[i].query && !options->query)
			return error_set(error, ERROR_USAGE,
				"metric \"%s\" has no query, nor has the test", metrics[i].name);
		sharing += !metrics[i].query;
	}
	if (sharing > 1)
		return error_set(error, ERROR_USAGE,
			"%zu metrics have no query of their own, so they would be equal: "
			"set a query for each",
			sharing);
	return true;
}

/* Whether it ends like a function call, an aggregation or a range. */
static bool is_expression(const char *text)
{
	size_t length = text ? strlen(text) : 0;
	while (length > 0 && strchr(" \t\r\n", text[length - 1]))
		length--;
	return length > 0 && (text[length - 1] == ')' || text[length - 1] == ']');
}

static bool prometheus_check_metrics(
	const void *context, const struct metric *metrics, size_t count, struct error *error)
{
	const struct prometheus_options *options = context;
	bool selector = !is_expression(options->query);
	if (!check_queries(options, metrics, count, error))
		return false;
	for (size_t i = 0; i < count; i++)
		selector = selector && !is_expression(metrics[i].query);
	if (selector || options->step > 0)
		return true;
	return error_set(error, ERROR_DATA,
		"query: expected a plain selector, as the test has no step; this is an expression");
}

/* The query for builds, or NULL. */
static const char *builds_query(const struct prometheus_options *options)
{
	return options->build_info ? options->build_info : options->deployments;
}

static bool find_query(struct query *query, struct prometheus_request *request, struct error *error)
{
	const struct prometheus_options *options = query->options;
	if (request->stage > AT_BUILDS)
		return true;
	if (request->stage == AT_BUILDS) {
		if (!fill_query(query, builds_query(options), &request->builds_query, error))
			return false;
		request->query = request->builds_query;
		return true;
	}
	const struct metric *metric = query->metric_count ? &query->metrics[request->at] : NULL;
	const char *text = metric && metric->query ? metric->query : options->query;
	if (!check_queries(options, query->metrics, query->metric_count, error))
		return false;
	if (query->branch && !promql_has_branch(text))
		return error_set(error, ERROR_USAGE,
			"the test does not support branches (--branch or $BRANCH): use %%{BRANCH} "
			"in its query");
	return fill_query(query, text, &request->query, error);
}

static bool ask(struct query *query, struct prometheus_request *request, struct transfer *next,
	struct error *error)
{
	struct piece_of_range *range = &request->range;
	if (!find_query(query, request, error))
		return false;
	range->to =
		range->end - range->from > range->limit ? range->from + range->limit : range->end;
	if (range->how == REQUEST_GRID)
		range->to = range->from + round_up(range->to - range->from, range->step);
	request->address = request_piece(query, range, request->query, next);
	request->set.metric = query->metric_count && request->stage == AT_METRICS
				      ? &query->metrics[request->at]
				      : NULL;
	request->set.from = range->from;
	request->set.to = range->to;
	if (log_enabled(LEVEL_DEBUG))
		log_event(LEVEL_DEBUG,
			range->how == REQUEST_GRID  ? "requesting points on a grid"
			: range->how == REQUEST_RAW ? "requesting raw samples"
						    : "requesting exported raw samples",
			LOG_TEXT("test", query->test), LOG_TEXT("url", request->address),
			LOG_TEXT("query", request->query), LOG_INT("from_ms", range->from),
			LOG_INT("to_ms", range->to), LOG_INT("step_ms", range->step));
	return true;
}

/* A piece failed, with a message or without an answer. Returns true to retry it in halves. */
static bool split_piece(
	struct prometheus_request *request, const struct reply *reply, const char *message)
{
	bool timeout = reply->status == 503 || reply->status == 504;
	if (request->stage == AT_STARTS || (request->stage == AT_SEEN && timeout) ||
		!refusal_too_much(reply, message) ||
		request->halvings >= (timeout ? HALVINGS_AFTER_TIMEOUTS : HALVINGS_MAX) ||
		!halve(&request->range))
		return false;
	request->halvings++;
	request->range.to = request->range.from; /* nothing of it was received */
	return true;
}

static bool http_error(struct query *query, struct prometheus_request *request,
	const struct reply *reply, const char *message, struct error *error)
{
	bool page = http_error_is_page(reply);
	const char *line =
		page ? reply->body : http_error_line(query->arena, reply, refusal_words(message));
	if (split_piece(request, reply, line))
		return true;
	const char *advice = refusal_advice(request->range.how, reply, line);
	if (!page || !refusal_too_much(reply, line))
		return http_error_answer(request->address, reply, line, advice, error);
	return error_set(error, ERROR_DATA, "%s: status %d with an HTML page%s", request->address,
		reply->status, advice);
}

static void notice_once(
	struct query *query, const struct reply *reply, const char *what, const char *text)
{
	const char *line = http_error_line(query->arena, reply, text);
	query_notice_once(query, arena_printf(query->arena, "the server %s: %s", what, line));
}

static bool take_warnings(struct query *query, const struct prometheus_request *request,
	const struct reply *reply, const struct answer *answer, struct error *error)
{
	const struct prometheus_server *server = query->server;
	if (answer->lacking && !server->partial_response)
		return error_set(error, ERROR_DATA,
			"%s: the answer may lack data: %s (partial_response: allow accepts it "
			"anyway)",
			request->address, http_error_line(query->arena, reply, answer->lacking));
	if (answer->lacking)
		notice_once(query, reply, "warns", answer->lacking);
	for (size_t i = 0; i < answer->warnings.count; i++)
		notice_once(query, reply, "warns", answer->warnings.items[i]);
	for (size_t i = 0; i < answer->infos.count; i++)
		notice_once(query, reply, "notes", answer->infos.items[i]);
	if (!answer->partial)
		return true;
	if (!server->partial_response)
		return error_set(error, ERROR_DATA,
			"%s: partial response: part of the cluster does not respond (accept it "
			"with partial_response: allow)",
			request->address);
	notice_once(query, reply, "warns", "the answer lacks the data of part of the cluster");
	return true;
}

/* Ignores the data that some servers send with an error: the piece may be retried. */
static void ignore_series(void *context, const struct answer_series *series)
{
	(void)context;
	(void)series;
}

static bool check_builds(const struct prometheus_request *request, struct error *error)
{
	if (!request->builds || !builds_overflow(request->builds))
		return true;
	return error_set(error, ERROR_DATA,
		"build_info has more than %d series or %d samples, or the query returns too many "
		"series to match them: shorten range, or narrow one of the queries",
		BUILDS_MAX, BUILDS_SAMPLES_MAX);
}

/* Reads an answer; true also if the piece is retried in halves. */
static bool take_answer(struct query *query, const struct reply *reply, struct error *error)
{
	struct prometheus_request *request = query->state;
	answer_take *take = reply->status != 200          ? ignore_series
			    : request->stage == AT_STARTS ? builds_take_starts
			    : request->stage == AT_SEEN   ? builds_take_seen
			    : request->stage == AT_BUILDS ? builds_take
							  : prometheus_set_take;
	void *taker = request->stage >= AT_BUILDS ? (void *)request->builds : &request->set;
	struct answer answer = {0};
	if (reply->kind != REPLY_ANSWER)
		return split_piece(request, reply, "") ||
		       error_set(error, ERROR_DATA, "%s", reply->problem);
	if (http_error_is_page(reply))
		return http_error(query, request, reply, "", error);
	bool exported = request->range.how == REQUEST_EXPORT;
	if (exported && reply->status != 200)
		return http_error(query, request, reply, reply->body, error);
	if (exported && reply->open_ended)
		return error_set(error, ERROR_DATA,
			"%s: the export may be truncated: the server or a proxy does not mark its "
			"end: set step in the test",
			request->address);
	bool read = (exported ? export_read : answer_read)(
		query, reply->body, reply->length, take, taker, &answer, error);
	if (reply->status != 200 || (read && answer.failure))
		return http_error(query, request, reply,
			read && answer.failure ? answer.failure : reply->body, error);
	if (!read)
		return error_prefix(error, "%s: ", request->address);
	if (!exported && (!answer.type || strcmp(answer.type, "matrix") != 0))
		return error_set(error, ERROR_DATA,
			"%s: the query returns a %s instead of series over time", request->address,
			answer.type ? http_error_line(query->arena, reply, answer.type)
				    : "nothing");
	return take_warnings(query, request, reply, &answer, error) &&
	       prometheus_set_check(&request->set, error) && check_builds(request, error);
}

static void notice_labels(struct query *query, const struct prometheus_request *request)
{
	const struct prometheus_options *options = query->options;
	const char *option = options->build_info ? "build_info" : "deployments";
	if (request->builds) {
		if (builds_count(request->builds, false) == 0)
			query_notice(query, "%s returns no data in the range", option);
		else if (builds_count(request->builds, true) == 0)
			query_notice(query, "no series of %s has the label \"%s\"", option,
				request->point_labels.items[0].key);
		return;
	}
	for (size_t i = 0; i < request->point_labels.count; i++)
		if (!request->set.label_seen[i])
			query_notice(query, "no series has the label \"%s\"",
				request->point_labels.items[i].key);
}

/* So many points are not results of builds: probably the step was forgotten. */
static void notice_density(struct query *query)
{
	char apart[WHEN_TEXT];
	for (size_t i = 0; i < query->data.count; i++) {
		const struct series *series = &query->data.series[i];
		size_t n = series->axis->n;
		if (n <= DENSE_POINTS)
			continue;
		int64_t took = series->axis->times[n - 1] - series->axis->times[0];
		int64_t apart_ms = took / (int64_t)(n - 1);
		if (apart_ms > 1000)
			apart_ms = (apart_ms + 500) / 1000 * 1000;
		query_notice(query,
			"%s has %zu raw samples, one every %s: with a step there are fewer points, "
			"and changes are searched for in what the query averages",
			series->name, n, when_format_duration(apart_ms, apart));
		return;
	}
}

/* Sets how much time a point covers. Results labelled with a build cover nothing else. */
static void set_windows(struct query *query, const struct prometheus_request *request)
{
	const struct prometheus_options *options = query->options;
	bool labelled = request->point_labels.count > 0 && !request->builds;
	for (size_t i = 0; i < query->data.count && !labelled; i++) {
		struct series *series = &query->data.series[i];
		const char *text = series->metric->query ? series->metric->query : options->query;
		int64_t reach = promql_reach(text, options->step);
		series->window.back = reach >= 0 ? reach : options->step;
	}
}

static enum step finish(
	struct query *query, struct prometheus_request *request, struct error *error)
{
	size_t histograms = request->set.histograms;
	query->data = prometheus_set_dataset(&request->set, request->builds);
	set_windows(query, request);
	if (!check_builds(request, error))
		return STEP_FAILED;
	if (histograms > 0)
		query_notice(query,
			"%zu native histograms were left out: query histogram_quantile() or "
			"histogram_count() of them",
			histograms);
	if (request->range.how != REQUEST_GRID)
		notice_density(query);
	if (query->data.count == 0 && !query->incomplete)
		query_notice(query, "no data: %s",
			request->range.how != REQUEST_GRID
				? "no series matches the selector, or none has samples in the range"
				: "the query returns nothing in the range (samples count for 5 "
				  "minutes; without step, raw samples are read)");
	else if (query->data.count > 0 && !query->listing)
		notice_labels(query, request);
	return STEP_DONE;
}

/* Goes to that stretch; false if there is none. */
static bool go_to_stretch(struct prometheus_request *request, size_t number)
{
	struct piece_of_range *range = &request->range;
	request->stretch = number;
	if (number == request->stretch_count)
		return false;
	range->begin = range->from = request->stretches[number].from;
	range->end = request->stretches[number].to;
	return true;
}

/* Begins to search for starts of builds; false if no query is needed. */
static bool search_starts(struct prometheus_request *request, bool narrow)
{
	struct piece_of_range *range = &request->range;
	int64_t steps = 0;
	request->stretches = builds_stretches(
		request->builds, range->begin, range->end, narrow, &request->stretch_count);
	for (size_t i = 0; i < request->stretch_count; i++)
		steps += (request->stretches[i].to - request->stretches[i].from) / range->step;
	steps = (steps + STARTS_PIECES - 1) / STARTS_PIECES;
	range->limit = range->step * (steps > STARTS_STEPS ? steps : STARTS_STEPS);
	request->query = builds_starts_query(request->builds, request->builds_query);
	request->stage = AT_STARTS;
	return request->query && go_to_stretch(request, 0);
}

/* Moves on to the next piece or query; false at the end. */
static bool advance(const struct query *query, struct prometheus_request *request)
{
	const struct prometheus_options *options = query->options;
	struct piece_of_range *range = &request->range;
	range->from = range->to;
	if (range->from < range->end)
		return true;
	range->from = range->begin;
	switch (request->stage) {
	case AT_BUILDS: /* the builds at each point are known */
		if (options->step == 0 || options->deployments)
			return false;
		prometheus_set_expect_builds(&request->set, request->builds);
		request->query = builds_seen_query(request->builds, request->builds_query);
		request->stage = AT_SEEN;
		return request->query || search_starts(request, false);
	case AT_SEEN: return search_starts(request, true);
	case AT_STARTS: return go_to_stretch(request, request->stretch + 1);
	case AT_FLAVOR:
	case AT_METRICS: break;
	}
	if (++request->at < query->metric_count)
		return true;
	request->stage = AT_BUILDS;
	return request->builds;
}

/*
 * Continues after a failed query that would only have made deployments more precise. If the server
 * does not understand it (400), load is not the reason, so each step is searched. False if no query
 * is left.
 */
static bool continue_without(
	struct query *query, struct prometheus_request *request, int status, const char *why)
{
	bool seen = request->stage == AT_SEEN;
	if (!seen || status != 400)
		query_notice(query, "deployment times are only known to the step%s: %.300s",
			seen ? ", if another one followed within it" : "", why);
	request->range.from = request->range.begin;
	return seen && search_starts(request, status != 400);
}

static bool start(struct query *query, struct error *error)
{
	const struct endpoint *endpoint = query->server;
	const struct prometheus_options *options = query->options;
	struct prometheus_request *request = query->state =
		arena_alloc(query->arena, sizeof *request);
	request->stage = AT_METRICS;
	if (!endpoint || !endpoint->url)
		return error_set(
			error, ERROR_USAGE, "no server: set url in the prometheus section");
	request->point_labels = point_labels(query);
	bool builds = builds_query(options) != NULL;
	request->set = (struct prometheus_set){.arena = query->arena,
		.point_labels = builds ? (struct pairs){0} : request->point_labels,
		.label_seen = arena_array(query->arena, request->point_labels.count, sizeof(bool)),
		.grid = options->step > 0,
		.max_points = endpoint->max_points > 0 ? (size_t)endpoint->max_points : SIZE_MAX,
		.by_identity.arena = query->arena,
		.families.arena = query->arena};
	if (builds && !query->listing)
		request->builds = builds_new(query->arena, request->point_labels, options->step,
			options->deployments != NULL);
	return find_range(query, &request->range, error) && find_query(query, request, error);
}

/* Prometheus, Thanos and Mimir report their revision and more; VictoriaMetrics only a version, or
 * nothing. */
static bool is_victoria(const char *text, size_t length)
{
	json_t *answer = json_loadb(text, length, 0, NULL);
	const json_t *data = json_object_get(answer, "data");
	size_t known = json_object_get(data, "version") ? 1 : 0;
	bool victoria = json_is_object(data) && json_object_size(data) == known;
	json_decref(answer);
	return victoria;
}

/* Old servers and proxies do not support this request. Any other failure is no evidence about the
 * server, and a wrong guess would misread expressions of VictoriaMetrics. */
static bool learn_flavor(struct query *query, struct prometheus_request *request,
	const struct reply *reply, struct error *error)
{
	int status = reply->status;
	if (reply->kind != REPLY_ANSWER)
		return error_set(error, ERROR_DATA, "%s", reply->problem);
	if (status != 200 && status != 400 && status != 404 && status != 405 && status != 501)
		return http_error_answer(request->address, reply,
			http_error_line(query->arena, reply, refusal_words(reply->body)),
			status == 403 ? ": check username and password, or bearer_token; if only "
					"queries are allowed there, set flavor"
				      : NULL,
			error);
	bool victoria = status == 200 && is_victoria(reply->body, reply->length);
	if (victoria)
		request->range.how = REQUEST_EXPORT;
	if (query->server_flavor)
		atomic_store(query->server_flavor,
			victoria ? FLAVOR_VICTORIAMETRICS : FLAVOR_PROMETHEUS);
	request->stage = AT_METRICS;
	return true;
}

static enum step first_request(struct query *query, struct transfer *next, struct error *error)
{
	if (!start(query, error))
		return STEP_FAILED;
	struct prometheus_request *request = query->state;
	const struct prometheus_server *server = query->server;
	int flavor = server->flavor; /* FLAVOR_AUTO: to be detected, unless it is known */
	if (flavor == FLAVOR_AUTO && query->server_flavor)
		flavor = atomic_load(query->server_flavor);
	if (request->range.begin >= request->range.end)
		return finish(query, request, error);
	if (request->range.how == REQUEST_RAW && flavor == FLAVOR_VICTORIAMETRICS)
		request->range.how = REQUEST_EXPORT;
	if (request->range.how == REQUEST_RAW && flavor == FLAVOR_AUTO) {
		request->stage = AT_FLAVOR;
		request->address =
			http_ask(query, "api/v1/status/buildinfo", &(struct buf){0}, next);
		return STEP_TRANSFER;
	}
	return ask(query, request, next, error) ? STEP_TRANSFER : STEP_FAILED;
}

static enum step prometheus_step(
	struct query *query, const struct reply *last, struct transfer *next, struct error *error)
{
	struct prometheus_request *request = query->state;
	if (!last)
		return first_request(query, next, error);
	if (request->stage == AT_FLAVOR)
		return learn_flavor(query, request, last, error) && ask(query, request, next, error)
			       ? STEP_TRANSFER
			       : STEP_FAILED;
	bool taken = take_answer(query, last, error);
	if (!taken && request->stage <= AT_BUILDS)
		return STEP_FAILED;
	bool more = taken ? advance(query, request)
			  : continue_without(query, request, last->status, error->text);
	if (!more)
		return finish(query, request, error);
	return ask(query, request, next, error) ? STEP_TRANSFER : STEP_FAILED;
}

static bool prometheus_reads(struct query *query, struct source_readings *out, struct error *error)
{
	const struct prometheus_options *options = query->options;
	if (!check_queries(options, query->metrics, query->metric_count, error))
		return false;
	for (size_t i = 0; i == 0 || i < query->metric_count; i++) {
		const char *own = query->metric_count > 0 ? query->metrics[i].query : NULL, *text;
		if (!fill_query(query, own ? own : options->query, &text, error))
			return false;
		promql_reads(query, text, out);
	}
	return true;
}

const struct source prometheus_source = {
	.plugin = {.name = "prometheus",
		.summary = "Prometheus, VictoriaMetrics, Thanos, Mimir: PromQL over HTTP",
		.fields = prometheus_fields,
		.options_size = sizeof(struct prometheus_options),
		.server_fields = prometheus_server_fields,
		.server_size = sizeof(struct prometheus_server),
		.check_metrics = prometheus_check_metrics,
		.endpoint = true},
	.step = prometheus_step,
	.asks = true,
	.reads = prometheus_reads,
};

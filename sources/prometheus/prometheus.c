/*
 * A test without a step is read as raw samples: an instant query of `selector[range]` answers with
 * every sample at its true time, be they a minute or a day apart. VictoriaMetrics is recognised and
 * asked through its export, as its instant query would put an expression on a grid of its own
 * instead of refusing it. With a step it is `query_range` on a grid of multiples of the step.
 *
 * Requests follow one another: query by query, and piece by piece of the range. A piece that is too
 * much for the server, or for us, is asked again in halves.
 */
#include "sources/prometheus/prometheus.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/log.h"
#include "agent/core/when.h"
#include "sources/http_error.h"
#include "sources/prometheus/export.h"
#include "sources/prometheus/promql.h"
#include "sources/prometheus/request.h"
#include "sources/prometheus/series.h"

/*
 * Recognises why servers with Prometheus' API refuse a request, and what helps.
 *
 * Limits are recognised by the servers' messages: Prometheus, Thanos, Mimir and VictoriaMetrics
 * have their own. Proxies in front of them send pages, of which only statuses about load and size
 * are used.
 */

/* The server's own words; VictoriaMetrics repeats the request before them. */
static const char *refusal_words(const char *said)
{
	const char *request = strstr(said, "requestURI: ");
	const char *end = request ? strstr(request, "; ") : NULL;
	return end && strncmp(said, "remoteAddr: ", 12) == 0 ? end + 2 : said;
}

/* Whether a shorter range may succeed; `said` is the whole body for an HTML page. */
static bool refusal_too_much(const struct reply *reply, const char *said)
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
		if (strstr(said, words[i]))
			return true;
	return false;
}

/* Advice for an error response, where this source knows more than the generic one; or NULL. */
static const char *refusal_advice(
	enum request_mode how, const struct reply *reply, const char *said)
{
	bool raw = how != REQUEST_GRID;
	if (refusal_too_much(reply, said))
		return raw ? ": shorten range, or narrow query"
			   : ": shorten range, raise step, or narrow query";
	if (reply->status == 400 && raw && !strstr(said, "HTTPS server"))
		return " (without step the query must be a selector, as its raw samples are read: "
		       "add step to the test)";
	if (reply->status == 404 && how == REQUEST_EXPORT)
		return ": it was taken for VictoriaMetrics; set flavor: prometheus if it is none";
	return NULL;
}

enum {
	HALVINGS_MAX = 6,
	HALVINGS_AFTER_TIMEOUTS = 3,
	DENSE_POINTS = 20000,
	STARTS_STEPS = 12,  /* of a request for starts: what it costs grows with the square, */
	STARTS_PIECES = 64, /* but more than twice as many requests are not made */
};

enum stage {
	AT_FLAVOR,  /* the server is asked what it is */
	AT_METRICS, /* one after the other */
	AT_BUILDS,  /* which of them ran at each point */
	AT_SEEN,    /* ... which within each step */
	AT_STARTS,  /* ... and where one came, when that was */
};

/* What is asked next: which query, and which piece of its range. */
struct prometheus_request {
	enum stage stage;
	struct piece_of_range range;
	struct prometheus_set *set;
	struct builds *builds;           /* or NULL */
	struct pairs said;               /* labels and the attributes they become */
	size_t at;                       /* metric */
	const struct stretch *stretches; /* whose starts are asked for */
	size_t stretch, stretch_count;
	const char *query, *builds_query;
	const char *address; /* for messages, without the query */
	int halvings;
};

static bool fill_query(struct query *query, const char *text, const char **out, struct error *error)
{
	const struct prometheus_options *options = query->options;
	const char *branch = query->branch ? query->branch : options->base_branch;
	return promql_fill_branch(query->arena, text, branch, out, error);
}

/* Whether there is a query for each metric, and each its own. */
static bool check_queries(const struct prometheus_options *options, const struct metric *metrics,
	size_t count, struct error *error)
{
	size_t sharing = 0;
	if (options->build_info && options->deployments)
		return error_set(error, ERROR_USAGE,
			"deployments: build_info and deployments both say what ran: give one");
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
				"metric \"%s\" has no query, and the test neither",
				metrics[i].name);
		sharing += !metrics[i].query;
	}
	if (sharing > 1)
		return error_set(error, ERROR_USAGE,
			"%zu metrics have no query of their own, so they would be the same: "
			"give each one",
			sharing);
	return true;
}

/* The end of a function's call, an aggregation's or a range's. */
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
		"query: without step it must be a plain selector, and this is an expression");
}

/* The query that says what ran, or NULL. */
static const char *builds_query(const struct prometheus_options *options)
{
	return options->build_info ? options->build_info : options->deployments;
}

static bool find_query(struct query *query, struct prometheus_request *asking, struct error *error)
{
	const struct prometheus_options *options = query->options;
	if (asking->stage > AT_BUILDS)
		return true;
	if (asking->stage == AT_BUILDS) {
		if (!fill_query(query, builds_query(options), &asking->builds_query, error))
			return false;
		asking->query = asking->builds_query;
		return true;
	}
	const struct metric *metric = query->metric_count ? &query->metrics[asking->at] : NULL;
	const char *text = metric && metric->query ? metric->query : options->query;
	if (!check_queries(options, query->metrics, query->metric_count, error))
		return false;
	if (query->branch && !promql_has_branch(text))
		return error_set(error, ERROR_USAGE,
			"the test does not support branches (--branch or $BRANCH): use %%{BRANCH} "
			"in its query");
	return fill_query(query, text, &asking->query, error);
}

static bool ask(struct query *query, struct prometheus_request *asking, struct transfer *next,
	struct error *error)
{
	struct piece_of_range *range = &asking->range;
	if (!find_query(query, asking, error))
		return false;
	request_next(range);
	asking->address = request_request(query, range, asking->query, next);
	prometheus_set_expect(asking->set,
		query->metric_count && asking->stage == AT_METRICS ? &query->metrics[asking->at]
								   : NULL,
		range->from, range->to);
	if (log_enabled(LEVEL_DEBUG))
		log_event(LEVEL_DEBUG,
			range->how == REQUEST_GRID  ? "asking for points on a grid"
			: range->how == REQUEST_RAW ? "asking for raw samples"
						    : "asking for exported raw samples",
			LOG_TEXT("test", query->test), LOG_TEXT("url", asking->address),
			LOG_TEXT("query", asking->query), LOG_INT("from_ms", range->from),
			LOG_INT("to_ms", range->to), LOG_INT("step_ms", range->step));
	return true;
}

/* The piece failed: with `said`, or without an answer. True if shorter ones are to be asked. */
static bool shorten(struct prometheus_request *asking, const struct reply *reply, const char *said)
{
	bool timeout = reply->status == 503 || reply->status == 504;
	if (asking->stage == AT_STARTS || (asking->stage == AT_SEEN && timeout) ||
		!refusal_too_much(reply, said) ||
		asking->halvings >= (timeout ? HALVINGS_AFTER_TIMEOUTS : HALVINGS_MAX) ||
		!request_halve(&asking->range))
		return false;
	asking->halvings++;
	asking->range.to = asking->range.from; /* nothing of it was had */
	return true;
}

static enum step http_error(struct query *query, struct prometheus_request *asking,
	const struct reply *reply, const char *said, struct error *error)
{
	bool page = http_error_is_page(reply);
	const char *line =
		page ? reply->body : http_error_line(query->arena, reply, refusal_words(said));
	if (shorten(asking, reply, line))
		return STEP_DONE;
	const char *advice = refusal_advice(asking->range.how, reply, line);
	if (!page || !refusal_too_much(reply, line))
		return http_error_answer(asking->address, reply, line, advice, error);
	error_set(error, ERROR_DATA, "%s: status %d with an HTML page%s", asking->address,
		reply->status, advice);
	return STEP_FAILED;
}

static void notice_once(
	struct query *query, const struct reply *reply, const char *what, const char *text)
{
	const char *line = http_error_line(query->arena, reply, text);
	const char *notice = arena_printf(query->arena, "the server %s: %s", what, line);
	for (size_t i = 0; i < query->notices.count; i++)
		if (strcmp(query->notices.items[i], notice) == 0)
			return;
	query_notice(query, "%s", notice);
}

static bool take_warnings(struct query *query, const struct prometheus_request *asking,
	const struct reply *reply, const struct answer *answer, struct error *error)
{
	const struct prometheus_server *server = query->server;
	if (answer->lacking && !server->partial_response)
		return error_set(error, ERROR_DATA,
			"%s: the answer may lack data: %s (partial_response: allow takes it "
			"nevertheless)",
			asking->address, http_error_line(query->arena, reply, answer->lacking));
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
			"%s: the answer lacks data, as a part of the cluster does not answer "
			"(partial_response: allow takes it nevertheless)",
			asking->address);
	notice_once(query, reply, "warns", "the answer lacks data of a part of the cluster");
	return true;
}

/* An error's data, where a server sends some, are not points: its piece may be asked again. */
static void take_nothing(void *context, const struct answer_series *series)
{
	(void)context;
	(void)series;
}

static bool check_builds(const struct prometheus_request *asking, struct error *error)
{
	if (!asking->builds || !builds_overflow(asking->builds))
		return true;
	return error_set(error, ERROR_DATA,
		"build_info has more than %d series or %d samples, or the query gives too many "
		"series for so many: shorten range, or narrow one of them",
		BUILDS_MAX, BUILDS_SAMPLES_MAX);
}

/* Reads an answer; STEP_DONE also if the piece is to be asked again in halves. */
static enum step take_answer(struct query *query, const struct reply *reply, struct error *error)
{
	struct prometheus_request *asking = query->state;
	answer_take *take = reply->status != 200         ? take_nothing
			    : asking->stage == AT_STARTS ? builds_take_starts
			    : asking->stage == AT_SEEN   ? builds_take_seen
			    : asking->stage == AT_BUILDS ? builds_take
							 : prometheus_set_take;
	void *taker = asking->stage >= AT_BUILDS ? (void *)asking->builds : asking->set;
	struct answer answer = {0};
	if (reply->kind != REPLY_ANSWER) {
		if (shorten(asking, reply, ""))
			return STEP_DONE;
		error_set(error, ERROR_DATA, "%s%s", reply->problem,
			reply->kind == REPLY_TOO_BIG ? ": shorten range, or narrow query" : "");
		return STEP_FAILED;
	}
	if (http_error_is_page(reply))
		return http_error(query, asking, reply, "", error);
	bool exported = asking->range.how == REQUEST_EXPORT;
	if (exported && reply->status != 200)
		return http_error(query, asking, reply, reply->body, error);
	if (exported && reply->open_ended) {
		error_set(error, ERROR_DATA,
			"%s: the exported lines may have been cut, as the server, or a proxy "
			"before it, does not say where they end: give the test a step",
			asking->address);
		return STEP_FAILED;
	}
	bool read =
		exported ? export_read(query->arena, reply->body, reply->length, take, taker, error)
			 : answer_read(query->arena, reply->body, reply->length, take, taker,
				   &answer, error);
	if (reply->status != 200 || (read && answer.failure))
		return http_error(query, asking, reply,
			read && answer.failure ? answer.failure : reply->body, error);
	if (!read) {
		error_prefix(error, "%s: ", asking->address);
		return STEP_FAILED;
	}
	if (!exported && (!answer.type || strcmp(answer.type, "matrix") != 0)) {
		error_set(error, ERROR_DATA, "%s: the query gives a %s and no series over time",
			asking->address,
			answer.type ? http_error_line(query->arena, reply, answer.type)
				    : "nothing");
		return STEP_FAILED;
	}
	if (!take_warnings(query, asking, reply, &answer, error) ||
		!prometheus_set_check(asking->set, error))
		return STEP_FAILED;
	return check_builds(asking, error) ? STEP_DONE : STEP_FAILED;
}

static void notice_labels(struct query *query, const struct prometheus_request *asking)
{
	const struct prometheus_options *options = query->options;
	const char *option = options->build_info ? "build_info" : "deployments";
	if (asking->builds) {
		if (builds_count(asking->builds, false) == 0)
			query_notice(query, "%s gives no data in the range", option);
		else if (builds_count(asking->builds, true) == 0)
			query_notice(query, "no series of %s has the label \"%s\"", option,
				asking->said.items[0].key);
		return;
	}
	for (size_t i = 0; i < asking->said.count; i++)
		if (!prometheus_set_said(asking->set, i))
			query_notice(
				query, "no series has the label \"%s\"", asking->said.items[i].key);
}

/* Nobody has that many builds: somebody forgot the step. */
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
			"and changes are found in what is averaged by the query",
			series->name, n, when_format_duration(apart_ms, apart));
		return;
	}
}

/* What a point tells of. Results of a build that are labelled with it tell of nothing else. */
static void set_windows(struct query *query, const struct prometheus_request *asking)
{
	const struct prometheus_options *options = query->options;
	bool labelled = asking->said.count > 0 && !asking->builds;
	for (size_t i = 0; i < query->data.count && !labelled; i++) {
		struct series *series = &query->data.series[i];
		const char *text = series->metric->query ? series->metric->query : options->query;
		int64_t reach = promql_reach(text, options->step);
		series->window.back = reach >= 0 ? reach : options->step;
	}
}

static enum step finish(
	struct query *query, const struct prometheus_request *asking, struct error *error)
{
	size_t histograms = prometheus_set_histograms(asking->set);
	query->data = prometheus_set_dataset(asking->set, asking->builds);
	set_windows(query, asking);
	if (!check_builds(asking, error))
		return STEP_FAILED;
	if (histograms > 0)
		query_notice(query,
			"%zu native histograms were left out: ask for histogram_quantile() or "
			"histogram_count() of them",
			histograms);
	if (asking->range.how != REQUEST_GRID)
		notice_density(query);
	if (query->data.count == 0)
		query_notice(query, "no data: %s",
			asking->range.how != REQUEST_GRID
				? "no series matches the selector, or none has samples in the range"
				: "the query gives nothing in the range (a point is found if a "
				  "sample is at "
				  "most 5 minutes older; without step raw samples are read)");
	else if (!query->listing)
		notice_labels(query, asking);
	return STEP_DONE;
}

/* Goes to the stretch of that number, or says that there is none. */
static bool to_stretch(struct prometheus_request *asking, size_t number)
{
	struct piece_of_range *range = &asking->range;
	asking->stretch = number;
	if (number == asking->stretch_count)
		return false;
	range->begin = range->from = asking->stretches[number].from;
	range->end = asking->stretches[number].to;
	return true;
}

/* On to when builds were first seen, where they can have come; false if there is nothing to ask. */
static bool to_starts(struct prometheus_request *asking, bool narrow)
{
	struct piece_of_range *range = &asking->range;
	int64_t steps = 0;
	asking->stretches = builds_stretches(
		asking->builds, range->begin, range->end, narrow, &asking->stretch_count);
	for (size_t i = 0; i < asking->stretch_count; i++)
		steps += (asking->stretches[i].to - asking->stretches[i].from) / range->step;
	steps = (steps + STARTS_PIECES - 1) / STARTS_PIECES;
	range->limit = range->step * (steps > STARTS_STEPS ? steps : STARTS_STEPS);
	asking->query = builds_starts_query(asking->builds, asking->builds_query);
	asking->stage = AT_STARTS;
	return asking->query && to_stretch(asking, 0);
}

/* The builds at each point are known. */
static bool advance_builds(const struct query *query, struct prometheus_request *asking)
{
	const struct prometheus_options *options = query->options;
	if (options->step == 0 || options->deployments)
		return false;
	prometheus_set_expect_builds(asking->set, asking->builds);
	asking->query = builds_seen_query(asking->builds, asking->builds_query);
	asking->stage = AT_SEEN;
	return asking->query || to_starts(asking, false);
}

/* Moves on to the next piece or query; false if all was asked. */
static bool advance(const struct query *query, struct prometheus_request *asking)
{
	struct piece_of_range *range = &asking->range;
	range->from = range->to;
	if (range->from < range->end)
		return true;
	range->from = range->begin;
	switch (asking->stage) {
	case AT_BUILDS: return advance_builds(query, asking);
	case AT_SEEN: return to_starts(asking, true);
	case AT_STARTS: return to_stretch(asking, asking->stretch + 1);
	case AT_FLAVOR:
	case AT_METRICS: break;
	}
	if (++asking->at < query->metric_count)
		return true;
	asking->stage = AT_BUILDS;
	return asking->builds;
}

/*
 * A query failed that only makes deployments more precise. If the server does not understand it
 * (400), load is not the reason: then each step is examined. False if there is nothing left to ask.
 */
static bool do_without(
	struct query *query, struct prometheus_request *asking, int status, const char *why)
{
	bool seen = asking->stage == AT_SEEN;
	if (!seen || status != 400)
		query_notice(query, "deployments are known no closer than to the step%s: %.300s",
			seen ? ", if another one followed within it" : "", why);
	asking->range.from = asking->range.begin;
	return seen && to_starts(asking, status != 400);
}

static bool start(struct query *query, struct error *error)
{
	const struct endpoint *endpoint = query->server;
	const struct prometheus_options *options = query->options;
	struct prometheus_request *asking = query->state =
		arena_alloc(query->arena, sizeof *asking);
	asking->stage = AT_METRICS;
	if (!endpoint || !endpoint->url)
		return error_set(
			error, ERROR_USAGE, "no server: set url in the prometheus section");
	asking->said = prometheus_said(query);
	bool builds = builds_query(options) != NULL;
	asking->set = prometheus_set_new(query->arena, builds ? (struct pairs){0} : asking->said,
		options->step > 0, endpoint->max_points);
	if (builds && !query->listing)
		asking->builds = builds_new(
			query->arena, asking->said, options->step, options->deployments != NULL);
	return request_range(query, &asking->range, error) && find_query(query, asking, error);
}

/* What the server is as far as is known; FLAVOR_AUTO: it is to be asked. */
static int known_flavor(const struct query *query)
{
	const struct prometheus_server *server = query->server;
	if (server->flavor != FLAVOR_AUTO || !query->server_flavor)
		return server->flavor;
	return atomic_load(query->server_flavor);
}

/* Old servers and proxies do not support this request. Any other failure says nothing about the
 * server, and a wrong guess about VictoriaMetrics would misread expressions. */
static enum step learn_flavor(struct query *query, struct prometheus_request *asking,
	const struct reply *reply, struct error *error)
{
	int status = reply->status;
	if (reply->kind != REPLY_ANSWER) {
		error_set(error, ERROR_DATA, "%s", reply->problem);
		return STEP_FAILED;
	}
	if (status != 200 && status != 400 && status != 404 && status != 405 && status != 501)
		return http_error_answer(asking->address, reply,
			http_error_line(query->arena, reply, refusal_words(reply->body)),
			status == 403 ? ": check username and password, or bearer_token; if only "
					"queries are allowed there, set flavor"
				      : NULL,
			error);
	bool victoria =
		status == 200 && request_is_victoria(query->arena, reply->body, reply->length);
	if (victoria)
		asking->range.how = REQUEST_EXPORT;
	if (query->server_flavor)
		atomic_store(query->server_flavor,
			victoria ? FLAVOR_VICTORIAMETRICS : FLAVOR_PROMETHEUS);
	asking->stage = AT_METRICS;
	return STEP_DONE;
}

static enum step begin(struct query *query, struct transfer *next, struct error *error)
{
	if (!start(query, error))
		return STEP_FAILED;
	struct prometheus_request *asking = query->state;
	int flavor = known_flavor(query);
	if (asking->range.begin >= asking->range.end)
		return finish(query, asking, error);
	if (asking->range.how == REQUEST_RAW && flavor == FLAVOR_VICTORIAMETRICS)
		asking->range.how = REQUEST_EXPORT;
	if (asking->range.how == REQUEST_RAW && flavor == FLAVOR_AUTO) {
		asking->stage = AT_FLAVOR;
		asking->address = request_flavor(query, next);
		return STEP_TRANSFER;
	}
	return ask(query, asking, next, error) ? STEP_TRANSFER : STEP_FAILED;
}

static enum step prometheus_step(
	struct query *query, const struct reply *last, struct transfer *next, struct error *error)
{
	struct prometheus_request *asking = query->state;
	if (!last)
		return begin(query, next, error);
	if (asking->stage == AT_FLAVOR) {
		if (learn_flavor(query, asking, last, error) == STEP_FAILED)
			return STEP_FAILED;
		return ask(query, asking, next, error) ? STEP_TRANSFER : STEP_FAILED;
	}
	bool taken = take_answer(query, last, error) == STEP_DONE;
	if (!taken && asking->stage <= AT_BUILDS)
		return STEP_FAILED;
	bool more = taken ? advance(query, asking)
			  : do_without(query, asking, last->status, error->text);
	if (!more)
		return finish(query, asking, error);
	return ask(query, asking, next, error) ? STEP_TRANSFER : STEP_FAILED;
}

const struct source prometheus_source = {
	.name = "prometheus",
	.summary = "Prometheus, VictoriaMetrics, Thanos, Mimir: PromQL over HTTP",
	.fields = prometheus_fields,
	.options_size = sizeof(struct prometheus_options),
	.server_fields = prometheus_server_fields,
	.server_size = sizeof(struct prometheus_server),
	.step = prometheus_step,
	.asks = true,
	.check_metrics = prometheus_check_metrics,
};

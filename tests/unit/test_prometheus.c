/* The Prometheus source, with recorded answers of real servers and with ours. */
#include "unit.h"

#include "agent/base/buf.h"
#include "tests/unit/prometheus_talk.h"

static void test_raw_samples(void **state)
{
	struct talk *talk = *state;
	say_file(talk, 200, "prom-query-rawmatrix.json");
	done(talk);
	assert_string_equal(talk->asked[0].method, "GET");
	assert_string_equal(talk->asked[0].url,
		"http://prom:9090/base/api/v1/query?query=bench_throughput%5B2592000000ms%5D"
		"&time=1795175999.999&timeout=27000ms");
	assert_int_equal(talk->query.data.count, 1);
	const struct series *series = talk->query.data.series;
	assert_string_equal(series->name, "bench_throughput");
	assert_string_equal(series->identity,
		"bench_throughput{__name__=\"bench_throughput\",test=\"my-product\"}");
	assert_int_equal(series->axis->n, 695);
	assert_int_equal(series->axis->times[0], 1792584000000);
	assert_true(series->values[0] == 60923.236);
	assert_int_equal(talk->query.notices.count, 0);
}

static void test_since_and_until_cut(void **state)
{
	struct talk *talk = *state;
	talk->query.since = 1792587600000;
	talk->query.until = 1792594800000;
	say_file(talk, 200, "prom-query-rawmatrix.json");
	done(talk);
	assert_string_equal(talk->asked[0].url,
		"http://prom:9090/base/api/v1/query?query=bench_throughput%5B7200000ms%5D"
		"&time=1792594799.999&timeout=27000ms");
	const struct axis *axis = talk->query.data.series[0].axis;
	assert_int_equal(axis->n, 2);
	assert_int_equal(axis->times[0], 1792587600000);
	assert_int_equal(axis->times[1], 1792591200000);
	assert_true(talk->query.data.series[0].values[1] == 60932.171);
}

static void test_grid(void **state)
{
	struct talk *talk = *state;
	talk->options.step = HOUR;
	talk->options.range = 3 * HOUR;
	say_file(talk, 200, "prom-range-post.json"); /* 1795161600, 65200, 68800 */
	talk->query.now = 1795172399000;             /* 1 s before a full hour */
	done(talk);
	assert_string_equal(talk->asked[0].url,
		"http://prom:9090/base/api/v1/query_range?query=bench_throughput"
		"&start=1795161600&end=1795168800&step=3600&timeout=27000ms");
	assert_int_equal(talk->query.data.series[0].axis->n, 3);
}

static void test_grid_does_not_depend_on_the_time_of_asking(void **state)
{
	struct talk *talk = *state;
	talk->options.step = HOUR;
	talk->options.range = 3 * HOUR;
	say_file(talk, 200, "prom-range-empty.json");
	talk->query.now = 1795168800000; /* a full hour: it belongs to the range */
	done(talk);
	assert_non_null(strstr(talk->asked[0].url, "&start=1795161600&end=1795168800&"));
}

/* 25,000 points in three pieces; the answer's points lie on the edges of the pieces. */
static void test_long_range_in_pieces(void **state)
{
	struct talk *talk = *state;
	static const char *const values[] = {
		"[1700000000,\"1\"],[1700010999,\"2\"],[1700011000,\"9\"]", /* the last is the next
									       one's */
		"[1700010000,\"9\"],[1700011000,\"3\"],[1700021999,\"4\"]",
		"[1700022000,\"5\"],[1700024999,\"6\"],[1700025000,\"9\"]"};
	talk->options.step = 1000;
	talk->query.since = 1700000000000;
	talk->query.until = 1700025000000;
	for (int i = 0; i < 3; i++) {
		char body[512];
		snprintf(body, sizeof body,
			"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":["
			"{\"metric\":{\"a\":\"%s\"},\"values\":[%s]},{\"metric\":{\"a\":\"%s\"},"
			"\"values\":[%s]}"
			"]}}",
			i == 1 ? "y" : "x", values[i], i == 1 ? "x" : "y", values[i]);
		say(talk, 200, body);
	}
	done(talk);
	assert_non_null(strstr(talk->asked[0].url, "&start=1700000000&end=1700010999&step=1&"));
	assert_non_null(strstr(talk->asked[1].url, "&start=1700011000&end=1700021999&step=1&"));
	assert_non_null(strstr(talk->asked[2].url, "&start=1700022000&end=1700024999&step=1&"));
	assert_int_equal(talk->query.data.count, 2);
	for (int i = 0; i < 2; i++) {
		const struct series *series = &talk->query.data.series[i];
		assert_string_equal(series->name, i ? "value{a=\"y\"}" : "value{a=\"x\"}");
		assert_int_equal(series->axis->n, 6);
		for (int k = 0; k < 6; k++)
			assert_true(series->values[k] == k + 1);
	}
	assert_ptr_equal(talk->query.data.series[0].axis, talk->query.data.series[1].axis);
}

static void test_fractions_of_seconds(void **state)
{
	struct talk *talk = *state;
	say_file(talk, 200, "prom-range-fracts.json");
	done(talk);
	assert_int_equal(talk->query.data.series[0].axis->times[0], 1795161600123);
	assert_int_equal(talk->query.data.series[0].axis->times[1], 1795165201123);
}

static void test_special_values(void **state)
{
	struct talk *talk = *state;
	say_file(talk, 200, "prom-range-special.json");
	done(talk);
	static const double expected[] = {
		1.7976931348623157e308, HUGE_VAL, (double)NAN, -0.0, -HUGE_VAL, 5e-324};
	static const char *const names[] = {"big", "inf", "nan", "neg0", "ninf", "tiny"};
	assert_int_equal(talk->query.data.count, 6);
	for (int i = 0; i < 6; i++) {
		const struct series *series = &talk->query.data.series[i];
		char name[64];
		snprintf(name, sizeof name, "bench_special{k=\"%s\"}", names[i]);
		assert_string_equal(series->name, name);
		assert_true(isnan(expected[i]) ? isnan(series->values[0])
					       : memcmp(&series->values[0], &expected[i], 8) == 0);
		assert_ptr_equal(series->axis, talk->query.data.series[0].axis);
	}
}

static void test_labels_are_escaped(void **state)
{
	struct talk *talk = *state;
	say_file(talk, 200, "prom-range-label.json");
	done(talk);
	assert_string_equal(talk->query.data.series[0].identity,
		"bench_label{__name__=\"bench_label\",path=\"C:\\\\x \\\"q\\\" é\\n\"}");
}

static void test_metrics_with_queries_and_scales(void **state)
{
	struct talk *talk = *state;
	talk->options.query = NULL;
	talk->query.metric_count = 2;
	talk->metrics[0] = (struct metric){.name = "p50", .scale = 1000, .query = "a{q=\"0.5\"}"};
	talk->metrics[1] = (struct metric){.name = "thr", .scale = 1, .query = "b"};
	say_file(talk, 200, "prom-range-multi.json");
	say_file(talk, 200, "prom-query-matrix.json");
	done(talk);
	assert_non_null(strstr(talk->asked[0].url, "query=a%7Bq%3D%220.5%22%7D%5B2592000000ms%5D"));
	assert_non_null(strstr(talk->asked[1].url, "query=b%5B"));
	const struct dataset *data = &talk->query.data;
	assert_int_equal(data->count, 3);
	assert_string_equal(data->series[0].name, "p50{q=\"0.5\"}");
	assert_string_equal(data->series[1].name, "p50{q=\"0.99\"}");
	assert_string_equal(data->series[2].name, "thr");
	assert_ptr_equal(data->series[2].metric, &talk->metrics[1]);
	assert_true(data->series[0].values[0] == 0.095326 * 1000);
	assert_string_equal(data->series[0].identity,
		"p50{__name__=\"bench_latency_seconds\",q=\"0.5\",test=\"my-product\"}");
}

/* A series that lacks a label differs in it; several __name__s are metrics of their own. */
static void test_names_show_what_differs(void **state)
{
	struct talk *talk = *state;
	say(talk, 200,
		"{\"data\":{\"result\":["
		"{\"metric\":{\"__name__\":\"a\",\"x\":\"1\",\"same\":\"s\"},\"values\":[["
		"1795170000,\"1\"]]},"
		"{\"values\":[[1795170000,\"1\"]],\"metric\":{\"same\":\"s\",\"__name__\":\"a\"}},"
		"{\"metric\":{\"__name__\":\"a\",\"x\":\"2\",\"same\":\"s\",\"more\":\"m\"},"
		"\"values\":[[1795170001,\"1\"]]},"
		"{\"metric\":{\"__name__\":\"b\",\"x\":\"2\"},\"values\":[[1795170001,\"1\"]]},"
		"{\"metric\":{\"__name__\":\"c\"},\"values\":[]}"
		"],\"resultType\":\"matrix\"},\"status\":\"success\"}");
	done(talk);
	const struct dataset *data = &talk->query.data;
	assert_int_equal(data->count, 4);
	assert_string_equal(data->series[0].name, "a{more=\"m\",x=\"2\"}");
	assert_string_equal(data->series[1].name, "a{x=\"1\"}");
	assert_string_equal(data->series[2].name, "a");
	assert_string_equal(data->series[3].name, "b");
	assert_string_equal(data->series[2].identity, "a{__name__=\"a\",same=\"s\"}");
	assert_ptr_equal(data->series[1].axis, data->series[2].axis);
	assert_ptr_not_equal(data->series[0].axis, data->series[1].axis);
	assert_ptr_equal(data->series[0].metric, data->series[2].metric);
	assert_ptr_not_equal(data->series[2].metric, data->series[3].metric);
}

static void test_long_queries_go_by_post(void **state)
{
	struct talk *talk = *state;
	char query[3000];
	memset(query, 'a', sizeof query - 1);
	query[sizeof query - 1] = '\0';
	talk->options.query = query;
	say_file(talk, 200, "prom-range-empty.json");
	done(talk);
	const struct transfer *asked = &talk->asked[0];
	assert_string_equal(asked->method, "POST");
	assert_string_equal(asked->url, "http://prom:9090/base/api/v1/query");
	assert_int_equal(asked->body_length, strlen(asked->body));
	assert_non_null(strstr(asked->body, "aaa%5B2592000000ms%5D&time="));
	assert_string_equal(asked->headers.items[0].value, "application/x-www-form-urlencoded");
}

static void test_nothing_there(void **state)
{
	struct talk *talk = *state;
	say_file(talk, 200, "prom-range-empty.json");
	done(talk);
	assert_int_equal(talk->query.data.count, 0);
	assert_int_equal(talk->query.notices.count, 1);
	assert_non_null(strstr(talk->query.notices.items[0], "no data"));
}

static void test_histograms_and_sentences(void **state)
{
	struct talk *talk = *state;
	say(talk, 200,
		"{\"status\":\"success\",\"warnings\":[\"PromQL warning: "
		"\\u0041\\nmore\"],\"infos\":[\"PromQL info: x\"],"
		"\"data\":{\"resultType\":\"matrix\",\"result\":["
		"{\"metric\":{\"__name__\":\"h\"},\"histograms\":[[1,{\"count\":\"1\",\"buckets\":["
		"[0,\"1\"]]}]]},"
		"{\"metric\":{\"__name__\":\"v\"},\"values\":[[1795170000,\"1\"]]}],\"stats\":{}}"
		"}");
	done(talk);
	assert_int_equal(talk->query.data.count, 1);
	assert_int_equal(talk->query.notices.count, 3);
	assert_string_equal(talk->query.notices.items[0], "the server warns: PromQL warning: A");
	assert_string_equal(talk->query.notices.items[1], "the server notes: PromQL info: x");
	assert_non_null(strstr(talk->query.notices.items[2], "1 native histogram"));
}

#define ONE_POINT(label)                                                                           \
	"\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric\":{" label "},\"values\":["     \
	"[1795170000,\"1\"]]}]}"

static const char thanos[] =
	"{\"status\":\"success\",\"warnings\":[\"No StoreAPIs matched for this "
	"query\"]," ONE_POINT("") "}";
static const char cluster[] = "{\"status\":\"success\",\"isPartial\":true," ONE_POINT("") "}";

static void test_partial_answers_are_failures(void **state)
{
	(void)state;
	static const char *const bodies[] = {thanos, cluster};
	static const char *const words[] = {"No StoreAPIs matched", "part of the cluster"};
	for (int i = 0; i < 2; i++) {
		struct talk *talk;
		set_up((void **)&talk);
		say(talk, 200, bodies[i]);
		failed(talk, words[i]);
		assert_non_null(strstr(talk->error.text, "partial_response: allow"));
		tear_down((void **)&talk);
	}
}

static void test_partial_answers_may_be_allowed(void **state)
{
	(void)state;
	static const char *const bodies[] = {thanos, cluster};
	for (int i = 0; i < 2; i++) {
		struct talk *talk;
		set_up((void **)&talk);
		talk->server.partial_response = 1;
		say(talk, 200, bodies[i]);
		done(talk);
		assert_int_equal(talk->query.data.count, 1);
		assert_int_equal(talk->query.notices.count, 1);
		tear_down((void **)&talk);
	}
}

/* Behind more warnings than are shown it counts all the same; behind as many infos too. */
static void test_a_partial_answer_behind_other_warnings(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct talk *talk;
		struct buf body = {0};
		set_up((void **)&talk);
		talk->server.partial_response = i > 0;
		buf_printf(&body, "{\"status\":\"success\",\"%s\":[", i < 2 ? "warnings" : "infos");
		for (int k = 0; k < 30; k++)
			buf_printf(&body, "\"PromQL warning: %d\",", k);
		buf_text(&body, "\"a store is away\",\"another\"]," ONE_POINT("") "}");
		say(talk, 200, body.data);
		buf_free(&body);
		if (i == 0) {
			failed(talk, "the answer may lack data: a store is away (partial_response");
		} else {
			done(talk);
			assert_int_equal(talk->query.notices.count, i == 1 ? 21 : 20);
			assert_string_equal(talk->query.notices.items[0],
				i == 1 ? "the server warns: a store is away"
				       : "the server notes: PromQL warning: 0");
		}
		tear_down((void **)&talk);
	}
}

static const char too_many[] =
	"{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"query processing would load "
	"too many samples into memory in query execution\"}";

/* A quarter of the range is what the server can do; nothing is asked twice. */
static void test_too_much_is_asked_in_halves(void **state)
{
	struct talk *talk = *state;
	talk->query.since = 1700000000000;
	talk->query.until = 1700000800000;
	say(talk, 422, too_many);
	say(talk, 422, too_many);
	for (int i = 0; i < 4; i++) {
		char body[300];
		snprintf(body, sizeof body,
			"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":["
			"{\"metric\":{\"a\":\"x\"},\"values\":[[%d.999,\"9\"],[%d,\"%d\"]]}]}}",
			1699999999 + 200 * i, 1700000000 + 200 * i, i);
		say(talk, 200, body);
	}
	done(talk);
	static const char *const asked[] = {"%5B800000ms%5D&time=1700000799.999",
		"%5B400000ms%5D&time=1700000399.999", "%5B200000ms%5D&time=1700000199.999",
		"%5B200000ms%5D&time=1700000399.999", "%5B200000ms%5D&time=1700000599.999",
		"%5B200000ms%5D&time=1700000799.999"};
	for (int i = 0; i < 6; i++)
		assert_non_null(strstr(talk->asked[i].url, asked[i]));
	assert_int_equal(talk->query.data.count, 1);
	assert_int_equal(talk->query.data.series[0].axis->n, 4);
	for (int i = 0; i < 4; i++)
		assert_true(talk->query.data.series[0].values[i] == i);
	assert_int_equal(talk->query.notices.count, 0);
}

/* What comes beside an error, and is asked again, is no data. */
static void test_data_of_errors_are_none(void **state)
{
	struct talk *talk = *state;
	talk->query.since = 1700000000000;
	talk->query.until = 1700000200000;
	say(talk, 422,
		"{\"status\":\"error\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric\":"
		"{},"
		"\"values\":[[1700000001,\"9\"],[1700000101,\"9\"]]}]},\"error\":\"too many "
		"samples\"}");
	for (int i = 0; i < 2; i++) {
		char body[300];
		snprintf(body, sizeof body,
			"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":["
			"{\"metric\":{},\"values\":[[%d,\"%d\"]]}]}}",
			1700000002 + 100 * i, i);
		say(talk, 200, body);
	}
	done(talk);
	assert_int_equal(talk->query.data.count, 1);
	const struct series *series = talk->query.data.series;
	assert_int_equal(series->axis->n, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(series->axis->times[i], 1700000002000 + 100000 * i);
		assert_true(series->values[i] == i);
	}
}

/* A failure under status 200 is known when its data are taken: there is no second question. */
static void test_failures_with_status_200_are_final(void **state)
{
	struct talk *talk = *state;
	say(talk, 200,
		"{\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric\":{},\"values\":"
		"[[1795170000,\"9\"]]}]},\"status\":\"error\",\"error\":\"too many samples\"}");
	failed(talk, "status 200: error: too many samples");
	assert_int_equal(talk->asked_count, 1);
}

static void test_halves_of_a_grid_stay_on_it(void **state)
{
	struct talk *talk = *state;
	talk->options.step = 60000;
	talk->query.since = 1700000040000;
	talk->query.until = 1700000340000; /* five points */
	say_file(talk, 503, "prom-range-timeout.json");
	struct reply *big = say(talk, 200, "");
	big->kind = REPLY_TOO_BIG;
	big->problem = "too big";
	for (int i = 0; i < 5; i++)
		say_file(talk, 200, "prom-range-empty.json");
	done(talk);
	assert_non_null(strstr(talk->asked[0].url, "&start=1700000040&end=1700000280&step=60&"));
	assert_non_null(strstr(talk->asked[1].url, "&start=1700000040&end=1700000100&step=60&"));
	for (int i = 0; i < 5; i++) {
		char range[64];
		snprintf(range, sizeof range, "&start=%d&end=%d&", 1700000040 + 60 * i,
			1700000040 + 60 * i);
		assert_non_null(strstr(talk->asked[2 + i].url, range));
	}
}

static void test_halving_has_an_end(void **state)
{
	struct talk *talk = *state;
	for (int i = 0; i < 7; i++)
		say(talk, 422, too_many);
	failed(talk, "too many samples into memory in query execution: shorten range");
	assert_int_equal(talk->asked_count, 7);
}

static void test_timeouts_are_dear(void **state)
{
	struct talk *talk = *state;
	for (int i = 0; i < 4; i++)
		say_file(talk, 503, "prom-range-timeout.json");
	failed(talk, "status 503: timeout: query timed out");
	assert_int_equal(talk->asked_count, 4);
}

/* A proxy's page says it by its status, or, if that may mean that nobody is there, by its words. */
static void test_pages_of_proxies_are_asked_in_halves(void **state)
{
	static const struct {
		int status;
		const char *body;
		int asked;
		const char *words;
	} cases[] = {
		{413, "<html><h1>413 Request Entity Too Large</h1>", 7,
			"status 413 with an HTML page: shorten range"},
		{504, "<html><h1>504 Gateway Time-out</h1>", 4,
			"status 504 with an HTML page: shorten range"},
		{504, "Gateway", 4, "status 504: Gateway: shorten range"},
		{503, "<html>\n<h1>upstream request timeout</h1>", 4,
			"status 503 with an HTML page: shorten range"},
		{503, "<html><h1>Service Unavailable</h1>", 1,
			"status 503 with an HTML page: the server failed"},
		{500, "<html><script>timeout</script>", 1,
			"status 500 with an HTML page: the server failed"},
		{200, "<html><script>timeout</script>", 1, "a login page"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct talk *talk;
		set_up((void **)&talk);
		for (int k = 0; k < cases[i].asked; k++)
			say(talk, cases[i].status, cases[i].body);
		failed(talk, cases[i].words);
		assert_null(strstr(talk->error.text, "<"));
		assert_int_equal(talk->asked_count, cases[i].asked);
		tear_down((void **)&talk);
	}
}

static void test_refusals(void **state)
{
	static const struct {
		int status;
		const char *file;
		int step;
		const char *words[3];
	} cases[] = {
		{400, "prom-range-parseerr.json", 0,
			{"http://prom:9090/base/api/v1/query: status 400: bad_data: 1:5: parse "
			 "error",
				"add step"}},
		{400, "prom-range-parseerr.json", HOUR,
			{"query_range: status 400: bad_data: 1:5: parse error: "
			 "unclosed left parenthesis"}},
		{401, "prom-401.txt", 0, {"status 401: Unauthorized", "bearer_token"}},
		{404, "prom-404.txt", 0, {"status 404: 404 page not found", "path"}},
		{400, "prom-tls-plainhttp.txt", 0, {"status 400: Client sent", "use https://"}},
		{422, "vm-range-parseerr.json", HOUR, {"status 422: 422: error when executing"}},
		{200, "prom-query-instant.json", 0, {"returns a vector instead of series"}},
		{200, "prom-query-scalar.json", 0, {"returns a scalar"}},
		{200, "prom-query-string.json", 0, {"returns a string"}},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct talk *talk;
		set_up((void **)&talk);
		talk->options.step = cases[i].step;
		say_file(talk, cases[i].status, cases[i].file);
		run(talk);
		assert_int_equal(talk->end, STEP_FAILED);
		for (int k = 0; k < 3 && cases[i].words[k]; k++)
			if (!strstr(talk->error.text, cases[i].words[k]))
				fail_msg(
					"\"%s\" lacks \"%s\"", talk->error.text, cases[i].words[k]);
		tear_down((void **)&talk);
	}
}

static void test_pages(void **state)
{
	struct talk *talk = *state;
	say(talk, 200, "\n <!DOCTYPE html><title>Sign in</title>");
	failed(talk, "HTML page");
}

/* Answers of success are data and are not masked as a whole; what is shown of them is, also where
 * it is cut. */
static void test_secrets_in_answers_of_success(void **state)
{
	static const char *const secret = "tok3n-of-the-server";
	static const char *const before[] = {
		"{\"status\":\"error\",\"errorType\":\"e\",\"error\":\"",
		"{\"status\":\"success\",\"warnings\":[\"",
		"{\"status\":\"success\",\"data\":{\"resultType\":\""};
	static const char *const after[] = {"\"}", "\"]," ONE_POINT("") "}", "\",\"result\":[]}}"};
	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct talk *talk;
		struct buf body = {0};
		set_up((void **)&talk);
		buf_text(&body, before[i]);
		for (int n = 0; n < 290; n++)
			buf_char(&body, 'x');
		buf_printf(&body, "%s%s", secret, after[i]);
		say(talk, 200, body.data)->secrets = (struct strings){&secret, 1};
		failed(talk, "xxx***");
		assert_null(strstr(talk->error.text, "tok3"));
		buf_free(&body);
		tear_down((void **)&talk);
	}
}

static void test_redirect_that_is_barred(void **state)
{
	struct talk *talk = *state;
	struct reply *reply = say(talk, 302, "");
	reply->barred = "https://login.example:443";
	failed(talk, "a redirect, which is not followed");
	assert_non_null(strstr(talk->error.text, "it points to https://login.example:443"));
}

static void test_no_answer(void **state)
{
	struct talk *talk = *state;
	struct reply *reply = say(talk, 0, "");
	reply->kind = REPLY_UNREACHABLE;
	reply->problem = "cannot reach http://prom:9090: Connection refused";
	failed(talk, "Connection refused");
}

static void test_broken_answers(void **state)
{
	static const char *const bodies[] = {
		"",
		"{",
		"[]",
		"{}",
		"null",
		"\xff",
		"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\"}}",
		"{\"status\":\"success\"}",
		"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{}]}}",
		"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":{}}}",
		"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{"
		"\"metric\":{},"
		"\"values\":[[1,\"x\"]]}]}}",
		"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{"
		"\"metric\":{},"
		"\"values\":[[1,2]]}]}}",
		"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{"
		"\"metric\":{},"
		"\"values\":[[1,\"2\"],[0,\"2\"]]}]}}",
		"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{"
		"\"metric\":{},"
		"\"values\":[[1e300,\"2\"]]}]}}",
		"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{"
		"\"metric\":7,"
		"\"values\":[[1,\"2\"]]}]}}",
		"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[]}} x",
	};
	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		struct talk *talk;
		set_up((void **)&talk);
		say(talk, 200, bodies[i]);
		run(talk);
		if (talk->end != STEP_FAILED)
			fail_msg("accepted: %s", bodies[i]);
		tear_down((void **)&talk);
	}
}

/* Cut at any byte, an answer fails and never counts as a shorter one. */
static void test_truncated_answers(void **state)
{
	(void)state;
	struct talk *whole;
	set_up((void **)&whole);
	say_file(whole, 200, "prom-range-multi.json");
	size_t length = whole->replies[0].length;
	while (length > 0 && whole->bodies[0][length - 1] != '}')
		length--;
	for (size_t i = 0; i < length; i++) {
		struct talk *talk;
		set_up((void **)&talk);
		struct reply *reply = say(talk, 200, whole->bodies[0]);
		talk->bodies[0][i] = '\0';
		reply->length = i;
		run(talk);
		assert_int_equal(talk->end, STEP_FAILED);
		tear_down((void **)&talk);
	}
	tear_down((void **)&whole);
}

static void test_configurations_that_cannot_work(void **state)
{
	struct talk *talk = *state;
	talk->options.query = NULL;
	failed(talk, "the test has no query");
	talk->query.metric_count = 1;
	talk->metrics[0].name = "p99";
	failed(talk, "metric \"p99\" has no query");
	talk->options.query = "up";
	talk->query.metric_count = 2;
	failed(talk, "2 metrics have no query of their own");
	talk->query.metric_count = 0;
	talk->options.step = 1;
	failed(talk, "raise step");
	talk->server.endpoint.url = NULL;
	failed(talk, "no server");
	assert_int_equal(talk->error.kind, ERROR_USAGE);
}

static void test_empty_range(void **state)
{
	struct talk *talk = *state;
	talk->query.since = 1000;
	talk->query.until = 1000;
	done(talk);
	assert_int_equal(talk->query.data.count, 0);
	talk->options.step = HOUR; /* no place of the grid within the range */
	talk->query.until = 2000;
	done(talk);
	assert_int_equal(talk->asked_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TALK_TEST(test_raw_samples),
		TALK_TEST(test_since_and_until_cut),
		TALK_TEST(test_grid),
		TALK_TEST(test_grid_does_not_depend_on_the_time_of_asking),
		TALK_TEST(test_long_range_in_pieces),
		TALK_TEST(test_fractions_of_seconds),
		TALK_TEST(test_special_values),
		TALK_TEST(test_labels_are_escaped),
		TALK_TEST(test_metrics_with_queries_and_scales),
		TALK_TEST(test_names_show_what_differs),
		TALK_TEST(test_long_queries_go_by_post),
		TALK_TEST(test_nothing_there),
		TALK_TEST(test_histograms_and_sentences),
		cmocka_unit_test(test_partial_answers_are_failures),
		cmocka_unit_test(test_partial_answers_may_be_allowed),
		cmocka_unit_test(test_a_partial_answer_behind_other_warnings),
		TALK_TEST(test_too_much_is_asked_in_halves),
		TALK_TEST(test_data_of_errors_are_none),
		TALK_TEST(test_failures_with_status_200_are_final),
		TALK_TEST(test_halves_of_a_grid_stay_on_it),
		TALK_TEST(test_halving_has_an_end),
		TALK_TEST(test_timeouts_are_dear),
		cmocka_unit_test(test_pages_of_proxies_are_asked_in_halves),
		cmocka_unit_test(test_refusals),
		TALK_TEST(test_pages),
		cmocka_unit_test(test_secrets_in_answers_of_success),
		TALK_TEST(test_redirect_that_is_barred),
		TALK_TEST(test_no_answer),
		cmocka_unit_test(test_broken_answers),
		cmocka_unit_test(test_truncated_answers),
		TALK_TEST(test_configurations_that_cannot_work),
		TALK_TEST(test_empty_range),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

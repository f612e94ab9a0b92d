/* Labels of points, builds, branches, and VictoriaMetrics' export. */
#include "unit.h"

#include "agent/base/buf.h"
#include "agent/model/attribution.h"
#include "sources/prometheus/builds.h"
#include "sources/prometheus/promql.h"
#include "tests/unit/prometheus_talk.h"

enum { T = 1795100000 }; /* s */

/* A matrix of "labels|stamp value,stamp value" rows; stamps count from T. */
static void say_rows(struct talk *talk, const char *const *rows)
{
	struct buf body = {0};
	buf_text(&body, "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[");
	for (size_t i = 0; rows[i]; i++) {
		const char *at = strchr(rows[i], '|');
		buf_printf(&body, "%s{\"metric\":{%.*s},\"values\":[", i ? "," : "",
			(int)(at - rows[i]), rows[i]);
		for (bool first = true; *at; first = false) {
			char *end;
			long stamp = strtol(at + 1, &end, 10);
			double value = strtod(end, &end);
			buf_printf(&body, "%s[%ld,\"%g\"]", first ? "" : ",", T + stamp, value);
			at = end;
		}
		buf_text(&body, "]}");
	}
	buf_text(&body, "]}}");
	say(talk, 200, body.data);
	buf_free(&body);
}

/* "0:1 10:2/commit=a,-" : stamps, values, and an attribute's values. */
static void check_series(const struct series *series, const char *attribute, const char *expected)
{
	const struct axis *axis = series->axis;
	const struct column *column = axis_column(axis, attribute);
	struct buf text = {0};
	buf_text(&text, "");
	buf_reserve(&text, 1);
	for (size_t i = 0; i < axis->n; i++)
		buf_printf(&text, "%s%ld:%g%s%s", i ? " " : "", (long)(axis->times[i] / 1000 - T),
			series->values[i], column ? "@" : "",
			!column             ? ""
			: column->values[i] ? column->values[i]
					    : "-");
	assert_string_equal(text.data, expected);
	buf_free(&text);
}

/* One sample a build, each a series of its own for the server; two commits at one time are kept. */
static void test_series_that_differ_in_the_commit_are_one(void **state)
{
	struct talk *talk = *state;
	talk->options.commit_label = "sha";
	say_rows(talk, (const char *[]){"\"__name__\":\"m\",\"bench\":\"r\",\"sha\":\"a\"|30 3",
			       "\"__name__\":\"m\",\"bench\":\"r\",\"sha\":\"b\"|10 1,20 2",
			       "\"__name__\":\"m\",\"bench\":\"r\",\"sha\":\"c\"|20 4",
			       "\"__name__\":\"m\",\"bench\":\"r\"|40 5",
			       "\"__name__\":\"m\",\"bench\":\"w\",\"sha\":\"b\"|10 7", NULL});
	done(talk);
	const struct dataset *data = &talk->query.data;
	assert_int_equal(data->count, 2);
	assert_string_equal(data->series[0].identity, "m{__name__=\"m\",bench=\"r\"}");
	assert_string_equal(data->series[0].name, "m{bench=\"r\"}");
	check_series(&data->series[0], "commit", "10:1@b 20:2@b 20:4@c 30:3@a 40:5@-");
	check_series(&data->series[1], "commit", "10:7@b");
	assert_int_equal(talk->query.notices.count, 0);
}

static void test_more_labels_of_points(void **state)
{
	struct talk *talk = *state;
	static const char *const more[] = {"host", "commit", "run"};
	talk->options.commit_label = "sha";
	talk->options.version_label = "v";
	talk->options.attributes = (struct strings){more, 3};
	say_rows(talk, (const char *[]){"\"__name__\":\"m\",\"sha\":\"a\",\"v\":\"1\",\"host\":"
					"\"x\",\"commit\":\"z\"|1 1",
			       "\"__name__\":\"m\",\"sha\":\"b\",\"v\":\"\",\"host\":\"y\","
			       "\"commit\":\"z\"|2 2",
			       NULL});
	done(talk);
	assert_int_equal(talk->query.data.count, 1);
	const struct series *series = talk->query.data.series;
	/* `commit` is taken already, so that label names the series. */
	assert_string_equal(series->identity, "m{__name__=\"m\",commit=\"z\"}");
	check_series(series, "commit", "1:1@a 2:2@b");
	check_series(series, "version", "1:1@1 2:2@-");
	check_series(series, "host", "1:1@x 2:2@y");
	assert_int_equal(series->axis->column_count, 3);
	assert_int_equal(talk->query.notices.count, 1);
	assert_string_equal(talk->query.notices.items[0], "no series has the label \"run\"");
}

/* Series that were measured together share an axis if all is the same, else they do not. */
static void test_axes_with_attributes(void **state)
{
	struct talk *talk = *state;
	talk->options.commit_label = "sha";
	say_rows(talk, (const char *[]){"\"__name__\":\"p50\",\"sha\":\"a\"|1 1",
			       "\"__name__\":\"p50\",\"sha\":\"b\"|2 2",
			       "\"__name__\":\"p99\",\"sha\":\"b\"|2 3",
			       "\"__name__\":\"p99\",\"sha\":\"a\"|1 4",
			       "\"__name__\":\"rate\",\"sha\":\"a\"|1 5,2 6", NULL});
	done(talk);
	const struct dataset *data = &talk->query.data;
	assert_int_equal(data->count, 3);
	check_series(&data->series[1], "commit", "1:4@a 2:3@b");
	assert_ptr_equal(data->series[0].axis, data->series[1].axis);
	assert_ptr_not_equal(data->series[1].axis, data->series[2].axis);
}

static void test_pieces_with_commits(void **state)
{
	struct talk *talk = *state;
	talk->options.commit_label = "sha";
	talk->options.step = 1000;
	talk->query.since = T * 1000LL;
	talk->query.until = (T + 22000) * 1000LL;
	say_rows(talk, (const char *[]){"\"sha\":\"a\"|1 1,2 2", "\"sha\":\"b\"|2 3", NULL});
	say_rows(talk, (const char *[]){"\"sha\":\"b\"|11000 4", NULL});
	done(talk);
	assert_int_equal(talk->query.data.count, 1);
	check_series(talk->query.data.series, "commit", "1:1@a 2:3@b 11000:4@b");
}

/* With a step the server repeats the last sample of an old build beside those of the new one. */
static void test_stale_builds_on_a_grid(void **state)
{
	struct talk *talk = *state;
	talk->options.commit_label = "sha";
	talk->options.step = 1000;
	talk->query.since = T * 1000LL;
	talk->query.until = (T + 20) * 1000LL;
	say_rows(talk, (const char *[]){"\"sha\":\"new\"|3 9,4 8,5 7,6 6,7 5",
			       "\"sha\":\"old\"|1 1,2 2,3 2,4 2,5 2,6 2", NULL});
	done(talk);
	check_series(talk->query.data.series, "commit",
		"1:1@old 2:2@old 3:9@new 4:8@new 5:7@new 6:6@new 7:5@new");
}

/* A rollout just before a piece of the range begins: who goes on is the newer. */
static void test_stale_builds_where_pieces_meet(void **state)
{
	struct talk *talk = *state;
	talk->options.commit_label = "sha";
	talk->options.step = 1000;
	talk->query.since = T * 1000LL;
	talk->query.until = (T + 22000) * 1000LL;
	say_rows(talk,
		(const char *[]){"\"sha\":\"old\"|1 1,10999 2", "\"sha\":\"new\"|10999 3", NULL});
	say_rows(talk, (const char *[]){"\"sha\":\"new\"|11000 4,11001 5,11002 6",
			       "\"sha\":\"old\"|11000 2,11001 2", NULL});
	done(talk);
	check_series(talk->query.data.series, "commit",
		"1:1@old 10999:3@new 11000:4@new 11001:5@new 11002:6@new");
}

/* Two series, and two builds with a rollout from 20 on: the one that came last counts. */
static void test_builds(void **state)
{
	struct talk *talk = *state;
	talk->options.step = 10000;
	talk->options.build_info = "build_info{b=\"%{BRANCH}\"}";
	talk->query.since = T * 1000LL;
	talk->query.until = (T + 60) * 1000LL;
	say_rows(talk, (const char *[]){"\"region\":\"eu\"|0 1,10 2,20 3,30 4,40 5,50 6",
			       "\"region\":\"us\"|0 1,10 2,20 3,30 4,40 5,50 6", NULL});
	say_rows(talk,
		(const char *[]){"\"__name__\":\"build_info\",\"i\":\"1\",\"revision\":\"b\","
				 "\"version\":\"2\"|20 1,30 1,40 1",
			"\"__name__\":\"build_info\",\"i\":\"2\",\"revision\":\"a\",\"version\":"
			"\"\"|10 1,20 1,30 1",
			"\"__name__\":\"build_info\",\"i\":\"1\",\"revision\":\"a\"|10 1", NULL});
	done(talk);
	assert_non_null(strstr(talk->asked[1].url, "query=build_info%7Bb%3D%22main%22%7D&start="));
	const struct dataset *data = &talk->query.data;
	assert_int_equal(data->count, 2);
	for (int i = 0; i < 2; i++) {
		check_series(
			&data->series[i], "commit", "0:1@- 10:2@a 20:3@b 30:4@b 40:5@b 50:6@b");
		check_series(
			&data->series[i], "version", "0:1@- 10:2@- 20:3@2 30:4@2 40:5@2 50:6@2");
	}
	assert_ptr_equal(data->series[0].axis, data->series[1].axis);
	assert_int_equal(talk->query.notices.count, 0);
}

/* A label that both have must be the same; `version` is the build's and need not. */
static void test_builds_of_a_job(void **state)
{
	struct talk *talk = *state;
	talk->options.build_info = "build_info";
	talk->options.version_label = "version";
	talk->query.since = T * 1000LL;
	talk->query.until = (T + 60) * 1000LL;
	say_rows(talk, (const char *[]){"\"job\":\"a\",\"version\":\"x\"|5 1,15 2",
			       "\"job\":\"b\"|5 1,15 2", "\"job\":\"c\"|5 1,15 2", NULL});
	say_rows(talk, (const char *[]){"\"job\":\"a\",\"version\":\"1\"|0 1",
			       "\"job\":\"a\",\"version\":\"2\"|10 1",
			       "\"job\":\"b\",\"version\":\"9\"|10 1", NULL});
	done(talk);
	const struct dataset *data = &talk->query.data;
	check_series(&data->series[0], "version", "5:1@1 15:2@2");
	check_series(&data->series[1], "version", "5:1@- 15:2@9");
	check_series(&data->series[2], "version", "5:1 15:2");
	assert_string_equal(data->series[0].identity, "value{job=\"a\",version=\"x\"}");
}

static void test_builds_that_say_nothing(void **state)
{
	static const char *const rows[][2] = {{NULL}, {"\"job\":\"a\"|0 1", NULL}};
	static const char *const words[] = {"build_info returns no data", "the label \"revision\""};
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct talk *talk;
		set_up((void **)&talk);
		talk->options.build_info = "build_info";
		say_rows(talk, (const char *[]){"|5 1", NULL});
		say_rows(talk, rows[i]);
		done(talk);
		assert_int_equal(talk->query.data.series[0].axis->column_count, 0);
		assert_int_equal(talk->query.notices.count, 1);
		assert_non_null(strstr(talk->query.notices.items[0], words[i]));
		tear_down((void **)&talk);
	}
}

static void begin_matrix(struct buf *body)
{
	buf_text(body, "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[");
}

static void end_matrix(struct talk *talk, struct buf *body)
{
	body->length--; /* the last comma */
	buf_text(body, "]}}");
	say(talk, 200, body->data);
	buf_free(body);
}

/* A series whose labels are the same n times over costs what its samples cost. */
static void test_a_build_in_many_series(void **state)
{
	struct talk *talk = *state;
	struct buf body = {0};
	talk->options.build_info = "build_info";
	say_rows(talk, (const char *[]){"|40000 1", NULL});
	begin_matrix(&body);
	for (int i = 0; i < 20000; i++)
		buf_printf(
			&body, "{\"metric\":{\"revision\":\"a\"},\"values\":[[%d,\"1\"]]},", T + i);
	end_matrix(talk, &body);
	done(talk);
	check_series(talk->query.data.series, "commit", "40000:1@a");
	assert_true(arena_size(talk->query.arena) < 4 << 20);
}

static void say_builds(struct talk *talk, int count)
{
	struct buf body = {0};
	begin_matrix(&body);
	for (int i = 0; i < count; i++)
		buf_printf(&body, "{\"metric\":{\"revision\":\"%d\"},\"values\":[[%d,\"1\"]]},", i,
			T + i);
	end_matrix(talk, &body);
}

static void test_too_many_builds(void **state)
{
	(void)state;
	for (int more = 0; more < 2; more++) {
		struct talk *talk;
		set_up((void **)&talk);
		talk->options.build_info = "build_info";
		say_rows(talk, (const char *[]){"|40000 1", NULL});
		say_builds(talk, 10000 + more);
		if (more) {
			failed(talk, "build_info has more than 10000 series");
		} else {
			done(talk);
			check_series(talk->query.data.series, "commit", "40000:1@9999");
		}
		tear_down((void **)&talk);
	}
}

/* A deployment counts once, however often a server repeats its time. */
static void test_repeated_deployments(void **state)
{
	enum { SAMPLES = 1000000 };
	struct arena *arena = arena_new();
	struct builds *builds = builds_new(arena, (struct pairs){0}, 0, true);
	int64_t *times = arena_array(arena, SAMPLES, sizeof *times);
	double *values = arena_array(arena, SAMPLES, sizeof *values);
	struct answer_series series = {.n = SAMPLES, .times = times, .values = values};

	(void)state;
	for (int i = 0; i < SAMPLES; i++)
		values[i] = T;
	for (int i = 0; i < 6; i++)
		builds_take(builds, &series);
	assert_false(builds_overflow(builds));
	arena_free(arena);
}

/* Those seen between points are not left out because there are many at the points. */
static void test_builds_seen_beside_many(void **state)
{
	struct arena *arena = arena_new();
	struct builds *builds = builds_new(arena, (struct pairs){0}, HOUR, false);
	int64_t time = 0;
	double value = 1;
	struct pair label = {"k", ""};
	struct answer_series series = {
		.labels = {&label, 1}, .n = 1, .times = &time, .values = &value};
	size_t count;

	(void)state;
	for (int i = 0; i <= 10000; i++) {
		time = i < 10000 ? 0 : 2 * HOUR;
		label.value = arena_printf(arena, "%d", i);
		(i < 10000 ? builds_take : builds_take_seen)(builds, &series);
	}
	builds_stretches(builds, 0, 4 * HOUR, true, &count);
	assert_int_equal(count, 1);
	arena_free(arena);
}

/* Each of the 25 series has the builds of all and one of its own, so each takes all samples. */
static void test_too_many_timelines(void **state)
{
	struct talk *talk = *state;
	struct buf body = {0};
	talk->options.build_info = "build_info";
	begin_matrix(&body);
	for (int i = 0; i < 25; i++)
		buf_printf(&body, "{\"metric\":{\"k\":\"%d\"},\"values\":[[%d,\"1\"]]},", i, T + 9);
	end_matrix(talk, &body);
	begin_matrix(&body);
	for (int i = 0; i < 2; i++) {
		buf_printf(&body, "{\"metric\":{\"revision\":\"%d\"},\"values\":[", i);
		for (int k = 0; k < 200000; k++)
			buf_printf(&body, "[%d,\"1\"],", T - 500000 + 2 * k + i);
		body.length--;
		buf_text(&body, "]},");
	}
	for (int i = 0; i < 25; i++)
		buf_printf(&body,
			"{\"metric\":{\"k\":\"%d\",\"revision\":\"r\"},\"values\":[[%d,\"1\"]]},",
			i, T);
	end_matrix(talk, &body);
	failed(talk, "too many series to match them");
}

static void test_too_many_series_for_the_builds(void **state)
{
	struct talk *talk = *state;
	struct buf body = {0};
	talk->options.build_info = "build_info";
	begin_matrix(&body);
	for (int i = 0; i < 2001; i++)
		buf_printf(&body, "{\"metric\":{\"k\":\"%d\"},\"values\":[[%d,\"1\"]]},", i, T + 9);
	end_matrix(talk, &body);
	say_builds(talk, 10000);
	failed(talk, "too many series to match them");
}

static void test_victoria_is_recognised(void **state)
{
	struct talk *talk = *state;
	_Atomic int server_flavor = 0;
	talk->query.server_flavor = &server_flavor;
	talk->server.flavor = FLAVOR_AUTO;
	say_file(talk, 200, "vm-buildinfo.json");
	say_file(talk, 200, "vm-export.jsonl");
	done(talk);
	assert_string_equal(talk->asked[0].url, "http://prom:9090/base/api/v1/status/buildinfo");
	assert_string_equal(talk->asked[1].url,
		"http://prom:9090/base/api/v1/export?match[]=bench_throughput"
		"&start=1792584000&end=1795175999.999");
	assert_int_equal(server_flavor, FLAVOR_VICTORIAMETRICS);
	assert_int_equal(talk->query.data.count, 1);
	const struct series *series = talk->query.data.series;
	assert_string_equal(series->identity,
		"bench_throughput{__name__=\"bench_throughput\",test=\"my-product\"}");
	assert_int_equal(series->axis->n, 23);
	assert_int_equal(series->axis->times[0], 1795089600000);
	assert_true(series->values[22] == 56797.237);
}

static void test_others_are_no_victoria(void **state)
{
	static const struct {
		int status;
		const char *body;
		int server_flavor;
	} cases[] = {
		{200,
			"{\"status\":\"success\",\"data\":{\"version\":\"2.42.0\",\"revision\":"
			"\"x\"}}",
			FLAVOR_PROMETHEUS},
		{200,
			"{\"status\":\"success\",\"data\":{\"application\":\"Grafana "
			"Mimir\",\"version\":\"2\"}}",
			FLAVOR_PROMETHEUS},
		{404, "404 page not found", FLAVOR_PROMETHEUS},
		{200, "<html>", FLAVOR_PROMETHEUS},
		{200, "{\"status\":\"success\",\"data\":{\"version\":\"2.24.0\"",
			FLAVOR_PROMETHEUS},
		{400, "", FLAVOR_PROMETHEUS},
		{405, "Method Not Allowed", FLAVOR_PROMETHEUS},
		{501, "{\"status\":\"success\",\"data\":{}}", FLAVOR_PROMETHEUS},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct talk *talk;
		_Atomic int server_flavor = 0;
		set_up((void **)&talk);
		talk->query.server_flavor = &server_flavor;
		talk->server.flavor = FLAVOR_AUTO;
		say(talk, cases[i].status, cases[i].body);
		say_file(talk, 200, "prom-query-rawmatrix.json");
		done(talk);
		assert_int_equal(server_flavor, cases[i].server_flavor);
		assert_int_equal(talk->query.data.count, 1);
		tear_down((void **)&talk);
	}
}

/* What the server is stays unknown, so nothing else is asked, and nothing is learnt. */
static void test_questions_that_are_not_answered(void **state)
{
	static const struct {
		int status;
		const char *body, *words;
	} cases[] = {
		{503, "{\"status\":\"success\",\"data\":{}}",
			"api/v1/status/buildinfo: status 503"},
		{500, "<html>", "api/v1/status/buildinfo: status 500 with an HTML page"},
		{429, "slow down", "status 429: slow down"},
		{401, "who?", "status 401: who?: check username"},
		{403, "no",
			"status 403: no: check username and password, or bearer_token; if "
			"only queries are allowed there, set flavor"},
		{302, "", "status 302: a redirect"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct talk *talk;
		_Atomic int server_flavor = 0;
		set_up((void **)&talk);
		talk->query.server_flavor = &server_flavor;
		talk->server.flavor = FLAVOR_AUTO;
		say(talk, cases[i].status, cases[i].body);
		failed(talk, cases[i].words);
		assert_int_equal(talk->asked_count, 1);
		assert_int_equal(server_flavor, 0);
		tear_down((void **)&talk);
	}
}

static void test_what_is_known_is_not_asked(void **state)
{
	(void)state;
	for (int flavor = FLAVOR_PROMETHEUS; flavor <= FLAVOR_VICTORIAMETRICS; flavor++) {
		struct talk *talk;
		_Atomic int server_flavor = flavor;
		set_up((void **)&talk);
		talk->query.server_flavor = &server_flavor;
		talk->server.flavor = FLAVOR_AUTO;
		say_file(talk, 200,
			flavor == FLAVOR_PROMETHEUS ? "prom-query-rawmatrix.json"
						    : "vm-export.jsonl");
		done(talk);
		tear_down((void **)&talk);
	}
	struct talk *talk; /* a grid is asked for in the same way everywhere */
	set_up((void **)&talk);
	talk->server.flavor = FLAVOR_AUTO;
	talk->options.step = HOUR;
	say_file(talk, 200, "prom-range-empty.json");
	done(talk);
	tear_down((void **)&talk);
}

static void test_an_export_that_may_be_cut(void **state)
{
	struct talk *talk = *state;
	talk->server.flavor = FLAVOR_VICTORIAMETRICS;
	say_file(talk, 200, "vm-export.jsonl")->open_ended = true;
	failed(talk, "the export may be truncated");
}

/* A series whose labels cannot be used is left out, whichever of the APIs it comes from, and each
 * piece of the range: the others are read, and the query is told. */
static void test_series_that_cannot_be_labelled(void **state)
{
	static const struct {
		const char *labels, *notice;
	} cases[] = {
		{"{\"a\":\"x\\u0000y\"}",
			"series left out: a string is not Unicode text: {\"a\":\"x\\u0000y\"}"},
		{"{\"\\ud800\":\"x\"}",
			"series left out: a string is not Unicode text: {\"\\ud800\":\"x\"}"},
		{"{\"a\":\"\\udc00\\ud800\"}", "series left out: a string is not Unicode text: "
					       "{\"a\":\"\\udc00\\ud800\"}"},
		{"{\"a\":\"J\xF6rg\"}",
			"series left out: a string is not Unicode text: {\"a\":\"J?rg\"}"},
		{"{\"a\":\"x\",\"a\":\"y\"}",
			"series left out: a label occurs twice: {\"a\":\"x\",\"a\":\"y\"}"},
		{"{\"a\":7}", "series left out: a string is missing: {\"a\":7}"},
		{NULL, "series left out: more than 512 labels: {\"l0\":\"\",\"l1\":\"\","},
	};
	struct buf many = {0};
	(void)state;
	for (int i = 0; i < 513; i++)
		buf_printf(&many, "%c\"l%d\":\"\"", i ? ',' : '{', i);
	buf_char(&many, '}');
	for (size_t i = 0; i < 3 * (sizeof cases / sizeof *cases); i++) {
		const char *labels = cases[i / 3].labels ? cases[i / 3].labels : many.data;
		struct buf body = {0};
		struct talk *talk;
		bool exported = i % 3 == 2;
		set_up((void **)&talk);
		talk->options.step = i % 3 == 1 ? HOUR : 0;
		if (exported)
			talk->server.flavor = FLAVOR_VICTORIAMETRICS;
		for (int series = 0; series < 3; series++)
			if (exported)
				buf_printf(&body,
					"{\"values\":[%d],\"metric\":%s,\"timestamps\":"
					"[1795114800000]}\n",
					series,
					series == 1 ? labels
					: series    ? "{\"a\":\"2\"}"
						    : "{}");
			else
				buf_printf(&body,
					"%s{\"metric\":%s,\"values\":[[1795114800,\"%d\"]]}",
					series ? ","
					       : "{\"status\":\"success\",\"data\":{"
						 "\"resultType\":\"matrix\",\"result\":[",
					series == 1 ? labels
					: series    ? "{\"a\":\"2\"}"
						    : "{}",
					series);
		if (!exported)
			buf_text(&body, "]}}");
		say(talk, 200, body.data);
		done(talk);
		assert_int_equal(talk->query.data.count, 2);
		assert_true(talk->query.data.series[0].values[0] == 0);
		assert_true(talk->query.data.series[1].values[0] == 2);
		assert_true(talk->query.incomplete);
		assert_int_equal(talk->query.notices.count, 1);
		if (strncmp(talk->query.notices.items[0], cases[i / 3].notice,
			    strlen(cases[i / 3].notice)) != 0)
			fail_msg("%s", talk->query.notices.items[0]);
		tear_down((void **)&talk);
		buf_free(&body);
	}
	buf_free(&many);
}

/* What is no JSON even so is still refused: nothing after it can be trusted. */
static void test_labels_that_do_not_end(void **state)
{
	static const char *const bodies[] = {
		"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":["
		"{\"metric\":{\"a\":\"\\u0000\"",
		"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":["
		"{\"metric\":{\"a\":\"\\u000g\"},\"values\":[]}]}}",
		"{\"status\":\"succ\\u0000ess\",\"data\":{\"resultType\":\"matrix\",\"result\":[]}"
		"}"};
	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		struct talk *talk;
		set_up((void **)&talk);
		say(talk, 200, bodies[i]);
		failed(talk, "not valid JSON");
		assert_false(talk->query.incomplete);
		tear_down((void **)&talk);
	}
}

static void test_exports_that_fail(void **state)
{
	static const struct {
		int status;
		const char *body, *words;
	} cases[] = {
		{400,
			"remoteAddr: \"1.2.3.4:5\"; requestURI: /api/v1/export?x; cannot parse "
			"matches[]=rate(m): expecting metricSelector",
			"export: status 400: cannot parse matches[]=rate(m): expecting "
			"metricSelector (without step"},
		{404, "404 page not found", "set flavor: prometheus"},
		{200, "{\"metric\":{},\"values\":[1],\"timestamps\":[1,2]}",
			"numbers of values and timestamps differ"},
		{200, "{\"metric\":{},\"values\":[1],\"timestamps\":[1", "not valid JSON"},
		{200, "{\"metric\":{},\"values\":[one],\"timestamps\":[1]}", "not a number"},
		{200, "{\"metric\":{},\"values\":[1,2],\"timestamps\":[2,1]}",
			"not in ascending order"},
		{200, "{\"metric\":{},\"values\":[1],\"timestamps\":[1e300]}", "timestamp"},
		{200, "{\"metric\":{},\"values\":[1]}",
			"without \"metric\", \"values\" or \"timestamps\""},
		{200, "{\"metric\":{},\"values\":[],\"values\":[]}", "a key occurs twice"},
		{200, "missing", "an object is expected"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct talk *talk;
		set_up((void **)&talk);
		talk->server.flavor = FLAVOR_VICTORIAMETRICS;
		say(talk, cases[i].status, cases[i].body);
		failed(talk, cases[i].words);
		tear_down((void **)&talk);
	}
}

/* Lines of one series, in any order, and words where numbers cannot be. */
static void test_exported_lines(void **state)
{
	struct talk *talk = *state;
	talk->server.flavor = FLAVOR_VICTORIAMETRICS;
	talk->options.commit_label = "sha";
	say(talk, 200,
		"{\"metric\":{\"__name__\":\"m\"},\"values\":[+Inf,null],"
		"\"timestamps\":[1795100020000,1795100021000]}\n"
		"{\"timestamps\":[1795100000000,1795100001000,1795100002000],"
		"\"values\":[1,\"-Infinity\",NaN],\"metric\":{\"__name__\":\"m\",\"sha\":\"a\"}}"
		"\n");
	done(talk);
	assert_int_equal(talk->query.data.count, 1);
	check_series(talk->query.data.series, "commit", "0:1@a 1:-inf@a 20:inf@-");
}

static void test_default_range(void **state)
{
	static const struct {
		int64_t step;
		const char *words;
	} cases[] = {
		{0, "%5B31536000000ms%5D&time=1795175999.999"},
		{HOUR, "&start=1763640000&end=1795172400&"},  /* 365 days */
		{60000, "&start=1794516000&end=1795175940&"}, /* 11,000 minutes */
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct talk *talk;
		set_up((void **)&talk);
		talk->options.range = 0;
		talk->options.step = cases[i].step;
		say_file(talk, 200, "prom-range-empty.json");
		done(talk);
		if (!strstr(talk->asked[0].url, cases[i].words))
			fail_msg("\"%s\" lacks \"%s\"", talk->asked[0].url, cases[i].words);
		tear_down((void **)&talk);
	}
}

static void test_too_many_points(void **state)
{
	struct talk *talk = *state;
	struct buf body = {0};
	buf_text(&body, "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{"
			"\"metric\":{\"__name__\":\"m\"},\"values\":[");
	for (int i = 0; i < 1000001; i++)
		buf_printf(&body, "%s[%d,\"1\"]", i ? "," : "", 1794000000 + i);
	buf_text(&body, "]}]}}");
	say(talk, 200, body.data);
	buf_free(&body);
	failed(talk, "m{__name__=\"m\"} has more points than max_points, 1000000");
}

static void test_somebody_forgot_the_step(void **state)
{
	struct talk *talk = *state;
	struct buf body = {0};
	buf_text(&body, "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{"
			"\"metric\":{\"__name__\":\"m\"},\"values\":[");
	for (int i = 0; i < 20001; i++)
		buf_printf(&body, "%s[%d.%03d,\"1\"]", i ? "," : "", 1794000000 + 15 * i, i % 9);
	buf_text(&body, "]}]}}");
	say(talk, 200, body.data);
	buf_free(&body);
	done(talk);
	assert_int_equal(talk->query.notices.count, 1);
	assert_non_null(strstr(talk->query.notices.items[0],
		"m has 20001 raw samples, one every 15s: with a step"));
}

static void filled(const char *query, const char *branch, const char *expected)
{
	struct arena *arena = arena_new();
	struct error error;
	const char *text;
	if (!promql_fill_branch(arena, query, branch, &text, &error))
		fail_msg("%s", error.text);
	assert_string_equal(text, expected);
	arena_free(arena);
}

static void refused(const char *query, const char *branch, const char *words)
{
	struct arena *arena = arena_new();
	struct error error;
	const char *text;
	assert_false(promql_fill_branch(arena, query, branch, &text, &error));
	assert_int_equal(error.kind, ERROR_USAGE);
	assert_non_null(strstr(error.text, words));
	arena_free(arena);
}

static void test_branches_in_queries(void **state)
{
	(void)state;
	filled("m{b=\"%{BRANCH}\"} \n", "main", "m{b=\"main\"}");
	filled("m", "main", "m");
	filled("m_%{BRANCH}", "feature_1", "m_feature_1");
	refused("m_%{BRANCH}", "feature/1", "put %{BRANCH} into quotes");
	filled("m{b=\"%{BRANCH}\"}", "a\"b'c\\d\ne", "m{b=\"a\\\"b'c\\\\d\\ne\"}");
	filled("m{b='%{BRANCH}'}", "a\"b'c\\d\x01", "m{b='a\"b\\'c\\\\d\\x01'}");
	filled("m{b=`%{BRANCH}`}", "a\"b'c\\d", "m{b=`a\"b'c\\d`}");
	refused("m{b=`%{BRANCH}`}", "a`b", "backquotes");
	refused("m{b=~`%{BRANCH}`}", "a.b", "backquotes");
	filled("m{b=~\"x|%{BRANCH}\", c=\"%{BRANCH}\"}", "r-1.2",
		"m{b=~\"x|r-1\\\\.2\", c=\"r-1.2\"}");
	filled("m{b !~ '%{BRANCH}'}", "a\\'b", "m{b !~ 'a\\\\\\\\\\'b'}");
	filled("m{a=\"\\\"\", b=\"%{BRANCH}\"}", "\"", "m{a=\"\\\"\", b=\"\\\"\"}");
	filled("m # it's \"%{BRANCH}\n{b=\"%{BRANCH}\"}", "\"",
		"m # it's \"%{BRANCH}\n{b=\"\\\"\"}");
}

/* Reads a quoted string as PromQL does; the bytes behind its end, or NULL. */
static const char *unquote(const char *at, char *out)
{
	char quote = *at++;
	for (; *at && *at != quote; at++) {
		if (*at == '\n')
			return NULL;
		if (*at != '\\') {
			*out++ = *at;
			continue;
		}
		at++;
		if (*at == 'x') {
			*out++ = (char)strtol((char[]){at[1], at[2], 0}, NULL, 16);
			at += 2;
		} else if (*at == 'n' || *at == '\\' || *at == quote) {
			*out++ = *at == 'n' ? '\n' : *at;
		} else {
			return NULL;
		}
	}
	*out = '\0';
	return *at == quote ? at + 1 : NULL;
}

/* Whatever the branch, the string it stands in reads as the branch and ends where it did. */
static void test_no_branch_leaves_its_quotes(void **state)
{
	static const char alphabet[] = "\"'`\\\n}{n%x1#";
	const size_t letters = sizeof alphabet - 1;
	(void)state;
	for (size_t code = 0; code < letters * letters * letters; code++) {
		const char branch[] = {alphabet[code % letters], alphabet[code / letters % letters],
			alphabet[code / letters / letters], 0};
		for (int i = 0; i < 2; i++) {
			struct arena *arena = arena_new();
			struct error error;
			const char *text;
			char read[64];
			assert_true(promql_fill_branch(arena,
				i ? "m{b='%{BRANCH}'}" : "m{b=\"%{BRANCH}\"}", branch, &text,
				&error));
			const char *end = unquote(text + 4, read);
			assert_non_null(end);
			assert_string_equal(end, "}");
			assert_string_equal(read, branch);
			arena_free(arena);
		}
	}
}

static void test_a_comment_at_the_end_does_not_take_the_range(void **state)
{
	struct talk *talk = *state;
	talk->options.query = "m # all of them\n";
	say_file(talk, 200, "prom-range-empty.json");
	done(talk);
	assert_non_null(strstr(
		talk->asked[0].url, "?query=m%20%23%20all%20of%20them%0A%5B2592000000ms%5D&time="));
}

static void test_branches_are_asked_for(void **state)
{
	struct talk *talk = *state;
	talk->options.query = "m{b=\"%{BRANCH}\"}";
	talk->query.branch = "x y";
	say_file(talk, 200, "prom-range-empty.json");
	done(talk);
	assert_non_null(strstr(talk->asked[0].url, "?query=m%7Bb%3D%22x%20y%22%7D%5B"));
	talk->options.query = "m";
	failed(talk, "does not support branches");
	assert_int_equal(talk->error.kind, ERROR_USAGE);
}

/* The longest way back through ranges, subqueries and offsets. */
static void test_reach_of_queries(void **state)
{
	enum { SECOND = 1000, MINUTE = 60 * SECOND, H = 60 * MINUTE };
	const struct {
		const char *query;
		int64_t reach;
	} cases[] = {
		{"up", -1},
		{"sum by (le) (up{a=\"[5m]\"})", -1},
		{"rate(x[5m])", 5 * MINUTE},
		{"rate(x{a=\"]\", b='}'} [ 1h30m ])", 90 * MINUTE},
		{"histogram_quantile(0.99, sum by (le, region) (rate(x_bucket{job=\"s\"}[1h])))",
			H},
		{"avg_over_time(x[1h]) / avg_over_time(y[2h])", 2 * H},
		{"max_over_time(rate(x[5m])[1h:1m])", 65 * MINUTE},
		{"max_over_time((rate(x[5m]) > 0)[1h:])", 65 * MINUTE},
		{"max_over_time(sum(rate(x[5m])) by (job) [1h:])", 65 * MINUTE},
		{"sum without (a, b) (rate(x[5m])) + on (c) group_left (d) y", 5 * MINUTE},
		{"rate(x[5m] offset 1d)", 24 * H + 5 * MINUTE},
		{"rate(x[5m]) offset -1d", 5 * MINUTE},
		{"x offset 10m", 10 * MINUTE},
		{"rate(x[5m] @ 1609746000.5 offset 1h)", 65 * MINUTE},
		{"rate(x[5m] @ end() offset 1h)", 65 * MINUTE},
		{"avg_over_time(x[300])", 300 * SECOND},
		{"avg_over_time(x[1.5h])", 90 * MINUTE},
		{"avg_over_time(x[2i])", 2 * MINUTE},
		{"avg_over_time(x[250ms])", 250},
		{"a # [9h]\n+ rate(x[1m])", MINUTE},
		{"label_replace(rate(x[5m]), \"a\", \"[1d]\", 'b', `(.*)[9d]`)", 5 * MINUTE},
		{"rate(x[5m", 5 * MINUTE},
		{"((((", -1},
		{"))) rate(x[5m])", 5 * MINUTE},
		{"", -1},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t reach = promql_reach(cases[i].query, MINUTE);
		if (reach != cases[i].reach)
			fail_msg("%s: %lld", cases[i].query, (long long)reach);
	}
}

static void test_selectors(void **state)
{
	static const char *const selectors[] = {"x", " job:x_y ", "x{a=\"}(\"} # why", "{a='b'}"};
	static const char *const others[] = {"", "x[5m]", "x offset 5m", "x @ 5", "rate(x)", "(x)",
		"x + y", "x{a=\"b\"} or y", "sum by (x) (y)", "# x"};
	(void)state;
	for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++)
		assert_true(promql_is_selector(selectors[i]));
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_false(promql_is_selector(others[i]));
}

/* "b@10..20": from stamp to stamp; without the first where nobody looked before. */
static void check_deployments(const struct axis *axis, const char *expected)
{
	struct buf text = {0};
	buf_text(&text, "");
	buf_reserve(&text, 1);
	for (size_t i = 0; axis->deployments && i < axis->deployments->count; i++) {
		const struct deployment *deployment = &axis->deployments->items[i];
		buf_printf(&text, "%s%s@", i ? " " : "", deployment_name(deployment));
		if (deployment->after != INT64_MIN)
			buf_printf(&text, "%ld", (long)(deployment->after / 1000 - T));
		buf_printf(&text, "..%ld", (long)(deployment->time / 1000 - T));
	}
	assert_string_equal(text.data, expected);
	buf_free(&text);
}

/* A rollout over two instances, a canary that comes and goes, and one build after the other. */
static void test_deployments_of_builds(void **state)
{
	static const struct {
		const char *const rows[4];
		const char *deployments;
	} cases[] = {
		{{"\"i\":\"1\",\"revision\":\"a\"|0 1,10 1,20 1",
			 "\"i\":\"2\",\"revision\":\"a\"|0 1,10 1",
			 "\"i\":\"1\",\"revision\":\"b\"|20 1,30 1,40 1,50 1"},
			"a@..0 b@10..20"},
		{{"\"revision\":\"a\"|0 1,10 1,20 1,30 1,40 1,50 1",
			 "\"revision\":\"canary\"|20 1,30 1"},
			"a@..0 canary@10..20 a@30..40"},
		{{"\"revision\":\"a\"|0 1,10 1,40 1,50 1", "\"revision\":\"b\"|20 1,30 1"},
			"a@..0 b@10..20 a@30..40"},
		{{"\"revision\":\"a\"|0 1,50 1"}, "a@..0"},
		{{"\"job\":\"x\"|0 1", "\"version\":\"2\"|30 1"}, "2@0..30"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct talk *talk;
		set_up((void **)&talk);
		talk->options.step = 10000;
		talk->options.query = "avg_over_time(x[1h])";
		talk->options.build_info = "build_info";
		talk->query.since = T * 1000LL;
		talk->query.until = (T + 60) * 1000LL;
		say_rows(talk, (const char *[]){"|0 1,10 2,20 3", NULL});
		say_rows(talk, cases[i].rows);
		done(talk);
		check_deployments(talk->query.data.series[0].axis, cases[i].deployments);
		assert_int_equal(talk->query.data.series[0].window.back, HOUR);
		tear_down((void **)&talk);
	}
}

/* On a grid of an hour one build hides the one that came before it within the hour. What came is
 * asked for in the steps in which something did. */
static void set_hours(struct talk *talk)
{
	talk->options.step = HOUR;
	talk->options.query = "x";
	talk->options.build_info = "build_info # ours";
	talk->query.since = T * 1000LL;
	talk->query.until = (T + 5 * 3600) * 1000LL;
	say_rows(talk, (const char *[]){"|400 1,4000 2,7600 3", NULL});
	say_rows(talk,
		(const char *[]){"\"__name__\":\"build_info\",\"revision\":\"a\"|400 1,4000 1",
			"\"__name__\":\"build_info\",\"revision\":\"c\"|7600 1,11200 1", NULL});
}

static void say_seen(struct talk *talk)
{
	say_rows(talk,
		(const char *[]){"\"revision\":\"a\"|400 60,4000 60,7600 2",
			"\"revision\":\"b\"|7600 34", "\"revision\":\"c\"|7600 16,11200 60", NULL});
}

static void say_starts(struct talk *talk)
{
	say(talk, 200,
		"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":["
		"{\"metric\":{\"revision\":\"a\"},\"values\":[[1795107600,\"1795104015\"]]},"
		"{\"metric\":{\"revision\":\"b\"},\"values\":[[1795107600,\"1795104600\"]]},"
		"{\"metric\":{\"revision\":\"c\"},\"values\":[[1795107600,\"1795106615\"]]}]}}");
}

#define EMPTY_MATRIX "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[]}}"

#define STARTS                                                                                     \
	"query=min_over_time%28timestamp%28%28build_info%20%23%20ours%0A%29%29%5B3600000ms"        \
	"%3A60000ms%5D%29&start="

static void test_deployments_between_points(void **state)
{
	struct talk *talk = *state;
	set_hours(talk);
	say_seen(talk);
	say_starts(talk);
	done(talk);
	assert_non_null(strstr(talk->asked[2].url,
		"query=count_over_time%28build_info%20%23%20ours%0A%5B3600000ms%5D%29&start="
		"1795100400&end=1795114800&step=3600&"));
	assert_non_null(strstr(talk->asked[3].url, STARTS "1795107600&end=1795107600&step=3600&"));
	check_deployments(talk->query.data.series[0].axis, "a@..400 b@4540..4600 c@6555..6615");
	assert_int_equal(talk->query.notices.count, 0);
}

/* Seen at the first look within the step: it came there, or was there all the time. */
static void test_a_deployment_at_the_first_look(void **state)
{
	struct talk *talk = *state;
	set_hours(talk);
	say_seen(talk);
	say(talk, 200,
		"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":["
		"{\"metric\":{\"revision\":\"a\"},\"values\":[[1795107600,\"1795104015\"]]},"
		"{\"metric\":{\"revision\":\"b\"},\"values\":[[1795107600,\"1795104045\"]]},"
		"{\"metric\":{\"revision\":\"c\"},\"values\":[[1795107600,\"1795106615\"]]}]}}");
	done(talk);
	check_deployments(talk->query.data.series[0].axis, "a@..400 b@4000..4045 c@6555..6615");
}

/* Other instances of a build do not make it new, unless series are told apart by them. */
static void test_instances_that_come_and_go(void **state)
{
	(void)state;
	for (int told_apart = 0; told_apart < 2; told_apart++) {
		struct talk *talk;
		set_up((void **)&talk);
		talk->options.step = HOUR;
		talk->options.query = "x";
		talk->options.build_info = "build_info";
		talk->query.since = T * 1000LL;
		talk->query.until = (T + 5 * 3600) * 1000LL;
		say_rows(talk, (const char *[]){told_apart ? "\"i\":\"2\"|400 1,4000 2,7600 3"
							   : "|400 1,4000 2,7600 3",
				       NULL});
		say_rows(talk, (const char *[]){"\"i\":\"1\",\"revision\":\"a\"|400 1,4000 1",
				       "\"i\":\"2\",\"revision\":\"a\"|7600 1,11200 1", NULL});
		say_rows(talk,
			(const char *[]){"\"i\":\"1\",\"revision\":\"a\"|400 60,4000 60,7600 2",
				"\"i\":\"2\",\"revision\":\"a\"|7600 16,11200 60", NULL});
		if (told_apart)
			say(talk, 200,
				"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\","
				"\"result\":["
				"{\"metric\":{\"i\":\"2\",\"revision\":\"a\"},\"values\":"
				"[[1795107600,\"1795106615\"]]}]}}");
		done(talk);
		assert_int_equal(talk->asked_count, told_apart ? 4 : 3);
		check_deployments(
			talk->query.data.series[0].axis, told_apart ? "a@..6615" : "a@..400");
		tear_down((void **)&talk);
	}
}

/* Far apart, each step is asked for by itself; of too many the nearest are asked for together. */
static void test_many_deployments_between_points(void **state)
{
	(void)state;
	for (int count = 64; count < 66; count++) {
		struct talk *talk;
		struct buf seen = {0};
		set_up((void **)&talk);
		talk->options.step = HOUR;
		talk->options.query = "x";
		talk->options.build_info = "build_info";
		talk->query.since = T * 1000LL;
		talk->query.until = (T + 300 * 3600) * 1000LL;
		say_rows(talk, (const char *[]){"|400 1", NULL});
		say_rows(talk, (const char *[]){"\"revision\":\"a\"|400 1", NULL});
		for (int i = 0; i < count; i++)
			buf_printf(&seen, "%s%d 1", i ? "," : "\"revision\":\"b\"|",
				400 + 3600 * (4 + 4 * i - 2 * (i == 1)));
		say_rows(talk, (const char *[]){seen.data, NULL});
		for (int i = 0; i < 64; i++)
			say(talk, 200, EMPTY_MATRIX);
		done(talk);
		assert_non_null(strstr(
			talk->asked[3].url, count == 64 ? "start=1795114800&end=1795114800&"
							: "start=1795114800&end=1795122000&"));
		buf_free(&seen);
		tear_down((void **)&talk);
	}
}

/* They are only more exact: without them the step is what is known. */
static void test_deployments_that_are_refused(void **state)
{
	static const char too_many[] =
		"{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"query processing "
		"would load too many samples into memory in query execution\"}";
	struct talk *talk = *state;
	set_hours(talk);
	say_seen(talk);
	say(talk, 422, too_many);
	done(talk);
	check_deployments(talk->query.data.series[0].axis, "a@..400 c@4000..7600");
	assert_int_equal(talk->query.notices.count, 1);
	assert_non_null(strstr(
		talk->query.notices.items[0], "deployment times are only known to the step: "));
	assert_non_null(strstr(talk->query.notices.items[0], "too many samples"));
}

/* A server that times out over the steps is asked where points show that a build came. */
static void test_steps_that_are_refused(void **state)
{
	struct talk *talk = *state;
	set_hours(talk);
	say(talk, 503,
		"{\"status\":\"error\",\"errorType\":\"timeout\",\"error\":\"query timed out in "
		"expression evaluation\"}");
	say_starts(talk);
	done(talk);
	assert_non_null(strstr(talk->asked[3].url, STARTS "1795107600&end=1795107600&step=3600&"));
	check_deployments(talk->query.data.series[0].axis, "a@..400 b@4540..4600 c@6555..6615");
	assert_int_equal(talk->query.notices.count, 1);
	assert_non_null(
		strstr(talk->query.notices.items[0], "if another one followed within it: "));
}

/* What has no range is looked into everywhere: an expression, or what the server takes for one. */
static void test_deployments_of_expressions(void **state)
{
	(void)state;
	for (int known = 0; known < 2; known++) {
		struct talk *talk;
		set_up((void **)&talk);
		set_hours(talk);
		if (known)
			talk->options.build_info = "max by (revision) (build_info)";
		else
			say(talk, 400,
				"{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":"
				"\"invalid parameter\"}");
		say_starts(talk);
		done(talk);
		assert_non_null(strstr(talk->asked[talk->asked_count - 1].url,
			"start=1795100400&end=1795114800&step=3600&"));
		check_deployments(
			talk->query.data.series[0].axis, "a@..400 b@4540..4600 c@6555..6615");
		assert_int_equal(talk->query.notices.count, 0);
		tear_down((void **)&talk);
	}
}

/* Values are times, in seconds or milliseconds, also of what was deployed before the range. */
static void test_annotations(void **state)
{
	struct talk *talk = *state;
	talk->options.step = 10000;
	talk->options.deployments = "deployed";
	talk->query.since = T * 1000LL;
	talk->query.until = (T + 60) * 1000LL;
	say_rows(talk, (const char *[]){"|0 1,10 2,20 3,30 4,40 5,50 6", NULL});
	say(talk, 200,
		"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":["
		"{\"metric\":{\"commit\":\"b\"},\"values\":[[1795100020,\"1795100013\"],"
		"[1795100030,\"1795100013\"]]},"
		"{\"metric\":{\"commit\":\"a\"},\"values\":[[1795100000,\"1795099000000\"],"
		"[1795100010,\"NaN\"],[1795100020,\"0\"],[1795100040,\"1795100041.5\"]]}]}}");
	done(talk);
	const struct series *series = talk->query.data.series;
	check_series(series, "commit", "0:1@a 10:2@a 20:3@b 30:4@b 40:5@b 50:6@a");
	check_deployments(series->axis, "a@-1000..-1000 b@13..13 a@41..41");
	assert_int_equal(series->window.back, 10000);
	talk->options.build_info = "build_info";
	failed(talk, "build_info and deployments are mutually exclusive");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TALK_TEST(test_series_that_differ_in_the_commit_are_one),
		TALK_TEST(test_more_labels_of_points),
		TALK_TEST(test_axes_with_attributes),
		TALK_TEST(test_pieces_with_commits),
		TALK_TEST(test_stale_builds_on_a_grid),
		TALK_TEST(test_stale_builds_where_pieces_meet),
		TALK_TEST(test_builds),
		TALK_TEST(test_builds_of_a_job),
		cmocka_unit_test(test_builds_that_say_nothing),
		TALK_TEST(test_a_build_in_many_series),
		cmocka_unit_test(test_too_many_builds),
		cmocka_unit_test(test_repeated_deployments),
		cmocka_unit_test(test_builds_seen_beside_many),
		TALK_TEST(test_too_many_timelines),
		TALK_TEST(test_too_many_series_for_the_builds),
		TALK_TEST(test_victoria_is_recognised),
		cmocka_unit_test(test_others_are_no_victoria),
		cmocka_unit_test(test_questions_that_are_not_answered),
		cmocka_unit_test(test_what_is_known_is_not_asked),
		TALK_TEST(test_an_export_that_may_be_cut),
		cmocka_unit_test(test_series_that_cannot_be_labelled),
		cmocka_unit_test(test_labels_that_do_not_end),
		cmocka_unit_test(test_exports_that_fail),
		TALK_TEST(test_exported_lines),
		cmocka_unit_test(test_default_range),
		TALK_TEST(test_too_many_points),
		TALK_TEST(test_somebody_forgot_the_step),
		cmocka_unit_test(test_branches_in_queries),
		cmocka_unit_test(test_no_branch_leaves_its_quotes),
		TALK_TEST(test_a_comment_at_the_end_does_not_take_the_range),
		TALK_TEST(test_branches_are_asked_for),
		cmocka_unit_test(test_reach_of_queries),
		cmocka_unit_test(test_deployments_of_builds),
		cmocka_unit_test(test_selectors),
		TALK_TEST(test_deployments_between_points),
		TALK_TEST(test_a_deployment_at_the_first_look),
		TALK_TEST(test_instances_that_come_and_go),
		TALK_TEST(test_many_deployments_between_points),
		TALK_TEST(test_steps_that_are_refused),
		TALK_TEST(test_deployments_of_expressions),
		TALK_TEST(test_deployments_that_are_refused),
		TALK_TEST(test_annotations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * What has arrived, and who reads it: bodies as clients send them, against tests of a real
 * configuration.
 */
#include "unit.h"

#include <string.h>

#include "agent/web/arrived.h"
#include "tests/unit/agent_parts.h"

static const char yaml[] =
	"agent: {state: \"%s/state.db\"}\n"
	"graphite: {url: 'http://127.0.0.1:1'}\n"
	"prometheus: {url: 'http://127.0.0.1:1'}\n"
	"tests:\n"
	"  g.plain: {type: graphite, target: web.eu.latency}\n"
	"  g.prefix: {type: graphite, prefix: web.us, metrics: {p50: {suffix: cpu.p50}, p99: "
	"{suffix: cpu.p99}}}\n"
	"  g.all: {type: graphite, prefix: web.us}\n"
	"  g.wild: {type: graphite, target: 'web.*.latency'}\n"
	"  g.braces: {type: graphite, target: 'scale(web.{eu,as}.lat*cy, 0.001)'}\n"
	"  g.two: {type: graphite, target: 'divideSeries(sum(a.b?.[xy]), keepLastValue(c.d, 3))'}\n"
	"  g.tags: {type: graphite, target: \"aliasByTags(seriesByTag('name=disk.used', 'dc=~eu', "
	"'rack!=r9'), 'dc')\"}\n"
	"  p.plain: {type: prometheus, query: up}\n"
	"  p.job: {type: prometheus, query: 'up{job=\"node\"}'}\n"
	"  p.sum: {type: prometheus, step: 1m, query: 'sum by (up) "
	"(rate(http_total{code=~\"5..\",path!=\"/x\"}[5m])) / ignoring(le) group_left "
	"sum(rate(all_total[5m] offset 1h))'}\n"
	"  p.regex: {type: prometheus, step: 1m, query: '{__name__=~\"node_.*\", "
	"instance=\"a\"}'}\n"
	"  p.named: {type: prometheus, step: 1m, query: '{\"http.requests\", job=\"a\"} > bool "
	"2'}\n"
	"  p.branch: {type: prometheus, query: 'bench{branch=\"%{BRANCH}\"}'}\n"
	"  p.metrics: {type: prometheus, step: 1m, metrics: {a: {query: first}, b: {query: "
	"'max(second{x=\"1\",})'}}}\n"
	"  f.csv: {type: csv, file: '%s/sub/../data.csv', metrics: [v]}\n";

struct fixture {
	struct parts *parts;
	struct readers *readers;
	char *names;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	f->parts = parts_new(yaml);
	f->readers = readers_new(
		f->parts->agent.config_ref->tests, f->parts->agent.config_ref->test_count);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	readers_free(f->readers);
	parts_free(f->parts);
	free(f->names);
	free(f);
	return 0;
}

static int compare(const void *a, const void *b)
{
	const char *const *left = a, *const *right = b;

	return strcmp(*left, *right);
}

/* The tests that read what the body names, and "unread=N". */
static const char *read_by(
	struct fixture *f, const char *body, size_t length, enum arrived_kind kind)
{
	struct arena *arena = arena_new();
	struct arrived arrived = {.readers = found_readers_new(f->readers, arena)};
	char *text = arena_strndup(arena, body, length);
	struct buf out = {0};
	struct error error;
	const char *names[32];

	if (!arrived_read(&arrived, text, length, kind, &error)) {
		buf_text(&out, error.text);
		assert_int_equal(error.kind, ERROR_USAGE);
	} else {
		for (size_t i = 0; i < arrived.readers.count; i++)
			names[i] =
				f->parts->agent.config_ref->tests[arrived.readers.tests[i]]->name;
		qsort(names, arrived.readers.count, sizeof *names, compare);
		for (size_t i = 0; i < arrived.readers.count; i++)
			buf_printf(&out, "%s ", names[i]);
		buf_printf(&out, "unread=%zu/%zu", arrived.unread, arrived.names);
	}
	free(f->names);
	f->names = buf_steal(&out);
	arena_free(arena);
	return f->names;
}

static void expect(struct fixture *f, const char *body, const char *expected)
{
	if (strcmp(read_by(f, body, strlen(body), ARRIVED_ANY), expected) != 0)
		fail_msg("%s: %s, not %s", body, f->names, expected);
}

static void expect_kind(
	struct fixture *f, enum arrived_kind kind, const char *body, const char *expected)
{
	if (strcmp(read_by(f, body, strlen(body), kind), expected) != 0)
		fail_msg("%s: %s, not %s", body, f->names, expected);
}

static void finds_readers_of_paths(void **state)
{
	struct fixture *f = *state;

	expect(f, "graphite web.eu.latency", "g.braces g.plain g.wild unread=0/1");
	expect(f, "graphite web.as.latency", "g.braces g.wild unread=0/1");
	expect(f, "graphite web.as.legacy", "unread=1/1");
	expect(f, "graphite web.eu.latency.p99", "unread=1/1");
	expect(f, "graphite web.us.cpu.p50", "g.all g.prefix unread=0/1");
	expect(f, "graphite web.us.mem.used", "g.all unread=0/1");
	expect(f, "graphite web.us", "unread=1/1");
	expect(f, "graphite web.us.latency", "g.all g.wild unread=0/1");
	expect(f, "graphite web.usa.cpu.p50", "unread=1/1");
	expect(f, "graphite a.b7.x\ngraphite a.b.x\ngraphite a.b7.z", "g.two unread=2/3");
	expect(f, "graphite c.d", "g.two unread=0/1");
	expect(f, "graphite disk.used;dc=eu-1;rack=r1", "g.tags unread=0/1");
	expect(f,
		"graphite disk.used;dc=eu-1;rack=r9\ngraphite disk.used;rack=r1\ngraphite "
		"disk.used",
		"unread=3/3");
}

static void finds_readers_of_series(void **state)
{
	struct fixture *f = *state;

	expect(f, "prometheus up{job=\"node\",instance=\"a\"}", "p.job p.plain unread=0/1");
	expect(f, "prometheus up{job=\"db\"}", "p.plain unread=0/1");
	expect(f, "prometheus up{}", "p.plain unread=0/1");
	expect(f, "prometheus up", "p.job p.plain unread=0/1"); /* its labels are not known */
	expect(f, "prometheus http_total{code=\"503\",path=\"/\"}", "p.sum unread=0/1");
	expect(f,
		"prometheus http_total{code=\"200\"}\nprometheus "
		"http_total{code=\"500\",path=\"/x\"}",
		"unread=2/2");
	expect(f, "prometheus all_total{a=\"\\\"\\\\ \\n\"}", "p.sum unread=0/1");
	expect(f, "prometheus le{}\nprometheus sum\nprometheus rate{}\nprometheus group_left",
		"unread=4/4");
	expect(f, "prometheus node_cpu{instance=\"a\"}", "p.regex unread=0/1");
	expect(f, "prometheus node_cpu{instance=\"b\"}", "unread=1/1");
	expect(f, "prometheus node_cpu", "p.regex unread=0/1");
	expect(f, "prometheus {__name__=\"node_cpu\", instance=\"a\" , }", "p.regex unread=0/1");
	expect(f, "prometheus {__name__=\"http.requests\",job=\"a\"}", "p.named unread=0/1");
	expect(f, "prometheus bench{branch=\"main\"}", "p.branch unread=0/1");
	expect(f, "prometheus bench{branch=\"dev\"}", "unread=1/1");
	expect(f, "prometheus second{x=\"1\"}\nprometheus second{x=\"2\"}", "p.metrics unread=1/2");
	expect(f, "prometheus first{}", "p.metrics unread=0/1");
}

static void finds_readers_of_files_and_tests(void **state)
{
	struct fixture *f = *state;
	char body[200];

	snprintf(body, sizeof body, "file %s/data.csv\n", f->parts->folder);
	expect(f, body, "f.csv unread=0/1");
	snprintf(body, sizeof body, "file %s//x/./../data.csv\n", f->parts->folder);
	expect(f, body, "f.csv unread=0/1");
	expect(f, "file /data.csv\nfile data.csv", "unread=2/2");
	expect(f, "test p.job\n\n  test g.two \r\ntest other", "g.two p.job unread=1/3");
}

static void reads_all_forms(void **state)
{
	struct fixture *f = *state;

	expect(f, "", "unread=0/0");
	expect(f, "{}", "unread=0/0");
	expect(f,
		"{\"graphite\": [\"web.us.a\", \"c.d\"], \"prometheus\": "
		"[\"up{job=\\\"node\\\"}\", "
		"\"node_x{instance=\\\"a\\\"}\"], \"files\": [], \"tests\": "
		"[\"g.plain\"]}",
		"g.all g.plain g.two p.job p.plain p.regex unread=0/5");
	expect_kind(f, ARRIVED_GRAPHITE, "c.d 3.5 1700000000\nweb.us.x 1 2\n",
		"g.all g.two unread=0/2");
	expect_kind(f, ARRIVED_PROMETHEUS, "{__name__=\"first\"}\nup\n",
		"p.job p.metrics p.plain unread=0/2");
}

static void says_what_is_wrong(void **state)
{
	struct fixture *f = *state;
	static const char nul[] = "test a\0b\n";

	expect(f, "test p.job\nwhisper a.b\n",
		"line 2: graphite, prometheus, file or test is needed before a name");
	expect(f, "test", "line 1: a name is missing");
	expect(f, "prometheus up{job=node}", "line 1: a value in quotation marks is missing");
	expect(f, "prometheus up{job=\"node\"", "line 1: a comma or } is missing");
	expect(f, "prometheus up{job=\"node", "line 1: a value in quotation marks is missing");
	expect(f, "prometheus up{=\"a\"}", "line 1: a label and = are missing");
	expect(f, "prometheus up{} 3", "line 1: unexpected text after the }");
	expect(f, "{\"series\": []}",
		"byte 12: the keys are \"graphite\", \"prometheus\", \"files\" and \"tests\"");
	if (strncmp(read_by(f, "{\"tests\": [1]}", 14, ARRIVED_ANY), "byte 1", 6) != 0)
		fail_msg("%s", f->names);
	assert_string_equal(read_by(f, nul, sizeof nul - 1, ARRIVED_ANY), "line 1: a NUL");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(finds_readers_of_paths, setup, teardown),
		cmocka_unit_test_setup_teardown(finds_readers_of_series, setup, teardown),
		cmocka_unit_test_setup_teardown(finds_readers_of_files_and_tests, setup, teardown),
		cmocka_unit_test_setup_teardown(reads_all_forms, setup, teardown),
		cmocka_unit_test_setup_teardown(says_what_is_wrong, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

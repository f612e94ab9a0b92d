/*
 * conf/in_effect: the configuration of a test as people are shown it. Whatever can be a secret is
 * not part of it, and it says what is not the default.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/buf.h"
#include "agent/cli/cli.h"
#include "conf/in_effect.h"

static const char text[] =
	"agent: {interval: 10m, stale_after: 2d}\n"
	"sources:\n"
	"  eu: {type: prometheus, url: \"https://canary1:canary2@eu:9090/prom?k=canary3\", "
	"bearer_token: canary4,\n"
	"    headers: {X-Key: canary5}, proxy: \"http://canary6:canary7@proxy:3128\", timeout: "
	"20s}\n"
	"  pg: {type: postgres, hostname: db, username: ann, password: canary8}\n"
	"slack: {bot_token: canary9, channels: [\"#a\"]}\n"
	"tests:\n"
	"  one: {type: prometheus, source: eu, query: \"up\", step: 1h, tags: [a, b], was: uno,\n"
	"    dashboard: \"https://g/d?test={test}\",\n"
	"    detection: {window: 40, confirm: 4 points},\n"
	"    metrics: {m: {unit: s, direction: -1, was: em}, n: {detection: {p_value: 0.01}, "
	"query: down}}}\n"
	"  sql: {type: postgres, source: pg, query: \"SELECT 1\", time_column: t, metrics: {m: "
	"{}},\n"
	"    detection: {combine: {2: [edivisive, stepfit]}}}\n";

static const char expanded[] =
	"sources:\n"
	"  eu: {type: prometheus, url: \"https://eu:9090/${KEY}/prom\", server_name: \"${KEY}\", "
	"ca_file: \"${KEY}\", no_proxy: [\"${KEY}\", b], headers: {A: "
	"\"${KEY}\"}}\n"
	"slack: {bot_token: \"${KEY}\", channels: [\"#a\"]}\n"
	"templates: {t: {repository: \"/${KEY}\", tags: [\"${KEY:-no}\"]}}\n"
	"tests:\n"
	"  one: {type: prometheus, inherit: t, source: eu, query: \"up{k='${KEY}'}\", step: 1h,\n"
	"    dashboard: \"https://g/${KEY}\", environment: \"x${KEY}\", deployments: \"a${KEY}\",\n"
	"    commit_label: \"l${KEY}\",\n"
	"    metrics: {m: {unit: \"${KEY}\", query: \"down${KEY}\"}},\n"
	"    bisect: {run: \"make ${KEY}\", worker: [\"ssh ${KEY}\", \"b\"], extract: "
	"\"json:${KEY}\", "
	"lab: \"${KEY}\",\n"
	"      work: \"${KEY}\", paths: [\"${KEY}\"], environment: {A: \"${KEY}\", B: canary}}}\n"
	"  two: {type: csv, file: \"${KEY}.csv\", repository: app, attributes: [\"${KEY}\"],\n"
	"    csv_options: {delimiter: \",\"}, bisect: {url: \"https://lab/${KEY}\", secret: "
	"\"${KEY}\"}}\n";

static const char *variable(void *context, const char *name)
{
	(void)context;
	return strcmp(name, "KEY") == 0 ? "canary" : NULL;
}

struct fixture {
	struct arena *arena;
	struct config *config;
	const struct options_in_effect *sections;
	size_t count;
};

static void load(struct fixture *f, const char *yaml, const char *test)
{
	char path[] = "/tmp/test_in_effect.XXXXXX";
	const struct config_source source = {.schema = &cli_schema, .env = variable};
	struct problems problems = {.arena = arena_new()};
	int fd = mkstemp(path);

	assert_int_equal(write(fd, yaml, strlen(yaml)), (ssize_t)strlen(yaml));
	close(fd);
	f->config = config_load(path, &source, &problems);
	if (!f->config)
		fail_msg("%s", problems.items[0].text);
	arena_free(problems.arena);
	unlink(path);
	f->arena = arena_new();
	f->count = test_in_effect(
		f->config, &cli_schema, config_test(f->config, test), f->arena, &f->sections);
}

static void unload(struct fixture *f)
{
	arena_free(f->arena);
	config_free(f->config);
}

static const struct option_in_effect *option(
	const struct fixture *f, const char *of, const char *name, const char *key)
{
	for (size_t i = 0; i < f->count; i++)
		for (size_t j = 0; j < f->sections[i].count; j++)
			if (strcmp(f->sections[i].of, of) == 0 &&
				strcmp(f->sections[i].name, name) == 0 &&
				strcmp(f->sections[i].items[j].name, key) == 0)
				return &f->sections[i].items[j];
	fail_msg("no %s %s %s", of, name, key);
	return NULL;
}

static void expect(const struct fixture *f, const char *of, const char *name, const char *key,
	const char *value, bool usual)
{
	const struct option_in_effect *found = option(f, of, name, key);

	if (!value)
		assert_null(found->value);
	else if (!found->value || strcmp(found->value, value) != 0)
		fail_msg("%s %s: %s, not %s", of, key, found->value, value);
	assert_int_equal(found->usual, usual);
}

static void test_options(void **state)
{
	struct fixture f;

	(void)state;
	load(&f, text, "one");
	expect(&f, "test", "one", "source", "eu", false);
	expect(&f, "test", "one", "was", "uno", false);
	expect(&f, "test", "one", "interval", "10m", true); /* as agent.interval says */
	expect(&f, "test", "one", "stale_after", "2d", true);
	expect(&f, "test", "one", "window", NULL, true);
	expect(&f, "test", "one", "tags", "a, b", false);
	expect(&f, "test", "one", "notify", "slack", true);
	expect(&f, "source", "prometheus", "query", "up", false);
	expect(&f, "source", "prometheus", "step", "1h", false);
	expect(&f, "source", "prometheus", "commit_label", NULL, true);
	expect(&f, "server", "eu", "timeout", "20s", false);
	expect(&f, "server", "eu", "max_concurrent", "16", true);
	expect(&f, "detection", "edivisive", "window", "40", false);
	expect(&f, "detection", "edivisive", "p_value", "0.001", true);
	expect(&f, "detection", "edivisive", "confirm", "4 points", false);
	expect(&f, "metric", "m", "direction", "-1", false);
	expect(&f, "metric", "m", "was", "em", false);
	expect(&f, "metric", "m", "detection", "edivisive(window=40, confirm=4 points)", true);
	expect(&f, "metric", "n", "unit", NULL, true);
	expect(&f, "metric", "n", "query", "down", false);
	expect(&f, "metric", "n", "detection",
		"edivisive(window=40, p_value=0.01, confirm=4 points)", false);
	unload(&f);
}

static void test_secrets(void **state)
{
	static const char *const tests[] = {"one", "sql"};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		load(&f, text, tests[i]);
		for (size_t j = 0; j < f.count; j++)
			for (size_t k = 0; k < f.sections[j].count; k++) {
				const struct option_in_effect *found = &f.sections[j].items[k];

				if (found->value && strstr(found->value, "canary"))
					fail_msg("%s: %s", found->name, found->value);
				assert_true(!found->hidden || strstr(found->value, "***"));
			}
		if (i == 0) {
			expect(&f, "server", "eu", "url", "https://***@eu:9090/prom?***", false);
			expect(&f, "server", "eu", "bearer_token", "***", false);
			expect(&f, "server", "eu", "headers", "X-Key=***", false);
			expect(&f, "server", "eu", "proxy", "***", false);
			expect(&f, "server", "eu", "password", NULL, true);
			expect(&f, "test", "one", "dashboard", "https://g/d?test={test}", false);
			assert_true(option(&f, "server", "eu", "url")->hidden);
		} else {
			expect(&f, "server", "pg", "password", "***", false);
			expect(&f, "server", "pg", "hostname", "db", false);
			expect(&f, "detection", "stepfit", "confirm", "auto", true);
		}
		unload(&f);
	}
}

/* Whatever a variable has put into an option is shown as it is in the file. */
static void test_variables(void **state)
{
	static const char *const tests[] = {"one", "two"};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		load(&f, expanded, tests[i]);
		for (size_t j = 0; j < f.count; j++)
			for (size_t k = 0; k < f.sections[j].count; k++) {
				const struct option_in_effect *found = &f.sections[j].items[k];

				if (found->value && strstr(found->value, "canary"))
					fail_msg("%s: %s", found->name, found->value);
			}
		if (i == 0) {
			expect(&f, "server", "eu", "url", "https://eu:9090/${KEY}/prom", false);
			expect(&f, "server", "eu", "no_proxy", "${KEY}, b", false);
			expect(&f, "source", "prometheus", "query", "up{k='${KEY}'}", false);
			expect(&f, "test", "one", "repository", "/${KEY}", false);
			expect(&f, "test", "one", "tags", "${KEY:-no}", false);
			expect(&f, "metric", "m", "unit", "${KEY}", false);
			expect(&f, "bisect", "canary", "run", "make ${KEY}", false);
			expect(&f, "bisect", "canary", "worker", "ssh ${KEY}, b", false);
			expect(&f, "bisect", "canary", "environment", "A=***, B=***", false);
			assert_string_equal(server_address(f.config, &cli_schema,
						    f.config->tests[0].server, f.arena),
				"https://eu:9090/${KEY}/prom");
		} else {
			expect(&f, "source", "csv", "file", "${KEY}.csv", false);
			expect(&f, "lab", "default", "url", "https://lab/${KEY}", false);
		}
		unload(&f);
	}
}

static void test_bounds(void **state)
{
	struct buf yaml = {0};
	struct fixture f;
	size_t metrics = 0;

	(void)state;
	buf_text(&yaml, "tests:\n  t:\n    type: csv\n    file: \"/");
	for (size_t i = 0; i < 5000; i++)
		buf_text(&yaml, "\xc3\xa4");
	buf_text(&yaml, "\"\n    metrics: {");
	for (size_t i = 0; i < 300; i++)
		buf_printf(&yaml, "%sm%zu: {}", i ? ", " : "", i);
	buf_text(&yaml, "}\n");
	load(&f, yaml.data, "t");
	for (size_t i = 0; i < f.count; i++)
		metrics += strcmp(f.sections[i].of, "metric") == 0;
	assert_int_equal(metrics, IN_EFFECT_METRICS);
	const char *file = option(&f, "source", "csv", "file")->value;
	assert_true(strlen(file) < 8010 && strcmp(file + strlen(file) - 6, "\xc3\xa4 ...") == 0);
	unload(&f);
	buf_free(&yaml);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_options),
		cmocka_unit_test(test_secrets), cmocka_unit_test(test_variables),
		cmocka_unit_test(test_bounds)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * conf/fingerprint: one thing of a configuration is changed at a time; what it concerns gets
 * another fingerprint, all else keeps its own. What is secret is not part of the hash that is
 * shown.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/buf.h"
#include "tests/unit/conf_schema.h"

static const char base[] =
	"agent: {group_wait: 30s}\n"
	"detection: {p_value: 0.001}\n"
	"prometheus: {url: \"http://one:9090/\", bearer_token: alpha, timeout: 30s}\n"
	"sources: {two: {type: prometheus, url: \"http://u:pw@two/\", headers: {X-Key: beta}}}\n"
	"slack: {bot_token: gamma, channels: [\"#a\"]}\n"
	"templates: {t: {tags: [x]}}\n"
	"tests:\n"
	"  one: {type: prometheus, source: prometheus, query: q, metrics: {m: {unit: s}}}\n"
	"  two: {type: prometheus, source: two, query: q, metrics: {m: {}}}\n"
	"  csv: {type: csv, file: a.csv, inherit: t, interval: 1h, metrics: {n: {}},\n"
	"    detection: {window: 40, p_value: 0.01}}\n";

enum { ONE = 1, TWO = 2, CSV = 4, SLACK = 8, HASH = 16 };

static struct config *load(const char *text)
{
	char path[] = "/tmp/test_fingerprint.XXXXXX";
	struct config_source source = {.schema = &test_schema, .env = test_environment};
	struct problems problems = {.arena = arena_new()};
	int fd = mkstemp(path);

	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	struct config *config = config_load(path, &source, &problems);
	if (!config)
		fail_msg("%s", problems.items[0].text);
	arena_free(problems.arena);
	unlink(path);
	return config;
}

static uint64_t test_of(const struct config *config, const char *name)
{
	return config_test(config, name)->fingerprint;
}

/* Which of the fingerprints differ. */
static int differ(const struct config *a, const struct config *b)
{
	int what = 0;

	what |= test_of(a, "one") != test_of(b, "one") ? ONE : 0;
	what |= test_of(a, "two") != test_of(b, "two") ? TWO : 0;
	what |= test_of(a, "csv") != test_of(b, "csv") ? CSV : 0;
	what |= a->receivers[0].fingerprint != b->receivers[0].fingerprint ? SLACK : 0;
	what |= a->hash != b->hash ? HASH : 0;
	return what;
}

static void expect(const char *from, const char *to, int what)
{
	const char *at = strstr(base, from);
	struct buf text = {0};

	assert_non_null(at);
	buf_printf(&text, "%.*s%s%s", (int)(at - base), base, to, at + strlen(from));
	struct config *before = load(base), *after = load(text.data);
	if (differ(before, after) != what)
		fail_msg("%s -> %s: %d, not %d", from, to, differ(before, after), what);
	config_free(before);
	config_free(after);
	buf_free(&text);
}

static void test_same(void **state)
{
	(void)state;
	expect("query: q", "query: q", 0);
	expect("tests:\n", "tests: # a word\n", 0);
	expect("templates: {t: {tags: [x]}}\n", "templates: {u: {}, t: {tags: [x]}}\n", 0);
	expect("interval: 1h", "interval: 60m", 0);
}

static void test_options(void **state)
{
	(void)state;
	expect("query: q", "query: r", ONE | HASH);
	expect("unit: s", "unit: ms", ONE | HASH);
	expect("m: {}", "m: {direction: -1}", TWO | HASH);
	expect("{m: {}}", "{o: {}}", TWO | HASH);
	expect("interval: 1h", "interval: 2h", CSV | HASH);
	expect("window: 40", "window: 41", CSV | HASH);
	expect("[\"#a\"]", "[\"#b\"]", SLACK | HASH);
	expect("[\"#a\"]", "[\"#a\", \"\"]", SLACK | HASH);
	expect("group_wait: 30s", "group_wait: 31s", HASH);
}

/* What a test has from elsewhere: template, server, the file's detection and interval, receivers.
 */
static void test_inherited(void **state)
{
	(void)state;
	expect("tags: [x]", "tags: [y]", CSV | HASH);
	expect("http://one:9090/", "http://other:9090/", ONE | HASH);
	expect("timeout: 30s", "timeout: 31s", ONE | HASH);
	expect("{p_value: 0.001}", "{p_value: 0.002}", ONE | TWO | HASH);
	expect("{p_value: 0.001}", "{p_value: 0.001, confirm: off}", ONE | TWO | CSV | HASH);
	expect("{p_value: 0.001}", "{p_value: 0.001, confirm: 9}", ONE | TWO | CSV | HASH);
	expect("{p_value: 0.001}", "{p_value: 0.001, fdr: 0.1}", ONE | TWO | CSV | HASH);
	expect("{group_wait: 30s}", "{group_wait: 30s, interval: 7m}", ONE | TWO | HASH);
	expect("slack: {bot_token: gamma, channels: [\"#a\"]}\n", "",
		ONE | TWO | CSV | SLACK | HASH);
}

static void test_secrets(void **state)
{
	(void)state;
	expect("alpha", "omega", ONE);
	expect("u:pw@two", "u:px@two", TWO);
	expect("u:pw@two", "u:pw@three", TWO | HASH);
	expect("beta", "zeta", TWO);
	expect("gamma", "delta", SLACK);
}

/* Whoever knows the path of a webhook may write there. */
static void test_an_address_that_is_a_key(void **state)
{
	(void)state;
	static const char *const urls[] = {"https://u:pw@hooks/services/T0/key",
		"https://u:pw@hooks/services/T0/kez", "https://u:px@hooks/services/T0/key",
		"https://u:pw@hooks?key", "https://hookz/services/T0/key"};
	uint64_t hashes[5], fingerprints[5];

	for (size_t i = 0; i < 5; i++) {
		char text[200];

		snprintf(text, sizeof text, "slack: {bot_token: x, channels: [a], url: \"%s\"}\n",
			urls[i]);
		struct config *config = load(text);
		assert_string_equal(config->receivers[0].name, "slack");
		hashes[i] = config->hash;
		fingerprints[i] = config->receivers[0].fingerprint;
		config_free(config);
	}
	for (size_t i = 1; i < 5; i++) {
		assert_true(fingerprints[i] != fingerprints[0]);
		assert_int_equal(hashes[i] == hashes[0], i < 4);
	}
}

static void test_unreadable(void **state)
{
	(void)state;
	struct config *config = load("prometheus: {url: \"http://one/\"}\n"
				     "slack: {bot_token_file: /nonexistent, channels: [a]}\n");

	assert_non_null(strstr(config->unreadable,
		":2:8: slack: bot_token_file: cannot read \"/nonexistent\": No such file"));
	config_free(config);
	config = load("prometheus: {url: \"http://one/\"}\n"
		      "slack: {bot_token_file: /dev/null, channels: [a]}\n");
	assert_non_null(strstr(config->unreadable,
		":2:8: slack: bot_token_file /dev/null: is not a regular file"));
	config_free(config);
	config = load(base);
	assert_null(config->unreadable);
	config_free(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_inherited),
		cmocka_unit_test(test_secrets),
		cmocka_unit_test(test_an_address_that_is_a_key),
		cmocka_unit_test(test_unreadable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The parameters of a request, the header Accept, and who is let in. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/http/head.h"

static const char names[] = "test since limit";

static void test_parameters(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	struct http_query query = {0};
	struct error error;
	const char *text = "test=a%2Fb+c%c3%a4&since=&limit";

	assert_true(http_query_parse(arena, text, strlen(text), names, HTTP_VALUE, &query, &error));
	assert_string_equal(http_query_get(&query, "test"), "a/b c\xC3\xA4");
	assert_string_equal(http_query_get(&query, "since"), "");
	assert_string_equal(http_query_get(&query, "limit"), "");
	assert_null(http_query_get(&query, "state"));
	query = (struct http_query){0};
	assert_true(http_query_parse(arena, "test=a=b", 8, names, HTTP_VALUE, &query, &error));
	assert_string_equal(http_query_get(&query, "test"), "a=b");
	assert_true(http_query_parse(arena, "", 0, NULL, HTTP_VALUE, &query, &error));
	assert_true(http_query_parse(arena, "&&", 2, NULL, HTTP_VALUE, &query, &error));
	arena_free(arena);
}

static void test_wrong_parameters(void **state)
{
	(void)state;
	static const struct {
		const char *text, *words;
	} cases[] = {
		{"tset=x", "unknown parameter \"tset\" (did you mean \"test\"?)"},
		{"Test=x", "unknown parameter \"Test\""},
		{"=x", "unknown parameter \"\""},
		{"test=1&since=2&test=3", "duplicate parameter \"test\""},
		{"test=1&te%73t=3", "duplicate parameter \"test\""},
		{"test=%", "parameter \"test\" is not percent-encoded UTF-8"},
		{"test=%4", "parameter \"test\" is not"},
		{"test=%4g", "parameter \"test\" is not"},
		{"test=%00", "parameter \"test\" is not"},
		{"test=%ff", "parameter \"test\" is not"},
		{"test=%ed%a0%80", "parameter \"test\" is not"},
		{"%ff=1", "the name of a parameter is not"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct arena *arena = arena_new();
		struct http_query query = {0};
		struct error error;

		assert_false(http_query_parse(arena, cases[i].text, strlen(cases[i].text), names,
			HTTP_VALUE, &query, &error));
		assert_int_equal(error.kind, ERROR_USAGE);
		if (!strstr(error.text, cases[i].words))
			fail_msg("%s: %s", cases[i].text, error.text);
		arena_free(arena);
	}
}

static void test_long_values_are_refused(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	struct http_query query = {0};
	struct error error;
	char text[HTTP_VALUE + 16] = "test=";

	memset(text + 5, 'x', HTTP_VALUE);
	assert_true(
		http_query_parse(arena, text, 5 + HTTP_VALUE, names, HTTP_VALUE, &query, &error));
	query = (struct http_query){0};
	memset(text + 5, 'x', HTTP_VALUE + 1);
	assert_false(
		http_query_parse(arena, text, 6 + HTTP_VALUE, names, HTTP_VALUE, &query, &error));
	assert_non_null(strstr(error.text, "more than 4096 bytes"));
	arena_free(arena);
}

/* As many as a route may ever know. */
static void test_many_names(void **state)
{
	(void)state;
	static const char known[] = "a b c d e f g h i j k l m n o p q r s t u v w x y z A B C D E";
	struct arena *arena = arena_new();
	struct http_query query = {0};
	struct buf text = {0};
	struct error error;

	for (const char *at = known; *at; at += strspn(at + 1, " ") + 1)
		buf_printf(&text, "%s%c=%c", text.length ? "&" : "", *at, *at);
	assert_true(
		http_query_parse(arena, text.data, text.length, known, HTTP_VALUE, &query, &error));
	assert_int_equal(query.count, 31);
	assert_string_equal(http_query_get(&query, "E"), "E");
	assert_false(http_query_parse(arena, "F=1", 3, known, HTTP_VALUE, &query, &error));
	assert_non_null(strstr(error.text, "unknown parameter \"F\""));
	buf_free(&text);
	arena_free(arena);
}

static void test_accept(void **state)
{
	(void)state;
	static const struct {
		const char *accept;
		double quality;
	} cases[] = {
		{NULL, -1},
		{"", -1},
		{"*/*", -1},
		{"text/html", -1},
		{"application/openmetrics-text", 1},
		{"APPLICATION/OpenMetrics-Text ; version=1.0.0 ; q=0.5", 0.5},
		{"application/openmetrics-text;version=0.0.1,*/*;q=0.1", -1},
		{"*/*;q=0.9,application/openmetrics-text;q=0", 0},
		{"application/openmetrics-text;q=0.2, application/*;q=0.9", 0.2},
		/* As Prometheus asks. */
		{"application/openmetrics-text;version=1.0.0;q=0.75,"
		 "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=0.0.4;q=0.3,"
		 "*/*;q=0.2",
			0.75},
		/* What is not well formed is passed over. */
		{"application/openmetrics-text;q=2,application/openmetrics-text;q=0.5", 0.5},
		{"application/openmetrics-text;q=", -1},
		{",,;,;;q", -1},
		{"application", -1},
		{"\"", -1},
	};
	struct arena *arena = arena_new();

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		double quality = http_quality(
			arena, cases[i].accept, "application/openmetrics-text", "1.0.0");

		if (fabs(quality - cases[i].quality) > 1e-9)
			fail_msg("%s: %g", cases[i].accept, quality);
	}
	arena_free(arena);
}

static void test_guard(void **state)
{
	(void)state;
	static const struct {
		struct http_claim claim;
		bool let_in;
	} cases[] = {
		{{0}, true}, /* HTTP/1.0 */
		{{.host = "127.0.0.1:9469", .posted = true}, true},
		{{.host = "[::1]:9469", .posted = true}, true},
		{{.host = "[::1]", .posted = true}, true},
		{{.host = "10.1.2.3", .posted = true}, true},
		{{.host = "localhost", .posted = true}, true},
		{{.host = "LocalHost:1", .posted = true}, true},
		{{.host = "hunter.localhost:1", .posted = true}, true},
		{{.host = "perfbox:9469", .names = {"perfbox"}}, true},
		{{.host = "PERFBOX", .names = {NULL, "perfbox"}}, true},
		{{.host = "perfbox:9469"}, false},
		{{.host = "evil.example"}, false},
		{{.host = "evillocalhost"}, false},
		{{.host = "localhost.evil.example"}, false},
		{{.host = "127.0.0.1.evil.example"}, false},
		{{.host = ""}, false},
		{{.host = "[::1"}, false},
		{{.host = ":80"}, false},
		{{.host = "[::1].evil.example"}, false},
		{{.host = "[::1]:80.evil.example"}, false},
		{{.host = "localhost:80.evil.example"}, false},
		{{.host = "localhost:1", .origin = "http://localhost:1", .posted = true}, true},
		{{.host = "localhost:1", .origin = "https://localhost:1", .posted = true}, true},
		{{.host = "localhost:1", .origin = "https://localhost:1", .tls = true}, true},
		{{.host = "localhost:1", .origin = "http://localhost:1", .tls = true}, false},
		{{.host = "localhost:1", .origin = "http://localhost:2", .posted = true}, false},
		{{.host = "localhost:1", .origin = "http://evil.example", .posted = true}, false},
		{{.host = "localhost:1", .origin = "http://evil.example"}, false},
		{{.host = "localhost:1", .origin = "null", .posted = true}, false},
		{{.host = "localhost:1", .origin = "", .posted = true}, false},
		{{.origin = "http://localhost:1", .posted = true}, false},
		{{.host = "localhost", .site = "same-origin", .posted = true}, true},
		{{.host = "localhost", .site = "none", .posted = true}, true},
		{{.host = "localhost", .site = "same-site", .posted = true}, false},
		{{.host = "localhost", .site = "cross-site", .posted = true}, false},
		{{.host = "localhost", .site = "cross-site", .mode = "navigate", .posted = true},
			false},
		{{.host = "localhost", .site = "cross-site", .mode = "no-cors"}, false},
		{{.host = "localhost", .site = "cross-site", .mode = "navigate"}, true},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error error;

		if (http_guard(&cases[i].claim, &error) != cases[i].let_in)
			fail_msg("case %zu: host %s origin %s site %s", i, cases[i].claim.host,
				cases[i].claim.origin, cases[i].claim.site);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parameters),
		cmocka_unit_test(test_wrong_parameters),
		cmocka_unit_test(test_long_values_are_refused),
		cmocka_unit_test(test_many_names),
		cmocka_unit_test(test_accept),
		cmocka_unit_test(test_guard),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

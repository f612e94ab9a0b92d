/* Links: templates that are refused, and that values cannot lead elsewhere. */
#include "unit.h"
#include <stdlib.h>
#include <string.h>

#include "agent/base/url_template.h"

#define COMPARE "https://example.com/app/compare/{before}...{after}"

static void test_templates(void **state)
{
	static const char *const good[] = {"", COMPARE, "http://localhost:8080/?c={commit}",
		"https://example.com/static",
		"https://example.com/{test}/{metric}?{from}&{to}&{label.a_b}&{label.path[12]}",
		"https://example.com/a@b/{commit}"};
	static const struct {
		const char *template, *problem;
	} bad[] = {
		{"example.com/{commit}", "must begin with http:// or https://"},
		{"javascript:alert({commit})", "must begin with"},
		{"https://example.com/{sha}", "no \"{sha}\""},
		{"https://example.com/{commit", "no \"{commit\""},
		{"https://example.com/{label.}", "no \"{label.}\""},
		{"https://example.com/{label.a b}", "not an address"},
		{"https://example.com/{label.path[0]}", "no \"{label.path[0]}\""},
		{"https://example.com/{label.a", "no \"{label.a\""},
		{"https://example.com/{commit}|x", "not an address"},
		{"https://example.com/ {commit}", "not an address"},
		{"https://example.com/\xc3\xa9", "not an address"},
		{"https://me:secret@example.com/{commit}", "must not contain a user"},
	};
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(url_template_check("commit_url", good[i], &error));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_false(url_template_check("commit_url", bad[i].template, &error));
		assert_int_equal(error.kind, ERROR_USAGE);
		assert_non_null(strstr(error.text, bad[i].problem));
		assert_ptr_equal(strstr(error.text, "commit_url: "), error.text);
		assert_null(strstr(error.text, "secret"));
	}
}

static void test_expansion(void **state)
{
	struct arena *arena = arena_new();
	struct url_values values = {.commit = "c2", .before = "c1", .after = "c2"};

	(void)state;
	assert_string_equal(url_template_expand(arena, COMPARE, &values, true),
		"https://example.com/app/compare/c1...c2");
	values.before = "../../?x=1#<!channel>|";
	assert_string_equal(url_template_expand(arena, COMPARE, &values, true),
		"https://example.com/app/compare/"
		"..%2F..%2F%3Fx%3D1%23%3C%21channel%3E%7C...c2");
	values.before = "";
	assert_null(url_template_expand(arena, COMPARE, &values, true));
	values.before = NULL;
	assert_null(url_template_expand(arena, COMPARE, &values, true));
	assert_null(url_template_expand(arena, NULL, &values, true));
	assert_null(url_template_expand(arena, "", &values, true));
	assert_string_equal(url_template_expand(arena, "http://h/{commit}/{commit}", &values, true),
		"http://h/c2/c2");
	arena_free(arena);
}

/* Labels of Prometheus with their escapes, tags and parts of Graphite's names. */
static void test_values_of_series(void **state)
{
	static const struct {
		const char *series, *template, *link;
	} cases[] = {
		{"p99{a=\"1\",region=\"eu west\"}", "http://h/{label.region}",
			"http://h/eu%20west"},
		{"p99{a=\"x,region=\\\"no\\\"\",region=\"eu\"}", "http://h/{label.region}",
			"http://h/eu"},
		{"p99{path=\"a\\\\b\\\"c\\nd\"}", "http://h/{label.path}",
			"http://h/a%5Cb%22c%0Ad"},
		{"p99{region=\"\"}", "http://h/{label.region}", NULL},
		{"p99{region=\"eu\"}", "http://h/{label.regio}", NULL},
		{"p99", "http://h/{label.region}", NULL},
		{"p99{region=\"eu", "http://h/{label.region}", "http://h/eu"},
		{"cpu{target=\"used;dc=x;host=web1\"}", "http://h/{label.host}", "http://h/web1"},
		{"used;host=", "http://h/{label.host}", NULL},
		{"servers.web1.cpu", "http://h/{label.path[2]}", "http://h/web1"},
		{"cpu{target=\"servers.web1.cpu\"}", "http://h/{label.path[1]}/{label.path[3]}",
			"http://h/servers/cpu"},
		{"servers.web1.cpu", "http://h/{label.path[4]}", NULL},
		{NULL, "http://h/{label.host}", NULL},
		{NULL, "http://h/{test}/{metric}?{from}..{to}", "http://h/a%2Fb/p99?1..2"},
	};
	struct arena *arena = arena_new();

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct url_values values = {.test = "a/b",
			.metric = "p99",
			.from = "1",
			.to = "2",
			.series = cases[i].series};
		const char *link = url_template_expand(arena, cases[i].template, &values, true);

		if (cases[i].link)
			assert_string_equal(link ? link : "none", cases[i].link);
		else
			assert_null(link);
	}
	assert_string_equal(
		url_template_expand(arena, "team {label.a}, {test}",
			&(struct url_values){.test = "a b", .series = "p{a=\"é\"}"}, false),
		"team é, a b");
	arena_free(arena);
}

static void test_a_link_has_an_end(void **state)
{
	struct arena *arena = arena_new();
	char *commit = calloc(1, LINK_LONGEST + 1);
	struct url_values values = {.commit = commit};

	(void)state;
	memset(commit, 'a', LINK_LONGEST - 9);
	assert_int_equal(strlen(url_template_expand(arena, "http://h/{commit}", &values, true)),
		LINK_LONGEST);
	commit[LINK_LONGEST - 9] = 'a';
	assert_null(url_template_expand(arena, "http://h/{commit}", &values, true));
	free(commit);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_templates),
		cmocka_unit_test(test_expansion),
		cmocka_unit_test(test_values_of_series),
		cmocka_unit_test(test_a_link_has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

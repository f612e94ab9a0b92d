/* Addresses: what may be shown of them, how they are joined, and the defaults of an endpoint. */
#include "unit.h"

#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/base/transfer.h"

static void test_safe_url(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{"http://a:9090/b/c?token=secret#secret", "http://a:9090/b/c"},
		{"https://me:secret@a/b", "https://a/b"},
		{"https://me:sec@ret@a/b", "https://a/b"},
		{"https://a/b@c", "https://a/b@c"},
		{"https://me:sec@ret@a/b@c", "https://..."},
		{"http://user:80/x@host", "http://..."},
		{"http://user:p?x@host/y", "http://..."},
		{"http://user:p#x@host/y", "http://..."},
		{"http://a:9090/b?token=se@cret", "http://..."},
		{"http://a?secret", "http://a"},
		{"http://a#secret", "http://a"},
		{"http://[::1]:80/x", "http://[::1]:80/x"},
		{"a/b?secret", "a/b"},
		{"", ""},
	};
	struct arena *arena = arena_new();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(transfer_safe_url(arena, cases[i][0]), cases[i][1]);
	arena_free(arena);
}

/* What a variable has put into an address is not shown. */
static void test_shown_url(void **state)
{
	static const struct {
		const char *url, *shown, *asked, *expected;
	} cases[] = {
		{"http://a/key/", "http://a/${KEY}/", "http://a/key/api?q=1",
			"http://a/${KEY}/api"},
		{"http://u:p@a/key", "http://u:${P}@a/${KEY}", "http://a/key/x",
			"http://a/${KEY}/x"},
		{"http://a/key", "${URL}", "http://a/key/x/y", "${URL}/x/y"},
		{"http://a/key", "http://a/${KEY}", "http://b/key/x", "http://b/key/x"},
		{"http://a/key", NULL, "http://u@a/key/x", "http://a/key/x"},
	};
	struct arena *arena = arena_new();
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct endpoint endpoint = {.url = cases[i].url, .shown = cases[i].shown};
		assert_string_equal(
			transfer_shown_url(arena, &endpoint, cases[i].asked), cases[i].expected);
	}
	arena_free(arena);
}

static void test_join(void **state)
{
	(void)state;
	static const char *const cases[][3] = {
		{"http://a", "b", "http://a/b"},
		{"http://a/", "b", "http://a/b"},
		{"http://a/p//", "/b/c", "http://a/p/b/c"},
		{"http://me:secret@a/p/?x=1", "b?y=2", "http://a/p/b?y=2"},
	};
	struct arena *arena = arena_new();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(
			transfer_join_url(arena, cases[i][0], cases[i][1]), cases[i][2]);
	arena_free(arena);
}

static void test_encode(void **state)
{
	(void)state;
	struct buf out = {0};
	transfer_encode(&out, "aZ09-._~ +&=%/é\"{}\n");
	assert_string_equal(out.data, "aZ09-._~%20%2B%26%3D%25%2F%C3%A9%22%7B%7D%0A");
	buf_free(&out);
}

static void test_defaults(void **state)
{
	(void)state;
	struct endpoint endpoint = {0};
	field_defaults(endpoint_fields, &endpoint);
	assert_null(endpoint.url);
	assert_null(endpoint.password);
	assert_int_equal(endpoint.headers.count, 0);
	assert_false(endpoint.insecure_skip_verify);
	assert_int_equal(endpoint.connect_timeout, 10000);
	assert_int_equal(endpoint.timeout, 30000);
	assert_int_equal(endpoint.retry_for, 60000);
	assert_int_equal(endpoint.max_concurrent, 16);
	assert_int_equal(endpoint.max_points, 1000000);
	assert_int_equal(endpoint.max_body, 64000000);
}

static const char *complaint(struct endpoint endpoint)
{
	static struct error error;
	return endpoint_check(&endpoint, &error) ? NULL : error.text;
}

static void test_options_that_exclude_or_need_each_other(void **state)
{
	(void)state;
	assert_null(complaint((struct endpoint){0}));
	assert_null(complaint((struct endpoint){.bearer_token_file = "t"}));
	assert_null(complaint((struct endpoint){.username = "u", .password_file = "p"}));
	assert_non_null(strstr(
		complaint((struct endpoint){.username = "u", .bearer_token = "canary"}), "token"));
	assert_non_null(strstr(complaint((struct endpoint){.password = "canary"}), "username"));
	assert_null(complaint((struct endpoint){.bearer_token = "t\n"}));
	assert_string_equal(complaint((struct endpoint){.bearer_token = "canary\r\nX-Evil: b"}),
		"bearer_token: contains a line break or another control character");
	assert_null(complaint((struct endpoint){.cert_file = "c"}));
	assert_non_null(strstr(complaint((struct endpoint){.key_file = "k"}), "cert_file"));
	assert_null(complaint((struct endpoint){.proxy = "none"}));
	assert_null(complaint((struct endpoint){.proxy = "http://user:canary@proxy:3128"}));
	assert_null(complaint((struct endpoint){.proxy = "SOCKS5H://proxy"}));
	static const char *const wrong[] = {"", "canary", "proxy:3128", "ftp://canary", "http:/x"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		const char *text = complaint((struct endpoint){.proxy = wrong[i]});
		assert_non_null(text);
		assert_null(strstr(text, "canary"));
	}
}

static void test_secrets_are_not_printed(void **state)
{
	(void)state;
	struct endpoint endpoint = {
		.password = "canary", .bearer_token = "canary", .proxy = "http://u:canary@p"};
	struct buf out = {0};
	for (const struct field *field = endpoint_fields; field->name; field++)
		field_print(field, &endpoint, &out);
	assert_null(strstr(out.data, "canary"));
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_safe_url),
		cmocka_unit_test(test_shown_url),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_encode),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_options_that_exclude_or_need_each_other),
		cmocka_unit_test(test_secrets_are_not_printed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

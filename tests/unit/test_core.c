/*
 * Errors, arena, buffer, log: the small things everything stands on.
 */
#include "unit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/base/clock.h"
#include "agent/base/hash.h"
#include "agent/base/log.h"
#include "agent/base/secret.h"
#include "agent/base/utf8.h"

static void error_is_formatted_and_prefixed(void **state)
{
	(void)state;
	struct error error;
	assert_false(error_set(&error, ERROR_DATA, "line %d", 7));
	assert_false(error_prefix(&error, "%s: ", "results.csv"));
	assert_int_equal(error.kind, ERROR_DATA);
	assert_string_equal(error.text, "results.csv: line 7");
}

/* Every length around the limit, with two-, three- and four-byte characters at the cut. */
static void error_cut_keeps_utf8_whole(void **state)
{
	(void)state;
	static const char *const characters[] = {"\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x94\xB4"};
	char text[ERROR_TEXT + 64];
	for (size_t c = 0; c < 3; c++) {
		for (size_t pad = ERROR_TEXT - 12; pad < ERROR_TEXT + 4; pad++) {
			struct error error;
			memset(text, 'x', pad);
			text[pad] = '\0';
			for (int i = 0; i < 8; i++)
				strcat(text, characters[c]);
			error_set(&error, ERROR_DATA, "%s", text);
			size_t whole = (ERROR_TEXT - 1 - pad) / strlen(characters[c]);
			if (pad < ERROR_TEXT - 1)
				assert_int_equal(strlen(error.text),
					pad + (whole < 8 ? whole : 8) * strlen(characters[c]));
			error_prefix(&error, "%s: ", "file");
			assert_true(strlen(error.text) < ERROR_TEXT);
			assert_memory_equal(error.text, "file: x", 7);
		}
	}
}

static void arena_gives_zeroed_aligned_pieces(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	for (size_t size = 0; size < 3000; size += 7) {
		unsigned char *piece = arena_alloc(arena, size);
		assert_int_equal((uintptr_t)piece % 16, 0);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(piece[i], 0);
		memset(piece, 0xFF, size);
	}
	char *large = arena_alloc(arena, 10 << 20);
	assert_int_equal(large[(10 << 20) - 1], 0);
	assert_true(arena_size(arena) > 10 << 20);
	assert_true(arena_size(arena) < 14 << 20);
	arena_free(arena);
	arena_free(NULL);
}

static void arena_copies_text(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	assert_string_equal(arena_printf(arena, "%s-%05d", "a", 42), "a-00042");
	assert_string_equal(arena_strndup(arena, "abcdef", 3), "abc");
	assert_null(arena_strdup(arena, NULL));
	char *text = arena_printf(arena, "%5000s", "x");
	assert_int_equal(strlen(text), 5000);
	arena_free(arena);
}

static void buf_writes_base64(void **state)
{
	static const char *const cases[] = {
		"", "", "f", "Zg==", "fo", "Zm8=", "foo", "Zm9v", "\xff\xfe?", "//4/"};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i += 2) {
		struct buf out = {0};

		buf_text(&out, "");
		buf_base64(&out, cases[i], strlen(cases[i]));
		assert_string_equal(out.data ? out.data : "", cases[i + 1]);
		buf_free(&out);
	}
}

static void buf_grows_and_stays_terminated(void **state)
{
	(void)state;
	struct buf buf = {0};
	for (int i = 0; i < 10000; i++)
		buf_printf(&buf, "%d,", i % 10);
	assert_int_equal(buf.length, 20000);
	assert_int_equal(strlen(buf.data), 20000);
	buf_clear(&buf);
	assert_string_equal(buf.data, "");
	buf_printf(&buf, "%300s", "x");
	assert_int_equal(buf.length, 300);
	char *text = buf_steal(&buf);
	assert_int_equal(strlen(text), 300);
	assert_null(buf.data);
	free(text);
	text = buf_steal(&buf);
	assert_string_equal(text, "");
	free(text);
}

static void assert_json(const char *text, size_t length, const char *wanted)
{
	struct buf buf = {0};
	buf_json_string(&buf, text, length);
	assert_string_equal(buf.data, wanted);
	buf_free(&buf);
}

static void json_strings_are_escaped(void **state)
{
	(void)state;
	assert_json("", 0, "\"\"");
	assert_json("a\"b\\c\n\t\r\x01\x7F", 10, "\"a\\\"b\\\\c\\n\\t\\r\\u0001\\u007f\"");
	assert_json("z\0z", 3, "\"z\\u0000z\"");
	assert_json("\xC3\xA4\xF0\x9F\x94\xB4", 6, "\"\xC3\xA4\xF0\x9F\x94\xB4\"");
	/* overlong, surrogate, beyond U+10FFFF, cut short: each bad byte is replaced */
	assert_json("\xC0\x80", 2, "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
	assert_json("\xED\xA0\x80", 3, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
	assert_json("\xF4\x90\x80\x80", 4, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
	assert_json("ok\xE2\x82", 4, "\"ok\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

static void json_numbers_read_back(void **state)
{
	(void)state;
	static const double values[] = {0, -0.0, 1, 0.1, 1.0 / 3, 1e300, 5e-324,
		123456789.123456789, 1.7976931348623157e308, -2.5};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		struct buf buf = {0};
		buf_json_number(&buf, values[i]);
		assert_true(strtod(buf.data, NULL) == values[i]);
		buf_free(&buf);
	}
	struct buf buf = {0};
	buf_json_number(&buf, 0.1);
	buf_json_number(&buf, (double)NAN);
	buf_json_number(&buf, -(double)INFINITY);
	assert_string_equal(buf.data, "0.1nullnull");
	buf_free(&buf);
}

static char *logged(enum log_format format, const char *message, const char *value)
{
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);
	log_setup(LEVEL_INFO, format, stream);
	log_event(LEVEL_WARN, message, LOG_TEXT("key", value), LOG_INT("n", 7));
	log_message(LEVEL_DEBUG, "not shown");
	log_setup(LEVEL_INFO, LOG_FORMAT_TEXT, NULL);
	fclose(stream);
	return text;
}

/* A value can not begin a line or a pair of its own. */
static void log_lines_are_one_line(void **state)
{
	(void)state;
	char *text = logged(LOG_FORMAT_TEXT, "source failed", "a b\nlevel=x \"q\"");
	assert_non_null(
		strstr(text, " warn msg=\"source failed\" key=\"a b\\nlevel=x \\\"q\\\"\" n=7\n"));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	free(text);
	text = logged(LOG_FORMAT_TEXT, "plain", "v1.2");
	assert_non_null(strstr(text, " msg=plain key=v1.2 n=7"));
	free(text);
	text = logged(LOG_FORMAT_JSON, "source failed", "a\nb");
	assert_non_null(strstr(text, "\"level\":\"warn\",\"msg\":\"source "
				     "failed\",\"key\":\"a\\nb\",\"n\":7}\n"));
	free(text);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	fputs(text, file);
	fclose(file);
}

static void secrets_are_one_line_of_a_file(void **state)
{
	(void)state;
	char folder[] = "/tmp/hunter-secret-XXXXXX", path[64];
	struct arena *arena = arena_new();
	struct error error;
	const char *secret = NULL;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/token", folder);
	assert_false(secret_read(arena, "token_file", path, &secret, &error));
	assert_non_null(strstr(error.text, "token: No such file"));
	write_file(path, "s3cret \r\n");
	assert_true(secret_read(arena, "token_file", path, &secret, &error));
	assert_string_equal(secret, "s3cret");
	static const char *const wrong[] = {"", "\n", " \t\n", "s3cret\ns3cret", "s3cret\x1b[m"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		write_file(path, wrong[i]);
		assert_false(secret_read(arena, "token_file", path, &secret, &error));
		assert_null(strstr(error.text, "s3cret"));
		assert_int_equal(strstr(error.text, "token is empty") != NULL, i < 3);
	}
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0); /* nobody is waited for */
	assert_false(secret_read(arena, "token_file", path, &secret, &error));
	assert_non_null(strstr(error.text, "token: is not a regular file"));
	unlink(path);
	assert_false(secret_read(arena, "token_file", folder, &secret, &error));
	assert_int_equal(error.kind, ERROR_DATA);
	rmdir(folder);
	arena_free(arena);
}

static void expect_masked(const char *text, const char *wanted)
{
	static const char *const items[] = {"s3cret", "abcabd", "cabdef", "a/b\\c\"d=", "abc"};
	const struct strings secrets = {items, sizeof items / sizeof *items};
	char copy[64];
	snprintf(copy, sizeof copy, "%s", text);
	secret_mask(copy, strlen(copy), &secrets);
	assert_string_equal(copy, wanted);
}

/* As pages and redirects repeat what they were sent. */
static void encoded_secrets_are_masked(void **state)
{
	static const char secret[] = "s3/c+r \"t<&'>";
	static const char *const items[] = {secret, "", "tok3n-of-16bytes", "ab"};
	static const struct strings secrets = {items, sizeof items / sizeof *items};
	static const char *const echoes[] = {secret, "s3%2Fc%2Br%20%22t%3C%26%27%3E",
		"s3%2fc%2br+%22t%3c%26%27%3e", "s3/c+r &quot;t&lt;&amp;&#39;&gt;",
		"s3&#x2F;c&#43;r &#34;t&#x3c;&#38;&apos;&gt;", "s3\\/c+r \\\"t\\u003C&'>",
		"czMvYytyICJ0PCYnPg==", "czMvYytyICJ0PCYnPg", "czMvYytyICJ0PCYnPg%3D%3D",
		"dG9rM24tb2YtMTZieXRlcw==", "tok3n%2Dof%2D16bytes", "tok3n&#45;of&#x0002d;16bytes",
		"s3%252Fc%252Br%2520%2522t%253C%2526%2527%253E",
		"s3%252fc%252br+%2522t%253c%2526%2527%253e",
		"s3/c+r &amp;quot;t&amp;lt;&amp;amp;&amp;#39;&amp;gt;",
		"s3\\\\/c+r \\\\\\\"t\\\\u003C&'>", "73332f632b722022743c26273e",
		"746F6B336E2D6F662D31366279746573"};
	(void)state;
	for (size_t i = 0; i < sizeof echoes / sizeof *echoes; i++) {
		char text[100];
		size_t length = (size_t)snprintf(text, sizeof text, "<%s|", echoes[i]);
		secret_mask(text, length, &secrets);
		assert_int_equal(strspn(text + 1, "*"), length - 2);
		assert_int_equal(text[0], '<');
		assert_int_equal(text[length - 1], '|');
	}
	static const char *const others[] = {"s3%2Fc%2Br%20%22t%3C%26%27%3", "s3%", "&#", "&#x",
		"&#x73", "\\", "&", "czMvYytyICJ0PCYn", "=", "YWJj", "table", "s3/c+r &#34", ""};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		char *exact = memory_new(strlen(others[i]) + 1, 1);
		memcpy(exact, others[i], strlen(others[i]));
		secret_mask(exact, strlen(others[i]), &secrets);
		assert_string_equal(exact, others[i]);
		free(exact);
	}
}

/* However much of it the cut leaves. */
static void a_cut_leaves_no_part_of_a_secret(void **state)
{
	static const char *const items[] = {"s3cret", "a/b+c"};
	static const struct strings secrets = {items, sizeof items / sizeof *items};
	static const char *const echoes[] = {"s3cret", "czNjcmV0", "a%2Fb%2Bc", "s3&#x63;ret"};
	struct arena *arena = arena_new();
	(void)state;
	for (size_t i = 0; i < sizeof echoes / sizeof *echoes; i++) {
		const char *text = arena_printf(arena, "<\u00fc %s>", echoes[i]);
		size_t whole = strlen(text), before = strlen("<\u00fc ");
		for (size_t most = before; most < whole; most++) {
			const char *shown = secret_cut(arena, text, most, &secrets);
			assert_int_equal(strlen(shown), most);
			assert_int_equal(strspn(shown + before, "*"), most - before);
		}
		assert_string_equal(secret_cut(arena, text, 2, &secrets), "<");
		assert_int_equal(strlen(secret_cut(arena, text, 100, &secrets)), whole);
	}
	arena_free(arena);
}

static void secrets_are_kept_out_of_words(void **state)
{
	(void)state;
	expect_masked("", "");
	expect_masked("s3cre", "s3cre");
	expect_masked("s3cret: s3s3crets3cret.", "******: s3************.");
	expect_masked("abcabcabdef abcd", "abc******** abcd"); /* these overlap */
	expect_masked(
		"abc dabc abc=abc.", "*** dabc ***=***."); /* a short one is hidden as a word */
	expect_masked("a/b\\c\"d=", "********");
	expect_masked("a\\/b\\\\c\\\"d\\u003D!", "****************!");
	expect_masked("a\\/b\\\\c\\\"d\\u003", "a\\/b\\\\c\\\"d\\u003");
}

static void secrets_that_fit_a_header(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"", " \r\n", "s3cret\r\nX: y", "s3cret\x7f.", "\ts3cret"};
	struct error error;
	assert_true(secret_check("token", "s3cr\xc3\xa9t x \r\n", &error));
	assert_int_equal(secret_length("s3cret \r\n"), 6);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_false(secret_check("token", wrong[i], &error));
		assert_memory_equal(error.text, "token: ", 7);
		assert_null(strstr(error.text, "s3cret"));
	}
}

static void control_characters_are_blanked(void **state)
{
	(void)state;
	static const char *const cases[][2] = {{"", ""}, {"a\tb\x7f\x1b[31m", "a?b??[31m"},
		{"caf\u00e9 \u6027 \u2026", "caf\u00e9 \u6027 \u2026"},
		{"\xc2\x85\xc2\x9b", "????"}, {"a\u2028\u202e\u2066z", "a?????????z"},
		{"\xc2", "?"}, {"a\xe2\x80", "a??"}, {"\xff\n\x9b", "???"},
		{"\u200e\u200f\u061c\u206a.\u200d", "???????????.\u200d"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[64];
		strcpy(text, cases[i][0]);
		utf8_blank(text, '?');
		assert_string_equal(text, cases[i][1]);
	}
}

/* In both formats, and for the same text: it is only escaped. */
static void log_shows_control_characters(void **state)
{
	(void)state;
	static const char label[] = "p99\xc2\x85\xc2\x9b"
				    "2K\u200f\u202e\u2066\x7f\xe6\x80";
	static const char shown[] =
		"\"p99\\u0085\\u009b2K\\u200f\\u202e\\u2066\\u007f\ufffd\ufffd\"";
	static const enum log_format formats[] = {LOG_FORMAT_TEXT, LOG_FORMAT_JSON};
	for (size_t i = 0; i < 2; i++) {
		char *text = logged(formats[i], "message delivered", label);
		assert_non_null(strstr(text, shown));
		free(text);
	}
}

static void cuts_are_between_characters(void **state)
{
	static const struct {
		const char *text;
		size_t most, length;
	} cases[] = {{"", 0, 0}, {"abc", 3, 3}, {"abc", 2, 2}, {"a\u00e9", 2, 1}, {"a\u00e9", 3, 3},
		{"\u20ac", 2, 0}, {"\u20ac\u20ac", 5, 3}, {"\U0001f600x", 3, 0},
		{"\U0001f600x", 4, 4}, {"\x80\x80\x80\x80\x80", 3, 3}, {"ab\xe2", 2, 2}};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(utf8_cut(cases[i].text, cases[i].most), cases[i].length);
}

/* The hashes of announced messages lie in state files: they must not change. */
static void hashes_are_those_of_fnv(void **state)
{
	(void)state;
	assert_true(hash_add(HASH_START, "", 0) == UINT64_C(0xcbf29ce484222325));
	assert_true(hash_add(HASH_START, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
	assert_true(hash_add(HASH_START, "foobar", 6) == UINT64_C(0x85944171f73967e8));
	assert_true(hash_add(hash_add(HASH_START, "foo", 3), "bar", 3) ==
		    hash_add(HASH_START, "foobar", 6));
	assert_int_equal(hash_slot("foobar", 6), hash_slot("foobarx", 6));
	assert_int_not_equal(hash_slot("ab", 2), hash_slot("ba", 2));
}

/* Known are those of SipHash's authors: the key is 00 .. 0f, the text 00, 01, 02 ... */
static void keyed_hashes(void **state)
{
	(void)state;
	static const struct {
		size_t length;
		uint64_t hash;
	} known[] = {{0, UINT64_C(0x726fdb47dd0e0e31)}, {1, UINT64_C(0x74f839c593dc67fd)},
		{8, UINT64_C(0x93f5f5799a932462)}, {15, UINT64_C(0xa129ca6149be45e5)}};
	const struct hash_key key = {{UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)}};
	unsigned char text[15];
	for (unsigned char i = 0; i < sizeof text; i++)
		text[i] = i;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		assert_true(hash_keyed(key, text, known[i].length) == known[i].hash);
	struct hash_key one = hash_key_new(), other = hash_key_new();
	assert_true(hash_keyed(one, "a", 1) != hash_keyed(other, "a", 1));
	assert_true(hash_keyed(one, "a", 1) == hash_keyed(one, "a", 1));
}

static void clocks_agree_with_the_date(void **state)
{
	(void)state;
	int64_t before = clock_monotonic(), ns = clock_monotonic_ns(), now = clock_wall();
	/* time() may be a tick behind */
	assert_in_range(now / 1000, time(NULL) - 2, time(NULL) + 1);
	assert_true(ns / 1000000 >= before && ns / 1000000 <= clock_monotonic());
}

static void joined_arenas_are_one(void **state)
{
	(void)state;
	struct arena *arena = arena_new(), *other = arena_new();
	char *ours = arena_strdup(arena, "ours"), *theirs = arena_strdup(other, "theirs");
	arena_alloc(other, 100000);
	size_t sum = arena_size(arena) + arena_size(other);
	arena_join(arena, other);
	arena_join(arena, arena_new());
	assert_int_equal(arena_size(arena), sum);
	assert_string_equal(arena_strdup(arena, "more"), "more");
	assert_string_equal(ours, "ours");
	assert_string_equal(theirs, "theirs");
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(error_is_formatted_and_prefixed),
		cmocka_unit_test(error_cut_keeps_utf8_whole),
		cmocka_unit_test(arena_gives_zeroed_aligned_pieces),
		cmocka_unit_test(arena_copies_text),
		cmocka_unit_test(buf_grows_and_stays_terminated),
		cmocka_unit_test(buf_writes_base64),
		cmocka_unit_test(json_strings_are_escaped),
		cmocka_unit_test(json_numbers_read_back),
		cmocka_unit_test(log_lines_are_one_line),
		cmocka_unit_test(secrets_are_one_line_of_a_file),
		cmocka_unit_test(secrets_are_kept_out_of_words),
		cmocka_unit_test(encoded_secrets_are_masked),
		cmocka_unit_test(a_cut_leaves_no_part_of_a_secret),
		cmocka_unit_test(secrets_that_fit_a_header),
		cmocka_unit_test(joined_arenas_are_one),
		cmocka_unit_test(hashes_are_those_of_fnv),
		cmocka_unit_test(keyed_hashes),
		cmocka_unit_test(control_characters_are_blanked),
		cmocka_unit_test(log_shows_control_characters),
		cmocka_unit_test(cuts_are_between_characters),
		cmocka_unit_test(clocks_agree_with_the_date),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

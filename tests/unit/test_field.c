/*
 * Option tables: every type, its range, its messages.
 */
#include "unit.h"
#include <math.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/base/field.h"
#include "agent/base/when.h"

struct options {
	bool flag;
	int64_t window, wait, cap;
	double p_value, magnitude;
	const char *name, *token;
	int profile;
	struct strings metrics;
	struct pairs headers;
};

#define AT(member) .offset = offsetof(struct options, member)

static const char *const profiles[] = {"default", "otava", NULL};

static const struct field fields[] = {
	{.name = "flag", .type = FIELD_BOOL, AT(flag), .help = "h"},
	{.name = "window",
		.alias = "window_len",
		.type = FIELD_INT,
		AT(window),
		.initial = "50",
		.min = 2,
		.max = 1e6},
	{.name = "wait", .type = FIELD_DURATION, AT(wait), .initial = "30s"},
	{.name = "cap", .type = FIELD_BYTES, AT(cap), .initial = "64MB", .min = 1, .max = 1e12},
	{.name = "p_value",
		.type = FIELD_DOUBLE,
		AT(p_value),
		.initial = "0.001",
		.max = 1,
		.flags = FIELD_MIN_OPEN},
	{.name = "magnitude", .type = FIELD_DOUBLE, AT(magnitude), .max = (double)INFINITY},
	{.name = "name", .type = FIELD_STRING, AT(name)},
	{.name = "token", .type = FIELD_SECRET, AT(token)},
	{.name = "profile",
		.type = FIELD_CHOICE,
		AT(profile),
		.initial = "default",
		.choices = profiles},
	{.name = "metrics", .type = FIELD_LIST, AT(metrics)},
	{.name = "headers", .type = FIELD_MAP, AT(headers)},
	{0},
};

static struct arena *arena;
static struct options options;

static int set_up(void **state)
{
	(void)state;
	arena = arena_new();
	memset(&options, 0, sizeof options);
	field_defaults(fields, &options);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_free(arena);
	return 0;
}

static void accept(const char *name, const char *text, const char *printed)
{
	struct error error = {0};
	struct buf buf = {0};
	const struct field *field = field_find(fields, name);
	if (!field_parse(field, &options, text, arena, &error))
		fail_msg("%s", error.text);
	field_print(field, &options, &buf);
	assert_string_equal(buf.data ? buf.data : "", printed);
	buf_free(&buf);
}

static void reject(const char *name, const char *text, const char *message)
{
	struct error error = {0};
	struct options before = options;
	assert_false(field_parse(field_find(fields, name), &options, text, arena, &error));
	assert_int_equal(error.kind, ERROR_USAGE);
	assert_string_equal(error.text, message);
	assert_memory_equal(&before, &options, sizeof options);
}

static void defaults_come_from_the_table(void **state)
{
	(void)state;
	assert_int_equal(options.window, 50);
	assert_int_equal(options.wait, 30000);
	assert_int_equal(options.cap, 64000000);
	assert_true(options.p_value == 0.001);
	assert_null(options.name);
}

static void names_are_found_by_alias_and_dashes(void **state)
{
	(void)state;
	assert_ptr_equal(field_find(fields, "window-len"), &fields[1]);
	assert_ptr_equal(field_find(fields, "p-value"), &fields[4]);
	assert_null(field_find(fields, "p"));
	assert_null(field_find(fields, ""));
}

static void accept_list(const char *text, const char *const *items, size_t count)
{
	struct error error;
	options.metrics = (struct strings){0};
	assert_true(field_parse(field_find(fields, "metrics"), &options, text, arena, &error));
	assert_int_equal(options.metrics.count, count);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(options.metrics.items[i], items[i]);
}

static void names_with_commas_are_one_item(void **state)
{
	(void)state;
	static const char *const labels[] = {"many{g=\"g0\",h=\"x\"}", "p50"};
	accept_list("many{g=\"g0\",h=\"x\"}, p50", labels, 2);
	static const char *const quoted[] = {"m{a=\"}\\\",\",b=\"{\"}", "n"};
	accept_list("m{a=\"}\\\",\",b=\"{\"},n", quoted, 2);
	static const char *const functions[] = {"scale(sum(a.{b,c}),2)", "x[1,2]", "\"a,b\""};
	accept_list("scale(sum(a.{b,c}),2),x[1,2],\"a,b\"", functions, 3);
	static const char *const open[] = {"a{b", "c", "5\" disk", "d(e", "f)"};
	accept_list("a{b,c,5\" disk,d(e,f)", open, 5);
	static const char *const closers[] = {"a}", "b)"};
	accept_list("a},b)", closers, 2);
}

static void values_are_parsed(void **state)
{
	(void)state;
	accept("flag", "yes", "true");
	accept("flag", "False", "false");
	accept("window", "2", "2");
	accept("wait", "1h30m", "1h30m");
	accept("wait", "never", "never");
	accept("cap", "64MiB", "67108864");
	accept("cap", "1.5k", "1500");
	accept("cap", "10", "10");
	accept("cap", "10B", "10");
	accept("p_value", "1", "1");
	accept("p_value", "1e-9", "1e-09");
	accept("magnitude", "0", "0");
	accept("name", "x y", "x y");
	accept("token", "xoxb-secret", "***");
	accept("profile", "otava", "otava");
	accept("metrics", "p50, p99 ,,", "p50,p99");
	accept("metrics", "p999", "p50,p99,p999");
}

static void bad_values_are_told(void **state)
{
	(void)state;
	reject("flag", "maybe", "flag: \"maybe\" is not true or false");
	reject("window", "1", "window: \"1\" is not at least 2 and at most 1000000");
	reject("window", "5.5", "window: \"5.5\" is not a whole number");
	reject("window", "99999999999999999999",
		"window: \"99999999999999999999\" is not a whole number");
	reject("window", "", "window: \"\" is not a whole number");
	reject("p_value", "0", "p_value: \"0\" is not above 0 and at most 1");
	reject("p_value", "2", "p_value: \"2\" is not above 0 and at most 1");
	reject("p_value", "nan", "p_value: \"nan\" is not a number");
	reject("p_value", "0x1", "p_value: \"0x1\" is not a number");
	reject("magnitude", "-0.1", "magnitude: \"-0.1\" is not at least 0");
	reject("magnitude", "inf", "magnitude: \"inf\" is not a number");
	reject("cap", "64XB", "cap: \"64XB\" is not a size like 64MB");
	reject("cap", "-1", "cap: \"-1\" is not a size like 64MB");
	reject("cap", "0", "cap: \"0\" is not at least 1 and at most 1000000000000");
	reject("profile", "otva",
		"profile: \"otva\" is not one of default, otava (did you mean \"otava\"?)");
	reject("headers", "a=b", "headers: a mapping is needed here");
}

static void near_misses_are_suggested(void **state)
{
	(void)state;
	assert_string_equal(field_suggest_name("windw", fields), "window");
	assert_string_equal(field_suggest_name("p-value", fields), "p_value");
	assert_string_equal(field_suggest_name("metrcis", fields), "metrics");
	assert_null(field_suggest_name("zzz", fields));
	assert_null(field_suggest_name("", fields));
	static const char *const names[] = {"file", "flee"};
	assert_string_equal(field_suggest("flie", names, 2), "file");
	assert_null(field_suggest("flie", names, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_come_from_the_table),
		cmocka_unit_test(names_are_found_by_alias_and_dashes),
		cmocka_unit_test(values_are_parsed),
		cmocka_unit_test(names_with_commas_are_one_item),
		cmocka_unit_test(bad_values_are_told),
		cmocka_unit_test(near_misses_are_suggested),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}

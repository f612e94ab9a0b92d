/* Graphite's expressions, and the names of what they give. */
#include "unit.h"

#include <string.h>

#include "sources/graphite/series.h"

static void test_expressions(void **state)
{
	static const struct {
		const char *text, *problem;
		size_t at;
		const char *paths[4];
	} cases[] = {
		{"a.b", NULL, 0, {"a.b"}},
		{" a.{b,c}*.d-[0-9]? ", NULL, 0, {"a.{b,c}*.d-[0-9]?"}},
		{"scale(a.b,10)", NULL, 0, {"a.b"}},
		{"scale( a.b , -1.5e3 )", NULL, 0, {"a.b"}},
		{"sumSeries(a.b, a.c.*)", NULL, 0, {"a.b", "a.c.*"}},
		{"alias(movingAverage(a.10,'5min'),\"x (y\")", NULL, 0, {"a.10"}},
		{"summarize(a,'1d','max',alignToFrom=true)", NULL, 0, {"a"}},
		{"f(a=b.c)", NULL, 0, {"b.c"}},
		{"seriesByTag('name=disk.used', \"host=~a|b\")", NULL, 0, {NULL}},
		{"a.b|scale(2)|alias('x')", NULL, 0, {"a.b"}},
		{"f()", NULL, 0, {NULL}},
		{"f(none,TRUE,inf)", NULL, 0, {NULL}},
		{"true", NULL, 0, {"true"}},
		{"a\\(b\\).c", NULL, 0, {"a\\(b\\).c"}},
		{"café.ö", NULL, 0, {"café.ö"}},
		{"scale(a.b", "( is not closed", 6, {"a.b"}},
		{"f(g(a)", "( is not closed", 2, {"a"}},
		{"f(a))", "one ) too many", 5, {"a"}},
		{"f(a b)", "a comma or ) is missing", 5, {"a"}},
		{"a.b c", "unexpected text after its end", 5, {"a.b"}},
		{"a.b,c", "unexpected text after its end", 4, {"a.b"}},
		{"f('a", "a quote is not closed", 3, {NULL}},
		{"a.{b,c", "a brace is not closed", 3, {NULL}},
		{"a.{b.c,d}", "braces cannot contain a dot", 5, {NULL}},
		{"f(a,)", "a metric or function is missing", 5, {"a"}},
		{"", "a metric or function is missing", 1, {NULL}},
		{"a|b", "a function is missing behind |", 3, {"a"}},
		{"é.b c", "unexpected text after its end", 5, {"é.b"}},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct arena *arena = arena_new();
		struct expression found = target_read(arena, cases[i].text);
		size_t count = 0;
		if (!found.problem != !cases[i].problem ||
			(found.problem && strcmp(found.problem, cases[i].problem) != 0))
			fail_msg("%s: %s", cases[i].text, found.problem);
		if (found.at != cases[i].at)
			fail_msg("%s: at %zu", cases[i].text, found.at);
		while (count < 4 && cases[i].paths[count])
			count++;
		if (found.paths.count != count)
			fail_msg("%s: %zu paths", cases[i].text, found.paths.count);
		for (size_t k = 0; k < count; k++)
			assert_string_equal(found.paths.items[k], cases[i].paths[k]);
		arena_free(arena);
	}
}

static void test_depth(void **state)
{
	struct arena *arena = arena_new();
	char text[40001];
	(void)state;
	for (int i = 0; i < 20000; i++)
		memcpy(text + 2 * i, "f(", 2);
	text[40000] = '\0';
	assert_string_equal(target_read(arena, text).problem, "too many nested functions");
	arena_free(arena);
}

static void test_branches(void **state)
{
	struct arena *arena = arena_new();
	struct error error;
	const char *out;
	(void)state;
	assert_true(target_fill_branch(arena, "a.b", "x(", &out, &error));
	assert_string_equal(out, "a.b");
	assert_true(target_fill_branch(arena, "a.%{BRANCH}.b.%{BRANCH}", NULL, &out, &error));
	assert_string_equal(out, "a.main.b.main");
	assert_true(target_fill_branch(arena, "%{BRANCH}", "feature/x-1", &out, &error));
	assert_string_equal(out, "feature/x-1");
	static const char *const refused[] = {"a,b", "a b", "*", "a)", "{a}", "a\"", "a;b", "\n"};
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		assert_false(target_fill_branch(arena, "%{BRANCH}", refused[i], &out, &error));
		assert_int_equal(error.kind, ERROR_USAGE);
	}
	arena_free(arena);
}

static void test_names(void **state)
{
	static const struct {
		const char *metric;
		const char *texts[4], *names[4];
		size_t twice;
	} cases[] = {
		{"cpu", {"servers.web1.cpu"}, {"cpu"}, 0},
		{NULL, {"servers.web1.cpu"}, {"servers.web1.cpu"}, 0},
		{"cpu", {"s.web1.cpu", "s.web10.cpu", "s.web2.cpu"},
			{"cpu{web1}", "cpu{web10}", "cpu{web2}"}, 0},
		{NULL, {"scale(s.web1.cpu,10)", "scale(s.web2.cpu,10)"}, {"web1", "web2"}, 0},
		{NULL, {"a.x.b.c", "a.y.b.d"}, {"x.b.c", "y.b.d"}, 0},
		{NULL, {"a.b", "a.b.c"}, {"b", "b.c"}, 0},
		{NULL, {"b", "x.b"}, {"b", "x.b"}, 0},
		{NULL, {"a.b.b", "a.b.b.b"}, {"b", "b.b"}, 0},
		{NULL, {"eu", "us"}, {"eu", "us"}, 0},
		{"m", {"x", "x", "x"}, {"m", "m#2", "m#3"}, 2},
		{NULL, {"a.x", "a.x", "a.y"}, {"x", "x#2", "y"}, 1},
		{NULL, {"x", "x", "x#2"}, {"x", "x#3", "x#2"}, 1},
		{NULL, {"disk;dc=1;host=a", "disk;dc=1;host=b"},
			{"disk{host=\"a\"}", "disk{host=\"b\"}"}, 0},
		{"d", {"disk;dc=1;host=a", "disk;dc=2;host=a;rack=7", "disk;host=a"},
			{"d{dc=\"1\"}", "d{dc=\"2\",rack=\"7\"}", "d"}, 0},
		{"d", {"disk;dc=1", "mem;dc=1"}, {"d{disk}", "d{mem}"}, 0},
		{NULL, {"disk;dc=1", "mem;dc=1"}, {"disk", "mem"}, 0},
		{"d", {"f(disk;dc=1)", "f(disk;dc=2)"}, {"d{1}", "d{2}"}, 0},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct arena *arena = arena_new();
		const struct metric metric = {.name = cases[i].metric, .scale = 1};
		const struct target target = {.metric = cases[i].metric ? &metric : NULL};
		struct series series[4] = {0};
		size_t count = 0;
		while (count < 4 && cases[i].texts[count])
			count++;
		size_t twice = graphite_name_series(arena, &target, cases[i].texts, count, series);
		assert_int_equal(twice, cases[i].twice);
		for (size_t k = 0; k < count; k++) {
			if (strcmp(series[k].name, cases[i].names[k]) != 0)
				fail_msg("%s is called %s", cases[i].texts[k], series[k].name);
			assert_non_null(strstr(series[k].identity, cases[i].texts[k]));
			assert_string_equal(series[k].metric->name,
				cases[i].metric ? cases[i].metric : series[k].name);
			for (size_t other = 0; other < k; other++)
				assert_string_not_equal(series[k].identity, series[other].identity);
		}
		arena_free(arena);
	}
}

static void test_reach(void **state)
{
	enum { MINUTE = 60000, HOUR = 3600000 };
	const int64_t day = 24 * HOUR;
	const struct {
		const char *text;
		struct target_reach reach;
	} cases[] = {
		{"a.b", {0, 0, 0}},
		{"scale(a.b,10)", {0, 0, 0}},
		{"movingAverage(a,'1h')", {HOUR, 0, 0}},
		{"movingAverage( a.b , 10 )", {0, 10, 0}},
		{"movingAverage(a,windowSize=\"5min\")", {5 * MINUTE, 0, 0}},
		{"a|movingAverage('1h')|alias('movingAverage(a,\\'9h\\')')", {HOUR, 0, 0}},
		{"movingMedian(movingSum(a,'1h'),'30min')", {90 * MINUTE, 0, 0}},
		{"sumSeries(movingMin(a,'1h'),movingMax(b,'2hours'),c)", {2 * HOUR, 0, 0}},
		{"movingWindow(a,'1d','median')", {day, 0, 0}},
		{"exponentialMovingAverage(a,\"1h30min\")", {90 * MINUTE, 0, 0}},
		{"stdev(a,20,0.1)", {0, 20, 0}},
		{"timeShift(movingAverage(a,'1h'),'1d')", {day + HOUR, 0, 0}},
		{"timeShift(a,'-1w')", {7 * day, 0, 0}},
		{"delay(perSecond(a),3)", {0, 4, 0}},
		{"nonNegativeDerivative(a,maxValue=100)", {0, 1, 0}},
		{"keepLastValue(a)", {0, 0, 0}},
		{"keepLastValue(a,5)", {0, 5, 0}},
		{"summarize(a,'1h','avg')", {0, 0, HOUR}},
		{"hitcount(a,'1day')", {0, 0, day}},
		{"smartSummarize(movingAverage(a,'10min'),'1hour','sum')", {10 * MINUTE, 0, HOUR}},
		{"movingAverage(a,'soon')", {0, 0, 0}},
		{"movingAverage(a,99999999999999999999)", {0, 1000000, 0}},
		{"movingAverage(a,'1h'", {HOUR, 0, 0}},
		{"", {0, 0, 0}},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct arena *arena = arena_new();
		struct target_reach reach = target_read(arena, cases[i].text).reach;
		if (reach.ms != cases[i].reach.ms || reach.steps != cases[i].reach.steps ||
			reach.bucket != cases[i].reach.bucket)
			fail_msg("%s: %lld ms, %lld steps, bucket %lld", cases[i].text,
				(long long)reach.ms, (long long)reach.steps,
				(long long)reach.bucket);
		arena_free(arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_branches),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_reach),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

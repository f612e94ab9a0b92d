/*
 * What people are shown of a message: names cut to what differs, and what moved alike folded into
 * one line.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/model/labels.h"
#include "notifiers/digest.h"
#include "notifiers/notifier.h"
#include "notifiers/text.h"
#include "tests/unit/levels.h"

#define START INT64_C(1625184000000) /* 2021-07-02 00:00:00 */
#define HOUR INT64_C(3600000)

static int setup(void **state)
{
	*state = arena_new();
	return 0;
}

static int teardown(void **state)
{
	arena_free(*state);
	return 0;
}

/* Each name without the labels that all have, one a line, behind "TEXT: " what those are. */
static const char *cut_all(struct arena *arena, const char *const *names)
{
	struct labels *labels = labels_new(arena);
	const struct label_share *common;
	struct buf out = {0};
	const char *text;
	size_t count;

	for (size_t i = 0; names[i]; i++)
		labels_add_name(labels, names[i]);
	common = labels_common(labels, arena, 1, &count);
	for (size_t i = 0; i < count; i++)
		buf_printf(&out, "%s%s", i > 0 ? " " : "", common[i].text);
	buf_char(&out, ':');
	for (size_t i = 0; names[i]; i++) {
		buf_char(&out, ' ');
		labels_cut(&out, names[i], common, count);
	}
	text = arena_strndup(arena, out.data, out.length);
	buf_free(&out);
	labels_free(labels);
	return text;
}

static void test_names_are_cut_to_what_differs(void **state)
{
	static const struct {
		const char *names[4], *text;
	} cases[] = {
		{{"p99{instance=\"a\",region=\"eu\"}", "p99{instance=\"b\",region=\"eu\"}"},
			"region=eu: p99{instance=\"a\"} p99{instance=\"b\"}"},
		{{"p99{az=\"1\",region=\"eu\"}", "p50{az=\"1\",region=\"eu\"}"},
			"az=1 region=eu: p99 p50"},
		{{"p99{region=\"eu\"}", "errors"}, ": p99{region=\"eu\"} errors"},
		{{"p99{region=\"eu\"}", "p99{region=\"us\"}"},
			": p99{region=\"eu\"} p99{region=\"us\"}"},
		/* Of Graphite: parts of paths, of the same length only; tags; numbered ones. */
		{{"cpu{web1.eu.x}", "cpu{web2.eu.x}"}, "*.eu.x: cpu{web1} cpu{web2}"},
		{{"cpu{a.web1.b.x}", "cpu{a.web2.c.x}"}, "a.*.*.x: cpu{web1.b} cpu{web2.c}"},
		{{"cpu{a.a}", "cpu{a.*}"}, ": cpu{a.a} cpu{a.*}"},
		{{"cpu{web1.eu}", "cpu{web2.eu.x}"}, ": cpu{web1.eu} cpu{web2.eu.x}"},
		{{"cpu{web1}", "cpu{web2}"}, ": cpu{web1} cpu{web2}"},
		{{"disk{used,host=\"a\",dc=\"1\"}", "disk{free,host=\"a\",dc=\"2\"}"},
			"host=a: disk{used,dc=\"1\"} disk{free,dc=\"2\"}"},
		{{"cpu{web1.eu}#2", "cpu{web2.eu}"}, "*.eu: cpu{web1}#2 cpu{web2}"},
		/* Values may hold anything. */
		{{"p{a=\"}\\\",b=\",c=\"1\"}", "p{a=\"}\\\",b=\",c=\"2\"}"},
			"a=}\\\",b=: p{c=\"1\"} p{c=\"2\"}"},
		{{"p{sum(a,b)}", "p{sum(a,c)}"}, ": p{sum(a,b)} p{sum(a,c)}"},
		{{"p{f(a=1,b)}", "p{f(a=1,c)}"}, ": p{f(a=1,b)} p{f(a=1,c)}"},
		/* Broken ones stay as they are. */
		{{"p{a=\"1}", "p{a=\"1}"}, ": p{a=\"1} p{a=\"1}"},
		{{"p{}", "p{"}, ": p{} p{"},
		{{"p}a=\"1\"{", "{=,}", "}{"}, ": p}a=\"1\"{ {=,} }{"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(cut_all(*state, cases[i].names), cases[i].text);
}

/* A text that is too long to be kept is none that all share. */
static void test_long_labels_are_not_cut(void **state)
{
	struct arena *arena = *state;
	char value[400];
	const char *names[3] = {0};

	memset(value, 'x', sizeof value);
	value[sizeof value - 1] = '\0';
	names[0] = arena_printf(arena, "p{a=\"%s1\",b=\"1\"}", value);
	names[1] = arena_printf(arena, "p{a=\"%s2\",b=\"1\"}", value);
	assert_string_equal(cut_all(arena, names),
		arena_printf(arena, "b=1: p{a=\"%s1\"} p{a=\"%s2\"}", value, value));
}

/* So many series of one test, each 1% slower than the one before it: +10%, +11%, ... */
static struct announcement *farm(struct arena *arena, size_t count)
{
	struct announcement *items = arena_array(arena, count, sizeof *items);

	for (size_t i = 0; i < count; i++)
		items[i] = (struct announcement){.id = (int64_t)i + 1,
			.test = "farm",
			.metric = arena_printf(arena, "p99{host=\"h%02zu\",role=\"render\"}", i),
			.unit = "ms",
			.direction = -1,
			.time = START,
			.place_from = START,
			.place_to = START,
			.spacing = HOUR,
			.change = {LEVELS(100, 110 + (double)i)},
			.commit_before = "c29",
			.commit_after = "c30"};
	return items;
}

static struct digest digest(const struct announcement *items, size_t count)
{
	const struct message message = {.key = "k", .items = items, .count = count};

	return digest_of(&message);
}

static void test_a_crowd_has_numbers_of_its_own(void **state)
{
	struct announcement *items = farm(*state, 21);
	struct digest folded = digest(items, 21);
	const struct announcement *crowd = &folded.message.items[0];

	assert_int_equal(folded.message.count, 1);
	assert_int_equal(crowd->members, 21);
	assert_string_equal(crowd->metric, "p99");
	assert_string_equal(crowd->shared, "100% role=render");
	assert_null(crowd->common);
	assert_true(fabs(crowd->change.size - 20) < 1e-9);
	assert_true(fabs(crowd->change.size_low - 10.5) < 1e-9);
	assert_true(fabs(crowd->change.size_high - 29.5) < 1e-9);
	assert_int_equal(crowd->folded[0]->id, 21);
	assert_int_equal(crowd->folded[20]->id, 1);
	assert_string_equal(crowd->folded[0]->metric, "{host=\"h20\"}");
	assert_string_equal(crowd->commit_after, "c30");
	assert_int_equal(digest_changes(&crowd, 1), 21);
	digest_free(&folded);
}

/* One that is far worse than forty others is not one of them. */
static void test_what_lies_apart_has_a_line(void **state)
{
	struct announcement *items = farm(*state, 41);
	struct digest folded;

	for (size_t i = 0; i < 41; i++)
		items[i].change = (struct change){LEVELS(100, 108 + 0.05 * (double)(i % 5))};
	items[17].change = (struct change){LEVELS(100, 129)};
	items[30].change = (struct change){LEVELS(100, 109.5)}; /* as near as makes no odds */
	folded = digest(items, 41);
	assert_int_equal(folded.message.count, 2);
	assert_int_equal(folded.message.items[0].members, 40);
	assert_true(fabs(folded.message.items[0].change.size - 8.1) < 1e-9);
	assert_int_equal(folded.message.items[1].id, 18);
	assert_null(folded.message.items[1].folded);
	assert_string_equal(folded.message.items[0].common, "role=render");
	assert_string_equal(folded.message.items[1].metric, "p99{host=\"h17\"}");
	digest_free(&folded);
	folded = digest(items + 16, 5); /* what is left of five is no crowd */
	assert_int_equal(folded.message.count, 5);
	digest_free(&folded);
}

/* What is told of most of them need not be of all; what is of fewer is not told, nor cut. */
static void test_what_most_of_a_crowd_share(void **state)
{
	struct announcement *items = farm(*state, 20);
	struct digest folded;

	items[3].metric = "p99{host=\"h03\",role=\"cache\"}";
	folded = digest(items, 20);
	assert_int_equal(folded.message.count, 1);
	assert_string_equal(folded.message.items[0].shared, "95% role=render");
	assert_string_equal(
		folded.message.items[0].folded[0]->metric, "{host=\"h19\",role=\"render\"}");
	digest_free(&folded);
	items[4].metric = "p99{host=\"h04\",role=\"cache\"}";
	items[5].metric = "p99{host=\"h05\",role=\"cache\"}";
	folded = digest(items, 20);
	assert_null(folded.message.items[0].shared);
	digest_free(&folded);
}

/* What each changes in the sixth of ten series, so that it is no more of the crowd. */
static void other_metric(struct announcement *item)
{
	item->metric = "p50{host=\"h05\",role=\"render\"}";
}

static void other_test(struct announcement *item)
{
	item->test = "other";
}

static void other_unit(struct announcement *item)
{
	item->unit = "s";
}

static void other_way(struct announcement *item)
{
	item->change = (struct change){LEVELS(100, 90)};
}

static void other_direction(struct announcement *item)
{
	item->direction = 0;
}

static void other_kind(struct announcement *item)
{
	item->change.kind = CHANGE_TREND;
}

static void other_time(struct announcement *item)
{
	item->time += (CROWD_TOLERANCE + 1) * HOUR;
}

static void other_basis(struct announcement *item)
{
	item->basis = BASIS_LOAD;
	item->other = "farm/load";
}

static void of_a_cluster(struct announcement *item)
{
	item->members = 7;
}

static void is_over(struct announcement *item)
{
	item->over.time = START + HOUR;
}

static void test_what_is_not_alike_is_its_own_line(void **state)
{
	void (*const others[])(struct announcement *) = {other_metric, other_test, other_unit,
		other_way, other_direction, other_kind, other_time, other_basis, of_a_cluster,
		is_over};

	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		struct announcement *items = farm(*state, 10);
		struct digest folded;

		others[i](&items[5]);
		folded = digest(items, 10);
		assert_int_equal(folded.message.count, 2);
		assert_int_equal(folded.message.items[0].members, 9);
		assert_int_equal(folded.message.items[1].id, 6);
		assert_null(folded.message.items[1].folded);
		digest_free(&folded);
	}
}

/* Four are four lines; each has its name, and once what all share. */
static void test_few_are_not_folded(void **state)
{
	struct announcement *items = farm(*state, CROWD_LEAST);
	struct digest few = digest(items, CROWD_LEAST - 1), folded = digest(items, CROWD_LEAST);

	assert_int_equal(few.message.count, CROWD_LEAST - 1);
	for (size_t i = 0; i < few.message.count; i++) {
		assert_string_equal(few.message.items[i].common, "role=render");
		assert_int_equal(few.message.items[i].id, (int)i + 1);
	}
	assert_string_equal(few.message.items[2].metric, "p99{host=\"h02\"}");
	assert_int_equal(folded.message.count, 1);
	digest_free(&few);
	digest_free(&folded);
}

static void test_a_lone_series_keeps_its_name(void **state)
{
	struct announcement *items = farm(*state, 2);
	struct digest lone = digest(items, 1), twice;

	assert_string_equal(lone.message.items[0].metric, items[0].metric);
	assert_null(lone.message.items[0].common);
	digest_free(&lone);
	items[1].metric = items[0].metric;
	items[1].time += 50 * HOUR;
	twice = digest(items, 2);
	assert_string_equal(twice.message.items[1].metric, items[0].metric);
	assert_null(twice.message.items[1].common);
	digest_free(&twice);
}

/* What all of a test share is said at its name, and not again of the crowd in it. */
static void test_a_crowd_and_others_of_its_test(void **state)
{
	struct announcement *items = farm(*state, 10);
	struct digest folded;

	other_way(&items[9]);
	for (size_t i = 0; i < 9; i++)
		items[i].metric =
			arena_printf(*state, "p99{az=\"1\",host=\"h%02zu\",role=\"render\"}", i);
	items[9].metric = "p99{az=\"2\",host=\"h09\",role=\"render\"}";
	folded = digest(items, 10);
	assert_int_equal(folded.message.count, 2);
	assert_string_equal(folded.message.items[0].common, "role=render");
	assert_string_equal(folded.message.items[0].shared, "100% az=1");
	assert_string_equal(folded.message.items[0].folded[0]->metric, "{host=\"h08\"}");
	assert_string_equal(folded.message.items[1].common, "role=render");
	assert_string_equal(folded.message.items[1].metric, "p99{az=\"2\",host=\"h09\"}");
	digest_free(&folded);
}

/* Times within the tolerance of the first: the crowd has that of most, and the range of the one at
 * that time whose place is known best. */
static void test_time_and_range_of_a_crowd(void **state)
{
	struct announcement *items = farm(*state, 10);
	struct digest folded;

	for (size_t i = 0; i < 10; i++) {
		items[i].time = items[i].place_to = START + (i < 2 ? 0 : i < 8 ? HOUR : 5 * HOUR);
		items[i].place_from = items[i].place_to - 3 * HOUR;
		items[i].commit_after = "wide";
	}
	items[4].place_from += HOUR;
	items[4].commit_after = "narrow";
	items[0].place_from += 2 * HOUR;
	folded = digest(items, 10);
	assert_int_equal(folded.message.count, 1);
	assert_int_equal(folded.message.items[0].time, START + HOUR);
	assert_string_equal(folded.message.items[0].commit_after, "narrow");
	assert_int_equal(folded.message.items[0].place_from, items[4].place_from);
	digest_free(&folded);
	for (size_t i = 0; i < 10; i++)
		items[i].spacing = 0;
	folded = digest(items, 10);
	assert_int_equal(folded.message.count, 5);
	assert_int_equal(folded.message.items[2].members, 6);
	digest_free(&folded);
}

/* A size that is not finite does not count beside others. */
static void test_sizes_that_are_new(void **state)
{
	struct announcement *items = farm(*state, 6);
	struct digest folded;

	items[5].change = (struct change){.level_after = 4, .size = (double)NAN};
	folded = digest(items, 6);
	assert_true(fabs(folded.message.items[0].change.size - 12) < 1e-9);
	digest_free(&folded);
	for (size_t i = 0; i < 6; i++)
		items[i].change = items[5].change;
	folded = digest(items, 6);
	assert_int_equal(folded.message.count, 1);
	assert_true(isnan(folded.message.items[0].change.size));
	digest_free(&folded);
}

static const struct url_templates templates = {
	.dashboard = "https://e.test/{label.role}?from={from}&to={to}",
	.runbook = "https://e.test/{label.host}",
	.owner = "team {test}"};

/* As the agent does it; the hour is that of the change. */
static void fill(struct arena *arena, struct announcement *item, int hour)
{
	struct url_values *values = arena_alloc(arena, sizeof *values);

	*values = (struct url_values){.test = item->test,
		.metric = item->metric,
		.series = item->metric,
		.from = arena_printf(arena, "%d", 100 * hour - 5),
		.to = arena_printf(arena, "%d", 100 * hour + 5)};
	item->templates = &templates;
	item->values = values;
	item->dashboard = url_template_expand(arena, templates.dashboard, values, true);
	item->runbook = url_template_expand(arena, templates.runbook, values, true);
	item->owner = url_template_expand(arena, templates.owner, values, false);
}

/* Templates that name what differs are filled for the worst alone; times are those of all. */
static void test_pages_of_a_crowd(void **state)
{
	struct announcement *items = farm(*state, 6);
	const struct announcement *lines[2];
	struct digest folded;
	struct digest_pages pages;

	for (size_t i = 0; i < 6; i++) {
		items[i].time += i < 2 ? 0 : HOUR;
		fill(*state, &items[i], i < 2 ? 9 : 10);
	}
	folded = digest(items, 6);
	lines[0] = &folded.message.items[0];
	pages = digest_pages(lines, 1);
	assert_string_equal(pages.common[PAGE_DASHBOARD], "https://e.test/render?from=895&to=1005");
	assert_null(pages.common[PAGE_RUNBOOK]);
	assert_string_equal(pages.own[PAGE_RUNBOOK], "https://e.test/h05");
	assert_string_equal(pages.worst->metric, "{host=\"h05\"}");
	assert_string_equal(pages.common[PAGE_OWNER], "team farm");
	assert_null(pages.own[PAGE_DASHBOARD]);
	digest_free(&folded);
	/* One that has no role has no dashboard, so the crowd has none. */
	items[0].metric = "p99{host=\"h00\"}";
	fill(*state, &items[0], 9);
	assert_null(items[0].dashboard);
	folded = digest(items, 6);
	lines[0] = &folded.message.items[0];
	pages = digest_pages(lines, 1);
	assert_null(pages.common[PAGE_DASHBOARD]);
	assert_string_equal(pages.own[PAGE_DASHBOARD], "https://e.test/render?from=995&to=1005");
	digest_free(&folded);
	/* A crowd and another line. */
	items = farm(*state, 7);
	other_way(&items[6]);
	for (size_t i = 0; i < 7; i++)
		fill(*state, &items[i], 9);
	folded = digest(items, 7);
	lines[0] = &folded.message.items[0];
	lines[1] = &folded.message.items[1];
	pages = digest_pages(lines, 2);
	assert_non_null(pages.common[PAGE_DASHBOARD]);
	assert_string_equal(pages.own[PAGE_RUNBOOK], "https://e.test/h05");
	digest_free(&folded);
}

static const char *terminal(struct arena *arena, const struct message *message)
{
	struct buf out = {0}, plain = {0};
	struct error error;
	const char *text;

	assert_true(notifier_render(&stdout_notifier, message, NULL, "", &out, &error));
	for (const char *at = out.data; *at; at++)
		if (*at == '\033')
			at = strchr(at, 'm');
		else
			buf_char(&plain, *at);
	text = arena_strndup(arena, plain.data, plain.length);
	buf_free(&out);
	buf_free(&plain);
	return text;
}

static void test_a_crowd_in_the_terminal(void **state)
{
	struct announcement *items = farm(*state, 21);
	struct message message = {.key = "k", .items = items, .count = 21};

	assert_string_equal(terminal(*state, &message),
		"21 regressions in farm since 2021-07-02 00:00:00 +0000\n"
		"\n2021-07-02 00:00:00 +0000\n"
		"  farm\n"
		"    21 series of p99: +20%, from +10% to +30%, 100% role=render  regression\n"
		"      {host=\"h20\"}: +30%  100 --> 130 ms\n"
		"      {host=\"h19\"}: +29%  100 --> 129 ms\n"
		"      {host=\"h18\"}: +28%  100 --> 128 ms\n"
		"      18 more: hunter-c changes --test farm lists all\n"
		"      c29 .. c30\n"
		"\n");
	items[0].time += HOUR;
	items[1].test = "it's";
	items[1].time -= HOUR;
	assert_non_null(strstr(terminal(*state, &message),
		"17 more between 2021-07-02 00:00 and 2021-07-02 01:00: hunter-c changes"));
}

static void test_a_crowd_that_is_over(void **state)
{
	struct announcement *items = farm(*state, 21);
	struct message message = {
		.key = "k", .kind = MESSAGE_RECOVERED, .items = items, .count = 21};

	for (size_t i = 0; i < 21; i++)
		items[i].over = (struct recovered){START + 3 * HOUR, 100};
	assert_non_null(strstr(terminal(*state, &message),
		"  farm\n    21 series of p99: recovered after 3 h  (+20%, from +10% to +30%, 100% "
		"role=render)\n"));
	items[7].over.time += HOUR;
	assert_non_null(strstr(terminal(*state, &message), ": recovered after 3 h to 4 h  ("));
	message.kind = MESSAGE_NEW;
	assert_non_null(strstr(terminal(*state, &message),
		"from +10% to +30%, 100% role=render, recovered after 3 h to 4 h  regression\n"));
}

static void test_commands(void **state)
{
	static const char *const cases[][2] = {{"farm", "hunter-c changes --test farm"},
		{"a b", "hunter-c changes --test 'a b'"}, {"it's", "hunter-c changes"},
		{"$(x)", "hunter-c changes --test '$(x)'"}, {"a*", "hunter-c changes"},
		{"", "hunter-c changes"}};
	struct buf out = {0};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		buf_clear(&out);
		text_command(&out, &(struct announcement){.test = cases[i][0]});
		assert_string_equal(out.data, cases[i][1]);
	}
	buf_free(&out);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_names_are_cut_to_what_differs),
		CASE(test_long_labels_are_not_cut),
		CASE(test_a_crowd_has_numbers_of_its_own),
		CASE(test_what_lies_apart_has_a_line),
		CASE(test_what_most_of_a_crowd_share),
		CASE(test_what_is_not_alike_is_its_own_line),
		CASE(test_few_are_not_folded),
		CASE(test_a_lone_series_keeps_its_name),
		CASE(test_a_crowd_and_others_of_its_test),
		CASE(test_time_and_range_of_a_crowd),
		CASE(test_sizes_that_are_new),
		CASE(test_pages_of_a_crowd),
		CASE(test_a_crowd_in_the_terminal),
		CASE(test_a_crowd_that_is_over),
		CASE(test_commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Which incident a change joins: a row for each rule, and what few series have in common.
 */
#include "unit.h"
#include <math.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/decide/incident.h"
#include "agent/model/labels.h"

#define HOUR INT64_C(3600000)
#define START INT64_C(1700000000000)
#define OPEN_FOR (24 * HOUR)

/* A change, and what it is expected to join. Hours. */
struct row {
	const char *label;
	const char *suspects; /* a commit each: "ab" */
	int hour, until;      /* of its place; until 0: the same */
	int told;             /* when it is told */
	int64_t environment;
	size_t members;
	int sign;
	bool covered;
	int64_t joins; /* id; 0: none */
	enum incident_cause cause;
	const char *words;
};

struct rows {
	const char *name;
	bool few;
	struct row rows[4];
};

static const char *const commits[] = {"a", "b", "c", "d", "e"};

static const struct rows tables[] = {
	{"nothing in common", false,
		{{"host=a", "", .joins = 1}, {"host=b", "", .joins = 2}, {NULL, "", .joins = 3}}},
	{"a deployment in the range of both, days apart", false,
		{{"host=a", "abc", .joins = 1, .cause = INCIDENT_DEPLOYMENT, .words = "c"},
			{"host=b", "bd", .hour = 50, .told = 20, .joins = 1,
				.cause = INCIDENT_DEPLOYMENT, .words = "b"},
			/* compared with the first change alone */
			{"host=c", "d", .hour = 50, .told = 20, .joins = 3,
				.cause = INCIDENT_DEPLOYMENT, .words = "d"}}},
	{"a label and the same time", false,
		{{"host=a", "", .joins = 1},
			{"host=a", "", .hour = 2, .joins = 1, .cause = INCIDENT_LABEL,
				.words = "host=a"},
			{"host=a", "", .hour = 9, .joins = 3}}},
	{"places that overlap", false,
		{{"host=a", "", .hour = 1, .until = 9, .joins = 1},
			{"host=a", "", .hour = 8, .until = 20, .joins = 1, .cause = INCIDENT_LABEL,
				.words = "host=a"},
			/* not with the first */
			{"host=a", "", .hour = 15, .until = 20, .joins = 3}}},
	{"a label, but other deployments", false,
		{{"host=a", "a", .joins = 1, .cause = INCIDENT_DEPLOYMENT, .words = "a"},
			{"host=a", "b", .joins = 2, .cause = INCIDENT_DEPLOYMENT, .words = "b"}}},
	{"a label does not rename a deployment", false,
		{{"host=a", "a", .joins = 1, .cause = INCIDENT_DEPLOYMENT, .words = "a"},
			{"host=a", "", .joins = 1, .cause = INCIDENT_DEPLOYMENT, .words = "a"}}},
	{"too late", false, {{"host=a", "", .joins = 1}, {"host=a", "", .told = 25, .joins = 2}}},
	{"open for longer, as another has joined", false,
		{{"host=a", "", .joins = 1},
			{"host=a", "", .told = 20, .joins = 1, .cause = INCIDENT_LABEL,
				.words = "host=a"},
			{"host=a", "", .told = 40, .joins = 1, .cause = INCIDENT_LABEL,
				.words = "host=a"}}},
	{"the latest of several", false,
		{{"host=a", "a", .joins = 1, .cause = INCIDENT_DEPLOYMENT, .words = "a"},
			{"host=b", "b", .told = 1, .joins = 2, .cause = INCIDENT_DEPLOYMENT,
				.words = "b"},
			{"host=c", "ab", .told = 2, .joins = 2, .cause = INCIDENT_DEPLOYMENT,
				.words = "b"},
			{"host=c", "a", .told = 3, .joins = 1, .cause = INCIDENT_DEPLOYMENT,
				.words = "a"}}},
	{"few series: the same time is enough", true,
		{{"host=a", "", .joins = 1},
			{"host=b", "", .joins = 1, .cause = INCIDENT_TIME, .words = ""},
			{"host=b", "", .hour = 9, .joins = 3}}},
	{"an environment event has its own, whenever they come", false,
		{{"host=a", "a", .joins = 1, .cause = INCIDENT_DEPLOYMENT, .words = "a"},
			{"host=a", "a", .environment = 2, .joins = 2, .cause = INCIDENT_ENVIRONMENT,
				.words = "runner-7"},
			{"host=c", "", .environment = 2, .told = 99, .covered = true, .joins = 2,
				.cause = INCIDENT_ENVIRONMENT, .words = "runner-7"},
			{"host=a", "", .joins = 1, .cause = INCIDENT_DEPLOYMENT, .words = "a"}}},
	{"an event whose first change was announced before it", false,
		{{"host=a", "", .joins = 1},
			{"host=b", "", .environment = 1, .joins = 1, .cause = INCIDENT_ENVIRONMENT,
				.words = "runner-7"}}},
	{"a cluster opens one, and has what it covers", false,
		{{"host=a", "", .joins = 1},
			{"host=a", "", .members = 30, .joins = 2, .cause = INCIDENT_CLUSTER,
				.words = "all"},
			{"host=b", "", .covered = true, .joins = 2, .cause = INCIDENT_CLUSTER,
				.words = "all"},
			{"host=b", "", .covered = true, .sign = -1, .joins = 0}}},
};

static int64_t hours(int count)
{
	return START + count * HOUR;
}

static struct attribution suspects_of(struct arena *arena, const char *names)
{
	size_t count = strlen(names);
	struct deployment *list = arena_array(arena, count, sizeof *list);

	for (size_t i = 0; i < count; i++)
		list[i].commit = commits[names[i] - 'a'];
	return (struct attribution){
		.known = count > 0, .count = count, .list = list, .listed = count};
}

static struct change_record *record_of(struct arena *arena, const struct row *row, int64_t id)
{
	struct change_record *record = arena_alloc(arena, sizeof *record);

	*record = (struct change_record){
		.item = {.id = id,
			.test = "all",
			.time = hours(row->hour),
			.spacing = HOUR,
			.place_from = hours(row->hour),
			.place_to = hours(row->until ? row->until : row->hour),
			.members = row->members,
			.environment = "runner-7",
			.suspects = suspects_of(arena, row->suspects)},
		.sign = row->sign ? row->sign : 1,
		.environment_event = row->environment,
		.covered = row->covered};
	record->item.slope = (double)NAN;
	return record;
}

static void check(struct arena *arena, const struct rows *table)
{
	struct incidents_open open = {.few = table->few};

	for (int i = 0; i < 4 && table->rows[i].suspects; i++) {
		const struct row *row = &table->rows[i];
		struct incident_change change = {.record = record_of(arena, row, i + 1),
			.labels = {(const char *const *)&row->label, row->label != NULL}};
		const struct incident *incident =
			incident_take(arena, &open, &change, hours(row->told), OPEN_FOR);

		print_message("%s: %d\n", table->name, i + 1);
		assert_int_equal(incident ? incident->id : 0, row->joins);
		for (size_t j = 1; j < open.count; j++)
			assert_int_not_equal(
				open.items[j].incident.id, open.items[j - 1].incident.id);
		if (!incident)
			continue;
		assert_int_equal(incident->cause, row->cause);
		assert_string_equal(incident->words, row->words ? row->words : "");
		assert_int_equal(incident->joined, hours(row->told));
		assert_int_equal(incident->until, hours(row->told) + OPEN_FOR);
	}
}

static void test_rules(void **state)
{
	struct arena *arena = arena_new();

	(void)state;
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		check(arena, &tables[i]);
	arena_free(arena);
}

/* A regression is worse than any change that is none. */
static void test_another_headline(void **state)
{
	static const struct {
		struct incident_worst told, more;
		bool worse;
	} rows[] = {
		{{20, 0}, {30, 0}, false},
		{{20, 0}, {40, 0}, true},
		{{20, 0}, {0, 500}, false},
		{{0, 20}, {0, 39}, false},
		{{0, 20}, {0, 40}, true},
		{{0, 500}, {1, 0}, true},
		{{20, 500}, {39, 0}, false},
		{{20, 0}, {HUGE_VAL, 0}, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(incident_is_worse(&rows[i].told, &rows[i].more), rows[i].worse);
}

/* What a receiver without threads is told together. Percent, hours. */
static void test_gathered(void **state)
{
	static const struct {
		const char *name;
		struct incident_worst told, more;
		int last, now;
		bool ends;
		const char *reason; /* NULL: it waits */
	} rows[] = {
		{"no worse", {20, 0}, {30, 0}, 1, 2, false, NULL},
		{"an improvement", {20, 0}, {0, 500}, 1, 2, false, NULL},
		{"no worse, for long", {20, 0}, {5, 0}, 1, 24, false, NULL},
		{"twice as bad", {20, 0}, {40, 0}, 1, 2, false,
			"worse than what was told of its incident"},
		{"the first regression", {0, 90}, {1, 0}, 1, 2, false,
			"worse than what was told of its incident"},
		{"all that was told was withdrawn", {0, 0}, {0, 1}, 1, 2, false,
			"worse than what was told of its incident"},
		{"an end", {20, 0}, {5, 0}, 1, 2, true, "an end in its incident is told"},
		{"after a day", {20, 0}, {5, 0}, 1, 25, false,
			"group_interval after the last message"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct incident_joiners joiners = {.told = rows[i].told,
			.more = rows[i].more,
			.last = hours(rows[i].last),
			.interval = OPEN_FOR,
			.ends = rows[i].ends};
		struct decision decision = incident_gather(&joiners, hours(rows[i].now));

		print_message("%s\n", rows[i].name);
		assert_int_equal(decision.verdict, rows[i].reason ? PASS : HOLD);
		assert_string_equal(decision.reason,
			rows[i].reason
				? rows[i].reason
				: "some receivers get it together with others of its incident");
		assert_int_equal(decision.until, rows[i].reason ? 0 : hours(rows[i].last + 24));
	}
}

/* Of 20 series 4 are of checkout, as many as may be; all have a region; p99 says what it is.
 * No other has that metric. */
static void test_labels_that_tell(void **state)
{
	struct arena *arena = arena_new();
	struct labels *labels = labels_new(arena);
	struct strings rare;

	(void)state;
	for (int i = 0; i < 20; i++)
		labels_add(labels, i < 4 ? "checkout.p50" : "other.p50",
			"latency{region=\"eu\",quantile=\"0.5\"}", true);
	for (int again = 0; again < 2; again++) {
		rare = labels_rare(labels, arena, "checkout.p99",
			"errors{region=\"eu\",host=\"h1\",quantile=\"0.99\"}",
			INCIDENT_SHARE / 100.0);
		assert_int_equal(rare.count, 4);
		assert_string_equal(rare.items[0], "test=checkout.p99");
		assert_string_equal(rare.items[1], "test[1]=checkout");
		assert_string_equal(rare.items[2], "metric=errors");
		assert_string_equal(rare.items[3], "host=h1");
	}
	labels_add(labels, "checkout.p50", "latency", true);
	rare = labels_rare(labels, arena, "checkout.p99", "latency", INCIDENT_SHARE / 100.0);
	assert_int_equal(rare.count, 1);
	labels_free(labels);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_another_headline),
		cmocka_unit_test(test_gathered),
		cmocka_unit_test(test_labels_that_tell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Bisections in the store: asked for, begun as labs allow, with their journals, ended with what
 * goes to the change.
 */
#include "unit.h"
#include <math.h>

#include "agent/base/when.h"
#include "tests/unit/store_talk.h"

#define NOW INT64_C(1700001000000)
#define DAY INT64_C(86400000)

static int64_t regression(struct fixture *fixture, const char *test, const char *series)
{
	struct change_record record = example;

	record.item.test = test;
	record.series = series;
	return record_one(fixture, &record);
}

static struct store_bisection_ask *asking(
	struct fixture *fixture, int64_t change, const char *lab, const char *person)
{
	struct store_bisection_ask *call = store_bisection_ask_new(NULL, NULL);

	call->change = change;
	call->lab = lab;
	call->now = NOW;
	call->actor = (struct actor){person, person ? "10.1.2.3" : NULL};
	ask(fixture, &call->call);
	assert_false(call->call.failed);
	return call;
}

/* The id of the one that is there then. */
static int64_t asked(
	struct fixture *fixture, int64_t change, const char *lab, const char *person, bool added)
{
	struct store_bisection_ask *call = asking(fixture, change, lab, person);
	int64_t id = call->rows.items[0].id;

	assert_int_equal(call->rows.count, 1);
	assert_int_equal(call->added, added);
	assert_int_equal(call->rows.items[0].change, change);
	store_call_free(&call->call);
	return id;
}

static bool begin_at(struct fixture *fixture, int64_t id, int64_t now, int64_t most)
{
	struct store_bisection_begin *call = store_bisection_begin_new(NULL, NULL);
	bool begun;

	call->bisection = id;
	call->now = now;
	call->since = now - DAY;
	call->most = most;
	ask(fixture, &call->call);
	assert_false(call->call.failed);
	begun = call->begun;
	assert_int_equal(call->rows.count, 1);
	assert_int_equal(
		call->rows.items[0].state == BISECTION_RUNNING && call->rows.items[0].begun == now,
		begun);
	store_call_free(&call->call);
	return begun;
}

static bool begin(struct fixture *fixture, int64_t id)
{
	return begin_at(fixture, id, NOW + 1, 3);
}

static struct store_bisection_write *writing(
	int64_t id, const struct bisection_line *lines, size_t count)
{
	struct store_bisection_write *call = store_bisection_write_new(NULL, NULL);

	call->bisection = id;
	call->now = NOW + 2;
	call->lines = lines;
	call->line_count = count;
	return call;
}

/* Whether it was there to be written. */
static bool written(struct fixture *fixture, struct store_bisection_write *call)
{
	bool there;

	ask(fixture, &call->call);
	assert_false(call->call.failed);
	there = !call->gone;
	store_call_free(&call->call);
	return there;
}

static bool end(struct fixture *fixture, int64_t id, const char *how, const struct culprit *culprit)
{
	struct store_bisection_write *call = writing(id, NULL, 0);

	call->end = how;
	call->verdict = "first bad: b1 (97%)";
	call->culprit = culprit;
	return written(fixture, call);
}

static struct store_bisections *listing(struct fixture *fixture, int64_t id, bool lines)
{
	struct store_bisections *list = store_bisections_new(NULL, NULL);

	list->id = id;
	list->lines = lines;
	ask(fixture, &list->call);
	assert_false(list->call.failed);
	return list;
}

static const struct bisection_line begins = {.kind = BISECTION_BEGIN, .run = 1, .text = "{\"b\"}"},
				   result = {.kind = BISECTION_RESULT, .run = 1, .text = "{\"r\"}"};

static void test_asked(void **state)
{
	struct fixture *fixture = *state;
	int64_t change, id;
	struct store_bisection_ask *call;

	open_fixture(fixture);
	change = regression(fixture, "db.read", "p99");
	id = asked(fixture, change, "bench", NULL, true);
	assert_int_equal(asked(fixture, change, "bench", NULL, false), id);
	assert_int_equal(asked(fixture, change, "bench", "ann", false), id);
	assert_int_equal(count_rows(fixture, "events WHERE kind = 16"), 1);
	call = asking(fixture, change + 5, "bench", "ann");
	assert_true(call->missing);
	store_call_free(&call->call);
	/* What is over is asked for again by people alone. */
	assert_true(begin(fixture, id));
	assert_true(end(fixture, id, "set", NULL));
	assert_int_equal(asked(fixture, change, "bench", NULL, false), id);
	assert_int_equal(asked(fixture, change, "bench", "ann", true), id + 1);
}

static void test_what_does_not_stand_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct change_record record = example;
	struct store_bisection_ask *call;

	open_fixture(fixture);
	record.state = CHANGE_WITHDRAWN;
	call = asking(fixture, record_one(fixture, &record), "bench", "ann");
	assert_true(call->refused);
	assert_false(call->missing);
	store_call_free(&call->call);
	assert_int_equal(count_rows(fixture, "bisections"), 0);
}

static void test_a_lab_has_one(void **state)
{
	struct fixture *fixture = *state;
	int64_t ids[3];

	open_fixture(fixture);
	ids[0] = asked(fixture, regression(fixture, "a", "x"), "bench", NULL, true);
	ids[1] = asked(fixture, regression(fixture, "b", "x"), "bench", NULL, true);
	ids[2] = asked(fixture, regression(fixture, "c", "x"), "other", NULL, true);
	assert_true(begin(fixture, ids[0]));
	assert_false(begin_at(fixture, ids[1], NOW, 3));
	assert_true(begin(fixture, ids[2]));
	assert_false(begin_at(fixture, ids[0], NOW, 3)); /* it runs already */
	assert_true(end(fixture, ids[0], "cancelled", NULL));
	assert_true(begin(fixture, ids[1]));
}

/* Those that made no runs do not count. */
static void test_so_many_a_day(void **state)
{
	struct fixture *fixture = *state;
	int64_t ids[3];

	open_fixture(fixture);
	ids[0] = asked(fixture, regression(fixture, "a", "x"), "bench", NULL, true);
	ids[1] = asked(fixture, regression(fixture, "a", "y"), "bench", NULL, true);
	ids[2] = asked(fixture, regression(fixture, "a", "z"), "bench", NULL, true);
	assert_true(begin_at(fixture, ids[0], NOW, 1));
	assert_true(end(fixture, ids[0], "single", NULL));
	assert_true(begin_at(fixture, ids[1], NOW + 1, 1));
	assert_true(
		written(fixture, writing(ids[1], (struct bisection_line[]){begins, result}, 2)));
	assert_true(end(fixture, ids[1], "found", NULL));
	assert_false(begin_at(fixture, ids[2], NOW + 2, 1));
	assert_true(begin_at(fixture, ids[2], NOW + 2 + DAY, 1));
}

static void test_journal(void **state)
{
	struct fixture *fixture = *state;
	int64_t id;
	struct store_bisection_write *call;
	struct store_bisections *list;

	open_fixture(fixture);
	id = asked(fixture, regression(fixture, "a", "x"), "bench", NULL, true);
	assert_false(written(fixture, writing(id, &begins, 1))); /* it waits */
	assert_true(begin(fixture, id));
	call = writing(id, &begins, 1);
	call->setup = "{\"s\"}";
	assert_true(written(fixture, call));
	assert_true(written(fixture, writing(id, &result, 1)));
	list = listing(fixture, id, false);
	assert_null(list->rows.items[0].setup);
	assert_int_equal(list->rows.items[0].runs, 1);
	store_call_free(&list->call);
	reopen(fixture);
	list = listing(fixture, id, true);
	assert_string_equal(list->rows.items[0].setup, "{\"s\"}");
	assert_int_equal(list->rows.items[0].lines.count, 2);
	assert_int_equal(list->rows.items[0].lines.items[1].number, 2);
	assert_int_equal(list->rows.items[0].lines.items[1].kind, BISECTION_RESULT);
	assert_string_equal(list->rows.items[0].lines.items[1].text, "{\"r\"}");
	store_call_free(&list->call);
}

static struct store_bisection_say *saying(int64_t id, int64_t run)
{
	struct store_bisection_say *say = store_bisection_say_new(NULL, NULL);

	say->bisection = id;
	say->now = NOW + 3;
	say->actor = (struct actor){"ann", "10.1.2.3"};
	say->cancel = run == 0;
	say->why = "cancelled by ann";
	say->line =
		(struct bisection_line){.kind = BISECTION_ANSWER, .run = run, .text = "measured 1"};
	return say;
}

static void said(struct fixture *fixture, int64_t id, int64_t run, bool taken, bool repeated)
{
	struct store_bisection_say *say = saying(id, run);

	ask(fixture, &say->call);
	assert_false(say->call.failed);
	assert_true(say->found);
	assert_int_equal(say->taken, taken);
	assert_int_equal(say->repeated, repeated);
	store_call_free(&say->call);
}

static void test_answers(void **state)
{
	struct fixture *fixture = *state;
	struct store_bisections *list;
	struct store_bisection_say *say;
	int64_t id;

	open_fixture(fixture);
	id = asked(fixture, regression(fixture, "a", "x"), "bench", NULL, true);
	said(fixture, id, 1, false, false);
	assert_true(begin(fixture, id));
	said(fixture, id, 1, false, false); /* no such run yet */
	assert_true(written(fixture, writing(id, &begins, 1)));
	said(fixture, id, 1, true, false);
	said(fixture, id, 1, false, true);
	list = store_bisections_new(NULL, NULL);
	list->states = 1u << BISECTION_RUNNING;
	list->answers = true;
	ask(fixture, &list->call);
	assert_int_equal(list->rows.items[0].lines.count, 1);
	assert_string_equal(list->rows.items[0].lines.items[0].text, "measured 1");
	store_call_free(&list->call);
	assert_true(written(fixture, writing(id, &result, 1)));
	assert_int_equal(count_rows(fixture, "bisection_events WHERE kind = 4"), 0);
	said(fixture, id, 1, false, true);
	say = saying(id + 7, 1);
	ask(fixture, &say->call);
	assert_false(say->found);
	store_call_free(&say->call);
}

static void test_cancelled(void **state)
{
	struct fixture *fixture = *state;
	struct store_bisections *list;
	int64_t waits, runs;

	open_fixture(fixture);
	waits = asked(fixture, regression(fixture, "a", "x"), "one", NULL, true);
	runs = asked(fixture, regression(fixture, "b", "x"), "two", NULL, true);
	assert_true(begin(fixture, runs));
	said(fixture, waits, 0, true, false);
	said(fixture, waits, 0, false, false);
	said(fixture, runs, 0, true, false);
	list = listing(fixture, waits, false);
	assert_int_equal(list->rows.items[0].state, BISECTION_OVER);
	assert_string_equal(list->rows.items[0].end, "cancelled");
	assert_string_equal(list->rows.items[0].cancelled, "cancelled by ann");
	store_call_free(&list->call);
	/* Whoever has it ends it. */
	list = listing(fixture, runs, false);
	assert_int_equal(list->rows.items[0].state, BISECTION_RUNNING);
	assert_string_equal(list->rows.items[0].cancelled, "cancelled by ann");
	store_call_free(&list->call);
}

static const struct culprit_commit commits[] = {{"b1\"", 0.97, false}, {"b2", 0.02, true}};

static struct culprit culprit_of(int64_t id)
{
	return (struct culprit){.bisection = id,
		.end = "found",
		.verdict = "first bad: b1 (97%)",
		.commit = "b1\"",
		.probability = 0.97,
		.set = commits,
		.set_count = 2,
		.set_total = 5};
}

static void check_culprit(const struct culprit *culprit, int64_t id)
{
	assert_non_null(culprit);
	assert_int_equal(culprit->bisection, id);
	assert_string_equal(culprit->end, "found");
	assert_string_equal(culprit->verdict, "first bad: b1 (97%)");
	assert_string_equal(culprit->commit, "b1\"");
	assert_true(culprit->probability == 0.97);
	assert_int_equal(culprit->set_count, 2);
	assert_int_equal(culprit->set_total, 5);
	assert_string_equal(culprit->set[1].commit, "b2");
	assert_true(culprit->set[1].probability == 0.02 && culprit->set[1].broken);
	assert_false(culprit->set[0].broken);
}

static void test_the_change_has_it(void **state)
{
	struct fixture *fixture = *state;
	struct culprit culprit;
	struct store_pending *due;
	struct store_list *list = store_list_new(NULL, NULL);
	int64_t change, id, delivery;

	open_fixture(fixture);
	change = regression(fixture, "a", "x");
	delivery = queue_one(fixture, change);
	settle(fixture, delivery, DELIVERY_SENT, 1);
	id = asked(fixture, change, "bench", NULL, true);
	assert_true(begin(fixture, id));
	culprit = culprit_of(id);
	assert_true(end(fixture, id, "found", &culprit));
	assert_false(end(fixture, id, "found", &culprit)); /* it is over */
	ask(fixture, &list->call);
	check_culprit(list->records.items[0].item.culprit, id);
	store_call_free(&list->call);
	due = pending(fixture);
	assert_int_equal(due->events.count, 1);
	assert_int_equal(due->events.items[0].event.kind, EVENT_BISECTION_ENDED);
	assert_int_equal(due->events.items[0].messages.items[0].id, delivery);
	check_culprit(due->events.items[0].record->item.culprit, id);
	assert_int_equal(count_rows(fixture, "deliveries WHERE amend IS NOT NULL"), 1);
	assert_int_equal(settle_events(fixture, &due->events), 0);
	store_call_free(&due->call);
}

static size_t count_due(struct fixture *fixture, const char *test, int64_t since)
{
	struct store_bisections *list = store_bisections_new(NULL, NULL);
	size_t count;

	list->due_tests = (struct strings){&test, 1};
	list->due_since = since;
	ask(fixture, &list->call);
	assert_false(list->call.failed);
	count = list->due.count;
	store_call_free(&list->call);
	return count;
}

/* Regressions that stand, were or will be told, and have none yet. */
static void test_due(void **state)
{
	struct fixture *fixture = *state;
	struct change_record others[4];
	int64_t change;

	for (size_t i = 0; i < 4; i++)
		others[i] = example;
	others[0].state = CHANGE_CANDIDATE;
	others[1].sign = -1;
	others[2].news = NOTIFY_SILENT;
	others[3].item.members = 3;
	open_fixture(fixture);
	change = regression(fixture, "db.read", "p99");
	for (size_t i = 0; i < 4; i++)
		(void)record_one(fixture, &others[i]);
	assert_int_equal(count_due(fixture, "db.read", 0), 1);
	assert_int_equal(count_due(fixture, "db.write", 0), 0);
	assert_int_equal(count_due(fixture, "db.read", example.first_seen), 1);
	assert_int_equal(count_due(fixture, "db.read", example.first_seen + 1), 0);
	(void)asked(fixture, change, "bench", NULL, true);
	assert_int_equal(count_due(fixture, "db.read", 0), 0);
}

static void prune(struct fixture *fixture, int64_t before)
{
	struct store_prune *call = store_prune_new(NULL, NULL);
	static const char *none = "no.such.test";

	call->before = before;
	call->tests = (struct strings){&none, 1};
	done(fixture, &call->call);
}

/* The journal goes some time after the end, all of it with the change. */
static void test_pruned(void **state)
{
	struct fixture *fixture = *state;
	struct change_record record = example;
	int64_t id;

	open_fixture(fixture);
	record.news = NOTIFY_QUEUED;
	id = asked(fixture, record_one(fixture, &record), "bench", NULL, true);
	assert_true(begin(fixture, id));
	assert_true(written(fixture, writing(id, &begins, 1)));
	assert_true(end(fixture, id, "set", NULL));
	prune(fixture, example.first_seen); /* before all of it */
	assert_int_equal(count_rows(fixture, "bisection_events"), 1);
	prune(fixture, NOW + 10);
	assert_int_equal(count_rows(fixture, "changes"), 0);
	assert_int_equal(count_rows(fixture, "bisection_events"), 0);
	assert_int_equal(count_rows(fixture, "bisections"), 0);
}

/* All of it is in a copy, also the last id. */
static void test_copied(void **state)
{
	struct fixture *fixture = *state;
	struct store_copied copied;
	struct store_report report;
	struct arena *arena = arena_new();
	struct culprit culprit = culprit_of(1);
	char to[224];
	struct error error = {0};
	int64_t id;

	open_fixture(fixture);
	id = asked(fixture, regression(fixture, "a", "x"), "bench", "ann", true);
	assert_true(begin(fixture, id));
	assert_true(written(fixture, writing(id, (struct bisection_line[]){begins, result}, 2)));
	assert_true(end(fixture, id, "found", &culprit));
	store_close(fixture->store);
	fixture->store = NULL;
	snprintf(to, sizeof to, "%s/copy.db", fixture->folder);
	if (!store_copy(fixture->path, to, &copied, &error) ||
		!store_check(to, arena, &report, &error))
		fail_msg("%s", error.text);
	assert_int_equal(report.problems.count, 0);
	assert_int_equal(state_number(to, "SELECT count(*) FROM bisection_events"), 2);
	assert_int_equal(state_number(to, "SELECT count(*) FROM bisections WHERE runs = 1 AND"
					  " outcome = 'found' AND person = 'ann'"),
		1);
	open_fixture(fixture);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_asked),
		CASE(test_what_does_not_stand_is_refused),
		CASE(test_a_lab_has_one),
		CASE(test_so_many_a_day),
		CASE(test_journal),
		CASE(test_answers),
		CASE(test_cancelled),
		CASE(test_the_change_has_it),
		CASE(test_due),
		CASE(test_pruned),
		FILE_CASE(test_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

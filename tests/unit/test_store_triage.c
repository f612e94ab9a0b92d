/*
 * What people say: of changes, which are then not announced until that is open again; silences; and
 * the audit log of it all.
 */
#include "unit.h"
#include <math.h>

#include "agent/base/when.h"
#include "agent/model/record_json.h"
#include "tests/unit/store_talk.h"

static const struct actor ann = {"ann", "10.1.2.3"}, bob = {"bob", "unix socket"};

#define NOW INT64_C(1700001000000)
#define DAY INT64_C(86400000)
#define UNKNOWN ((double)NAN)

static struct store_triage *say_as(
	int64_t id, enum triage_state state, const struct actor *actor, int64_t version)
{
	struct store_triage *call = store_triage_new(NULL, NULL);
	struct id_range *range = arena_alloc(call->call.arena, sizeof *range);

	*range = (struct id_range){id, id};
	call->ranges = range;
	call->range_count = 1;
	call->triage.state = state;
	call->triage.until = -1;
	call->version = version;
	call->actor = *actor;
	call->now = NOW;
	return call;
}

/* Asks, and expects that so many changed. */
static void said(struct fixture *fixture, struct store_triage *call, size_t changed)
{
	ask(fixture, &call->call);
	if (call->call.failed)
		fail_msg("%s", call->call.error->text);
	assert_false(call->conflict);
	assert_int_equal(call->changed, changed);
	store_call_free(&call->call);
}

static void say(struct fixture *fixture, int64_t id, enum triage_state state)
{
	said(fixture, say_as(id, state, &ann, -1), 1);
}

static int64_t record_example(struct fixture *fixture, const char *test)
{
	struct change_record record = example;

	if (test)
		record.item.test = test;
	return record_one(fixture, &record);
}

static struct store_list *list_of(struct fixture *fixture, const struct change_filter *filter)
{
	struct store_list *list = store_list_new(NULL, NULL);

	list->filter = *filter;
	ask(fixture, &list->call);
	assert_false(list->call.failed);
	return list;
}

static size_t count_listed(struct fixture *fixture, const struct change_filter *filter)
{
	struct store_list *list = list_of(fixture, filter);
	size_t count = list->records.count;

	store_call_free(&list->call);
	return count;
}

static struct triage triage_of(struct fixture *fixture, int64_t id)
{
	struct store_list *list = list_of(fixture, &(struct change_filter){.before_id = id + 1});
	struct triage triage;

	assert_int_equal(list->records.items[0].item.id, id);
	triage = list->records.items[0].triage;
	triage.owner = triage.note = triage.link = triage.person = NULL;
	store_call_free(&list->call);
	return triage;
}

static size_t count_pending(struct fixture *fixture)
{
	struct store_pending *due = pending(fixture);
	size_t count = due->records.count;

	store_call_free(&due->call);
	return count;
}

static void update(struct fixture *fixture, int64_t id, enum change_state state,
	const struct announcement *item)
{
	struct store_record *call = store_record_new(NULL, NULL);
	struct change_record_update change = {.id = id,
		.time = example.item.time,
		.now = NOW,
		.state = state,
		.over = {.time = state == CHANGE_RECOVERED ? NOW : 0, .level = 1},
		.item = item};

	call->updates = &change;
	call->update_count = 1;
	done(fixture, &call->call);
}

/* Its size is that from now on. */
static void grow(struct fixture *fixture, int64_t id, double size, double low, double high)
{
	struct announcement item = example.item;

	item.change.size = size;
	item.change.size_low = low;
	item.change.size_high = high;
	update(fixture, id, CHANGE_CONFIRMED, &item);
}

static void expect_json(const struct change_record *record, const char *words)
{
	struct buf text = {0};

	record_put_json(&text, record);
	if (!strstr(text.data, words))
		fail_msg("%s is not in %s", words, text.data);
	buf_free(&text);
}

/* All that was said is read wherever records are. */
static void test_said(void **state)
{
	struct fixture *fixture = *state;
	struct store_triage *call;
	struct store_list *list;
	struct store_known *all;
	struct store_pending *due;
	const struct triage *triage;
	int64_t id;

	open_fixture(fixture);
	id = record_example(fixture, NULL);
	list = list_of(fixture, &(struct change_filter){0});
	assert_int_equal(list->records.items[0].triage.state, TRIAGE_OPEN);
	assert_int_equal(list->records.items[0].triage.version, 0);
	assert_int_equal(list->records.items[0].event_count, 1);
	expect_json(&list->records.items[0],
		"\"triage\": {\"state\": \"open\", \"version\": 0, \"owner\": null, \"note\": null,"
		" \"link\": null, \"person\": null, \"time\": null, \"until\": null,"
		" \"size\": null, \"size_low\": null, \"size_high\": null, \"inherited\": null}");
	store_call_free(&list->call);
	call = say_as(id, TRIAGE_ACKNOWLEDGED, &ann, 0);
	call->triage.owner = "ann";
	call->triage.note = "looking \"at\" it";
	call->triage.link = "https://bugs/1";
	call->triage.until = NOW + 3 * DAY;
	ask(fixture, &call->call);
	assert_int_equal(call->changed, 1);
	triage = &call->records.items[0].triage;
	assert_int_equal(triage->state, TRIAGE_ACKNOWLEDGED);
	assert_int_equal(triage->version, 1);
	assert_string_equal(triage->owner, "ann");
	assert_string_equal(triage->note, "looking \"at\" it");
	assert_string_equal(triage->link, "https://bugs/1");
	assert_string_equal(triage->person, "ann");
	assert_int_equal(triage->time, NOW);
	assert_int_equal(triage->until, NOW + 3 * DAY);
	assert_int_equal(triage_at(triage, NOW + 3 * DAY - 1), TRIAGE_ACKNOWLEDGED);
	assert_int_equal(triage_at(triage, NOW + 3 * DAY), TRIAGE_OPEN);
	store_call_free(&call->call);
	reopen(fixture);
	list = list_of(fixture, &(struct change_filter){0});
	expect_json(&list->records.items[0],
		"\"triage\": {\"state\": \"acknowledged\", \"version\": 1, \"owner\": \"ann\","
		" \"note\": \"looking \\\"at\\\" it\", \"link\": \"https://bugs/1\","
		" \"person\": \"ann\", \"time\": \"2023-11-14T22:30:00Z\","
		" \"until\": \"2023-11-17T22:30:00Z\","
		" \"size\": 140, \"size_low\": 1e-09, \"size_high\": 200, \"inherited\": null}");
	expect_json(&list->records.items[0],
		"{\"event\": \"triaged\", \"at\": \"2023-11-14T22:30:00Z\","
		" \"time\": \"2023-11-14T22:13:20Z\", \"person\": \"ann\","
		" \"origin\": \"10.1.2.3\", \"detail\": \"acknowledged, was open; owner: ann;"
		" note: looking \\\"at\\\" it; link: https://bugs/1;"
		" until: 2023-11-17T22:30:00Z\", \"due\": null, \"reason\": null}");
	store_call_free(&list->call);
	all = known(fixture, "db.read");
	assert_int_equal(all->records.items[0].triage.version, 1);
	assert_string_equal(all->records.items[0].triage.owner, "ann");
	store_call_free(&all->call);
	due = pending(fixture);
	assert_int_equal(due->records.items[0].triage.state, TRIAGE_ACKNOWLEDGED);
	store_call_free(&due->call);
}

/* Of two people at once one wins; the other is told what it is now, and nothing of theirs is
 * written. */
static void test_two_people(void **state)
{
	struct fixture *fixture = *state;
	struct store_triage *calls[2];
	int64_t id;

	open_fixture(fixture);
	id = record_example(fixture, NULL);
	for (int64_t seen = 0; seen < 20; seen++) {
		size_t lost;

		calls[0] = say_as(id, seen % 2 ? TRIAGE_EXPECTED : TRIAGE_IGNORED, &ann, seen);
		calls[1] = say_as(id, seen % 2 ? TRIAGE_INFRA : TRIAGE_FALSE, &bob, seen);
		submit(fixture, &calls[0]->call);
		submit(fixture, &calls[1]->call);
		for (size_t before = fixture->answers; fixture->answers < before + 2;)
			run_one(&fixture->loop);
		assert_false(calls[0]->call.failed || calls[1]->call.failed);
		lost = calls[0]->conflict ? 0 : 1;
		assert_true(calls[lost]->conflict && !calls[1 - lost]->conflict);
		assert_int_equal(calls[lost]->changed, 0);
		assert_int_equal(calls[1 - lost]->changed, 1);
		assert_int_equal(calls[lost]->records.items[0].triage.version, seen + 1);
		assert_string_equal(
			calls[lost]->records.items[0].triage.person, calls[1 - lost]->actor.person);
		store_call_free(&calls[0]->call);
		store_call_free(&calls[1]->call);
	}
	assert_int_equal(count_rows(fixture, "events WHERE kind > 7"), 20);
	assert_int_equal(count_rows(fixture, "triage WHERE version = 20"), 1);
}

/* The second time, from the same person or another, whatever version was seen: nothing. */
static void test_same_again(void **state)
{
	struct fixture *fixture = *state;
	struct store_triage *call;
	int64_t id;

	open_fixture(fixture);
	id = record_example(fixture, NULL);
	said(fixture, say_as(id, TRIAGE_OPEN, &ann, 0), 0);
	said(fixture, say_as(id, 0, &ann, -1), 0);
	assert_int_equal(count_rows(fixture, "triage"), 0);
	call = say_as(id, TRIAGE_EXPECTED, &ann, 0);
	call->triage.note = "PR 4411";
	said(fixture, call, 1);
	call = say_as(id, TRIAGE_EXPECTED, &ann, 0);
	call->triage.note = "PR 4411";
	said(fixture, call, 0);
	said(fixture, say_as(id, TRIAGE_EXPECTED, &bob, -1), 0);
	assert_int_equal(triage_of(fixture, id).version, 1);
	assert_int_equal(count_rows(fixture, "events WHERE kind > 7"), 1);
	call = say_as(id, 0, &bob, 1);
	call->triage.note = "";
	said(fixture, call, 1);
	assert_int_equal(count_rows(fixture, "triage WHERE note IS NULL AND version = 2"), 1);
	assert_int_equal(count_rows(fixture, "events WHERE detail = 'expected; no note'"), 1);
	/* An expiry goes with the state that it was given with. */
	call = say_as(id, TRIAGE_ACKNOWLEDGED, &bob, -1);
	call->triage.until = NOW + DAY;
	said(fixture, call, 1);
	assert_int_equal(triage_of(fixture, id).until, NOW + DAY);
	call = say_as(id, 0, &bob, -1);
	call->triage.owner = "bob";
	said(fixture, call, 1);
	assert_int_equal(triage_of(fixture, id).until, NOW + DAY);
	say(fixture, id, TRIAGE_INFRA);
	assert_int_equal(triage_of(fixture, id).until, 0);
}

static struct store_triage *selecting(void)
{
	struct store_triage *call = store_triage_new(NULL, NULL);

	call->triage = (struct triage){.state = TRIAGE_EXPECTED, .until = -1};
	call->version = -1;
	call->actor = ann;
	call->now = NOW;
	call->dry_run = true;
	return call;
}

/* How many the call would change; frees it. */
static size_t selected(struct fixture *fixture, struct store_triage *call)
{
	size_t count;

	ask(fixture, &call->call);
	if (call->call.failed)
		fail_msg("%s", call->call.error->text);
	assert_int_equal(call->changed, call->records.count);
	count = call->records.count;
	store_call_free(&call->call);
	return count;
}

static size_t by_test(struct fixture *fixture, const char *test)
{
	struct store_triage *call = selecting();

	call->test = test;
	return selected(fixture, call);
}

static size_t by_commit(struct fixture *fixture, const char *commit)
{
	struct store_triage *call = selecting();

	call->commit = commit;
	return selected(fixture, call);
}

static size_t by_message(struct fixture *fixture, const char *message, const char *test)
{
	struct store_triage *call = selecting();

	call->message = message;
	call->test = test;
	return selected(fixture, call);
}

static void test_selection(void **state)
{
	static const struct id_range ranges[] = {{2, 4}, {4, 6}, {9, 9}, {50, 60}};
	struct fixture *fixture = *state;
	struct change_record other = example;
	struct store_triage *call;
	int64_t both[2];
	struct store_queue *queue = store_queue_new(NULL, NULL);
	struct delivery delivery = {.key = "feed",
		.receiver = "slack",
		.destination = "#a",
		.payload = "{}",
		.now = 5,
		.changes = both,
		.change_count = 2};

	open_fixture(fixture);
	for (int i = 0; i < 10; i++)
		record_example(fixture, i % 2 ? "db.read" : "web.get");
	call = selecting();
	call->ranges = ranges;
	call->range_count = 4;
	assert_int_equal(selected(fixture, call), 6);
	call = selecting();
	call->ranges = ranges;
	call->range_count = 4;
	call->test = "db.*";
	assert_int_equal(selected(fixture, call), 3);
	assert_int_equal(by_test(fixture, "db.*"), 5);
	assert_int_equal(by_test(fixture, "web.get"), 5);
	assert_int_equal(by_test(fixture, "web"), 0);
	/* The change's own commit, its place's, one suspect's. */
	other.item.commit_after = "4f2c99";
	other.item.place_commit_after = "5aaa";
	record_one(fixture, &other);
	assert_int_equal(by_commit(fixture, "4f2c"), 1);
	assert_int_equal(by_commit(fixture, "5aaa"), 1);
	assert_int_equal(by_commit(fixture, "2c"), 0);
	assert_int_equal(by_commit(fixture, "b2"), 10);
	assert_int_equal(by_commit(fixture, "b1"), 11); /* example_suspects */
	assert_int_equal(by_commit(fixture, "b3"), 10);
	assert_int_equal(by_commit(fixture, "a0"), 0); /* was there before */
	/* What does not stand is meant only by its id or its message. */
	update(fixture, 1, CHANGE_WITHDRAWN, NULL);
	update(fixture, 3, CHANGE_RECOVERED, NULL);
	assert_int_equal(by_test(fixture, "web.get"), 3);
	call = selecting();
	call->ranges = &(struct id_range){1, 3};
	call->range_count = 1;
	assert_int_equal(selected(fixture, call), 3);
	both[0] = 1;
	both[1] = 6;
	queue->deliveries.items = &delivery;
	queue->deliveries.count = 1;
	done(fixture, &queue->call);
	assert_int_equal(by_message(fixture, "feed", NULL), 2);
	assert_int_equal(by_message(fixture, "feed", "db.*"), 1);
	assert_int_equal(by_message(fixture, "fee", NULL), 0);
	call = selecting();
	ask(fixture, &call->call);
	assert_true(call->call.failed);
	assert_int_equal(call->call.error->kind, ERROR_USAGE);
	store_call_free(&call->call);
	/* Of several changes the version is the sum. */
	for (int64_t version = 0; version < 2; version++) {
		call = selecting();
		call->test = "*";
		call->version = version;
		ask(fixture, &call->call);
		assert_false(call->call.failed);
		assert_true(call->records.count > 1);
		assert_int_equal(call->conflict, version != 0);
		assert_int_equal(call->changed, version == 0 ? call->records.count : 0);
		store_call_free(&call->call);
	}
	/* Of an id that is none's there is nothing to tell. */
	call = say_as(99, TRIAGE_EXPECTED, &ann, 0);
	ask(fixture, &call->call);
	assert_false(call->call.failed || call->conflict);
	assert_int_equal(call->records.count + call->changed, 0);
	store_call_free(&call->call);
	assert_int_equal(count_rows(fixture, "triage"), 0);
	assert_int_equal(count_rows(fixture, "events WHERE kind > 7"), 0);
}

enum { MANY = 10000 };

static void record_many(struct fixture *fixture)
{
	struct store_record *call = store_record_new(NULL, NULL);

	call->records.items = arena_array(call->call.arena, MANY, sizeof *call->records.items);
	call->records.count = MANY;
	for (size_t i = 0; i < MANY; i++)
		call->records.items[i] = example;
	done(fixture, &call->call);
}

static void test_many_at_once(void **state)
{
	struct fixture *fixture = *state;
	struct store_triage *call;

	open_fixture(fixture);
	record_many(fixture);
	call = selecting();
	call->test = "*";
	call->dry_run = false;
	said(fixture, call, MANY);
	assert_int_equal(count_rows(fixture, "triage WHERE triage = 3 AND owed = 1"), MANY);
	assert_int_equal(count_rows(fixture, "events WHERE kind > 7"), MANY);
	assert_int_equal(count_pending(fixture), 0);
	call = selecting();
	call->ranges = &(struct id_range){1, MANY};
	call->range_count = 1;
	call->dry_run = false;
	call->triage.state = TRIAGE_OPEN;
	said(fixture, call, MANY);
	assert_int_equal(count_pending(fixture), MANY);
	assert_int_equal(count_rows(fixture, "triage WHERE owed = 1"), 0);
}

/* Sizes are stored to the last bit, and texts as they are: otherwise it would seem to have grown.
 */
static void test_said_exactly(void **state)
{
	static const double sizes[] = {1.0 / 3, 29.999999999999996, 123456.78901234567, -1e-7 / 3,
		5e-324, 0.1 + 0.2, 9007199254740993.0, 72.057594037927945};
	struct fixture *fixture = *state;

	open_fixture(fixture);
	for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
		struct change_record record = example;
		struct store_triage *call;
		struct store_list *list;
		const struct triage *triage;
		int64_t id;

		record.item.change.size = sizes[i];
		record.item.change.size_low = nextafter(sizes[i], -HUGE_VAL);
		record.item.change.size_high = nextafter(sizes[i], HUGE_VAL);
		id = record_one(fixture, &record);
		call = say_as(id, TRIAGE_EXPECTED, &ann, -1);
		call->triage.note =
			"it's \"so\", [1, null] \\ {\x7f\t\nn\xc3\xa4} \xf0\x9f\x8e\x89";
		call->triage.owner = "null";
		said(fixture, call, 1);
		list = list_of(fixture, &(struct change_filter){.before_id = id + 1, .limit = 1});
		triage = &list->records.items[0].triage;
		assert_true(triage->size == sizes[i]);
		assert_true(triage->size_low == record.item.change.size_low);
		assert_true(triage->size_high == record.item.change.size_high);
		assert_string_equal(triage->note,
			"it's \"so\", [1, null] \\ {\x7f\t\nn\xc3\xa4} \xf0\x9f\x8e\x89");
		assert_string_equal(triage->owner, "null");
		assert_null(triage->link);
		store_call_free(&list->call);
	}
}

/* What does not wait for anybody is passed over, however much of it there is. */
static void test_open_among_many(void **state)
{
	struct fixture *fixture = *state;
	struct change_record better = example;
	struct store_list *list;

	open_fixture(fixture);
	better.item.direction = 1;
	for (int i = 0; i < 3; i++) {
		record_example(fixture, NULL); /* 1, 12, 23 */
		for (int j = 0; j < 10; j++)
			record_one(fixture, &better);
	}
	for (int64_t limit = 1; limit <= 4; limit++) {
		list = list_of(fixture, &(struct change_filter){.open = true, .limit = limit});
		assert_int_equal(list->records.count, limit < 3 ? limit : 3);
		for (size_t i = 0; i < list->records.count; i++)
			assert_int_equal(list->records.items[i].item.id, 23 - 11 * (int)i);
		assert_int_equal(list->more, limit < 3);
		store_call_free(&list->call);
	}
}

/* The worst first, of all of them, however few are wanted, and the next ones after the last: what
 * became worse, from nothing and by the largest part; then what has no direction. */
static void test_open_by_size(void **state)
{
	static const struct {
		int direction, sign;
		double size;
	} rows[] = {{-1, 1, 5}, {0, 1, 80}, {1, -1, -30}, {-1, 1, (double)NAN}, {-1, -1, -90},
		{-1, 1, 30}};
	static const int64_t order[] = {4, 6, 3, 1, 2};
	const size_t count = sizeof order / sizeof *order;
	struct fixture *fixture = *state;

	open_fixture(fixture);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct change_record record = example;

		record.item.direction = rows[i].direction;
		record.sign = rows[i].sign;
		record.item.change.size = rows[i].size;
		record.item.change.level_before = 100;
		record.item.change.level_after = 100 + 10 * rows[i].sign;
		record_one(fixture, &record);
	}
	for (size_t limit = 1; limit <= count; limit++)
		for (size_t i = 0; i < count; i += limit) {
			struct change_filter filter = {.open = true,
				.limit = (int64_t)limit,
				.before_id = i > 0 ? order[i - 1] : 0,
				.test = limit % 2 ? NULL : example.item.test};
			struct store_list *list = list_of(fixture, &filter);

			assert_int_equal(
				list->records.count, i + limit < count ? limit : count - i);
			assert_int_equal(list->more, i + limit < count);
			for (size_t j = 0; j < list->records.count; j++)
				assert_int_equal(list->records.items[j].item.id, order[i + j]);
			store_call_free(&list->call);
		}
}

/* A test may be called as a pattern is written: then only it is meant. */
static void test_a_name_like_a_pattern(void **state)
{
	struct fixture *fixture = *state;
	struct change_record record = example;
	struct store_triage *call;
	static const char *const names[] = {"db0", "db[0]", "db1"};

	open_fixture(fixture);
	for (size_t i = 0; i < 3; i++) {
		record.item.test = names[i];
		record_one(fixture, &record);
	}
	assert_int_equal(count_listed(fixture, &(struct change_filter){.test = "db[0]"}), 1);
	assert_int_equal(count_listed(fixture, &(struct change_filter){.test = "db[01]"}), 2);
	assert_int_equal(
		count_listed(fixture, &(struct change_filter){.test = "db[0]", .open = true}), 1);
	call = say_as(0, TRIAGE_EXPECTED, &bob, -1);
	call->range_count = 0;
	call->test = "db[0]";
	said(fixture, call, 1);
	assert_int_equal(triage_of(fixture, 2).state, TRIAGE_EXPECTED);
}

/* Lists by triage, and what waits for somebody. */
static void test_filters(void **state)
{
	struct fixture *fixture = *state;
	struct change_record better = example;
	const struct change_filter open = {.open = true};
	struct store_list *list;

	open_fixture(fixture);
	for (int i = 0; i < 8; i++)
		record_example(fixture, NULL);
	better.item.direction = 1;
	record_one(fixture, &better);
	assert_int_equal(count_listed(fixture, &open), 8);
	for (int i = 1; i <= 7; i++)
		if (i != TRIAGE_OPEN)
			say(fixture, i, (enum triage_state)i);
	assert_int_equal(count_listed(fixture, &open), 3); /* 1, 2, 8 */
	for (unsigned i = 1; i <= 7; i++)
		assert_int_equal(count_listed(fixture, &(struct change_filter){.triage = 1U << i}),
			i == TRIAGE_OPEN ? 3 : 1);
	assert_int_equal(count_listed(fixture, &(struct change_filter){.open = true,
						       .triage = 1U << TRIAGE_ACKNOWLEDGED}),
		1);
	list = list_of(fixture, &(struct change_filter){.open = true, .limit = 2});
	assert_int_equal(list->records.count, 2);
	assert_true(list->more);
	assert_int_equal(list->records.items[0].item.id, 8);
	store_call_free(&list->call);
	list = list_of(fixture, &(struct change_filter){.open = true, .limit = 3});
	assert_int_equal(list->records.count, 3);
	assert_false(list->more);
	store_call_free(&list->call);
	update(fixture, 8, CHANGE_RECOVERED, NULL);
	update(fixture, 2, CHANGE_MOVED, NULL);
	assert_int_equal(count_listed(fixture, &open), 2);
	assert_int_equal(count_listed(fixture, &(struct change_filter){.open = true,
						       .states = 1U << CHANGE_MOVED}),
		1);
}

/* An accepted change counts as settled; its news is told when it is open again, and only if it was
 * not told before. */
static void test_accepted_is_not_pending(void **state)
{
	struct fixture *fixture = *state;
	struct store_restore *restored;
	int64_t told, untold;

	open_fixture(fixture);
	told = record_example(fixture, NULL);
	untold = record_example(fixture, NULL);
	queue_one(fixture, told);
	say(fixture, untold, TRIAGE_ACKNOWLEDGED);
	assert_int_equal(count_pending(fixture), 1);
	for (enum triage_state i = TRIAGE_EXPECTED; i <= TRIAGE_FALSE; i++) {
		say(fixture, told, i);
		say(fixture, untold, i);
		assert_int_equal(count_pending(fixture), 0);
		reopen(fixture);
		restored = restore(fixture);
		assert_int_equal(restored->call.counts->due.changes, 0);
		store_call_free(&restored->call);
	}
	say(fixture, told, TRIAGE_OPEN);
	assert_int_equal(count_pending(fixture), 0);
	say(fixture, untold, TRIAGE_FIXED);
	assert_int_equal(count_pending(fixture), 0);
	say(fixture, untold, TRIAGE_OPEN);
	assert_int_equal(count_pending(fixture), 1);
	queue_one(fixture, untold);
	say(fixture, untold, TRIAGE_EXPECTED);
	say(fixture, untold, TRIAGE_OPEN);
	assert_int_equal(count_pending(fixture), 0);
}

/* The same of a candidate that is confirmed later, of one that is withdrawn and returns, and of
 * what a removed receiver leaves behind. */
static void test_accepted_stays_settled(void **state)
{
	struct fixture *fixture = *state;
	struct change_record candidate = example;
	struct store_record *confirming = store_record_new(NULL, NULL);
	struct store_settle *orphaned = store_settle_new(NULL, NULL);
	struct delivery orphan = {
		.state = DELIVERY_ABANDONED, .problem = "receiver removed", .now = 9};
	int64_t id;

	open_fixture(fixture);
	candidate.state = CHANGE_CANDIDATE;
	candidate.news = NOTIFY_HELD;
	id = record_one(fixture, &candidate);
	say(fixture, id, TRIAGE_EXPECTED);
	candidate = example;
	candidate.item.id = id;
	candidate.confirmed = true;
	candidate.updated = NOW;
	confirming->records.items = &candidate;
	confirming->records.count = 1;
	done(fixture, &confirming->call);
	assert_int_equal(count_pending(fixture), 0);
	assert_int_equal(triage_of(fixture, id).state, TRIAGE_EXPECTED);
	update(fixture, id, CHANGE_WITHDRAWN, NULL);
	say(fixture, id, TRIAGE_OPEN);
	assert_int_equal(count_pending(fixture), 0);
	update(fixture, id, CHANGE_CONFIRMED, NULL);
	assert_int_equal(count_pending(fixture), 1);
	orphan.id = queue_one(fixture, id);
	say(fixture, id, TRIAGE_EXPECTED);
	orphaned->delivery = orphan;
	orphaned->reroutes = true;
	done(fixture, &orphaned->call);
	assert_int_equal(count_pending(fixture), 0);
	say(fixture, id, TRIAGE_OPEN);
	assert_int_equal(count_pending(fixture), 1);
}

static enum delivery_state attempt(struct fixture *fixture, int64_t delivery)
{
	struct store_attempt *call = store_attempt_new(NULL, NULL);
	enum delivery_state state;

	call->delivery.id = delivery;
	call->delivery.now = NOW;
	ask(fixture, &call->call);
	assert_false(call->call.failed);
	state = call->delivery.state;
	store_call_free(&call->call);
	return state;
}

/* A message that waits is not sent if all its changes were accepted meanwhile. */
static void test_accepted_before_it_was_sent(void **state)
{
	struct fixture *fixture = *state;
	int64_t first, second;

	open_fixture(fixture);
	first = record_example(fixture, NULL);
	second = record_example(fixture, NULL);
	assert_int_equal(queue_one(fixture, first), 1);
	assert_int_equal(queue_one(fixture, second), 2);
	say(fixture, first, TRIAGE_IGNORED);
	assert_int_equal(attempt(fixture, 1), DELIVERY_ABANDONED);
	assert_int_equal(attempt(fixture, 2), DELIVERY_QUEUED);
	assert_int_equal(count_pending(fixture), 0);
	say(fixture, first, TRIAGE_ACKNOWLEDGED);
	say(fixture, second, TRIAGE_IGNORED);
	say(fixture, second, TRIAGE_ACKNOWLEDGED);
	assert_int_equal(count_pending(fixture), 1);
}

/* Nor if all have outgrown it: then that is told, and nothing else. */
static void test_outgrown_before_it_was_sent(void **state)
{
	struct fixture *fixture = *state;
	int64_t id;

	open_fixture(fixture);
	id = record_example(fixture, NULL);
	grow(fixture, id, 10, 8, 12);
	assert_int_equal(queue_one(fixture, id), 1);
	say(fixture, id, TRIAGE_ACKNOWLEDGED);
	grow(fixture, id, 20, 17, 23);
	assert_int_equal(count_pending(fixture), 1);
	assert_int_equal(attempt(fixture, 1), DELIVERY_ABANDONED);
	assert_int_equal(count_pending(fixture), 1);
	assert_int_equal(queue_one(fixture, id), 2);
	assert_int_equal(attempt(fixture, 2), DELIVERY_QUEUED);
	assert_int_equal(count_pending(fixture), 0);
}

/* A note is about a state: the next one has its own, or none; the owner stays. */
static void test_a_note_goes_with_its_state(void **state)
{
	struct fixture *fixture = *state;
	struct store_triage *call;
	int64_t id;

	open_fixture(fixture);
	id = record_example(fixture, NULL);
	call = say_as(id, TRIAGE_ACKNOWLEDGED, &ann, -1);
	call->triage.owner = "ann";
	call->triage.link = "https://bugs/1";
	call->triage.note = "a; owner: bob\n\"x\"";
	said(fixture, call, 1);
	assert_int_equal(count_rows(fixture, "events WHERE detail = 'acknowledged, was open; owner:"
					     " ann; note: \"a; owner: bob\\n\\\"x\\\"\";"
					     " link: https://bugs/1'"),
		1);
	say(fixture, id, TRIAGE_EXPECTED);
	assert_int_equal(count_rows(fixture, "triage WHERE note IS NULL AND owner = 'ann'"
					     " AND link = 'https://bugs/1'"),
		1);
	assert_int_equal(
		count_rows(fixture, "events WHERE detail = 'expected, was acknowledged; no note'"),
		1);
	call = say_as(id, 0, &ann, -1);
	call->triage.note = "PR 4411";
	said(fixture, call, 1);
	grow(fixture, id, 900, 880, 920);
	assert_int_equal(triage_of(fixture, id).state, TRIAGE_OPEN);
	assert_int_equal(count_rows(fixture, "triage WHERE note IS NULL AND owner = 'ann'"), 1);
}

/* The last 50 of what was said are the change's history; the audit log has all. */
static void test_history_is_bounded(void **state)
{
	struct fixture *fixture = *state;
	struct store_list *list;
	const struct change_record *record;
	int64_t id;

	open_fixture(fixture);
	id = record_example(fixture, NULL);
	for (int i = 0; i < 60; i++)
		say(fixture, id, i % 2 ? TRIAGE_EXPECTED : TRIAGE_INFRA);
	list = list_of(fixture, &(struct change_filter){0});
	record = &list->records.items[0];
	assert_int_equal(record->event_count, 51);
	assert_int_equal(record->events[50].kind, EVENT_TRIAGED);
	assert_string_equal(record->events[50].detail, "expected, was infra");
	store_call_free(&list->call);
	assert_int_equal(count_rows(fixture, "events WHERE kind > 7"), 60);
}

static struct store_reopen_due *due_at(struct fixture *fixture, int64_t now)
{
	struct store_reopen_due *call = store_reopen_due_new(NULL, NULL);

	call->now = now;
	ask(fixture, &call->call);
	assert_false(call->call.failed);
	return call;
}

/* Settles a change that inherits from its incident, which it opens itself here. */
static void let_inherit(struct fixture *fixture, int64_t id)
{
	struct store_queue *queue = store_queue_new(NULL, NULL);
	struct incident opened = {.id = id, .opened = 1, .joined = 2, .until = 50, .words = ""};
	struct triage inherited = {.state = TRIAGE_EXPECTED,
		.note = "bigger cache",
		.until = NOW + DAY,
		.time = NOW,
		.size = 10,
		.size_low = 8,
		.size_high = 12};
	struct store_member member = {.change = id, .incident = id, .inherited = &inherited};
	struct decided_change settled = {.id = id, .reason = "expected, inherited from i1"};

	queue->incidents = &opened;
	queue->members = &member;
	queue->changes = &settled;
	queue->incident_count = queue->member_count = queue->change_count = 1;
	done(fixture, &queue->call);
}

static int64_t inherited_of(struct fixture *fixture, int64_t id)
{
	return triage_of(fixture, id).inherited;
}

/* It is settled, but owed, until somebody says something of the change itself. */
static void test_inherited(void **state)
{
	struct fixture *fixture = *state;
	struct store_reopen_due *due;
	int64_t id;

	open_fixture(fixture);
	id = record_example(fixture, NULL);
	let_inherit(fixture, id);
	reopen(fixture);
	assert_int_equal(triage_of(fixture, id).state, TRIAGE_EXPECTED);
	assert_int_equal(triage_of(fixture, id).until, NOW + DAY);
	assert_int_equal(inherited_of(fixture, id), id);
	assert_int_equal(count_pending(fixture), 0);
	assert_int_equal(count_rows(fixture, "events WHERE kind = 10 AND person = 'hunter-c' AND"
					     " subject = 'db.read p99' AND detail = 'expected,"
					     " inherited from i1'"),
		1);
	assert_int_equal(
		count_rows(fixture, "changes WHERE reason = 'expected, inherited from i1'"), 1);
	say(fixture, id, TRIAGE_EXPECTED); /* the same, but said */
	assert_int_equal(inherited_of(fixture, id), 0);
	assert_int_equal(count_pending(fixture), 0);
	say(fixture, id, TRIAGE_OPEN);
	assert_int_equal(count_pending(fixture), 1);

	id = record_example(fixture, NULL);
	let_inherit(fixture, id);
	due = due_at(fixture, NOW + DAY);
	assert_int_equal(due->records.count, 1);
	store_call_free(&due->call);
	assert_int_equal(inherited_of(fixture, id), 0);
	assert_int_equal(count_pending(fixture), 2);

	id = record_example(fixture, NULL);
	let_inherit(fixture, id);
	grow(fixture, id, 20, 17, 23);
	assert_int_equal(triage_of(fixture, id).state, TRIAGE_OPEN);
	assert_int_equal(inherited_of(fixture, id), 0);
	assert_int_equal(count_pending(fixture), 3);
}

/* What a person says of a change between its reading and its writing counts. */
static void test_inherited_too_late(void **state)
{
	static const struct {
		enum triage_state said;
		size_t pending;
	} rows[] = {{TRIAGE_ACKNOWLEDGED, 1}, {TRIAGE_IGNORED, 1}, {TRIAGE_FIXED, 2}};
	struct fixture *fixture = *state;

	open_fixture(fixture);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int64_t id = record_example(fixture, NULL);

		say(fixture, id, rows[i].said);
		let_inherit(fixture, id);
		assert_int_equal(triage_of(fixture, id).state, rows[i].said);
		assert_int_equal(inherited_of(fixture, id), 0);
		assert_int_equal(count_pending(fixture), rows[i].pending);
	}
	assert_int_equal(count_rows(fixture, "events WHERE person = 'hunter-c'"), 0);
}

static void test_expiry(void **state)
{
	struct fixture *fixture = *state;
	struct store_reopen_due *due;

	open_fixture(fixture);
	for (int i = 0; i < 4; i++) {
		struct store_triage *call = say_as(record_example(fixture, NULL),
			i == 3 ? TRIAGE_ACKNOWLEDGED : TRIAGE_IGNORED, &ann, -1);

		call->triage.until = i == 0 ? 0 : NOW + i * DAY;
		said(fixture, call, 1);
	}
	assert_int_equal(count_pending(fixture), 1);
	due = due_at(fixture, NOW);
	assert_int_equal(due->records.count, 0);
	assert_int_equal(due->next, NOW + DAY);
	store_call_free(&due->call);
	due = due_at(fixture, NOW + DAY);
	assert_int_equal(due->records.count, 1);
	assert_int_equal(due->records.items[0].item.id, 2);
	assert_int_equal(due->records.items[0].triage.state, TRIAGE_OPEN);
	assert_int_equal(due->records.items[0].triage.version, 2);
	assert_string_equal(due->records.items[0].triage.person, "hunter-c");
	assert_int_equal(due->next, NOW + 2 * DAY);
	store_call_free(&due->call);
	assert_int_equal(count_pending(fixture), 2);
	due = due_at(fixture, NOW + 10 * DAY);
	assert_int_equal(due->records.count, 2);
	assert_int_equal(due->next, 0);
	store_call_free(&due->call);
	assert_int_equal(count_pending(fixture), 3);
	due = due_at(fixture, NOW + 20 * DAY);
	assert_int_equal(due->records.count, 0);
	store_call_free(&due->call);
	assert_int_equal(count_rows(fixture, "events WHERE kind = 11"), 3);
	assert_int_equal(
		count_rows(fixture, "events WHERE person = 'hunter-c' AND change = 2 AND detail ="
				    " 'open, was ignored until 2023-11-15T22:30:00Z'"),
		1);
	assert_int_equal(triage_of(fixture, 1).state, TRIAGE_IGNORED);
}

/* By how much a change grows until it is news again. */
static void test_outgrown(void **state)
{
	static const struct {
		double was[3], is[3];
		bool outgrown;
	} cases[] = {
		{{10, 8, 12}, {10, 8, 12}, false},
		{{10, 8, 12}, {12, 10, 14}, false},
		{{10, 8, 12}, {12.5, 9.9, 15}, false},  /* its interval has what was accepted */
		{{10, 8, 12}, {11.9, 11.8, 12}, false}, /* lies in the accepted interval */
		{{10, 8, 12}, {12.1, 10.1, 14}, true},
		{{10, 8, 12}, {5, 4, 6}, false},
		{{10, 8, 12}, {-20, -21, -19}, false},
		{{-10, -12, -8}, {-12.1, -14, -10.1}, true},
		{{-10, -12, -8}, {-12, -14, -10}, false},
		{{-10, -12, -8}, {-5, -6, -4}, false},
		{{10, 8, 12}, {30, -5, 65}, false},
		{{10, 8, 12}, {30, -15, 75}, false},
		{{10, UNKNOWN, UNKNOWN}, {10.1, 10, 11}, false},
		{{10, UNKNOWN, UNKNOWN}, {10.2, 10.1, 11}, true},
		{{10, 8, 12}, {12.1, UNKNOWN, UNKNOWN}, true},
		{{UNKNOWN, UNKNOWN, UNKNOWN}, {UNKNOWN, UNKNOWN, UNKNOWN}, false},
		{{UNKNOWN, UNKNOWN, UNKNOWN}, {1, 0, 2}, true},
		{{10, 8, 12}, {UNKNOWN, UNKNOWN, UNKNOWN}, true},
		{{10, 8, 12}, {HUGE_VAL, UNKNOWN, UNKNOWN}, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct triage was = {.size = cases[i].was[0],
			.size_low = cases[i].was[1],
			.size_high = cases[i].was[2]};
		const struct change is = {.size = cases[i].is[0],
			.size_low = cases[i].is[1],
			.size_high = cases[i].is[2]};

		if (triage_outgrown(&was, &is) != cases[i].outgrown)
			fail_msg("case %zu", i);
	}
}

/* Messages about it are to be edited, and what was read there is kept; undoing that touches only
 * what it has said. */
static void test_reactions(void **state)
{
	struct fixture *fixture = *state;
	struct store_triage *call;
	int64_t both[2];
	struct store_queue *queue = store_queue_new(NULL, NULL);
	struct delivery delivery = {.key = "feed",
		.receiver = "slack",
		.destination = "#a",
		.payload = "{}",
		.now = 5,
		.changes = both,
		.change_count = 2};

	open_fixture(fixture);
	both[0] = record_example(fixture, NULL);
	both[1] = record_example(fixture, NULL);
	queue->deliveries.items = &delivery;
	queue->deliveries.count = 1;
	done(fixture, &queue->call);
	assert_int_equal(count_rows(fixture, "deliveries WHERE amend IS NOT NULL"), 0);
	say(fixture, both[0], TRIAGE_INFRA);
	assert_int_equal(count_rows(fixture, "deliveries WHERE amend = 1"), 1);
	call = selecting();
	call->dry_run = false;
	call->message = "feed";
	call->reaction = "x:ann";
	call->triage.state = TRIAGE_FALSE;
	call->now = NOW + 5;
	said(fixture, call, 2);
	assert_int_equal(
		count_rows(fixture, "deliveries WHERE amend = 2 AND reaction = 'x:ann'"), 1);
	say(fixture, both[1], TRIAGE_EXPECTED);
	call = selecting();
	call->dry_run = false;
	call->message = "feed";
	call->reaction = "";
	call->triage.state = TRIAGE_OPEN;
	call->said = NOW + 5;
	said(fixture, call, 1);
	assert_int_equal(triage_of(fixture, both[0]).state, TRIAGE_OPEN);
	assert_int_equal(triage_of(fixture, both[1]).state, TRIAGE_EXPECTED);
	assert_int_equal(count_rows(fixture, "deliveries WHERE amend = 4 AND reaction = ''"), 1);
}

/* What is to be edited, what is to be read, and of one message all that either needs; for receivers
 * of these names, as a list of both: "edit", "read" or "edit read". */
static struct store_follow_ups *follow_ups(
	struct fixture *fixture, const char *receiver, int64_t since, int64_t delivery)
{
	static const char *name;
	struct store_follow_ups *call = store_follow_ups_new(NULL, NULL);

	name = receiver;
	call->amending = call->listening = (struct strings){&name, 1};
	call->since = since;
	call->delivery = delivery;
	ask(fixture, &call->call);
	assert_false(call->call.failed);
	return call;
}

static void assert_follow_ups(
	struct fixture *fixture, const char *receiver, int64_t since, const char *expected)
{
	struct store_follow_ups *call = follow_ups(fixture, receiver, since, 0);
	char is[40] = "";

	for (size_t i = 0; i < call->count; i++) {
		const struct followed_message *message = &call->messages[i];

		assert_string_equal(message->message.key, "feed");
		assert_string_equal(message->message.receipt, "1.2 1 1.2 C1");
		assert_int_equal(message->message.now, 90);
		strcat(is, i > 0 ? " " : "");
		strcat(is, message->answers ? "read" : message->mark > 0 ? "edit" : "?");
	}
	assert_string_equal(is, expected);
	store_call_free(&call->call);
}

static bool amended(struct fixture *fixture, int64_t delivery, int64_t mark)
{
	struct store_amended *call = store_amended_new(NULL, NULL);
	bool marked;

	call->delivery = delivery;
	call->mark = mark;
	ask(fixture, &call->call);
	assert_false(call->call.failed);
	marked = call->marked;
	store_call_free(&call->call);
	return marked;
}

static void test_follow_ups(void **state)
{
	struct fixture *fixture = *state;
	struct store_follow_ups *one;
	struct store_settle *settle = store_settle_new(NULL, NULL);
	struct store_queue *queue = store_queue_new(NULL, NULL);
	struct store_triage *call;
	int64_t change;
	struct delivery delivery = {.key = "feed",
		.receiver = "slack \"a\"",
		.destination = "#a",
		.payload = "{}",
		.now = 5,
		.changes = &change,
		.change_count = 1};
	int64_t id;

	open_fixture(fixture);
	change = record_example(fixture, NULL);
	queue->deliveries.items = &delivery;
	queue->deliveries.count = 1;
	ask(fixture, &queue->call);
	id = delivery.id;
	store_call_free(&queue->call);
	assert_follow_ups(fixture, "slack \"a\"", 0, ""); /* not sent yet */
	settle->delivery = (struct delivery){
		.id = id, .state = DELIVERY_SENT, .receipt = "1.2 1 1.2 C1", .now = 90};
	done(fixture, &settle->call);
	assert_follow_ups(fixture, "slack \"a\"", 90, "read");
	assert_follow_ups(fixture, "slack \"a\"", 91, "");
	assert_follow_ups(fixture, "other", 0, "");
	say(fixture, change, TRIAGE_ACKNOWLEDGED);
	assert_follow_ups(fixture, "slack \"a\"", 0, "edit read");
	assert_follow_ups(fixture, "other", 0, "");
	one = follow_ups(fixture, "", 0, id);
	assert_int_equal(one->count, 1);
	assert_int_equal(one->messages[0].mark, 1);
	assert_string_equal(one->messages[0].message.payload, "{}");
	assert_null(one->messages[0].reaction);
	assert_int_equal(one->messages[0].count, 1);
	assert_int_equal(one->messages[0].told[0].record.triage.state, TRIAGE_ACKNOWLEDGED);
	assert_int_equal(one->messages[0].told[0].record.triage.time, NOW);
	store_call_free(&one->call);
	say(fixture, change, TRIAGE_INFRA); /* while it was edited */
	assert_true(amended(fixture, id, 1));
	assert_follow_ups(fixture, "slack \"a\"", 0, "edit"); /* accepted: it is settled */
	assert_false(amended(fixture, id, 2));
	assert_follow_ups(fixture, "slack \"a\"", 0, "");
	call = selecting(); /* what was taken there may be taken back */
	call->dry_run = false;
	call->message = "feed";
	call->reaction = "construction:U1@5";
	call->triage.state = 0;
	said(fixture, call, 0);
	assert_follow_ups(fixture, "slack \"a\"", 0, "read");
	one = follow_ups(fixture, "", 0, id);
	assert_string_equal(one->messages[0].reaction, "construction:U1@5");
	store_call_free(&one->call);
	one = follow_ups(fixture, "", 0, id + 1);
	assert_int_equal(one->count, 0);
	store_call_free(&one->call);
}

/* A message about a change that was acknowledged before shows that, too. */
static void test_a_message_after_the_triage_is_marked(void **state)
{
	struct fixture *fixture = *state;
	struct store_queue *queue = store_queue_new(NULL, NULL);
	int64_t change;
	struct delivery delivery = {.key = "feed",
		.receiver = "slack",
		.destination = "#a",
		.payload = "{}",
		.now = 5,
		.changes = &change,
		.change_count = 1};

	open_fixture(fixture);
	change = record_example(fixture, NULL);
	say(fixture, change, TRIAGE_ACKNOWLEDGED);
	queue->deliveries.items = &delivery;
	queue->deliveries.count = 1;
	done(fixture, &queue->call);
	assert_int_equal(count_rows(fixture, "deliveries WHERE amend = 1"), 1);
}

/* So does one that was written before its change was seen as it is now, and no other. */
static void test_a_message_about_what_was_is_marked(void **state)
{
	struct fixture *fixture = *state;
	struct change_record as = example;

	open_fixture(fixture);
	as.item.id = record_example(fixture, NULL);
	for (int i = 0; i < 2; i++) {
		struct store_queue *queue = store_queue_new(NULL, NULL);
		struct delivery delivery = {.key = i == 0 ? "now" : "before",
			.receiver = "slack",
			.destination = "#a",
			.payload = "{}",
			.now = 5,
			.changes = &as.item.id,
			.change_count = 1,
			.records = &as,
			.record_count = 1};

		as.updated = example.first_seen - i;
		queue->deliveries.items = &delivery;
		queue->deliveries.count = 1;
		done(fixture, &queue->call);
		assert_int_equal(count_rows(fixture, "deliveries WHERE amend = 1"), i);
	}
}

/* It is news again, as if no receiver had it; and when that is said to be all right, no more. */
static void test_growth_is_news_again(void **state)
{
	struct fixture *fixture = *state;
	struct store_pending *due;
	struct triage triage;
	int64_t id;

	open_fixture(fixture);
	id = record_example(fixture, NULL);
	queue_one(fixture, id);
	settle(fixture, 1, DELIVERY_SENT, 1);
	grow(fixture, id, 10, 8, 12);
	say(fixture, id, TRIAGE_EXPECTED);
	grow(fixture, id, 12, 10, 14);
	triage = triage_of(fixture, id);
	assert_int_equal(triage.state, TRIAGE_EXPECTED);
	assert_true(triage.size == 10 && triage.size_low == 8 && triage.size_high == 12);
	assert_int_equal(count_pending(fixture), 0);
	grow(fixture, id, 20, 17, 23);
	triage = triage_of(fixture, id);
	assert_int_equal(triage.state, TRIAGE_OPEN);
	assert_int_equal(triage.version, 2);
	assert_int_equal(triage.renewals, 1);
	assert_int_equal(
		count_rows(fixture, "events WHERE kind = 11 AND person = 'hunter-c' AND subject"
				    " = 'db.read p99' AND detail ="
				    " 'open, was expected: +20.0%, and +10.0% was accepted'"),
		1);
	due = pending(fixture);
	assert_int_equal(due->records.count, 1);
	assert_int_equal(due->records.items[0].told.count, 0);
	assert_int_equal(due->records.items[0].triage.renewals, 1);
	store_call_free(&due->call);
	queue_for(fixture, id, "slack", false);
	reopen(fixture);
	due = pending(fixture);
	assert_int_equal(due->records.items[0].told.count, 1);
	store_call_free(&due->call);
	queue_for(fixture, id, "webhook", true);
	grow(fixture, id, 90, 80, 95); /* open: nothing was accepted */
	assert_int_equal(count_pending(fixture), 0);
	say(fixture, id, TRIAGE_EXPECTED);
	grow(fixture, id, 91, 80, 96);
	assert_int_equal(count_pending(fixture), 0);
	assert_int_equal(triage_of(fixture, id).renewals, 1);
	grow(fixture, id, 20, 17, 23);
	grow(fixture, id, 90, 80, 95);
	assert_int_equal(triage_of(fixture, id).state, TRIAGE_EXPECTED);
}

/* So it is of what was only acknowledged, or said to be fixed: the size is that of when it was. */
static void test_growth_of_what_is_not_accepted(void **state)
{
	static const enum triage_state states[] = {TRIAGE_ACKNOWLEDGED, TRIAGE_FIXED};
	struct fixture *fixture = *state;
	struct triage triage;

	open_fixture(fixture);
	for (size_t i = 0; i < 2; i++) {
		int64_t id = record_example(fixture, NULL);
		char detail[120];

		grow(fixture, id, 10, 8, 12);
		queue_one(fixture, id);
		settle(fixture, (int64_t)i + 1, DELIVERY_SENT, 1);
		say(fixture, id, states[i]);
		grow(fixture, id, 12, 10, 14);
		assert_int_equal(triage_of(fixture, id).state, states[i]);
		assert_int_equal(count_pending(fixture), i);
		grow(fixture, id, 20, 17, 23);
		triage = triage_of(fixture, id);
		assert_int_equal(triage.state, TRIAGE_OPEN);
		assert_int_equal(triage.renewals, 1);
		assert_int_equal(count_pending(fixture), i + 1);
		snprintf(detail, sizeof detail,
			"events WHERE detail = 'open, was %s: +20.0%%, and +10.0%% was known'",
			triage_state_names[states[i]]);
		assert_int_equal(count_rows(fixture, detail), 1);
		say(fixture, id, states[i]);
		assert_true(triage_of(fixture, id).size == 20);
	}
}

/* One that nobody was told of is told once, not twice. */
static void test_growth_of_what_was_not_told(void **state)
{
	struct fixture *fixture = *state;
	int64_t id;

	open_fixture(fixture);
	id = record_example(fixture, NULL);
	grow(fixture, id, 10, 8, 12);
	say(fixture, id, TRIAGE_INFRA);
	grow(fixture, id, 20, 17, 23);
	assert_int_equal(count_pending(fixture), 1);
	queue_one(fixture, id);
	assert_int_equal(count_pending(fixture), 0);
	say(fixture, id, TRIAGE_INFRA);
	say(fixture, id, TRIAGE_OPEN);
	assert_int_equal(count_pending(fixture), 0);
	/* What is over, or not there, has not grown. */
	say(fixture, id, TRIAGE_INFRA);
	update(fixture, id, CHANGE_RECOVERED, &example.item);
	assert_int_equal(triage_of(fixture, id).state, TRIAGE_INFRA);
}

static size_t count_recoveries(struct fixture *fixture)
{
	struct store_pending *due = pending(fixture);
	size_t count = 0;

	for (size_t i = 0; i < due->events.count; i++)
		count += due->events.items[i].event.kind == EVENT_RECOVERED;
	store_call_free(&due->call);
	return count;
}

static void report_all(struct fixture *fixture)
{
	struct store_pending *due = pending(fixture);

	assert_int_equal(settle_events(fixture, &due->events), 0);
	store_call_free(&due->call);
}

/* The recovery of what was none of the program's changes is not reported. */
static void test_recoveries(void **state)
{
	struct fixture *fixture = *state;

	open_fixture(fixture);
	for (enum triage_state i = TRIAGE_OPEN; i < TRIAGE_STATES; i++) {
		bool none = i >= TRIAGE_IGNORED && i <= TRIAGE_FALSE;
		int64_t first = record_example(fixture, NULL);
		int64_t second = record_example(fixture, NULL);

		queue_one(fixture, first);
		queue_one(fixture, second);
		if (i != TRIAGE_OPEN)
			say(fixture, first, i);
		update(fixture, first, CHANGE_RECOVERED, NULL);
		assert_int_equal(count_recoveries(fixture), !none);
		report_all(fixture);
		update(fixture, second, CHANGE_RECOVERED, NULL);
		assert_int_equal(count_recoveries(fixture), 1);
		if (i != TRIAGE_OPEN)
			say(fixture, second, i);
		assert_int_equal(count_recoveries(fixture), !none);
		report_all(fixture);
		assert_int_equal(count_recoveries(fixture), 0);
	}
}

/* What was said survives moves, withdrawal and return, a rename, a backup, and that others are
 * deleted; it goes with its change. */
static void test_survives(void **state)
{
	struct fixture *fixture = *state;
	struct store_rename rename = {.test = "db.new", .was = "db.read"};
	struct store_renames *renaming = store_renames_new(NULL, NULL);
	struct store_prune *pruning = store_prune_new(NULL, NULL);
	const char *present = "db.new";
	char backup[sizeof fixture->path];
	struct error error;
	int64_t size;

	open_fixture(fixture);
	record_example(fixture, NULL);
	record_example(fixture, "db.gone");
	say(fixture, 1, TRIAGE_FALSE);
	say(fixture, 2, TRIAGE_FALSE);
	update(fixture, 1, CHANGE_MOVED, &example.item);
	update(fixture, 1, CHANGE_WITHDRAWN, NULL);
	update(fixture, 1, CHANGE_CONFIRMED, NULL);
	renaming->renames = &rename;
	renaming->rename_count = 1;
	done(fixture, &renaming->call);
	pruning->before = NOW + DAY;
	pruning->tests = (struct strings){&present, 1};
	ask(fixture, &pruning->call);
	assert_false(pruning->call.failed);
	assert_int_equal(pruning->pruned.changes, 1);
	assert_int_equal(pruning->pruned.events, 3);
	store_call_free(&pruning->call);
	assert_int_equal(count_rows(fixture, "triage"), 1);
	assert_int_equal(count_rows(fixture, "events WHERE kind > 7"), 1);
	assert_int_equal(triage_of(fixture, 1).state, TRIAGE_FALSE);
	snprintf(backup, sizeof backup, "%s/copy.db", fixture->folder);
	if (!store_backup(fixture->path, backup, false, &size, &error))
		fail_msg("%s", error.text);
	store_close(fixture->store);
	fixture->store = NULL;
	strcpy(fixture->path, backup);
	open_fixture(fixture);
	assert_int_equal(triage_of(fixture, 1).state, TRIAGE_FALSE);
	assert_int_equal(count_listed(fixture, &(struct change_filter){.test = "db.new"}), 1);
}

static void expect_problem(const struct fixture *fixture, const char *sql, const char *words)
{
	struct arena *arena = arena_new();
	struct store_report report;
	struct error error;
	bool said = false;

	spoil(fixture, sql);
	assert_true(store_check(fixture->path, arena, &report, &error));
	for (size_t i = 0; i < report.problems.count; i++)
		said |= strstr(report.problems.items[i], words) != NULL;
	if (!said)
		fail_msg("nothing says \"%s\" after %s", words, sql);
	arena_free(arena);
}

static void test_check(void **state)
{
	struct fixture *fixture = *state;
	struct store_silence *call = store_silence_new(NULL, NULL);
	struct arena *arena = arena_new();
	struct store_report report;
	struct error error;

	open_fixture(fixture);
	say(fixture, record_example(fixture, NULL), TRIAGE_FALSE);
	call->silence = (struct silence){.matchers = "a", .from = 1, .until = 2};
	call->actor = ann;
	done(fixture, &call->call);
	store_close(fixture->store);
	fixture->store = NULL;
	assert_true(store_check(fixture->path, arena, &report, &error));
	assert_int_equal(report.problems.count, 0);
	arena_free(arena);
	expect_problem(fixture, "UPDATE triage SET triage = 8",
		"a row of triage is out of range: triage 8");
	expect_problem(fixture, "UPDATE events SET change = 0",
		"a row of events is out of range: change 0");
	expect_problem(fixture, "UPDATE silences SET until = 1 << 60",
		"a row of silences is out of range: until");
	expect_problem(fixture, "DELETE FROM sqlite_sequence WHERE name = 'events'",
		"table events: the next id is already in use");
	expect_problem(fixture, "UPDATE triage SET change = 7",
		"a row of triage refers to a row of changes that does not exist");
	expect_problem(fixture, "DROP INDEX triage_until", "\"triage_until\" is missing");
}

static struct store_silence *silencing(const struct silence *silence)
{
	struct store_silence *call = store_silence_new(NULL, NULL);

	call->silence = *silence;
	call->actor = ann;
	call->now = NOW;
	return call;
}

static struct silence written(struct fixture *fixture, struct store_silence *call, bool found)
{
	struct silence silence;

	ask(fixture, &call->call);
	assert_false(call->call.failed);
	assert_int_equal(call->found, found);
	silence = call->written;
	store_call_free(&call->call);
	return silence;
}

static size_t count_silences(struct fixture *fixture, bool all, int64_t now)
{
	struct store_silences *list = store_silences_new(NULL, NULL);
	size_t count;

	list->all = all;
	list->now = now;
	ask(fixture, &list->call);
	assert_false(list->call.failed);
	count = list->silences.count;
	store_call_free(&list->call);
	return count;
}

static void test_silences(void **state)
{
	static const struct silence migration = {.matchers = "test=~\"db.*\"",
		.from = NOW,
		.until = NOW + DAY,
		.owner = "ann",
		.reason = "migration",
		.person = "ann"};
	struct fixture *fixture = *state;
	struct store_restore *restored;
	struct silence now, other = migration;

	open_fixture(fixture);
	now = written(fixture, silencing(&migration), true);
	assert_int_equal(now.id, 1);
	assert_int_equal(now.created, NOW);
	assert_int_equal(now.ended, 0);
	assert_false(now.reminded || now.summed);
	assert_int_equal(written(fixture, silencing(&migration), true).id, 1);
	other.until = NOW + 2 * DAY;
	other.owner = other.reason = NULL;
	assert_int_equal(written(fixture, silencing(&other), true).id, 2);
	reopen(fixture);
	restored = restore(fixture);
	assert_int_equal(restored->silences.count, 2);
	assert_string_equal(restored->silences.items[0].matchers, "test=~\"db.*\"");
	assert_string_equal(restored->silences.items[0].reason, "migration");
	assert_null(restored->silences.items[1].owner);
	store_call_free(&restored->call);
	/* Ended once, by the first who does. */
	now = written(fixture,
		silencing(&(struct silence){.id = 2, .ended = NOW + 5, .ended_by = "bob"}), true);
	assert_int_equal(now.ended, NOW + 5);
	now = written(fixture,
		silencing(&(struct silence){.id = 2, .ended = NOW + 9, .ended_by = "eve"}), true);
	assert_int_equal(now.ended, NOW + 5);
	now = written(fixture, silencing(&(struct silence){.id = 1, .reminded = true}), true);
	assert_true(now.reminded && !now.summed && now.ended == 0);
	now = written(fixture, silencing(&(struct silence){.id = 1, .summed = true}), true);
	assert_true(now.reminded && now.summed && now.ended == 0);
	written(fixture, silencing(&(struct silence){.id = 3, .summed = true}), false);
	assert_int_equal(count_rows(fixture, "events WHERE kind = 12"), 2);
	assert_int_equal(count_rows(fixture, "events WHERE kind = 13"), 1);
	assert_int_equal(
		count_rows(fixture, "events WHERE subject = 'test=~\"db.*\"' AND detail ="
				    " 'silence 1, 2023-11-14T22:30:00Z to 2023-11-15T22:30:00Z;"
				    " owner: ann; reason: migration'"),
		1);
	assert_int_equal(count_silences(fixture, false, NOW), 2);
	assert_int_equal(count_silences(fixture, false, NOW + DAY), 1); /* 2 is not summed */
	assert_int_equal(count_silences(fixture, true, NOW + DAY), 2);
}

/* A transaction that is not committed leaves nothing in a call, which is then run again. */
static void test_a_silence_is_added_after_a_transaction_that_failed(void **state)
{
	struct fixture *fixture = *state;
	struct store_silence *call =
		silencing(&(struct silence){.matchers = "a", .from = NOW, .until = NOW + DAY});
	struct error error;

	open_fixture(fixture);
	assert_true(store_tx(fixture->path, STORE_TRY, &call->call, &error));
	assert_int_equal(count_silences(fixture, true, NOW), 0);
	assert_true(written(fixture, call, true).id > 0);
	assert_int_equal(count_silences(fixture, true, NOW), 1);
	assert_int_equal(count_rows(fixture, "events WHERE kind = 12"), 1);
}

/* Silences that are over and summed, and the log, but for what is about changes that stand. */
static void test_pruned(void **state)
{
	struct fixture *fixture = *state;
	struct store_prune *call = store_prune_new(NULL, NULL);
	struct silence silence = {.matchers = "a", .from = 1, .until = NOW};
	struct store_audit_add *run = store_audit_add_new(NULL, NULL);

	open_fixture(fixture);
	for (int i = 0; i < 3; i++) {
		silence.until = NOW + i;
		written(fixture, silencing(&silence), true);
	}
	written(fixture, silencing(&(struct silence){.id = 1, .summed = true}), true);
	written(fixture, silencing(&(struct silence){.id = 3, .summed = true}), true);
	run->entry = (struct event){
		.time = NOW + 2, .actor = bob, .kind = EVENT_RUN, .subject = "db.read"};
	done(fixture, &run->call);
	for (int i = 0; i < 2; i++)
		say(fixture, record_example(fixture, NULL), TRIAGE_FALSE);
	update(fixture, 2, CHANGE_RECOVERED, NULL);
	call->before = NOW + 2;
	ask(fixture, &call->call);
	assert_int_equal(call->pruned.silences, 1);
	assert_int_equal(call->pruned.events, 5);
	store_call_free(&call->call);
	assert_int_equal(count_rows(fixture, "silences WHERE id IN (2, 3)"), 2);
	assert_int_equal(count_rows(fixture, "events WHERE kind > 7"), 2);
	assert_int_equal(count_rows(fixture, "events WHERE change = 1 OR kind = 14"), 2);
}

static void test_audit(void **state)
{
	struct fixture *fixture = *state;
	struct store_audit *list;
	int64_t id;

	open_fixture(fixture);
	id = record_example(fixture, NULL);
	for (int i = 0; i < 10; i++) {
		struct store_audit_add *add = store_audit_add_new(NULL, NULL);

		add->entry = (struct event){.time = NOW + i,
			.actor = bob,
			.kind = EVENT_RUN,
			.subject = i % 2 ? "db.read" : NULL,
			.change = i == 3 ? id : 0};
		done(fixture, &add->call);
	}
	list = store_audit_new(NULL, NULL);
	list->limit = 4;
	list->since = NOW + 5;
	ask(fixture, &list->call);
	assert_false(list->call.failed);
	assert_int_equal(list->entry_count, 4);
	assert_true(list->more);
	assert_int_equal(list->entries[0].time, NOW + 9);
	assert_string_equal(list->entries[0].actor.person, "bob");
	assert_string_equal(list->entries[0].actor.origin, "unix socket");
	assert_string_equal(list->entries[0].subject, "db.read");
	assert_null(list->entries[1].subject);
	assert_null(list->entries[1].detail);
	id = list->entries[3].id;
	store_call_free(&list->call);
	list = store_audit_new(NULL, NULL);
	list->before_id = id;
	list->since = NOW + 5;
	ask(fixture, &list->call);
	assert_int_equal(list->entry_count, 1);
	assert_false(list->more);
	store_call_free(&list->call);
	list = store_audit_new(NULL, NULL);
	list->change = 1;
	ask(fixture, &list->call);
	assert_int_equal(list->entry_count, 1);
	assert_int_equal(list->entries[0].change, 1);
	assert_int_equal(list->entries[0].time, NOW + 3);
	store_call_free(&list->call);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_said),
		CASE(test_two_people),
		CASE(test_same_again),
		CASE(test_selection),
		CASE(test_many_at_once),
		CASE(test_inherited),
		CASE(test_inherited_too_late),
		CASE(test_said_exactly),
		CASE(test_open_among_many),
		CASE(test_open_by_size),
		CASE(test_a_name_like_a_pattern),
		CASE(test_filters),
		CASE(test_accepted_is_not_pending),
		CASE(test_accepted_stays_settled),
		CASE(test_accepted_before_it_was_sent),
		CASE(test_outgrown_before_it_was_sent),
		CASE(test_a_note_goes_with_its_state),
		CASE(test_history_is_bounded),
		CASE(test_expiry),
		cmocka_unit_test(test_outgrown),
		CASE(test_reactions),
		CASE(test_follow_ups),
		CASE(test_a_message_after_the_triage_is_marked),
		CASE(test_a_message_about_what_was_is_marked),
		CASE(test_growth_is_news_again),
		CASE(test_growth_of_what_is_not_accepted),
		CASE(test_growth_of_what_was_not_told),
		CASE(test_recoveries),
		FILE_CASE(test_survives),
		FILE_CASE(test_check),
		CASE(test_silences),
		CASE(test_a_silence_is_added_after_a_transaction_that_failed),
		CASE(test_pruned),
		CASE(test_audit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

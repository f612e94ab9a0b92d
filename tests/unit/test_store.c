/*
 * The store on real files: what is written is there after a reopen or a kill, and files that are
 * not fit are refused and left alone.
 */
#include "unit.h"
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/log.h"
#include "agent/store/tx.h"
#include "tests/unit/same_change.h"
#include "tests/unit/store_talk.h"

static void test_pending_survives_reopen(void **state)
{
	struct fixture *fixture = *state;
	struct store_restore *restored;
	struct store_pending *request;
	const struct change_record *record;
	int64_t id;

	open_fixture(fixture);
	id = record_one(fixture, &example);
	reopen(fixture);
	restored = restore(fixture);
	assert_int_equal(restored->deliveries.count, 0);
	assert_int_equal(restored->call.counts->due.changes, 1);
	assert_int_equal(restored->call.counts->states[CHANGE_CONFIRMED], 1);
	assert_int_equal(restored->call.counts->states[CHANGE_WITHDRAWN], 0);
	store_call_free(&restored->call);
	request = pending(fixture);
	assert_int_equal(request->records.count, 1);
	record = &request->records.items[0];
	assert_int_equal(record->item.id, id);
	assert_string_equal(record->item.test, "db.read");
	assert_string_equal(record->item.metric, "p99");
	assert_string_equal(record->item.unit, "ns");
	assert_int_equal(record->item.direction, -1);
	assert_int_equal(record->item.time, example.item.time);
	assert_true(same_change(&record->item.change, &example.item.change));
	assert_string_equal(record->item.commit_before, "a1");
	assert_string_equal(record->item.commit_after, "b2");
	assert_null(record->item.version_before);
	assert_true(record->item.slope == 0.25);
	assert_int_equal(record->item.place_from, example.item.place_from);
	assert_int_equal(record->item.place_to, example.item.place_to);
	assert_string_equal(record->item.place_commit_before, "a0");
	assert_string_equal(record->item.place_commit_after, "b3");
	assert_null(record->item.place_version_before);
	assert_string_equal(record->item.place_version_after, "1.2");
	assert_int_equal(record->item.attribute_count, 2);
	assert_string_equal(record->item.attributes[0].name, "build \"nightly\"");
	assert_string_equal(record->item.attributes[0].before, "17");
	assert_string_equal(record->item.attributes[0].after, "18");
	assert_null(record->item.attributes[1].before);
	assert_string_equal(record->item.attributes[1].after, "perf\n7");
	assert_true(record->item.suspects.known && record->item.suspects.timed);
	assert_true(attribution_same(&record->item.suspects, &example.item.suspects));
	assert_int_equal(record->item.suspects.since, example.item.suspects.since);
	assert_int_equal(record->item.suspects.until, example.item.suspects.until);
	assert_int_equal(record->item.suspects.corrections, 1);
	assert_true(record->item.suspects.last.after == INT64_MIN);
	assert_int_equal(record->item.suspects.list[0].after, example_suspects[0].after);
	assert_string_equal(record->series, example.series);
	assert_int_equal(record->sign, 1);
	assert_int_equal(record->first_seen, example.first_seen);
	assert_int_equal(record->item.spacing, 60000);
	store_call_free(&request->call);
}

static void give_up(struct fixture *fixture, const int64_t *ids, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct store_settle *request = store_settle_new(NULL, NULL);

		request->delivery = (struct delivery){
			.id = ids[i], .state = DELIVERY_ABANDONED, .problem = "gone", .now = 7};
		request->reroutes = true;
		done(fixture, &request->call);
	}
}

static void test_queue_tells_and_keeps_the_message(void **state)
{
	struct fixture *fixture = *state;
	struct store_restore *restored;
	struct store_attempt *begun;
	int64_t attempt;

	open_fixture(fixture);
	attempt = queue_one(fixture, record_one(fixture, &example));
	reopen(fixture);
	restored = restore(fixture);
	assert_int_equal(restored->call.counts->due.changes, 0);
	assert_int_equal(restored->deliveries.count, 1);
	assert_int_equal(restored->deliveries.items[0].id, attempt);
	assert_string_equal(restored->deliveries.items[0].key, "k1");
	assert_string_equal(restored->deliveries.items[0].receiver, "slack");
	assert_string_equal(restored->deliveries.items[0].destination, "#perf");
	assert_null(restored->deliveries.items[0].payload);
	assert_null(restored->deliveries.items[0].receipt);
	assert_int_equal(restored->deliveries.items[0].attempts, 0);
	assert_false(restored->deliveries.items[0].begun);
	assert_int_equal(restored->deliveries.items[0].record_count, 1);
	assert_string_equal(restored->deliveries.items[0].records->item.metric, "p99");
	store_call_free(&restored->call);
	restored = store_restore_new(NULL, NULL);
	restored->queued = true;
	restored->known = attempt;
	ask(fixture, &restored->call);
	assert_int_equal(restored->deliveries.count, 1);
	assert_int_equal(restored->deliveries.items[0].record_count, 0);
	store_call_free(&restored->call);
	begun = begin_attempt(fixture, attempt);
	assert_int_equal(begun->delivery.state, DELIVERY_QUEUED);
	assert_string_equal(begun->delivery.payload, "{\"text\": \"x\"}");
	assert_int_equal(begun->delivery.record_count, 1);
	assert_string_equal(begun->delivery.records[0].item.metric, "p99");
	store_call_free(&begun->call);
	begun = begin_attempt(fixture, 99);
	assert_null(begun->delivery.payload);
	assert_int_equal(begun->delivery.record_count, 0);
	store_call_free(&begun->call);
}

/* The only delivery that is queued, after a restart. */
static struct delivery restored_delivery(struct fixture *fixture)
{
	struct store_restore *request;
	struct delivery delivery;

	reopen(fixture);
	request = restore(fixture);
	assert_int_equal(request->deliveries.count, 1);
	delivery = request->deliveries.items[0];
	store_call_free(&request->call);
	return delivery;
}

/* What was begun is in doubt until it is known not to have arrived; how long its receiver wants to
 * be left alone is kept. */
static void test_an_attempt_is_written_down(void **state)
{
	struct fixture *fixture = *state;
	int64_t attempt;
	struct delivery delivery;

	open_fixture(fixture);
	attempt = queue_one(fixture, record_one(fixture, &example));
	assert_false(restored_delivery(fixture).begun);
	store_call_free(&begin_attempt(fixture, attempt)->call);
	assert_true(restored_delivery(fixture).begun);
	settle_as(
		fixture, &(struct delivery){
				 .id = attempt, .state = DELIVERY_QUEUED, .begun = true, .now = 9});
	assert_true(restored_delivery(fixture).begun);
	settle_as(fixture,
		&(struct delivery){
			.id = attempt, .state = DELIVERY_QUEUED, .not_before = 77, .now = 9});
	delivery = restored_delivery(fixture);
	assert_false(delivery.begun);
	assert_int_equal(delivery.not_before, 77);
	store_call_free(&begin_attempt(fixture, attempt)->call);
	assert_int_equal(restored_delivery(fixture).not_before, 0);
}

/* The receipt of what it continues, whatever this process knows of that. */
static void test_an_attempt_knows_its_thread(void **state)
{
	struct fixture *fixture = *state;
	struct store_attempt *begun;
	struct store_queue *queuing = store_queue_new(NULL, NULL);
	struct delivery delivery = {.key = "k2",
		.receiver = "slack",
		.destination = "#perf",
		.payload = "{}",
		.thread = "k1",
		.now = 6};

	open_fixture(fixture);
	settle(fixture, queue_one(fixture, record_one(fixture, &example)), DELIVERY_SENT, 1);
	queuing->deliveries.items = &delivery;
	queuing->deliveries.count = 1;
	ask(fixture, &queuing->call);
	store_call_free(&queuing->call);
	begun = begin_attempt(fixture, delivery.id);
	assert_string_equal(begun->delivery.thread_receipt, "1503435956.000247");
	store_call_free(&begun->call);
}

static void withdraw(struct fixture *fixture, int64_t id)
{
	struct store_record *request = store_record_new(NULL, NULL);
	struct change_record_update update = {
		.id = id, .time = 1, .now = 8, .state = CHANGE_WITHDRAWN};

	request->updates = &update;
	request->update_count = 1;
	ask(fixture, &request->call);
	assert_false(request->call.failed);
	store_call_free(&request->call);
}

/* In the thread of the message with this key; of no change: 0. */
static int64_t queue_in(struct fixture *fixture, int64_t change, const char *thread)
{
	struct store_queue *queue = store_queue_new(NULL, NULL);
	struct delivery reply = {
		.key = arena_printf(queue->call.arena, "reply %zu", ++fixture->queued),
		.receiver = "other",
		.destination = "#perf",
		.payload = "{}",
		.thread = thread,
		.now = 9,
		.changes = &change,
		.change_count = change != 0};

	queue->deliveries = (struct delivery_rows){&reply, 1};
	ask(fixture, &queue->call);
	assert_false(queue->call.failed);
	store_call_free(&queue->call);
	return reply.id;
}

static enum notify_state news_of(struct fixture *fixture)
{
	struct store_known *request = known(fixture, example.item.test);
	enum notify_state news = request->records.items[0].news;

	assert_int_equal(request->records.count, 1);
	store_call_free(&request->call);
	return news;
}

/* A change that is withdrawn before its messages leave is not announced, and is if it returns; nor
 * is what continues such a message sent. */
static void test_nothing_is_left_to_tell(void **state)
{
	struct fixture *fixture = *state;
	struct store_attempt *request;
	int64_t change, deliveries[2], reply;

	open_fixture(fixture);
	change = record_one(fixture, &example);
	deliveries[0] = queue_for(fixture, change, "slack", false);
	deliveries[1] = queue_for(fixture, change, "other", true);
	withdraw(fixture, change);
	request = begin_attempt(fixture, deliveries[0]);
	assert_int_equal(request->delivery.state, DELIVERY_ABANDONED);
	assert_null(request->delivery.payload);
	store_call_free(&request->call);
	assert_int_equal(news_of(fixture), NOTIFY_QUEUED);
	request = begin_attempt(fixture, deliveries[1]);
	assert_int_equal(request->delivery.state, DELIVERY_ABANDONED);
	store_call_free(&request->call);
	assert_int_equal(news_of(fixture), NOTIFY_HELD);
	reply = queue_in(fixture, 0, "k2");
	request = begin_attempt(fixture, reply);
	assert_int_equal(request->delivery.state, DELIVERY_ABANDONED);
	store_call_free(&request->call);
	/* Another message of the thread is there: replies belong to it, too. */
	(void)queue_in(fixture, record_one(fixture, &example), "k2");
	reply = queue_in(fixture, 0, "k2");
	request = begin_attempt(fixture, reply);
	assert_int_equal(request->delivery.state, DELIVERY_QUEUED);
	store_call_free(&request->call);
}

static void test_what_has_begun_is_told_and_retracted(void **state)
{
	struct fixture *fixture = *state;
	struct store_attempt *begun;
	struct store_settle *settling;
	struct store_pending *due;
	int64_t change, attempt;

	open_fixture(fixture);
	change = record_one(fixture, &example);
	attempt = queue_one(fixture, change);
	store_call_free(&begin_attempt(fixture, attempt)->call);
	withdraw(fixture, change);
	begun = begin_attempt(fixture, attempt);
	assert_int_equal(begun->delivery.state, DELIVERY_QUEUED);
	store_call_free(&begun->call);
	settling = store_settle_new(NULL, NULL);
	settling->delivery = (struct delivery){
		.id = attempt, .state = DELIVERY_SENT, .key = "k1", .receipt = "15.2", .now = 9};
	ask(fixture, &settling->call);
	store_call_free(&settling->call);
	reopen(fixture);
	due = pending(fixture);
	assert_int_equal(due->events.count, 1);
	assert_int_equal(due->events.items[0].event.kind, EVENT_WITHDRAWN);
	assert_int_equal(due->events.items[0].record->item.id, change);
	assert_int_equal(due->events.items[0].messages.count, 1);
	assert_string_equal(due->events.items[0].messages.items[0].key, "k1");
	assert_string_equal(due->events.items[0].messages.items[0].receipt, "15.2");
	assert_int_equal(settle_events(fixture, &due->events), 0);
	store_call_free(&due->call);
	due = pending(fixture);
	assert_int_equal(due->events.count, 0);
	store_call_free(&due->call);
}

/* A message that is queued or sent is not queued again: its key says that it is the same. One that
 * was given up is. */
static void test_a_message_is_queued_once(void **state)
{
	struct fixture *fixture = *state;
	int64_t ids[2], first;

	open_fixture(fixture);
	for (int i = 0; i < 2; i++)
		ids[i] = record_one(fixture, &example);
	first = queue_one(fixture, ids[0]);
	for (int i = 0; i < 2; i++) {
		fixture->queued = 0;
		assert_int_equal(queue_one(fixture, ids[1]), first);
		assert_int_equal(count_rows(fixture, "deliveries"), 1);
		assert_int_equal(count_rows(fixture, "announced"), 2);
		settle(fixture, first, DELIVERY_SENT, 1);
	}
	settle(fixture, first, DELIVERY_ABANDONED, 1);
	fixture->queued = 0;
	assert_true(queue_one(fixture, ids[1]) > first);
	assert_int_equal(count_rows(fixture, "announced"), 3);
}

#define AGAIN                                                                                      \
	"INSERT INTO deliveries SELECT 9, key, receiver, destination, payload, 1, receipt,"        \
	" problem, attempts, created, updated, thread, NULL, NULL, NULL, NULL, NULL, NULL, NULL"   \
	" FROM deliveries"

/* Nothing is written that the tables do not stand for. */
static void test_what_the_tables_refuse(void **state)
{
	static const char *const refused[] = {"UPDATE changes SET state = 6",
		"UPDATE changes SET news = -1", "UPDATE changes SET spacing = -1",
		"UPDATE deliveries SET state = 0",
		"INSERT INTO announced (change, delivery) VALUES (9, 1)", "DELETE FROM changes",
		"DELETE FROM deliveries", "UPDATE changes SET environment_event = 1",
		"UPDATE events SET kind = 19", "UPDATE deliveries SET amend = -1",
		"INSERT INTO triage (change, triage, version, triaged) VALUES (9, 1, 1, 1)",
		"INSERT INTO triage (change, triage, version, triaged) VALUES (1, 8, 1, 1)", AGAIN};
	struct fixture *fixture = *state;

	open_fixture(fixture);
	settle(fixture, queue_one(fixture, record_one(fixture, &example)), DELIVERY_SENT, 1);
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (state_allows(fixture->path, refused[i]))
			fail_msg("not refused: %s", refused[i]);
}

/* Two messages to a receiver that is gone, of a change that another one was told. Who was not
 * reached does not count as told. */
static void test_what_nobody_can_deliver_is_told_again(void **state)
{
	struct fixture *fixture = *state;
	struct store_pending *due;
	struct store_restore *restored;
	int64_t ids[3], deliveries[2];

	open_fixture(fixture);
	for (int i = 0; i < 3; i++)
		ids[i] = record_one(fixture, &example);
	queue_for(fixture, ids[0], "stdout", true);
	deliveries[0] = queue_for(fixture, ids[0], "slack", true);
	deliveries[1] = queue_for(fixture, ids[0], "slack", true);
	queue_for(fixture, ids[1], "stdout", true);
	give_up(fixture, deliveries, 2);
	reopen(fixture);
	restored = restore(fixture);
	assert_int_equal(restored->deliveries.count, 2);
	store_call_free(&restored->call);
	due = pending(fixture);
	assert_int_equal(due->records.count, 2);
	assert_int_equal(due->records.items[0].item.id, ids[0]);
	assert_int_equal(due->records.items[0].news, NOTIFY_PENDING);
	assert_string_equal(due->records.items[0].series, example.series);
	assert_int_equal(due->records.items[0].told.count, 1);
	assert_string_equal(due->records.items[0].told.items[0], "stdout");
	assert_int_equal(due->records.items[1].item.id, ids[2]);
	store_call_free(&due->call);
}

/* A change that not all receivers have in the outbox is still pending, and who has it is known. */
static void test_half_told_is_pending(void **state)
{
	struct fixture *fixture = *state;
	struct store_pending *request;
	int64_t ids[3];

	open_fixture(fixture);
	for (int i = 0; i < 3; i++)
		ids[i] = record_one(fixture, &example);
	queue_for(fixture, ids[1], "stdout", false);
	queue_for(fixture, ids[1], "mail", false);
	queue_for(fixture, ids[2], "stdout", true);
	reopen(fixture);
	request = pending(fixture);
	assert_int_equal(request->records.count, 2);
	assert_int_equal(request->records.items[0].told.count, 0);
	assert_int_equal(request->records.items[1].item.id, ids[1]);
	assert_int_equal(request->records.items[1].told.count, 2);
	assert_string_equal(request->records.items[1].told.items[0], "mail");
	assert_string_equal(request->records.items[1].told.items[1], "stdout");
	store_call_free(&request->call);
}

static void test_settled_is_not_sent_again(void **state)
{
	struct fixture *fixture = *state;
	struct store_restore *request;
	int64_t attempt;

	open_fixture(fixture);
	attempt = queue_one(fixture, record_one(fixture, &example));
	settle(fixture, attempt, DELIVERY_QUEUED, 3);
	reopen(fixture);
	request = restore(fixture);
	assert_int_equal(request->deliveries.count, 1);
	assert_int_equal(request->deliveries.items[0].attempts, 3);
	assert_string_equal(request->deliveries.items[0].receipt, "1503435956.000247");
	store_call_free(&request->call);
	settle(fixture, attempt, DELIVERY_SENT, 4);
	reopen(fixture);
	request = restore(fixture);
	assert_int_equal(request->deliveries.count, 0);
	store_call_free(&request->call);
}

static void prune(struct fixture *fixture, int64_t before)
{
	struct store_prune *request = store_prune_new(NULL, NULL);

	request->before = before;
	ask(fixture, &request->call);
	assert_false(request->call.failed);
	store_call_free(&request->call);
}

/* What waits is never forgotten, what is settled only after its time; what was found stays. */
static void test_prune_forgets_what_is_settled(void **state)
{
	struct fixture *fixture = *state;
	int64_t sent, given_up;

	open_fixture(fixture);
	sent = queue_one(fixture, record_one(fixture, &example));
	given_up = queue_one(fixture, record_one(fixture, &example));
	queue_one(fixture, record_one(fixture, &example));
	settle(fixture, sent, DELIVERY_SENT, 1);
	settle(fixture, given_up, DELIVERY_ABANDONED, 1);
	prune(fixture, 9);
	assert_int_equal(count_rows(fixture, "deliveries"), 3);
	prune(fixture, 10);
	assert_int_equal(count_rows(fixture, "deliveries"), 1);
	assert_int_equal(count_rows(fixture, "announced"), 1);
	assert_int_equal(count_rows(fixture, "changes"), 3);
}

static void test_known_is_of_one_test(void **state)
{
	struct fixture *fixture = *state;
	struct change_record other = example, later = example;
	struct store_known *of_test;
	struct store_record *recording;
	struct change_record_update update = {.state = CHANGE_WITHDRAWN, .time = 77, .now = 1};

	open_fixture(fixture);
	other.item.test = "db.write";
	later.series = "p50";
	later.sign = -1;
	record_one(fixture, &example);
	record_one(fixture, &other);
	update.id = record_one(fixture, &later);
	of_test = known(fixture, "db.read");
	assert_int_equal(of_test->records.count, 2);
	assert_string_equal(of_test->records.items[0].series, "p50");
	assert_int_equal(of_test->records.items[0].sign, -1);
	assert_string_equal(of_test->records.items[1].series, example.series);
	store_call_free(&of_test->call);

	recording = store_record_new(NULL, NULL);
	recording->updates = &update;
	recording->update_count = 1;
	ask(fixture, &recording->call);
	store_call_free(&recording->call);
	of_test = known(fixture, "db.read");
	assert_int_equal(of_test->records.items[0].state, CHANGE_WITHDRAWN);
	assert_int_equal(of_test->records.items[0].item.time, 77);
	assert_int_equal(of_test->records.items[1].state, CHANGE_CONFIRMED);
	store_call_free(&of_test->call);
	of_test = known(fixture, "nothing' OR 1=1 --");
	assert_int_equal(of_test->records.count, 0);
	store_call_free(&of_test->call);
}

static void test_numbers_that_are_none(void **state)
{
	struct fixture *fixture = *state;
	struct change_record record = example;
	struct store_pending *request;

	record.item.change.pvalue = (double)NAN;
	record.item.change.mean_after = HUGE_VAL;
	record.item.change.size = record.item.slope = (double)NAN;
	open_fixture(fixture);
	record_one(fixture, &record);
	request = pending(fixture);
	assert_true(isnan(request->records.items[0].item.change.pvalue));
	assert_true(isinf(request->records.items[0].item.change.mean_after));
	assert_true(isnan(request->records.items[0].item.change.size));
	assert_true(isnan(request->records.items[0].item.slope));
	assert_true(request->records.items[0].item.change.level_after == 3);
	store_call_free(&request->call);
}

/* A request that breaks a rule of the schema fails alone, though it was committed together with
 * others. */
static void test_bad_request_fails_alone(void **state)
{
	struct fixture *fixture = *state;
	struct change_record good = example, bad = example;
	struct store_record *requests[3];
	struct store_pending *request;

	bad.series = NULL;
	open_fixture(fixture);
	for (int i = 0; i < 3; i++) {
		requests[i] = store_record_new(NULL, NULL);
		requests[i]->records.items = arena_alloc(requests[i]->call.arena, sizeof good);
		requests[i]->records.items[0] = i == 1 ? bad : good;
		requests[i]->records.count = 1;
	}
	for (int i = 0; i < 3; i++)
		submit(fixture, &requests[i]->call);
	while (fixture->answers < 3)
		run_one(&fixture->loop);
	assert_false(requests[0]->call.failed);
	assert_true(requests[1]->call.failed);
	assert_int_equal(requests[1]->call.error->kind, ERROR_STATE);
	assert_non_null(strstr(
		requests[1]->call.error->text, state_is_database() ? "not-null" : "NOT NULL"));
	assert_false(requests[2]->call.failed);
	for (int i = 0; i < 3; i++)
		store_call_free(&requests[i]->call);
	request = pending(fixture);
	assert_int_equal(request->records.count, 2);
	store_call_free(&request->call);
}

struct own_call {
	struct store_call call;
	sem_t *begun, *goes_on; /* NULL: it does not wait */
	struct store_queue *queue;
	bool fails;
	int runs; /* out */
};

enum { READ_BYTES = 4 << 20 };

static void run_own(struct tx *tx, void *context)
{
	struct own_call *own = context;

	if (own->begun) {
		sem_post(own->begun);
		while (sem_wait(own->goes_on) != 0)
			;
	}
	own->runs++;
	(void)arena_alloc(tx->arena, READ_BYTES);
	if (own->queue)
		store_queue_work.run(tx, own->queue);
	if (own->fails)
		tx_fail(tx, ERROR_USAGE, "it has to fail");
}

/* Of calls that wait together the one that fails leaves nothing, and what is done again begins with
 * what was submitted, and without what the first try has read. */
static void test_a_try_begins_with_what_was_submitted(void **state)
{
	struct fixture *fixture = *state;
	const struct store_work reads = {.run = run_own}, writes = {.run = run_own, .writes = true};
	struct own_call *first = store_call_new(sizeof *first, &reads, NULL, NULL);
	struct own_call *second = store_call_new(sizeof *second, &reads, NULL, NULL);
	struct own_call *third = store_call_new(sizeof *third, &writes, NULL, NULL);
	struct store_restore *found = store_restore_new(NULL, NULL);
	struct stored_moment moment = {"never", 1};
	sem_t begun, goes_on;

	assert_true(sem_init(&begun, 0, 0) == 0 && sem_init(&goes_on, 0, 0) == 0);
	open_fixture(fixture);
	first->begun = &begun;
	first->goes_on = &goes_on;
	third->fails = true;
	third->queue = store_queue_new(NULL, NULL);
	third->queue->health = (struct health_rows){.moments = &moment, .moment_count = 1};
	submit(fixture, &first->call);
	while (sem_wait(&begun) != 0)
		;
	submit(fixture, &second->call);
	submit(fixture, &third->call);
	sem_post(&goes_on);
	while (fixture->answers < 3)
		run_one(&fixture->loop);
	assert_false(second->call.failed);
	assert_int_equal(second->runs, 1);
	assert_in_range(arena_size(second->call.arena), READ_BYTES, 2 * READ_BYTES - 1);
	assert_true(third->call.failed);
	ask(fixture, &found->call);
	assert_false(found->call.failed);
	assert_int_equal(found->health.moment_count, 0);
	store_call_free(&third->queue->call);
	store_call_free(&first->call);
	store_call_free(&second->call);
	store_call_free(&third->call);
	store_call_free(&found->call);
	sem_destroy(&begun);
	sem_destroy(&goes_on);
}

static void test_close_answers_what_waits(void **state)
{
	struct fixture *fixture = *state;

	open_fixture(fixture);
	for (int i = 0; i < 20; i++)
		submit(fixture, &store_restore_new(NULL, NULL)->call);
	store_close(fixture->store);
	fixture->store = NULL;
	for (int i = 0; i < 20; i++) {
		run_one(&fixture->loop);
		assert_false(fixture->answer->failed);
		store_call_free(fixture->answer);
	}
	assert_int_equal(fixture->answers, 20);
}

static void test_second_opener_is_refused(void **state)
{
	struct fixture *fixture = *state;
	char process[64];

	open_fixture(fixture);
	snprintf(process, sizeof process, "in use by another hunter-c (process %ld)",
		(long)getpid());
	refused(fixture, process);
	record_one(fixture, &example);
	reopen(fixture);
}

static void overwrite(const struct fixture *fixture, off_t offset, const void *data, size_t length)
{
	int file = open(fixture->path, O_WRONLY | O_CREAT, 0600);

	assert_true(file >= 0);
	assert_int_equal(pwrite(file, data, length, offset), (ssize_t)length);
	close(file);
}

static void *slurp(const char *path, size_t *length)
{
	FILE *file = fopen(path, "rb");
	char *content = malloc(1 << 20);

	assert_non_null(file);
	*length = fread(content, 1, 1 << 20, file);
	fclose(file);
	return content;
}

static void test_rubbish_is_refused_and_left_alone(void **state)
{
	struct fixture *fixture = *state;
	char rubbish[5000], *content;
	size_t length;

	memset(rubbish, 'x', sizeof rubbish);
	overwrite(fixture, 0, rubbish, sizeof rubbish);
	refused(fixture, "is damaged");
	content = slurp(fixture->path, &length);
	assert_int_equal(length, sizeof rubbish);
	assert_memory_equal(content, rubbish, length);
	free(content);
}

static void test_damage_inside_is_refused_and_left_alone(void **state)
{
	struct fixture *fixture = *state;
	char holes[8192], *before, *after;
	size_t length_before, length_after;

	open_fixture(fixture);
	for (int i = 0; i < 200; i++)
		record_one(fixture, &example);
	store_close(fixture->store);
	fixture->store = NULL;
	memset(holes, 0x5a, sizeof holes);
	overwrite(fixture, 4096, holes, sizeof holes);
	before = slurp(fixture->path, &length_before);
	refused(fixture, "is damaged");
	after = slurp(fixture->path, &length_after);
	assert_int_equal(length_before, length_after);
	assert_memory_equal(before, after, length_before);
	free(before);
	free(after);
}

/* Whatever is in the files of a refused state, the log included, is in them afterwards. */
static void check_left_alone(struct fixture *fixture, const char *words)
{
	static const char *const suffixes[] = {"", "-wal"};
	char path[256], *before[2];
	size_t lengths[2];

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s%s", fixture->path, suffixes[i]);
		before[i] = access(path, F_OK) == 0 ? slurp(path, &lengths[i]) : NULL;
	}
	refused(fixture, words);
	for (int i = 0; i < 2; i++) {
		size_t length;
		char *after;

		snprintf(path, sizeof path, "%s%s", fixture->path, suffixes[i]);
		assert_int_equal(access(path, F_OK) == 0, before[i] != NULL);
		if (!before[i])
			continue;
		after = slurp(path, &length);
		assert_int_equal(length, lengths[i]);
		assert_memory_equal(after, before[i], length);
		free(after);
		free(before[i]);
	}
}

static void close_fixture(struct fixture *fixture)
{
	store_close(fixture->store);
	fixture->store = NULL;
}

/* One that lacks a table is refused before it is put into another journal mode. */
static void test_refused_file_keeps_its_journal_mode(void **state)
{
	struct fixture *fixture = *state;

	open_fixture(fixture);
	close_fixture(fixture);
	database_with(fixture, "PRAGMA journal_mode = DELETE; DROP TABLE conditions");
	check_left_alone(fixture, "\"conditions\" is missing");
	database_with(fixture, "PRAGMA user_version = 18");
	check_left_alone(fixture, "made by another build of hunter-c");
}

/* What a killed agent has left in its log does not come into a file that is refused. */
static void test_refused_file_keeps_its_log(void **state)
{
	struct fixture *fixture = *state, dead = *fixture;
	char command[900];

	snprintf(dead.path, sizeof dead.path, "%s/dead.db", fixture->folder);
	open_fixture(fixture);
	record_one(fixture, &example);
	database_with(fixture, "PRAGMA user_version = 99");
	snprintf(command, sizeof command, "cp %s %s && cp %s-wal %s-wal", fixture->path, dead.path,
		fixture->path, dead.path);
	assert_int_equal(system(command), 0);
	close_fixture(fixture);
	check_left_alone(&dead, "made by another build of hunter-c");
}

/* A quick check of SQLite's does not see an entry that an index lacks. */
static void test_damaged_index_is_refused(void **state)
{
	struct fixture *fixture = *state;

	open_fixture(fixture);
	record_one(fixture, &example);
	close_fixture(fixture);
	database_with(fixture,
		"CREATE TEMP TABLE saved AS SELECT * FROM sqlite_schema WHERE name ="
		" 'changes_of_time'; PRAGMA writable_schema = ON;"
		"DELETE FROM sqlite_schema WHERE name = 'changes_of_time';"
		"PRAGMA writable_schema = RESET; UPDATE changes SET time = time + 1;"
		"PRAGMA writable_schema = ON; INSERT INTO sqlite_schema SELECT * FROM saved;"
		"PRAGMA writable_schema = RESET");
	check_left_alone(fixture, "missing from index changes_of_time");
}

static void test_scrap_of_a_file_is_refused(void **state)
{
	struct fixture *fixture = *state;

	overwrite(fixture, 0, "x", 1);
	check_left_alone(fixture, "is damaged (not a database, 1 bytes)");
	overwrite(fixture, 510, "x", 1);
	check_left_alone(fixture, "is damaged (not a database, 511 bytes)");
}

static mode_t mode_of(const struct fixture *fixture, const char *suffix)
{
	char path[256];
	struct stat status;

	snprintf(path, sizeof path, "%s%s", fixture->path, suffix);
	assert_int_equal(lstat(path, &status), 0);
	return status.st_mode & 07777;
}

static void check_modes(const struct fixture *fixture)
{
	assert_int_equal(mode_of(fixture, ""), 0640);
	assert_int_equal(mode_of(fixture, "-wal"), 0640);
	assert_int_equal(mode_of(fixture, "-shm"), 0640);
	assert_int_equal(mode_of(fixture, ".lock"), 0640);
}

static void test_others_may_not_read(void **state)
{
	struct fixture *fixture = *state;
	mode_t mask = umask(0);
	char command[900];

	open_fixture(fixture);
	record_one(fixture, &example);
	check_modes(fixture);
	close_fixture(fixture);
	snprintf(command, sizeof command, "chmod 666 %s %s.lock", fixture->path, fixture->path);
	assert_int_equal(system(command), 0);
	open_fixture(fixture);
	record_one(fixture, &example);
	check_modes(fixture);
	close_fixture(fixture);
	snprintf(command, sizeof command, "chmod 640 %s.lock; chmod 600 %s", fixture->path,
		fixture->path);
	assert_int_equal(system(command), 0);
	open_fixture(fixture);
	assert_int_equal(mode_of(fixture, ""), 0600);
	umask(mask);
}

static void check_victim(const char *victim)
{
	size_t length;
	char *content = slurp(victim, &length);

	assert_int_equal(length, 8);
	assert_memory_equal(content, "precious", 8);
	free(content);
}

/* A lock that leads to a file of somebody else's had that one overwritten. */
static void test_lock_that_is_a_link(void **state)
{
	struct fixture *fixture = *state;
	char victim[192], lock[256];
	FILE *file;

	snprintf(victim, sizeof victim, "%s/victim", fixture->folder);
	snprintf(lock, sizeof lock, "%s.lock", fixture->path);
	file = fopen(victim, "w");
	assert_non_null(file);
	fputs("precious", file);
	fclose(file);
	assert_int_equal(symlink(victim, lock), 0);
	refused(fixture, "is a symbolic link");
	check_victim(victim);
	assert_int_equal(unlink(lock), 0);
	assert_int_equal(link(victim, lock), 0);
	refused(fixture, "hard link");
	check_victim(victim);
	assert_int_equal(unlink(lock), 0);
	assert_int_equal(mkfifo(lock, 0600), 0);
	refused(fixture, "is not a regular file, or has hard links");
}

/* A hard link would be a file with a lock of its own. */
static void test_hard_link_is_refused(void **state)
{
	struct fixture *fixture = *state, other = *fixture;

	snprintf(other.path, sizeof other.path, "%s/other.db", fixture->folder);
	open_fixture(fixture);
	assert_int_equal(link(fixture->path, other.path), 0);
	refused(&other, "hard link");
	close_fixture(fixture);
	refused(fixture, "hard link");
	assert_int_equal(unlink(other.path), 0);
	open_fixture(fixture);
}

static void test_foreign_and_other_versions_are_refused(void **state)
{
	struct fixture *fixture = *state;

	database_with(fixture, "CREATE TABLE recipes (name TEXT)");
	refused(fixture, "another program");
	assert_int_equal(unlink(fixture->path), 0);
	open_fixture(fixture);
	store_close(fixture->store);
	fixture->store = NULL;
	database_with(fixture, "PRAGMA user_version = 99");
	refused(fixture, "made by another build of hunter-c, whose tables differ: open it with");
	database_with(fixture, "PRAGMA user_version = -1");
	refused(fixture, "made by another build of hunter-c");
	database_with(fixture, "PRAGMA user_version = 0");
	refused(fixture, "made by another build of hunter-c");
}

/* As those of builds that only numbered their tables. */
static void test_state_of_another_build_is_refused(void **state)
{
	struct fixture *fixture = *state;

	open_fixture(fixture);
	close_fixture(fixture);
	database_with(fixture,
		state_is_database() ? "UPDATE schema SET version = 1" : "PRAGMA user_version = 1");
	refused(fixture, "made by another build of hunter-c, whose tables differ: open it with that"
			 " build, or start with a new state");
}

/* Two names of one file are one lock; a link to nowhere names no file. */
static void test_links_do_not_hide_the_lock(void **state)
{
	struct fixture *fixture = *state;
	char file[192], other[192];

	open_fixture(fixture);
	strcpy(file, fixture->path);
	snprintf(other, sizeof other, "%s/by-another-name.db", fixture->folder);
	assert_int_equal(symlink(file, other), 0);
	strcpy(fixture->path, other);
	{
		struct error error = {0};

		assert_null(open_store(fixture, &error));
		assert_non_null(strstr(error.text, "in use by another hunter-c"));
	}
	store_close(fixture->store);
	assert_int_equal(unlink(file), 0);
	refused(fixture, "dangling symbolic link");
	fixture->store = NULL;
	strcpy(fixture->path, file);
}

static void test_path_that_cannot_be(void **state)
{
	struct fixture *fixture = *state;

	overwrite(fixture, 0, "x", 1);
	strcat(fixture->path, "/state.db");
	refused(fixture, "Not a directory");
	snprintf(fixture->path, sizeof fixture->path, "%s/no/such/folder", fixture->folder);
	refused(fixture, "No such file or directory");
}

static void probe(struct fixture *fixture, const char *problem)
{
	struct store_call *call = store_probe_new();

	ask(fixture, call);
	assert_int_equal(call->failed, problem != NULL);
	if (problem)
		assert_non_null(strstr(call->error->text, problem));
	store_call_free(call);
}

/* A file that somebody takes away or replaces is not written to, as that would be lost. */
static void test_file_that_is_taken_away(void **state)
{
	struct fixture *fixture = *state;
	char away[200];

	snprintf(away, sizeof away, "%s/away.db", fixture->folder);
	open_fixture(fixture);
	probe(fixture, NULL);
	assert_int_equal(rename(fixture->path, away), 0);
	probe(fixture, "was removed or replaced");
	overwrite(fixture, 0, "x", 1);
	probe(fixture, "was removed or replaced");
	assert_int_equal(rename(away, fixture->path), 0);
	probe(fixture, NULL);
}

/* The log beside it neither; what was in it comes into the file when the agent ends. */
static void test_log_that_is_taken_away(void **state)
{
	struct fixture *fixture = *state;
	char log[200];

	snprintf(log, sizeof log, "%s-wal", fixture->path);
	open_fixture(fixture);
	record_one(fixture, &example);
	assert_int_equal(unlink(log), 0);
	probe(fixture, "state.db-wal was removed or replaced");
	reopen(fixture);
	probe(fixture, NULL);
	store_close(fixture->store);
	fixture->store = NULL;
	assert_int_equal(count_rows(fixture, "changes"), 1);
}

/* Without its lock an agent is not alone, so it writes, and thereby tells, nothing. */
static void test_lock_that_is_taken_away(void **state)
{
	struct fixture *fixture = *state, second = *fixture;
	char lock[200];

	snprintf(lock, sizeof lock, "%s.lock", fixture->path);
	open_fixture(fixture);
	probe(fixture, NULL);
	assert_int_equal(unlink(lock), 0);
	probe(fixture, "was removed or replaced");
	open_fixture(&second);
	probe(fixture, "was removed or replaced");
	close_fixture(&second);
	probe(fixture, "was removed or replaced");
	reopen(fixture);
	probe(fixture, NULL);
}

/* The log's text of opening the store. */
static char *text_of_opening(struct fixture *fixture)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	log_setup(LEVEL_WARN, LOG_FORMAT_TEXT, stream);
	open_fixture(fixture);
	log_setup(LEVEL_INFO, LOG_FORMAT_TEXT, NULL);
	store_close(fixture->store);
	fixture->store = NULL;
	fclose(stream);
	return text;
}

static void test_file_that_was_emptied(void **state)
{
	struct fixture *fixture = *state;
	char *first = text_of_opening(fixture), *second;

	assert_int_equal(truncate(fixture->path, 0), 0);
	second = text_of_opening(fixture);
	assert_string_equal(first, "");
	assert_non_null(strstr(second, "was emptied"));
	assert_non_null(strstr(second, fixture->path));
	free(first);
	free(second);
}

/*
 * Root may write to anything, so a folder that cannot be written is made by a mount, in a mount
 * namespace of this process.
 */
static void mount_or_skip(const struct fixture *fixture, unsigned long flags, const char *size)
{
	if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		mount("none", fixture->folder, "tmpfs", flags, size) == 0)
		return;
	skip("mounting is not allowed here");
}

static void test_read_only_folder(void **state)
{
	struct fixture *fixture = *state;

	open_fixture(fixture);
	store_close(fixture->store);
	fixture->store = NULL;
	mount_or_skip(fixture, MS_RDONLY, "size=64k");
	refused(fixture, "Read-only file system");
	assert_int_equal(umount(fixture->folder), 0);
}

static void test_full_disk_fails_and_recovers(void **state)
{
	struct fixture *fixture = *state;
	struct store_record *request;
	char filler[160], block[4096] = {0};
	struct change_record big = example;
	char *name;
	int file;

	mount_or_skip(fixture, 0, "size=1m");
	open_fixture(fixture);
	record_one(fixture, &example);
	snprintf(filler, sizeof filler, "%s/filler", fixture->folder);
	file = open(filler, O_WRONLY | O_CREAT, 0600);
	while (write(file, block, sizeof block) == (ssize_t)sizeof block)
		;
	close(file);
	name = calloc(1, 200001);
	memset(name, 'n', 200000);
	big.item.metric = name;
	request = store_record_new(NULL, NULL);
	request->records.items = &big;
	request->records.count = 1;
	ask(fixture, &request->call);
	assert_true(request->call.failed);
	assert_non_null(strstr(request->call.error->text, "full"));
	store_call_free(&request->call);
	assert_int_equal(unlink(filler), 0);
	record_one(fixture, &big);
	free(name);
	store_close(fixture->store);
	fixture->store = NULL;
	assert_int_equal(umount(fixture->folder), 0);
}

/* A process that dies without closing: what was answered is there, and the lock went with it. */
static void test_kill_keeps_what_was_answered(void **state)
{
	struct fixture *fixture = *state;
	struct store_pending *request;
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		open_fixture(fixture);
		for (int i = 0; i < 10; i++)
			record_one(fixture, &example);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	open_fixture(fixture);
	request = pending(fixture);
	assert_int_equal(request->records.count, 10);
	store_call_free(&request->call);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_kill_keeps_what_was_answered),
		CASE(test_pending_survives_reopen),
		CASE(test_queue_tells_and_keeps_the_message),
		CASE(test_an_attempt_is_written_down),
		CASE(test_an_attempt_knows_its_thread),
		CASE(test_nothing_is_left_to_tell),
		CASE(test_what_has_begun_is_told_and_retracted),
		CASE(test_a_message_is_queued_once),
		CASE(test_what_the_tables_refuse),
		CASE(test_what_nobody_can_deliver_is_told_again),
		CASE(test_half_told_is_pending),
		CASE(test_settled_is_not_sent_again),
		CASE(test_prune_forgets_what_is_settled),
		CASE(test_known_is_of_one_test),
		CASE(test_numbers_that_are_none),
		CASE(test_bad_request_fails_alone),
		CASE(test_a_try_begins_with_what_was_submitted),
		CASE(test_close_answers_what_waits),
		FILE_CASE(test_second_opener_is_refused),
		FILE_CASE(test_rubbish_is_refused_and_left_alone),
		FILE_CASE(test_damage_inside_is_refused_and_left_alone),
		FILE_CASE(test_refused_file_keeps_its_journal_mode),
		FILE_CASE(test_refused_file_keeps_its_log),
		FILE_CASE(test_damaged_index_is_refused),
		FILE_CASE(test_scrap_of_a_file_is_refused),
		FILE_CASE(test_others_may_not_read),
		FILE_CASE(test_lock_that_is_a_link),
		FILE_CASE(test_hard_link_is_refused),
		FILE_CASE(test_lock_that_is_taken_away),
		FILE_CASE(test_foreign_and_other_versions_are_refused),
		CASE(test_state_of_another_build_is_refused),
		FILE_CASE(test_links_do_not_hide_the_lock),
		FILE_CASE(test_path_that_cannot_be),
		FILE_CASE(test_file_that_is_taken_away),
		FILE_CASE(test_log_that_is_taken_away),
		FILE_CASE(test_file_that_was_emptied),
		FILE_CASE(test_read_only_folder),
		FILE_CASE(test_full_disk_fails_and_recovers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

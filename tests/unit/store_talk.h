/*
 * A store on a file in a folder of its own, a loop that its answers come to, and requests that wait
 * for theirs. Includes what every test of the store needs; cmocka's headers come before it.
 */
#ifndef TESTS_STORE_TALK_H
#define TESTS_STORE_TALK_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/store/store.h"
#include "tests/unit/folder.h"
#include "tests/unit/state_address.h"

/* The loop of these tests: replies wait here until await takes them. */
struct loop {
	pthread_mutex_t mutex;
	pthread_cond_t filled;
	struct {
		void (*call)(void *argument);
		void *argument;
	} calls[64];
	size_t count;
};

struct fixture {
	char folder[64], path[192];
	struct loop loop;
	struct store *store;
	struct store_call *answer;
	size_t answers, queued;
};

static inline void post(
	void *argument, void (*call)(void *argument), void (*drop)(void *argument), void *request)
{
	struct loop *loop = argument;

	assert_non_null(drop);
	pthread_mutex_lock(&loop->mutex);
	assert_true(loop->count < 64);
	loop->calls[loop->count].call = call;
	loop->calls[loop->count].argument = request;
	loop->count++;
	pthread_cond_signal(&loop->filled);
	pthread_mutex_unlock(&loop->mutex);
}

static inline void run_one(struct loop *loop)
{
	void (*call)(void *argument);
	void *argument;

	pthread_mutex_lock(&loop->mutex);
	while (loop->count == 0)
		pthread_cond_wait(&loop->filled, &loop->mutex);
	call = loop->calls[0].call;
	argument = loop->calls[0].argument;
	loop->count--;
	memmove(&loop->calls[0], &loop->calls[1], loop->count * sizeof *loop->calls);
	pthread_mutex_unlock(&loop->mutex);
	call(argument);
}

static inline void answered(struct store_call *call)
{
	struct fixture *fixture = call->context;

	fixture->answer = call;
	fixture->answers++;
}

/* Hands the call over; its answer comes to the fixture. */
static inline void submit(struct fixture *fixture, struct store_call *call)
{
	call->reply = answered;
	call->context = fixture;
	store_submit(fixture->store, call);
}

/* The same, and waits for the answer; the caller frees the call. */
static inline void ask(struct fixture *fixture, struct store_call *call)
{
	size_t before = fixture->answers;

	submit(fixture, call);
	while (fixture->answers == before)
		run_one(&fixture->loop);
}

/* The same for a call that succeeds, of which nothing is asked; frees it. */
static inline void done(struct fixture *fixture, struct store_call *call)
{
	ask(fixture, call);
	assert_false(call->failed);
	store_call_free(call);
}

static inline struct store *open_store(struct fixture *fixture, struct error *error)
{
	return store_open(fixture->path, post, &fixture->loop, error);
}

static inline void open_fixture(struct fixture *fixture)
{
	struct error error;

	fixture->store = open_store(fixture, &error);
	if (!fixture->store)
		fail_msg("%s", error.text);
}

static inline void reopen(struct fixture *fixture)
{
	store_close(fixture->store);
	open_fixture(fixture);
}

static inline int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);

	folder_new(fixture->folder, sizeof fixture->folder);
	state_new(fixture->folder, fixture->path, sizeof fixture->path);
	pthread_mutex_init(&fixture->loop.mutex, NULL);
	pthread_cond_init(&fixture->loop.filled, NULL);
	*state = fixture;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *fixture = *state;
	char command[128];

	store_close(fixture->store);
	state_drop(fixture->path);
	snprintf(command, sizeof command, "rm -rf %s", fixture->folder);
	free(fixture);
	return system(command);
}

static const struct attribute example_attributes[] = {
	{"build \"nightly\"", "17", "18"}, {"machine", NULL, "perf\n7"}};

static const struct deployment example_suspects[] = {
	{INT64_C(1699999300000), INT64_C(1699999400000), "b1", NULL},
	{INT64_C(1699999700000), INT64_C(1699999700000), NULL, "1.2 \"rc\""}};

static const struct change_record example = {
	.item = {.test = "db.read",
		.metric = "p99",
		.unit = "ns",
		.direction = -1,
		.time = INT64_C(1700000000000),
		.spacing = 60000,
		.change = {.pvalue = 1e-300,
			.mean_before = 1.5,
			.mean_after = 2.5,
			.stddev_before = 0.25,
			.stddev_after = 0,
			.count_before = 30,
			.count_after = 20,
			.magnitude = 0.6,
			.kind = CHANGE_TREND,
			.level_before = 1.25,
			.level_after = 3,
			.size = 140,
			.size_low = 1e-9,
			.size_high = 200},
		.slope = 0.25,
		.place_from = INT64_C(1699999400000),
		.place_to = INT64_C(1700000300000),
		.place_commit_before = "a0",
		.place_commit_after = "b3",
		.place_version_after = "1.2",
		.commit_before = "a1",
		.commit_after = "b2",
		.attributes = example_attributes,
		.attribute_count = 2,
		.suspects = {.known = true,
			.timed = true,
			.count = 2,
			.list = example_suspects,
			.listed = 2,
			.since = INT64_C(1699999200000),
			.until = INT64_C(1700000300000),
			.last = {INT64_MIN, INT64_C(-5000), "a0", NULL},
			.corrections = 1}},
	.series = "p99{region=\"eu\"}",
	.branch = "",
	.sign = 1,
	.state = CHANGE_CONFIRMED,
	.news = NOTIFY_PENDING,
	.first_seen = INT64_C(1700000600000),
};

static inline int64_t record_one(struct fixture *fixture, const struct change_record *record)
{
	struct store_record *request = store_record_new(NULL, NULL);
	struct change_record copy = *record;
	int64_t id;

	request->records.items = &copy;
	request->records.count = 1;
	ask(fixture, &request->call);
	assert_false(request->call.failed);
	id = copy.item.id;
	assert_true(id > 0);
	store_call_free(&request->call);
	return id;
}

static inline int64_t queue_for(
	struct fixture *fixture, int64_t change, const char *receiver, bool complete)
{
	struct store_queue *request = store_queue_new(NULL, NULL);
	struct delivery delivery = {
		.key = arena_printf(request->call.arena, "k%zu", ++fixture->queued),
		.receiver = receiver,
		.destination = "#perf",
		.payload = "{\"text\": \"x\"}",
		.now = 5,
		.changes = &change,
		.change_count = 1};
	struct decided_change settled = {.id = change};

	request->deliveries.items = &delivery;
	request->deliveries.count = 1;
	request->changes = &settled;
	request->change_count = complete;
	ask(fixture, &request->call);
	assert_false(request->call.failed);
	store_call_free(&request->call);
	assert_true(delivery.id > 0);
	return delivery.id;
}

static inline struct store_attempt *begin_attempt(struct fixture *fixture, int64_t delivery)
{
	struct store_attempt *request = store_attempt_new(NULL, NULL);

	request->delivery = (struct delivery){.id = delivery, .now = 7};
	ask(fixture, &request->call);
	assert_false(request->call.failed);
	return request;
}

/* Writes that the events are settled; how many more are due. */
static inline int64_t settle_events(struct fixture *fixture, const struct due_rows *events)
{
	struct store_queue *queue = store_queue_new(NULL, NULL);
	struct due_event *copies = arena_array(queue->call.arena, events->count, sizeof *copies);
	int64_t due;

	for (size_t i = 0; i < events->count; i++)
		copies[i].event = (struct event){
			.id = events->items[i].event.id, .reason = events->items[i].event.reason};
	queue->events = (struct due_rows){copies, events->count};
	ask(fixture, &queue->call);
	assert_false(queue->call.failed);
	due = queue->due.events;
	store_call_free(&queue->call);
	return due;
}

static inline int64_t queue_one(struct fixture *fixture, int64_t change)
{
	return queue_for(fixture, change, "slack", true);
}

static inline struct store_restore *restore(struct fixture *fixture)
{
	struct store_restore *restored = store_restore_new(NULL, NULL);

	ask(fixture, &restored->call);
	assert_false(restored->call.failed);
	return restored;
}

static inline struct store_pending *pending(struct fixture *fixture)
{
	struct store_pending *call = store_pending_new(NULL, NULL);

	ask(fixture, &call->call);
	assert_false(call->call.failed);
	return call;
}

static inline struct store_known *known(struct fixture *fixture, const char *test)
{
	struct store_known *request = store_known_new(NULL, NULL);

	request->test = test;
	ask(fixture, &request->call);
	assert_false(request->call.failed);
	return request;
}

static inline void settle_as(struct fixture *fixture, struct delivery *delivery)
{
	struct store_settle *request = store_settle_new(NULL, NULL);

	request->delivery = *delivery;
	ask(fixture, &request->call);
	assert_false(request->call.failed);
	store_call_free(&request->call);
}

static inline void settle(
	struct fixture *fixture, int64_t id, enum delivery_state state, int64_t attempts)
{
	settle_as(fixture, &(struct delivery){.id = id,
				   .state = state,
				   .receipt = "1503435956.000247",
				   .attempts = attempts,
				   .now = 9});
}

static inline int64_t count_rows(const struct fixture *fixture, const char *table)
{
	char sql[200];

	snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", table);
	return state_number(fixture->path, sql);
}

static inline void database_with(const struct fixture *fixture, const char *sql)
{
	state_execute(fixture->path, sql);
}

/* As a program would that is held to no CHECK. */
static inline void spoil(const struct fixture *fixture, const char *sql)
{
	char all[400];

	snprintf(all, sizeof all, "PRAGMA ignore_check_constraints = ON; %s", sql);
	database_with(fixture, all);
}

static inline void refused(struct fixture *fixture, const char *words)
{
	struct error error = {0};

	assert_null(open_store(fixture, &error));
	assert_int_equal(error.kind, ERROR_STATE);
	if (!strstr(error.text, words))
		fail_msg("\"%s\" does not say \"%s\"", error.text, words);
	assert_non_null(strstr(error.text, fixture->path));
}

static inline void not_of_a_file(void **state)
{
	(void)state;
	skip("it is about a state that is a file");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Of what only a file has. */
#define FILE_CASE(name)                                                                            \
	{                                                                                          \
#name, state_is_database() ? not_of_a_file : (name),                               \
			state_is_database() ? NULL : setup, state_is_database() ? NULL : teardown, \
			NULL                                                                       \
	}

#endif

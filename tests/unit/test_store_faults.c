/*
 * A disk that fails at each write in turn: what was answered well is there, what failed can be
 * asked again without a restart, and nothing is ever there by half.
 *
 * The story told here is that of a change, from being found to being withdrawn. With
 * HUNTER_TEST_FULL every write of it fails, else every eleventh.
 */
#include "unit.h"
#include <signal.h>
#include <sys/wait.h>

#include "tests/unit/faulty_vfs.h"
#include "tests/unit/store_talk.h"

enum { MOST_OPERATIONS = 1000, CHAPTERS = 7, TIMES = 3 };

/* What each chapter hands over; all of a chapter is there, or nothing of it. */
static struct store_call *tell_found(void)
{
	static const struct series_checkpoint checkpoint = {"p99", "", 10, 20, 1, 0};
	struct store_record *record = store_record_new(NULL, NULL);
	struct arena *arena = record->call.arena;

	record->records.items = arena_array(arena, 2, sizeof *record->records.items);
	record->records.items[0] = record->records.items[1] = example;
	record->records.count = 2;
	record->test = "db.read";
	record->checkpoints.items = arena_alloc(arena, sizeof checkpoint);
	*record->checkpoints.items = checkpoint;
	record->checkpoints.count = 1;
	return &record->call;
}

static const int64_t first_change = 1;
static const struct decided_change first_settled = {.id = 1};

static struct store_call *tell_queued(void)
{
	struct store_queue *queue = store_queue_new(NULL, NULL);

	queue->deliveries.items = arena_alloc(queue->call.arena, sizeof *queue->deliveries.items);
	*queue->deliveries.items = (struct delivery){.key = "k1",
		.receiver = "slack",
		.destination = "#perf",
		.payload = "{}",
		.now = 5,
		.changes = &first_change,
		.change_count = 1};
	queue->deliveries.count = 1;
	queue->changes = &first_settled;
	queue->change_count = 1;
	return &queue->call;
}

static struct store_call *tell_sent(void)
{
	struct store_settle *settle = store_settle_new(NULL, NULL);

	settle->delivery = (struct delivery){
		.id = 1, .state = DELIVERY_SENT, .receipt = "15.2", .attempts = 1, .now = 9};
	return &settle->call;
}

static struct store_call *tell_withdrawn(void)
{
	struct store_record *record = store_record_new(NULL, NULL);

	record->updates = arena_alloc(record->call.arena, sizeof *record->updates);
	*record->updates = (struct change_record_update){
		.id = 1, .time = 7, .now = 11, .state = CHANGE_WITHDRAWN, .item = &example.item};
	record->update_count = 1;
	return &record->call;
}

static struct store_call *tell_condition(void)
{
	struct store_queue *queue = store_queue_new(NULL, NULL);
	struct health_rows *health = &queue->health;

	health->conditions = arena_alloc(queue->call.arena, sizeof *health->conditions);
	*health->conditions = (struct condition){"source a", CONDITION_SOURCE, 3, "down", false};
	health->condition_count = 1;
	return &queue->call;
}

/* Enough to make the log longer than what it is cut back to, and to be copied into the file. */
static struct store_call *tell_much(void)
{
	struct store_record *record = store_record_new(NULL, NULL);
	size_t count = 400;

	record->records.items =
		arena_array(record->call.arena, count, sizeof *record->records.items);
	for (size_t i = 0; i < count; i++)
		record->records.items[i] = example;
	record->records.count = count;
	return &record->call;
}

static struct store_call *tell_pruned(void)
{
	struct store_prune *prune = store_prune_new(NULL, NULL);

	prune->before = 10;
	return &prune->call;
}

static const struct chapter {
	struct store_call *(*tell)(void);
	const char *rows; /* how many there are of what it makes, 0 before it */
	int64_t count;
} story[CHAPTERS] = {
	{tell_found, "changes WHERE id < 3", 2},
	{tell_queued, "changes WHERE news = 2", 1},
	{tell_sent, "events WHERE kind = 6", 1},
	{tell_withdrawn, "events WHERE kind = 4", 1},
	{tell_condition, "conditions", 1},
	{tell_much, "changes WHERE id > 2", 400},
	{tell_pruned, "changes WHERE id = 402 AND NOT EXISTS (SELECT 1 FROM deliveries)", 1},
};

static bool tell_chapter(struct fixture *fixture, const struct chapter *chapter)
{
	struct store_call *call = chapter->tell();
	bool failed;

	ask(fixture, call);
	failed = call->failed;
	if (failed && call->error->kind != ERROR_STATE)
		fail_msg("%s", call->error->text);
	store_call_free(call);
	return !failed;
}

static bool try_to_open(struct fixture *fixture)
{
	struct error error;

	fixture->store = open_store(fixture, &error);
	if (!fixture->store && strstr(error.text, "damaged"))
		fail_msg("%s", error.text);
	return fixture->store != NULL;
}

/* All chapters up to `told` are there; the next may be, if `doubt`; none after that. */
static void check_story(
	const struct fixture *fixture, size_t told, bool maybe_delivered, int number)
{
	struct arena *arena = arena_new();
	struct store_report report;
	struct error error;

	if (!store_check(fixture->path, arena, &report, &error))
		fail_msg("operation %d: %s", number, error.text);
	if (report.problems.count > 0)
		fail_msg("operation %d: %s", number, report.problems.items[0]);
	arena_free(arena);
	for (size_t i = 0; i < CHAPTERS; i++) {
		int64_t rows = count_rows(fixture, story[i].rows);
		bool there = rows == story[i].count;

		if ((i < told && !there) || (i > told && rows != 0) ||
			(i == told && rows != 0 && !(maybe_delivered && there)))
			fail_msg("operation %d, %zu chapters told: %d rows of chapter %zu", number,
				told, (int)rows, i);
	}
}

static void begin_anew(const struct fixture *fixture)
{
	char command[300];

	snprintf(command, sizeof command, "rm -f %s*", fixture->path);
	assert_int_equal(system(command), 0);
}

static int stride(void)
{
	return getenv("HUNTER_TEST_FULL") ? 1 : 11;
}

/* One operation fails, and all goes on: each chapter is told until it is taken. */
static void tell_with_one_failure(struct fixture *fixture, int number)
{
	begin_anew(fixture);
	faulty_disk_set(number, number);
	for (int i = 0; i < TIMES && !fixture->store; i++)
		try_to_open(fixture);
	assert_non_null(fixture->store);
	for (size_t i = 0; i < CHAPTERS; i++) {
		bool told = false;

		for (int times = 0; times < TIMES && !told; times++)
			told = tell_chapter(fixture, &story[i]);
		if (!told)
			fail_msg("operation %d: chapter %zu is not taken", number, i);
	}
	store_close(fixture->store);
	fixture->store = NULL;
}

static void test_one_failure_is_got_over(void **state)
{
	struct fixture *fixture = *state;
	int number = 1;

	for (; number < MOST_OPERATIONS; number += stride()) {
		bool fired;

		tell_with_one_failure(fixture, number);
		fired = faulty_disk.fired;
		faulty_disk_set(0, 0);
		check_story(fixture, CHAPTERS, false, number);
		if (!fired)
			break;
	}
	assert_in_range(number, 50, MOST_OPERATIONS - 1);
}

/* The child's: tells the story as far as it goes, and says so as its exit code. */
static void tell_and_die(struct fixture *fixture, int number)
{
	size_t told = 0;

	faulty_disk_set(number, INT_MAX);
	if (!try_to_open(fixture))
		_exit(0);
	while (told < CHAPTERS && tell_chapter(fixture, &story[told]))
		told++;
	_exit((int)told + 1);
}

/* From one operation on nothing goes any more, and the process dies without closing. */
static void test_dead_disk_and_dead_process(void **state)
{
	struct fixture *fixture = *state;
	size_t told = 0;
	int number = 1;

	for (; number < MOST_OPERATIONS && told < CHAPTERS; number += stride()) {
		int status;
		pid_t child;

		begin_anew(fixture);
		child = fork();
		assert_true(child >= 0);
		if (child == 0)
			tell_and_die(fixture, number);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		told = WEXITSTATUS(status) > 0 ? (size_t)WEXITSTATUS(status) - 1 : 0;
		open_fixture(fixture);
		store_close(fixture->store);
		fixture->store = NULL;
		check_story(fixture, told, true, number);
	}
	assert_in_range(number, 50, MOST_OPERATIONS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_one_failure_is_got_over),
		CASE(test_dead_disk_and_dead_process),
	};

	faulty_vfs_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

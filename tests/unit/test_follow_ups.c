/*
 * What was told is kept true: an agent on a clock that jumps, over restarts, with a receiver that
 * keeps what it is told until it is told otherwise, as an alert manager does.
 */
#include "unit.h"
#include <pthread.h>

#include "agent/deliver/follow_ups.h"
#include "agent_world.h"
#include "tests/unit/sanitized.h"

enum { TESTS = 1, STEP_AT = 6, REFRESH = 10 * MINUTE, PACE = 500, CALLS = 4000 };

/* When (engine's time of the world; 0: never) the test's data become others. */
struct course {
	int64_t back;      /* the old level is there again from this hour on */
	int64_t corrected; /* from then on the source knows of no change, ... */
	int64_t again;     /* ... from then on it does again */
	int64_t moves;     /* from then on it says that the change was two hours later */
	int64_t grows;     /* from then on it says that the change is three times as large */
};

/* The receiver: what it holds for true of a message. */
static struct {
	pthread_mutex_t lock;
	struct kept {
		char key[20];
		size_t firing; /* changes */
		int64_t time, told;
		double size;
		size_t sent, amended, refreshed;
	} kept[10];
	size_t count;
	int64_t calls[CALLS]; /* ms, follow-ups */
	size_t call_count;
	int64_t failing_until; /* ms, nothing works until then, ... */
	bool answers, deleted; /* ... it answers meanwhile; the message was deleted, once */
} outside = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct follow_ups *follow_ups;

const struct notifier *__real_notifier_find(const char *name);
const struct notifier *__wrap_notifier_find(const char *name);

static struct kept *kept_of(const char *key)
{
	size_t at = 0;

	while (at < outside.count && strcmp(outside.kept[at].key, key) != 0)
		at++;
	if (at == outside.count) {
		assert_true(at < sizeof outside.kept / sizeof *outside.kept);
		outside.kept[outside.count++] = (struct kept){0};
		snprintf(outside.kept[at].key, sizeof outside.kept[at].key, "%s", key);
	}
	return &outside.kept[at];
}

static enum step refuse(struct attempt *attempt, struct error *error)
{
	attempt->retry = true;
	attempt->retry_after = -1;
	attempt->answered = outside.answers;
	error_set(error, ERROR_DATA, "not now");
	return STEP_FAILED;
}

/* A payload is the number of changes. */
static bool render(const struct draft *draft)
{
	const struct message *message = draft->message;

	buf_printf(draft->payload, "%zu", message->kind <= MESSAGE_UPDATED ? message->count : 0);
	return true;
}

static enum step send(struct attempt *attempt, const struct reply *last)
{
	enum step step = STEP_DONE;

	(void)last;
	pthread_mutex_lock(&outside.lock);
	if (attempt->now < outside.failing_until) {
		step = refuse(attempt, attempt->error);
	} else if (strcmp(attempt->payload, "0") != 0) {
		struct kept *kept = kept_of(attempt->key);

		kept->firing = (size_t)strtoul(attempt->payload, NULL, 10);
		kept->sent++;
		attempt->receipt = "1";
	}
	pthread_mutex_unlock(&outside.lock);
	return step;
}

static void amend(struct kept *kept, const struct follow_up *follow_up)
{
	kept->firing = 0;
	for (size_t i = 0; i < follow_up->count; i++)
		kept->firing += !announced_is_over(&follow_up->changes[i]);
	kept->time = follow_up->changes[0].item.time;
	kept->told = follow_up->changes[0].told;
	kept->size = follow_up->changes[0].item.change.size;
	assert_non_null(follow_up->changes[0].item.dashboard);
	kept->amended++;
}

static enum step follow_up(struct attempt *attempt, const struct reply *last)
{
	enum step step = STEP_DONE;

	(void)last;
	pthread_mutex_lock(&outside.lock);
	assert_true(outside.call_count < CALLS);
	outside.calls[outside.call_count++] = attempt->now;
	assert_string_equal(attempt->receipt, "1");
	if (attempt->now < outside.failing_until) {
		step = refuse(attempt, attempt->error);
	} else if (outside.deleted) {
		outside.deleted = false;
		attempt->follow_up->gone = attempt->follow_up->deleted = true;
		error_set(attempt->error, ERROR_DATA, "no such object");
		step = STEP_FAILED;
	} else if (attempt->follow_up->kind == FOLLOW_UP_AMEND) {
		amend(kept_of(attempt->key), attempt->follow_up);
	} else {
		assert_int_equal(attempt->follow_up->kind, FOLLOW_UP_REFRESH);
		kept_of(attempt->key)->refreshed++;
	}
	pthread_mutex_unlock(&outside.lock);
	return step;
}

static bool yes(const void *options)
{
	(void)options;
	return true;
}

static int64_t refresh(const void *options)
{
	(void)options;
	return REFRESH;
}

const struct notifier *__wrap_notifier_find(const char *name)
{
	static struct notifier keeper;

	if (strcmp(name, "webhook") != 0)
		return __real_notifier_find(name);
	keeper = *__real_notifier_find(name);
	keeper.spacing = 1000;
	keeper.pace = PACE;
	keeper.render = render;
	keeper.step = send;
	keeper.amends = yes;
	keeper.refresh = refresh;
	keeper.follow_up = follow_up;
	return &keeper;
}

static bool has_come(int64_t time, int64_t now)
{
	return time != 0 && now >= time;
}

static int64_t level_at(const struct course *course, int64_t hour, int64_t now)
{
	int64_t from = STEP_AT + (has_come(course->moves, now) ? 2 : 0);

	if (has_come(course->corrected, now) && !has_come(course->again, now))
		return 1000;
	if (hour < from || (course->back != 0 && hour >= course->back))
		return 1000;
	return has_come(course->grows, now) ? 1300 : 1100;
}

/* A row for each hour that has passed. The follow-ups live as long as the agent does. */
static void write_rows(struct world *world, const char *test, int64_t now)
{
	const struct course *course = world->context;
	char path[96], fresh[96];
	FILE *file;

	snprintf(path, sizeof path, "%s/rows.csv", world->folder);
	snprintf(fresh, sizeof fresh, "%s/%s.fresh", world->folder, test);
	file = fopen(fresh, "w");
	assert_non_null(file);
	fputs("time,value\n", file);
	for (int64_t hour = -64; hour * HOUR <= now; hour++)
		fprintf(file, "%lld,%lld\n", (long long)((START + hour * HOUR) / 1000),
			(long long)(level_at(course, hour, now) + hour * hour % 7));
	fclose(file);
	assert_int_equal(rename(fresh, path), 0);
	if (follow_ups)
		return;
	follow_ups = follow_ups_new(&world->parts.agent);
	follow_ups_look(follow_ups);
}

static struct world *world_with(struct course *course)
{
	struct world *world = world_new();
	char test[250];

	world->before = write_rows;
	world->context = course;
	snprintf(test, sizeof test,
		"{type: csv, file: '%s/rows.csv', metrics: {value: {direction: -1}}, notify: "
		"[webhook],"
		" detection: {season: none}, dashboard: 'https://grafana.example/d/1'}",
		world->folder);
	world_configure(world,
		"webhook: {url: 'http://127.0.0.1:9'}\n"
		"agent: {interval: 10m, max_age: never}",
		test, TESTS);
	outside.count = outside.call_count = 0;
	outside.failing_until = 0;
	outside.answers = outside.deleted = false;
	return world;
}

static void follow(struct world *world, int64_t length)
{
	live(world, length);
	follow_ups_free(follow_ups);
	follow_ups = NULL;
}

/* A person says it of all changes while no agent runs. */
static void say(const struct world *world, enum triage_state state, int64_t until)
{
	struct store_triage *call = store_triage_new(NULL, NULL);
	struct error error;

	call->test = "*";
	call->triage = (struct triage){.state = state, .until = until};
	call->version = -1;
	call->actor = (struct actor){"ann", "command line"};
	call->now = START + world->passed;
	if (!store_tx(world->state, STORE_OWN, &call->call, &error))
		fail_msg("%s", error.text);
	assert_int_equal(call->changed, TESTS);
	store_call_free(&call->call);
}

/* The one message is there once, with so many changes that stand. */
static void assert_firing(size_t count)
{
	assert_int_equal(outside.count, 1);
	assert_int_equal(outside.kept[0].firing, count);
	assert_int_equal(outside.kept[0].sent, 1);
}

static void test_a_recovery_is_made_known(void **state)
{
	struct course course = {.back = 20};
	struct world *world = world_with(&course);

	(void)state;
	follow(world, 16 * HOUR);
	assert_firing(TESTS);
	assert_int_equal(outside.kept[0].amended, 0); /* nothing was new */
	follow(world, 20 * HOUR);
	assert_firing(0);
	assert_int_equal(outside.kept[0].told, outside.kept[0].time);
	world_free(world);
}

static void test_withdrawn_and_found_again(void **state)
{
	struct course course = {.corrected = 18 * HOUR, .again = 26 * HOUR};
	struct world *world = world_with(&course);

	(void)state;
	follow(world, 16 * HOUR);
	assert_firing(TESTS);
	follow(world, 5 * HOUR);
	assert_firing(0);
	follow(world, 10 * HOUR);
	assert_firing(TESTS);
	world_free(world);
}

static void test_a_move_is_made_known(void **state)
{
	struct course course = {.moves = 18 * HOUR};
	struct world *world = world_with(&course);

	(void)state;
	follow(world, 26 * HOUR);
	assert_firing(TESTS);
	assert_int_equal(outside.kept[0].told, START + STEP_AT * HOUR);
	assert_int_equal(outside.kept[0].time, START + (STEP_AT + 2) * HOUR);
	world_free(world);
}

/* As is what people say, and that it has expired. */
static void test_triage_is_made_known(void **state)
{
	struct course course = {0};
	struct world *world = world_with(&course);

	(void)state;
	follow(world, 16 * HOUR);
	assert_firing(TESTS);
	say(world, TRIAGE_ACKNOWLEDGED, -1);
	follow(world, HOUR);
	assert_firing(TESTS);
	assert_int_equal(outside.kept[0].amended, 1);
	say(world, TRIAGE_EXPECTED, START + 26 * HOUR);
	follow(world, HOUR);
	assert_firing(0);
	follow(world, 10 * HOUR);
	assert_firing(TESTS);
	assert_int_equal(outside.kept[0].amended, 3);
	world_free(world);
}

/* What becomes known while the message is on its way is not lost. */
static void test_what_ends_before_it_was_sent(void **state)
{
	struct course course = {.back = 20};
	struct world *world = world_with(&course);

	(void)state;
	outside.failing_until = START + 28 * HOUR;
	follow(world, 27 * HOUR);
	assert_int_equal(outside.count, 0);
	follow(world, 10 * HOUR);
	assert_firing(0);
	world_free(world);
}

static size_t calls_between(int64_t from, int64_t to)
{
	size_t count = 0;

	for (size_t i = 0; i < outside.call_count; i++)
		count += outside.calls[i] >= from && outside.calls[i] < to;
	return count;
}

/* Regularly, from the first moment of a process on, and no more when it is over. */
static void test_what_stands_is_said_again(void **state)
{
	struct course course = {.back = 30};
	struct world *world = world_with(&course);
	size_t before;

	(void)state;
	follow(world, 16 * HOUR);
	before = outside.kept[0].refreshed;
	assert_true(before > 6);
	follow(world, 10 * HOUR + REFRESH / 2);
	assert_in_range(outside.kept[0].refreshed - before, 60, 61);
	assert_in_range(calls_between(START + 16 * HOUR, START + 16 * HOUR + MINUTE), 1, 1);
	follow(world, 20 * HOUR);
	assert_firing(0);
	before = outside.kept[0].refreshed;
	follow(world, 10 * HOUR);
	assert_int_equal(outside.kept[0].refreshed, before);
	world_free(world);
}

#ifndef SANITIZED
/* A receiver that is away for days is told when it is back; one that refuses for days is not asked
 * for ever. */
static void test_trouble(void **state)
{
	(void)state;
	for (int answers = 0; answers < 2; answers++) {
		struct course course = {.back = 20};
		struct world *world = world_with(&course);

		follow(world, 16 * HOUR);
		assert_firing(TESTS);
		outside.failing_until = START + 16 * HOUR + 6 * DAY;
		outside.answers = answers;
		follow(world, 5 * DAY);
		assert_int_equal(calls_between(START + 16 * HOUR + 4 * DAY + 12 * HOUR,
					 START + 16 * HOUR + 5 * DAY) > 0,
			!answers);
		follow(world, 2 * DAY);
		assert_firing(answers ? TESTS : 0);
		world_free(world);
	}
}
#endif

/* It is sent again while a change stands. */
static void test_a_message_that_was_deleted(void **state)
{
	struct course course = {.moves = 18 * HOUR, .back = 36};
	struct world *world = world_with(&course);

	(void)state;
	follow(world, 17 * HOUR);
	assert_firing(TESTS);
	outside.deleted = true;
	outside.kept[0].firing = 0;
	follow(world, 5 * HOUR);
	assert_false(outside.deleted);
	assert_int_equal(outside.kept[0].sent, 2);
	assert_int_equal(outside.kept[0].firing, TESTS);
	assert_int_equal(outside.kept[0].time, START + (STEP_AT + 2) * HOUR);
	follow(world, 60 * HOUR);
	assert_int_equal(outside.kept[0].sent, 2);
	assert_int_equal(outside.kept[0].firing, 0);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_recovery_is_made_known),
		cmocka_unit_test(test_withdrawn_and_found_again),
		cmocka_unit_test(test_a_move_is_made_known),
		cmocka_unit_test(test_triage_is_made_known),
		cmocka_unit_test(test_what_ends_before_it_was_sent),
		cmocka_unit_test(test_what_stands_is_said_again),
#ifndef SANITIZED /* two weeks, in which the state is looked at every five seconds */
		cmocka_unit_test(test_trouble),
#endif
		cmocka_unit_test(test_a_message_that_was_deleted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

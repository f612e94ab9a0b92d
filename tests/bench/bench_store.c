/*
 * What the state takes when it holds a million changes of 10,000 tests, or as many as the second
 * argument says: writing them, opening it, and the questions that the agent and people ask. Prints
 * tab-separated rows of name, work, time, rate and memory for tests/bench/run; the state, whose
 * path or address is the first argument, stays.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/model/excerpt.h"
#include "agent/store/store.h"

enum {
	CHANGES = 100, /* of a test */
	AT_ONCE = 32,
	WRITES = 200,
	TRIAGED = 10000, /* changes, the first ones */
	SILENCES = 1000,
	POINTS = 200,
	PASS = 1000, /* changes that one run finds */
};

static const char *name = "store"; /* of the rows */
static int tests = 10000;

/* The loop: answers are handed from the store's thread to this one. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static struct store_call *answers[AT_ONCE + 1];
static size_t answer_count;

static void post(
	void *loop, void (*call)(void *argument), void (*drop)(void *argument), void *argument)
{
	(void)loop, (void)call, (void)drop;
	pthread_mutex_lock(&mutex);
	answers[answer_count++] = argument;
	pthread_cond_signal(&filled);
	pthread_mutex_unlock(&mutex);
}

static struct store_call *take(void)
{
	struct store_call *call;

	pthread_mutex_lock(&mutex);
	while (answer_count == 0)
		pthread_cond_wait(&filled, &mutex);
	call = answers[--answer_count];
	pthread_mutex_unlock(&mutex);
	if (call->failed) {
		fprintf(stderr, "bench_store: %s\n", call->error->text);
		exit(1);
	}
	return call;
}

static double seconds_since(int64_t start)
{
	return 1e-9 * (double)(clock_monotonic_ns() - start);
}

static void print_row(const char *work, double seconds, const char *rate)
{
	if (seconds >= 1)
		printf("%s\t%s\t%.3g s", name, work, seconds);
	else
		printf("%s\t%s\t%.3g ms", name, work, 1e3 * seconds);
	printf("\t%s\t\n", rate);
	fflush(stdout);
}

/* Points a day apart that a step of the change's size lies among, with noise. */
static struct packed_excerpt excerpt_of(struct arena *arena, int64_t time)
{
	static double values[POINTS];
	int64_t times[POINTS];

	for (int i = 0; i < POINTS; i++) {
		times[i] = time + (i - POINTS / 2) * INT64_C(86400000);
		if (values[i] == 0)
			values[i] = (i < POINTS / 2 ? 100 : 120) + (i * 7919 % 101) / 50.0;
	}
	return excerpt_pack(arena, times, values, POINTS, POINTS / 2, POINTS / 2);
}

static struct store_call *record_test(int number, int changes)
{
	struct store_record *request = store_record_new(NULL, NULL);
	struct arena *arena = request->call.arena;
	const char *test = arena_printf(arena, "service-%02d.benchmark-%05d", number % 50, number);

	request->test = test;
	request->records.items =
		arena_array(arena, (size_t)changes, sizeof *request->records.items);
	request->records.count = (size_t)changes;
	for (int i = 0; i < changes; i++) {
		struct change_record *record = &request->records.items[i];

		record->item = (struct announcement){.test = test,
			.metric = "p99",
			.unit = "ms",
			.direction = -1,
			.time = INT64_C(1700000000000) + i * INT64_C(86400000) + number,
			.change = {.pvalue = 1e-9,
				.mean_before = 100 + i,
				.mean_after = 120 + i,
				.level_before = 100 + i,
				.level_after = 120 + i,
				.size = 20,
				.size_low = 18,
				.size_high = 22,
				.stddev_before = 1,
				.stddev_after = 1.5,
				.count_before = 30,
				.count_after = 30,
				.magnitude = 0.2},
			.commit_before = arena_printf(arena, "%08x", 7919U * (unsigned)i),
			.commit_after = arena_printf(arena, "%08x", 7919U * (unsigned)i + 1)};
		record->series = "p99{region=\"eu\"}";
		record->branch = "";
		record->sign = 1;
		record->state = i % 10 == 0 ? CHANGE_WITHDRAWN : CHANGE_CONFIRMED;
		record->first_seen = record->item.time + 3600000;
		record->item.spacing = 86400000;
		record->item.excerpt = excerpt_of(arena, record->item.time);
	}
	request->checkpoints.items = arena_alloc(arena, sizeof *request->checkpoints.items);
	*request->checkpoints.items = (struct series_checkpoint){.series = "p99{region=\"eu\"}",
		.branch = "",
		.anchor = INT64_C(1700000000000),
		.last_point = INT64_C(1710000000000)};
	request->checkpoints.count = 1;
	return &request->call;
}

static void fill(struct store *store)
{
	int64_t start = clock_monotonic_ns();
	double seconds;
	char work[80], rate[40];

	for (int i = 0; i < tests + AT_ONCE; i++) {
		if (i >= AT_ONCE)
			store_call_free(take());
		if (i < tests)
			store_submit(store, record_test(i, CHANGES));
	}
	seconds = seconds_since(start);
	snprintf(rate, sizeof rate, "%.0f changes/s", tests * CHANGES / seconds);
	snprintf(work, sizeof work, "record %d changes of %d tests, on the disk", tests * CHANGES,
		tests);
	print_row(work, seconds, rate);
}

/* Makes the call and prints how long it takes; then `found` is a number of its answer. */
static void ask(struct store *store, const char *work, struct store_call *call,
	const int64_t *forgotten, const size_t *found)
{
	int64_t start = clock_monotonic_ns();
	double seconds;
	char text[40] = "";

	store_submit(store, call);
	(void)take();
	seconds = seconds_since(start);
	if (forgotten)
		snprintf(text, sizeof text, "%lld forgotten", (long long)*forgotten);
	else
		snprintf(text, sizeof text, "%zu found", *found);
	print_row(work, seconds, text);
	store_call_free(call);
}

/* One after the other, each on the disk before the next. */
static void write_often(struct store *store)
{
	int64_t start = clock_monotonic_ns();
	double seconds;
	char rate[40];

	for (int i = 0; i < WRITES; i++) {
		store_submit(store, store_probe_new());
		store_call_free(take());
	}
	seconds = seconds_since(start) / WRITES;
	snprintf(rate, sizeof rate, "%.0f writes/s", 1 / seconds);
	print_row("a write, on the disk", seconds, rate);
}

static void list(struct store *store, const char *work, struct change_filter filter)
{
	struct store_list *request = store_list_new(NULL, NULL);

	request->filter = filter;
	ask(store, work, &request->call, NULL, &request->records.count);
}

static void ask_all(struct store *store)
{
	struct store_known *known = store_known_new(NULL, NULL);

	known->test = "service-07.benchmark-00007";
	ask(store, "load the known changes of a test", &known->call, NULL, &known->records.count);
	write_often(store);
	list(store, "list the last 1,000", (struct change_filter){.limit = 1000});
	list(store, "list 1,000 by time",
		(struct change_filter){.limit = 1000, .since = INT64_C(1708000000000)});
	list(store, "list 1,000 by pattern, found at the very end",
		(struct change_filter){.limit = 1000, .test = "*.benchmark-0000?"});
}

static void wait_for(struct store *store, struct store_call *call)
{
	store_submit(store, call);
	store_call_free(take());
}

static int compare_seconds(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* What a run asks of the store that finds nothing new: what is known of its test, to record that,
 * and what is pending. The median of many, as others use the machine, too. */
static double run_often(struct store *store)
{
	double seconds[WRITES];

	for (int i = 0; i < WRITES; i++) {
		struct store_known *known = store_known_new(NULL, NULL);
		int64_t start = clock_monotonic_ns();

		known->test = arena_printf(
			known->call.arena, "service-%02d.benchmark-%05d", i % 50, i % 50);
		wait_for(store, &known->call);
		wait_for(store, &store_record_new(NULL, NULL)->call);
		wait_for(store, &store_pending_new(NULL, NULL)->call);
		seconds[i] = seconds_since(start);
	}
	qsort(seconds, WRITES, sizeof *seconds, compare_seconds);
	return seconds[WRITES / 2];
}

static void speak(struct store *store)
{
	const int64_t now = INT64_C(1710000000000);
	const struct actor actor = {"ann", "10.1.2.3"};
	struct id_range range = {1, TRIAGED};
	struct store_triage *said = store_triage_new(NULL, NULL);

	said->ranges = &range;
	said->range_count = 1;
	said->triage = (struct triage){.state = TRIAGE_EXPECTED, .note = "PR 4411", .until = -1};
	said->version = -1;
	said->actor = actor;
	said->now = now;
	ask(store, "accept 10,000 changes at once", &said->call, NULL, &said->changed);
	for (int i = 0; i < SILENCES; i++) {
		struct store_silence *call = store_silence_new(NULL, NULL);

		call->silence = (struct silence){
			.matchers = arena_printf(call->call.arena, "test=~\"x%d.*\"", i),
			.from = now,
			.until = now + i};
		call->actor = actor;
		wait_for(store, &call->call);
	}
}

/* What triage and silences add to each run. */
static void triage(struct store *store)
{
	double before, with;

	(void)run_often(store); /* from the disk, the first time */
	before = run_often(store);
	speak(store);
	with = run_often(store);
	print_row("what a run asks, without triage and silences", before, "100 changes");
	print_row("the same with 10,000 accepted changes and 1,000 silences", with, "");
	list(store, "list the 10,000 that were accepted",
		(struct change_filter){.triage = 1U << TRIAGE_EXPECTED});
	list(store, "the inbox: 1,000 of all that are open",
		(struct change_filter){.open = true, .limit = 1000});
}

static void prune(struct store *store)
{
	struct store_prune *request = store_prune_new(NULL, NULL);
	const char **names = arena_array(request->call.arena, (size_t)tests, sizeof *names);

	for (int i = 0; i < tests; i++)
		names[i] =
			arena_printf(request->call.arena, "service-%02d.benchmark-%05d", i % 50, i);
	request->tests = (struct strings){names, (size_t)tests};
	request->before = INT64_C(1800000000000);
	ask(store, "the daily search for what can be deleted", &request->call,
		&request->pruned.changes, NULL);
}

/* A run that finds many changes at once, in a state that holds a million. */
static void record_pass(struct store *store)
{
	struct store_call *call = record_test(tests, PASS);
	int64_t start = clock_monotonic_ns();

	wait_for(store, call);
	print_row("1,000 changes that one run has found", seconds_since(start), "");
}

static struct store *open_or_die(const char *path)
{
	struct error error;
	struct store *store = store_open(path, post, NULL, &error);

	if (store)
		return store;
	fprintf(stderr, "bench_store: %s\n", error.text);
	exit(1);
}

int main(int argc, char **argv)
{
	struct store *store;
	int64_t start;

	if (argc < 2 || argc > 4)
		return 2;
	if (argc > 2)
		tests = atoi(argv[2]) / CHANGES;
	if (tests < TRIAGED / CHANGES)
		return 2;
	if (strncmp(argv[1], "postgresql:", 11) == 0)
		name = "postgresql";
	if (argc < 4 || strcmp(argv[3], "fill") == 0) {
		store = open_or_die(argv[1]);
		fill(store);
		store_close(store);
	}
	if (argc == 4 && strcmp(argv[3], "ask") != 0)
		return 0;
	start = clock_monotonic_ns();
	store = open_or_die(argv[1]);
	store_submit(store, &store_restore_new(NULL, NULL)->call);
	store_call_free(take());
	print_row("open and check it, load queued messages", seconds_since(start), "");
	ask_all(store);
	triage(store);
	record_pass(store);
	prune(store);
	store_close(store);
	return 0;
}

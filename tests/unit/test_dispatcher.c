/*
 * The dispatcher with a real store, engine and receivers: one of them cannot be written to for a
 * while. Slack is played by a server of our own; what stdout gets is printed by this program.
 */
#include "unit.h"
#include <sqlite3.h>

#include "agent/cli/cli.h"
#include "agent/deliver/delivery_manager.h"
#include "agent/fleet/fleet.h"
#include "agent/notify/dispatcher.h"
#include "peer.h"
#include "tests/unit/folder.h"
#include "tests/unit/levels.h"
#include "tests/unit/state_count.h"

#define FIRST INT64_C(1699990000000)

static const char yaml[] =
	"slack: {bot_token: x, channels: [\"#perf\"], api_url: \"%s/api/\"}\n"
	"agent: {state: \"%s/state.db\"}\n"
	"tests:\n"
	"  db.read: {type: csv, file: a.csv, metrics: [p99], notify: [slack, stdout]}\n";

struct fixture {
	char folder[64], path[96], state[96];
	struct arena *arena;
	struct peer *slack;
	atomic_int replies; /* in the first post's thread */
	struct config *config;
	struct agent agent;
	struct delivery_manager *delivery_manager;
	struct dispatcher *dispatcher;
	struct store_call *answer;
};

/* Whether recoveries cannot be rendered for Slack, and whether it has no threads. */
static bool slack_is_mute, slack_is_flat;

const struct notifier *__real_notifier_find(const char *name);
const struct notifier *__wrap_notifier_find(const char *name);

static bool render_some(const struct draft *draft)
{
	if (draft->message->kind == MESSAGE_RECOVERED)
		return error_set(draft->error, ERROR_USAGE, "recoveries have no words");
	return slack_notifier.render(draft);
}

const struct notifier *__wrap_notifier_find(const char *name)
{
	static struct notifier changed;

	changed = slack_notifier;
	if (slack_is_mute)
		changed.render = render_some;
	if (slack_is_flat)
		changed.amends = NULL;
	return strcmp(name, "slack") == 0 ? &changed : __real_notifier_find(name);
}

static int64_t clock_at_rest(void)
{
	return INT64_C(1700000000000);
}

static int64_t an_hour_later(void)
{
	return clock_at_rest() + 3600000;
}

/* Says ok, and whether the post was a reply in the thread of the first. */
static bool serve(struct peer *peer, int fd, const char *request)
{
	atomic_int *replies = peer->context;

	if (strstr(request, "\"thread_ts\":\"1.0\""))
		atomic_fetch_add(replies, 1);
	peer_answer(fd, 200, "", "{\"ok\":true,\"ts\":\"1.0\"}");
	return true;
}

static void post(
	void *engine, void (*call)(void *argument), void (*drop)(void *argument), void *argument)
{
	engine_post(engine, call, drop, argument);
}

static const char *no_environment(void *context, const char *name)
{
	(void)context, (void)name;
	return NULL;
}

static void begin(struct fixture *f)
{
	struct config_source source = {.schema = &cli_schema, .env = no_environment};
	struct problems problems = {.arena = f->arena};
	struct error error;

	f->config = config_load(f->path, &source, &problems);
	assert_non_null(f->config);
	f->agent = (struct agent){.config = f->config, .now = clock_at_rest, .once = true};
	f->agent.engine = engine_new(&(struct engine_options){.jobs = 1}, &error);
	f->agent.metrics = metrics_new();
	f->agent.store = store_open(f->state, post, f->agent.engine, &error);
	assert_non_null(f->agent.store);
	f->delivery_manager = delivery_manager_new(&f->agent);
	f->dispatcher = dispatcher_new(&f->agent);
}

static void end(struct fixture *f)
{
	store_close(f->agent.store);
	engine_free(f->agent.engine);
	dispatcher_free(f->dispatcher);
	delivery_manager_free(f->delivery_manager);
	metrics_free(f->agent.metrics);
	config_free(f->config);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	FILE *file;

	folder_new(f->folder, sizeof f->folder);
	snprintf(f->path, sizeof f->path, "%s/hunter.yaml", f->folder);
	snprintf(f->state, sizeof f->state, "%s/state.db", f->folder);
	f->arena = arena_new();
	f->slack = peer_new(serve, &f->replies);
	file = fopen(f->path, "w");
	fprintf(file, yaml, f->slack->url, f->folder);
	fclose(file);
	begin(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	end(f);
	peer_free(f->slack);
	arena_free(f->arena);
	snprintf(command, sizeof command, "rm -rf %s", f->folder);
	free(f);
	return system(command);
}

/* Slack's options with and without channels: without, nobody knows where to post. */
static void set_channels(struct fixture *f, struct strings channels)
{
	struct receiver *receiver =
		(struct receiver *)(uintptr_t)agent_receiver(&f->agent, "slack");
	const struct field *field = field_find(slack_notifier.plugin.fields, "channels");
	char *options = arena_alloc(f->arena, slack_notifier.plugin.options_size);

	memcpy(options, receiver->options, slack_notifier.plugin.options_size);
	memcpy(options + field->offset, &channels, sizeof channels);
	receiver->options = options;
}

static void answered(struct store_call *call)
{
	struct fixture *f = call->context;

	f->answer = call;
}

/* Waits for the answer. */
static void ask(struct fixture *f, struct store_call *call)
{
	f->answer = NULL;
	call->reply = answered;
	call->context = f;
	store_client_call(&f->agent, call);
	assert_true(engine_run(f->agent.engine));
	assert_ptr_equal(f->answer, call);
	assert_false(call->failed);
}

static struct store_restore *restore(struct fixture *f)
{
	struct store_restore *restored = store_restore_new(NULL, NULL);

	ask(f, &restored->call);
	return restored;
}

static struct store_record *record_as(struct fixture *f, struct change_record record)
{
	struct store_record *request = store_record_new(NULL, NULL);

	request->records.items = arena_alloc(request->call.arena, sizeof record);
	request->records.items[0] = record;
	request->records.count = 1;
	ask(f, &request->call);
	return request;
}

static struct change_record change_at(const char *metric, int64_t time)
{
	return (struct change_record){.item = {.test = "db.read",
					      .metric = metric,
					      .time = time,
					      .change = {LEVELS(1, 2)}},
		.series = metric,
		.branch = "",
		.sign = 1,
		.state = CHANGE_CONFIRMED,
		.news = NOTIFY_PENDING,
		.first_seen = clock_at_rest()};
}

static struct store_record *record_at(struct fixture *f, const char *metric, int64_t time)
{
	return record_as(f, change_at(metric, time));
}

static struct store_record *record_spaced(struct fixture *f, const char *metric, int64_t spacing)
{
	struct change_record record = change_at(metric, FIRST);

	record.item.spacing = spacing;
	return record_as(f, record);
}

static struct store_record *record_one(struct fixture *f, const char *metric)
{
	return record_at(f, metric, FIRST);
}

static struct store_record *update_one(struct fixture *f, struct change_record_update update)
{
	struct store_record *request = store_record_new(NULL, NULL);

	request->updates = arena_alloc(request->call.arena, sizeof update);
	request->updates[0] = update;
	request->updates[0].now = update.now ? update.now : FIRST + 1;
	request->update_count = 1;
	ask(f, &request->call);
	return request;
}

static void add(struct fixture *f, struct store_record *recorded)
{
	agent_recorded(&f->agent, recorded);
	store_call_free(&recorded->call);
}

/* Takes over the answer. */
static void restore_from(struct fixture *f, struct store_restore *restored)
{
	dispatcher_restore(f->dispatcher, restored);
	store_call_free(&restored->call);
}

/* As a single pass does in the end. */
static void flush(struct fixture *f)
{
	do {
		dispatcher_flush(f->dispatcher);
		assert_true(engine_run(f->agent.engine));
	} while (dispatcher_is_due(f->dispatcher));
}

static void assert_told(struct fixture *f, int standard_output, int slack, int pending)
{
	assert_int_equal(
		state_count(f->state, "deliveries WHERE receiver = 'stdout' AND state = 2"),
		standard_output);
	assert_int_equal(
		state_count(f->state, "deliveries WHERE receiver = 'slack' AND state = 2"), slack);
	assert_int_equal(state_count(f->state, "changes WHERE news = 1"), pending);
	assert_int_equal(atomic_load(&f->slack->requests), slack);
}

static void test_all_are_told(void **state)
{
	struct fixture *f = *state;

	add(f, record_one(f, "p99"));
	flush(f);
	assert_told(f, 1, 1, 0);
	flush(f);
	assert_told(f, 1, 1, 0);
}

/* Of the message to Slack about the first change of a state. */
static void tell_first(struct fixture *f, int64_t first_seen, char key[static 40])
{
	struct change_record record = change_at("p99", FIRST);
	sqlite3 *database;
	sqlite3_stmt *statement;

	record.first_seen = first_seen;
	add(f, record_as(f, record));
	flush(f);
	assert_int_equal(sqlite3_open(f->state, &database), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(database,
				 "SELECT key FROM deliveries JOIN announced ON id = delivery"
				 " WHERE receiver = 'slack' AND change = 1",
				 -1, &statement, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	snprintf(key, 40, "%s", (const char *)sqlite3_column_text(statement, 0));
	sqlite3_finalize(statement);
	sqlite3_close(database);
}

/* A receiver that is asked for a message by its key does not find that of an earlier state, whose
 * changes had the same numbers. */
static void test_keys_of_another_state(void **state)
{
	struct fixture *f = *state;
	char key[40], other[40];

	tell_first(f, clock_at_rest(), key);
	end(f);
	assert_int_equal(unlink(f->state), 0);
	begin(f);
	tell_first(f, clock_at_rest() + 1, other);
	assert_string_not_equal(key, other);
}

/* What is withdrawn while it waits is told to nobody, and is no news that waits. */
static void test_withdrawn_before_it_was_told(void **state)
{
	struct fixture *f = *state;
	struct store_record *first = record_one(f, "p99"), *second = record_one(f, "p50");
	struct change_record_update update = {
		.id = first->records.items[0].item.id, .time = FIRST, .state = CHANGE_WITHDRAWN};

	add(f, first);
	add(f, second);
	add(f, update_one(f, update));
	flush(f);
	assert_told(f, 1, 1, 0);
	assert_int_equal(state_count(f->state, "announced"), 2);
	assert_int_equal(state_count(f->state, "changes WHERE state = 3 AND news = 3"), 1);
}

/* A change that was seen otherwise while it waited is told as it is by now. */
static void test_told_as_it_is_by_now(void **state)
{
	struct fixture *f = *state;
	struct store_record *first = record_one(f, "p99"), *update;
	struct announcement item = {.test = "db.read",
		.metric = "p99",
		.time = FIRST,
		.place_from = FIRST,
		.place_to = FIRST + 3600000,
		.place_commit_after = "c9",
		.slope = 0.5,
		.change = {LEVELS(1, 3), .kind = CHANGE_TREND}};

	update = update_one(f, (struct change_record_update){.id = first->records.items[0].item.id,
				       .time = FIRST,
				       .state = CHANGE_CONFIRMED,
				       .item = &item});
	add(f, first);
	add(f, update);
	item = (struct announcement){0};
	flush(f);
	assert_told(f, 1, 1, 0);
	assert_int_equal(
		state_count(f->state, "deliveries WHERE payload LIKE '%trend from 1 to 3 over %'"
				      " AND payload LIKE '% .. c9%'"),
		2);
}

static int64_t an_hour_earlier(void)
{
	return clock_at_rest() - 3600000;
}

static struct decision hold_all(void *context, struct change_record *record)
{
	*(int64_t *)context = record->handed;
	return (struct decision){HOLD, "waiting", 0};
}

/* Filters measure waits from when a change was first seen, whatever the clock and its updates do.
 */
static void test_a_wait_begins_once(void **state)
{
	struct fixture *f = *state;
	struct store_record *first = record_one(f, "p99");
	struct announcement item = first->records.items[0].item;
	struct change_record_update update = {.id = item.id,
		.time = FIRST,
		.now = clock_at_rest() - 1800000,
		.state = CHANGE_CONFIRMED,
		.item = &item};
	int64_t seen = 0, later = 0;

	dispatcher_filter(
		f->dispatcher, (struct filter){.name = "all", .judge = hold_all, .context = &seen});
	add(f, first);
	flush(f);
	assert_int_not_equal(seen, 0);
	later = seen;
	f->agent.now = an_hour_earlier;
	flush(f);
	assert_int_equal(seen, later);
	f->agent.now = an_hour_later;
	flush(f);
	assert_int_equal(seen, later);
	add(f, update_one(f, update));
	flush(f);
	assert_int_equal(seen, later);

	/* One of an agent whose clock is ahead is new all the same. */
	later = engine_now(f->agent.engine);
	f->agent.now = an_hour_earlier;
	add(f, record_one(f, "p95"));
	flush(f);
	assert_true(seen >= later);
}

/* Withdrawn between the reading of what is pending and the queueing of its message: nothing is
 * sent, and should it return, it is news. */
static void test_withdrawn_while_its_message_waits(void **state)
{
	struct fixture *f = *state;
	struct store_record *first = record_one(f, "p99");
	struct change_record_update update = {
		.id = first->records.items[0].item.id, .time = FIRST, .state = CHANGE_WITHDRAWN};

	add(f, first);
	dispatcher_flush(f->dispatcher);
	store_call_free(&update_one(f, update)->call);
	assert_told(f, 0, 0, 0);
	assert_int_equal(state_count(f->state, "deliveries WHERE state = 3"), 2);
	assert_int_equal(state_count(f->state, "changes WHERE state = 3 AND news = 3"), 1);
	add(f, record_one(f, "p50"));
	flush(f);
	assert_int_equal(state_count(f->state, "deliveries WHERE thread IS NOT NULL"), 0);
}

/* A message that has others to tell is sent, and then answered, where that is possible. */
static void test_told_after_it_was_withdrawn(void **state)
{
	struct fixture *f = *state;
	struct store_record *first = record_one(f, "p99");
	struct change_record_update update = {
		.id = first->records.items[0].item.id, .time = FIRST, .state = CHANGE_WITHDRAWN};

	add(f, first);
	add(f, record_one(f, "p50"));
	dispatcher_flush(f->dispatcher);
	store_call_free(&update_one(f, update)->call);
	flush(f); /* the round that its receipt has asked for */
	assert_told(f, 1, 2, 0);
	assert_int_equal(atomic_load(&f->replies), 1);
	assert_int_equal(
		state_count(f->state, "deliveries WHERE payload LIKE '%no longer found: p99%'"), 1);
}

static void withdraw(struct fixture *f, int64_t id)
{
	store_call_free(&update_one(f,
		(struct change_record_update){.id = id, .time = FIRST, .state = CHANGE_WITHDRAWN})
				 ->call);
}

/* The program ended when the withdrawal was recorded: the next one retracts it, and once. */
static void test_retracted_after_a_restart(void **state)
{
	struct fixture *f = *state;
	struct store_record *first = record_one(f, "p99");
	int64_t id = first->records.items[0].item.id;

	add(f, first);
	flush(f);
	assert_told(f, 1, 1, 0);
	withdraw(f, id);
	end(f);
	begin(f);
	restore_from(f, restore(f));
	flush(f);
	assert_told(f, 1, 2, 0);
	assert_int_equal(atomic_load(&f->replies), 1);
	assert_int_equal(
		state_count(f->state, "deliveries WHERE payload LIKE '%no longer found: p99%'"), 1);
	assert_int_equal(state_count(f->state, "events WHERE due IS NOT NULL"), 0);
	flush(f);
	assert_told(f, 1, 2, 0);
}

/* Found again before anybody was told that it was not: there is nothing to say. */
static void test_returned_before_it_was_retracted(void **state)
{
	struct fixture *f = *state;
	struct store_record *first = record_one(f, "p99"), *back;
	int64_t id = first->records.items[0].item.id;

	add(f, first);
	flush(f);
	withdraw(f, id);
	back = update_one(f,
		(struct change_record_update){.id = id, .time = FIRST, .state = CHANGE_CONFIRMED});
	add(f, back);
	flush(f);
	assert_told(f, 1, 1, 0);
	withdraw(f, id);
	flush(f);
	assert_told(f, 1, 2, 0);
	assert_int_equal(atomic_load(&f->replies), 1);
}

/* The one that can be told is told at once and once; the other when it can be. */
static void test_one_receiver_that_cannot_be_told(void **state)
{
	struct fixture *f = *state;
	struct strings channels = {(const char *const[]){"#perf"}, 1};
	struct buf text = {0};

	set_channels(f, (struct strings){0});
	add(f, record_one(f, "p99"));
	flush(f);
	assert_told(f, 1, 0, 1);
	assert_true(f->agent.misconfigured);
	metrics_print(f->agent.metrics, METRICS_TEXT, &text);
	assert_non_null(strstr(
		text.data, "hunter_deliveries_total{receiver=\"slack\",result=\"unwritten\"} 1"));
	buf_free(&text);
	add(f, record_one(f, "p50"));
	flush(f);
	assert_told(f, 2, 0, 2);
	set_channels(f, channels);
	flush(f);
	assert_told(f, 2, 1, 0);
	flush(f);
	assert_told(f, 2, 1, 0);
}

/* Until an hour later. */
static void silence(struct fixture *f)
{
	struct store_silence *silence = store_silence_new(NULL, NULL);

	silence->silence = (struct silence){.matchers = "test=\"db.read\"",
		.from = clock_at_rest(),
		.until = an_hour_later(),
		.owner = "ann",
		.reason = "migration"};
	silence->now = clock_at_rest();
	ask(f, &silence->call);
	silences_note(dispatcher_silences(f->dispatcher), &silence->written);
	store_call_free(&silence->call);
}

/* What a silence has held: a receiver that could not be written to gets the same message later. */
static void test_the_end_of_a_silence_for_whom_it_could_not_be_written(void **state)
{
	static const char *const names[] = {"#perf"};
	struct fixture *f = *state;

	silence(f);
	add(f, record_one(f, "p99"));
	flush(f);
	assert_told(f, 0, 0, 1);
	f->agent.now = an_hour_later;
	set_channels(f, (struct strings){0});
	flush(f);
	assert_told(f, 1, 0, 1);
	assert_int_equal(state_count(f->state, "silences WHERE summed = 1"), 0);
	set_channels(f, (struct strings){names, 1});
	flush(f);
	assert_told(f, 1, 1, 0);
	assert_int_equal(
		state_count(f->state, "deliveries WHERE payload LIKE '%1 of ann is over: migr%'"),
		2);
	assert_int_equal(state_count(f->state, "silences WHERE summed = 1"), 1);
}

static void change_state(struct fixture *f, const char *sql)
{
	sqlite3 *database;

	assert_int_equal(sqlite3_open(f->state, &database), SQLITE_OK);
	assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(database);
}

/* What is held is in no incident, so nothing is read of them. If that fails later, nothing is told,
 * and nothing lost. */
static void test_incidents_are_read_for_what_is_told(void **state)
{
	struct fixture *f = *state;

	silence(f);
	add(f, record_one(f, "p99"));
	change_state(f, "ALTER TABLE incidents RENAME TO away");
	flush(f);
	assert_told(f, 0, 0, 1);
	assert_false(f->agent.stateless);
	f->agent.now = an_hour_later;
	flush(f);
	assert_told(f, 0, 0, 1);
	assert_true(f->agent.stateless);
	change_state(f, "ALTER TABLE away RENAME TO incidents");
	flush(f);
	assert_told(f, 1, 1, 0);
	assert_int_equal(state_count(f->state, "silences WHERE summed = 1"), 1);
}

/* That is reported, and the others get to know. */
static void test_a_recovery_that_cannot_be_told(void **state)
{
	struct fixture *f = *state;
	struct store_record *first = record_one(f, "p99");
	struct change_record_update update = {.id = first->records.items[0].item.id,
		.time = FIRST,
		.state = CHANGE_RECOVERED,
		.over = {FIRST + 3600000, 1}};
	struct buf text = {0};

	add(f, first);
	flush(f);
	assert_told(f, 1, 1, 0);
	slack_is_mute = true;
	add(f, update_one(f, update));
	flush(f);
	slack_is_mute = false;
	assert_told(f, 2, 1, 0);
	assert_true(f->agent.misconfigured);
	metrics_print(f->agent.metrics, METRICS_TEXT, &text);
	assert_non_null(strstr(
		text.data, "hunter_deliveries_total{receiver=\"slack\",result=\"unwritten\"} 1"));
	buf_free(&text);
}

static void test_who_was_told_is_known_after_a_restart(void **state)
{
	struct fixture *f = *state;
	struct store_restore *restored;

	set_channels(f, (struct strings){0});
	add(f, record_one(f, "p99"));
	flush(f);
	assert_told(f, 1, 0, 1);
	end(f);
	begin(f);
	restored = restore(f);
	assert_int_equal(restored->call.counts->due.changes, 1);
	restore_from(f, restored);
	flush(f);
	assert_told(f, 1, 1, 0);
}

/* A silence that begins when one receiver has a change holds it back from the others. */
static void test_silenced_for_the_rest(void **state)
{
	static const char *const names[] = {"#perf"};
	struct fixture *f = *state;

	set_channels(f, (struct strings){0});
	add(f, record_one(f, "p99"));
	flush(f);
	assert_told(f, 1, 0, 1);
	silence(f);
	set_channels(f, (struct strings){names, 1});
	flush(f);
	assert_told(f, 1, 0, 1);
	assert_int_equal(state_count(f->state, "changes WHERE reason = 'covered by a silence'"), 1);
	f->agent.now = an_hour_later;
	flush(f);
	assert_told(f, 1, 1, 0);
	assert_int_equal(state_count(f->state, "changes WHERE reason IS NULL"), 1);
}

/* To those who are named and configured, through the outbox. */
static void test_notice(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = {"slack", "pager"};
	struct notice notice = {.subject = "prometheus",
		.text = "does not answer: connection refused",
		.time = INT64_C(1699990000000)};

	notices_queue(dispatcher_notices(f->dispatcher), &notice, &(struct strings){names, 2},
		store_queue_new(NULL, NULL));
	assert_true(engine_run(f->agent.engine));
	assert_told(f, 0, 1, 0);
	assert_int_equal(
		state_count(f->state, "deliveries WHERE payload LIKE '%:warning: *prometheus*  "
				      "<!date^1699990000^%|2023-11-14%'"),
		1);
	notice.recovered = true;
	notices_queue(dispatcher_notices(f->dispatcher), &notice, &(struct strings){names, 2},
		store_queue_new(NULL, NULL));
	assert_true(engine_run(f->agent.engine));
	assert_int_equal(state_count(f->state, "deliveries WHERE state = 2"), 2);
}

/* The program ended before a message was sent; what continues it is found after the restart, or was
 * in the outbox already. */
static void test_siblings_of_what_still_waits(void **state)
{
	struct fixture *f = *state;
	struct store_restore *restored;

	add(f, record_one(f, "p99"));
	flush(f);
	add(f, record_one(f, "p50"));
	flush(f);
	assert_int_equal(atomic_load(&f->replies), 1);
	end(f);
	change_state(f, "UPDATE deliveries SET state = 1, receipt = NULL, attempt_started = NULL");
	begin(f);
	restored = restore(f);
	assert_int_equal(restored->deliveries.count, 4);
	delivery_manager_add(f->delivery_manager, &restored->deliveries);
	restore_from(f, restored);
	add(f, record_one(f, "p75"));
	flush(f);
	assert_int_equal(
		state_count(f->state, "deliveries WHERE receiver = 'slack' AND state = 2"), 3);
	assert_int_equal(atomic_load(&f->replies), 3);
}

/* What is found later, of the same time, goes into the thread of what was told: also after a
 * restart, and not when too much time has passed. */
static void test_later_siblings_go_into_the_thread(void **state)
{
	struct fixture *f = *state;

	add(f, record_one(f, "p99"));
	flush(f);
	assert_int_equal(atomic_load(&f->replies), 0);
	add(f, record_one(f, "p50"));
	flush(f);
	assert_told(f, 2, 2, 0);
	assert_int_equal(atomic_load(&f->replies), 1);
	add(f, record_at(f, "p50", FIRST + 86400000));
	flush(f);
	assert_int_equal(atomic_load(&f->replies), 1);
	end(f);
	begin(f);
	restore_from(f, restore(f));
	add(f, record_one(f, "p75"));
	flush(f);
	assert_told(f, 4, 4, 0);
	assert_int_equal(atomic_load(&f->replies), 2);
	assert_int_equal(state_count(f->state, "deliveries WHERE thread IS NOT NULL"), 4);
	f->agent.now = an_hour_later;
	add(f, record_one(f, "p90"));
	flush(f);
	assert_told(f, 5, 5, 0);
	assert_int_equal(atomic_load(&f->replies), 2);
}

static int64_t a_day_later(void)
{
	return clock_at_rest() + 86400000;
}

/* Of the changes of a deployment one is confirmed by the first points after it, one by 24. */
static void test_siblings_within_confirmation(void **state)
{
	struct fixture *f = *state;

	add(f, record_spaced(f, "p99", 3600000));
	flush(f);
	f->agent.now = a_day_later;
	add(f, record_spaced(f, "p50", 3600000));
	flush(f);
	assert_int_equal(atomic_load(&f->replies), 1);
}

/* Slack is gone from the configuration when its message is resumed: stdout has its own, so
 * nobody is left to be told; what only Slack was told goes to stdout. */
static void test_a_receiver_that_is_gone(void **state)
{
	struct fixture *f = *state;
	struct store_restore *restored;

	f->agent.stopping = true; /* nothing leaves */
	add(f, record_one(f, "p99"));
	f->agent.stopping = false;
	dispatcher_flush(f->dispatcher);
	f->agent.stopping = true;
	assert_true(engine_run(f->agent.engine));
	assert_int_equal(state_count(f->state, "deliveries WHERE state = 1"), 2);
	end(f);
	begin(f);
	((struct config *)(uintptr_t)f->agent.config)->receivers =
		agent_receiver(&f->agent, "stdout");
	((struct config *)(uintptr_t)f->agent.config)->receiver_count = 1;
	restored = restore(f);
	delivery_manager_add(f->delivery_manager, &restored->deliveries);
	restore_from(f, restored);
	assert_true(engine_run(f->agent.engine));
	flush(f);
	assert_int_equal(
		state_count(f->state, "deliveries WHERE receiver = 'slack' AND state = 3"), 1);
	assert_int_equal(
		state_count(f->state, "deliveries WHERE receiver = 'stdout' AND state = 2"), 1);
	assert_int_equal(state_count(f->state, "deliveries WHERE state = 1"), 0);
	assert_int_equal(state_count(f->state, "changes WHERE news = 1"), 0);
	assert_int_equal(atomic_load(&f->slack->requests), 0);
}

static void count_hint(void *context)
{
	(*(int *)context)++;
}

/* Whether the record of a run hints at changes, and once; `news`: of a change. */
static bool is_hinted(struct agent *agent, int *hints, struct store_due due, enum notify_state news)
{
	struct store_record *recorded = store_record_new(NULL, NULL);
	struct store_counts counts = {.due = due};
	struct change_record record = {.news = news};
	int before = *hints;

	recorded->call.counts = &counts;
	recorded->records = (struct record_rows){&record, 1};
	agent_recorded(agent, recorded);
	store_call_free(&recorded->call);
	return *hints == before + 1;
}

/* A run hints at what it has left to announce, however often: what was there before may have been
 * announced meanwhile. Changes that a filter holds are not news. */
static void test_hints_of_a_run(void **state)
{
	struct agent agent = {0};
	int hints = 0;

	(void)state;
	agent_listen(&agent, HINT_CHANGES, count_hint, &hints);
	assert_false(is_hinted(&agent, &hints, (struct store_due){0}, NOTIFY_SILENT));
	for (int i = 0; i < 2; i++)
		assert_true(
			is_hinted(&agent, &hints, (struct store_due){.events = 1}, NOTIFY_SILENT));
	assert_false(is_hinted(&agent, &hints, (struct store_due){.held = 1}, NOTIFY_SILENT));
	assert_true(is_hinted(&agent, &hints, (struct store_due){.changes = 2}, NOTIFY_PENDING));
	assert_false(is_hinted(&agent, &hints, (struct store_due){.changes = 2}, NOTIFY_SILENT));
	assert_true(is_hinted(&agent, &hints, (struct store_due){.changes = 1}, NOTIFY_SILENT));
}

enum { RUNNER_SERIES = 12, FIRST_HIT = 8 };

static const char *series_on(struct fixture *f, const char *runner, size_t number)
{
	return arena_printf(f->arena, "p99{n=\"%zu\",runner=\"%s\"}", number, runner);
}

static void add_measured(struct fixture *f, struct environment_view *view, const char *runner,
	size_t number, bool changed)
{
	struct environment_series *series = &view->series[view->count++];

	*series = (struct environment_series){
		.key = environment_key("db.read", series_on(f, runner, number), "runner", runner),
		.environment = environment_hash("runner", runner),
		.first = FIRST - 86400000,
		.last = FIRST + 3600000};
	if (!changed)
		return;
	series->hits = arena_alloc(f->arena, sizeof *series->hits);
	*series->hits = (struct environment_hit){
		.time = FIRST, .spacing = 60000, .sign = 1, .verdict = 1, .size = 100};
	series->hit_count = 1;
}

/* A run in which so many series of the first of two runners have changed. */
static void see_runners(struct fixture *f, size_t changed)
{
	struct environment_view *view = arena_alloc(f->arena, sizeof *view);
	struct store_record *request = store_record_new(NULL, NULL);

	*view = (struct environment_view){
		.series = arena_array(f->arena, (size_t)2 * RUNNER_SERIES, sizeof *view->series)};
	for (size_t i = 0; i < RUNNER_SERIES; i++) {
		add_measured(f, view, "r1", i, i < changed);
		add_measured(f, view, "r2", i, false);
	}
	request->seen = &(struct seen_run){
		"db.read", "runner", clock_at_rest(), environment_view_put(f->arena, view)};
	ask(f, &request->call);
	add(f, request);
}

static void add_on_runner(struct fixture *f, size_t number, int64_t time)
{
	struct change_record record = {.item = {.test = "db.read",
					       .metric = series_on(f, "r1", number),
					       .environment = "r1",
					       .time = time,
					       .spacing = 60000,
					       .change = {LEVELS(1, 2)}},
		.series = series_on(f, "r1", number),
		.branch = "",
		.sign = 1,
		.state = CHANGE_CONFIRMED,
		.news = NOTIFY_PENDING,
		.first_seen = clock_at_rest()};

	add(f, record_as(f, record));
}

static void monitor_runners(struct fixture *f, struct config_ref *config_ref)
{
	const struct test **tests = arena_alloc(f->arena, sizeof *tests);

	*tests = config_test(f->config, "db.read");
	((struct test *)(uintptr_t)*tests)->environment = "runner";
	*config_ref = (struct config_ref){
		.config = f->config, .tests = tests, .test_count = 1, .holders = 1};
	f->agent.config_ref = config_ref;
}

/* What the tests' last runs saw is in the state. */
static void test_what_was_seen_before_a_restart(void **state)
{
	struct fixture *f = *state;
	struct config_ref config_ref;

	see_runners(f, FIRST_HIT);
	for (size_t i = 0; i < FIRST_HIT; i++)
		add_on_runner(f, i, FIRST);
	end(f);
	begin(f);
	monitor_runners(f, &config_ref);
	restore_from(f, restore(f));
	assert_int_equal(f->agent.due.changes, FIRST_HIT);
	flush(f);
	assert_int_equal(state_count(f->state, "environments WHERE hit = 8 AND told = 8"), 1);
	assert_told(f, 1, 1, 0);
	assert_int_equal(f->agent.due.changes, 0);
}

/* What hit a runner is told again when it has grown by a lot: also if the state could not be
 * written the first time. */
static void test_growth_that_cannot_be_written_at_first(void **state)
{
	struct fixture *f = *state;
	struct config_ref config_ref;

	monitor_runners(f, &config_ref);
	see_runners(f, FIRST_HIT);
	for (size_t i = 0; i < FIRST_HIT; i++)
		add_on_runner(f, i, FIRST);
	flush(f);
	assert_int_equal(state_count(f->state, "environments WHERE hit = 8 AND told = 8"), 1);
	assert_told(f, 1, 1, 0);
	see_runners(f, RUNNER_SERIES);
	add_on_runner(f, FIRST_HIT, FIRST);
	change_state(f, "CREATE TRIGGER full BEFORE INSERT ON deliveries"
			" BEGIN SELECT RAISE(ABORT, 'full'); END");
	flush(f);
	assert_told(f, 1, 1, 1);
	change_state(f, "DROP TRIGGER full");
	flush(f);
	assert_told(f, 2, 2, 0);
	assert_int_equal(state_count(f->state, "environments WHERE hit = 12 AND told = 12"), 1);
}

/* A joiner of what was told, and three incidents that were not. */
static void add_one_more_and_three(struct fixture *f)
{
	add(f, record_one(f, "p99"));
	flush(f);
	add(f, record_one(f, "p50"));
	add(f, record_at(f, "a", FIRST + 86400000));
	add(f, record_at(f, "b", FIRST + INT64_C(2) * 86400000));
	add(f, record_at(f, "c", FIRST + INT64_C(3) * 86400000));
	flush(f);
}

/* In the thread of the incident that was, nobody would see them. */
static void test_new_incidents_are_no_reply(void **state)
{
	struct fixture *f = *state;

	add_one_more_and_three(f);
	assert_int_equal(atomic_load(&f->replies), 0);
	assert_int_equal(state_count(f->state, "deliveries WHERE receiver = 'slack'"), 2);
}

static void test_a_receiver_of_new_changes_hears_of_each(void **state)
{
	struct fixture *f = *state;
	struct receiver *receiver =
		(struct receiver *)(uintptr_t)agent_receiver(&f->agent, "slack");

	receiver->events = 1u << MESSAGE_NEW;
	add_one_more_and_three(f);
	assert_int_equal(state_count(f->state, "deliveries WHERE receiver = 'slack'"), 2);
	add(f, record_one(f, "p95"));
	flush(f);
	assert_int_equal(state_count(f->state, "deliveries WHERE receiver = 'slack'"), 3);
}

static void add_worse(struct fixture *f, const char *metric, double after, double size)
{
	struct change_record record = change_at(metric, FIRST);

	record.item.change = (struct change){LEVELS(1, after)};
	record.item.change.size = size;
	record.item.direction = -1;
	add(f, record_as(f, record));
	flush(f);
}

static int count_loud(struct fixture *f)
{
	return state_count(f->state, "deliveries WHERE payload LIKE '%reply_broadcast%'");
}

/* What was withdrawn is no headline: the first regression that stands is shown in the channel. */
static void test_worse_than_what_stands(void **state)
{
	struct fixture *f = *state;

	add_worse(f, "p99", 2, 100);
	withdraw(f, 1);
	flush(f);
	add_worse(f, "p50", 1.9, 90);
	assert_int_equal(count_loud(f), 1);
}

/* While one receiver waits for more of the incident, another that has the change is told that it
 * has moved. */
static void test_moved_while_another_waits(void **state)
{
	struct fixture *f = *state;
	struct receiver *receiver =
		(struct receiver *)(uintptr_t)agent_receiver(&f->agent, "stdout");

	slack_is_flat = receiver->chose_events = true;
	add_worse(f, "p99", 2, 100);
	add_worse(f, "p50", 1.9, 90);
	assert_told(f, 2, 1, 1);
	add(f, update_one(f, (struct change_record_update){.id = 2,
				     .time = FIRST + 1000,
				     .now = clock_at_rest(),
				     .state = CHANGE_MOVED}));
	flush(f);
	assert_told(f, 3, 1, 1);
	f->agent.now = a_day_later;
	flush(f);
	assert_told(f, 3, 2, 0);
	slack_is_flat = false;
}

/* Two changes from zero, which have no size, are alike. */
static void test_not_worse_than_another_from_zero(void **state)
{
	struct fixture *f = *state;

	add_worse(f, "p99", 2, (double)NAN);
	add_worse(f, "p50", 2, (double)NAN);
	assert_int_equal(atomic_load(&f->replies), 1);
	assert_int_equal(count_loud(f), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_all_are_told),
		CASE(test_keys_of_another_state),
		CASE(test_withdrawn_before_it_was_told),
		CASE(test_told_as_it_is_by_now),
		CASE(test_a_wait_begins_once),
		CASE(test_withdrawn_while_its_message_waits),
		CASE(test_told_after_it_was_withdrawn),
		CASE(test_retracted_after_a_restart),
		CASE(test_returned_before_it_was_retracted),
		CASE(test_one_receiver_that_cannot_be_told),
		CASE(test_the_end_of_a_silence_for_whom_it_could_not_be_written),
		CASE(test_incidents_are_read_for_what_is_told),
		CASE(test_a_recovery_that_cannot_be_told),
		CASE(test_who_was_told_is_known_after_a_restart),
		CASE(test_silenced_for_the_rest),
		CASE(test_notice),
		CASE(test_siblings_of_what_still_waits),
		CASE(test_later_siblings_go_into_the_thread),
		CASE(test_siblings_within_confirmation),
		CASE(test_a_receiver_that_is_gone),
		CASE(test_what_was_seen_before_a_restart),
		CASE(test_growth_that_cannot_be_written_at_first),
		CASE(test_new_incidents_are_no_reply),
		CASE(test_a_receiver_of_new_changes_hears_of_each),
		CASE(test_worse_than_what_stands),
		CASE(test_moved_while_another_waits),
		CASE(test_not_worse_than_another_from_zero),
		CASE(test_hints_of_a_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

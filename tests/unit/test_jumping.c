/*
 * The engine's clock that jumps: it stands while anything is under way, and then goes to the next
 * timer at once.
 */
#include "unit.h"
#include <sys/stat.h>

#include "agent/base/clock.h"
#include "agent/io/engine.h"
#include "agent/io/timers.h"
#include "peer.h"
#include "sources/files/files.h"
#include "sources/prometheus/prometheus.h"
#include "tests/unit/waiting.h"

enum { HOUR = 3600000, SOON = 60000 /* ms of the machine's clock that no test takes */ };
#define YEAR (INT64_C(365) * 24 * HOUR)

static struct engine *engine_of(int64_t retry_delay)
{
	struct engine_options options = {.jobs = 2, .jumping = true, .retry_delay = retry_delay};
	struct error error;
	struct engine *engine = engine_new(&options, &error);

	assert_non_null(engine);
	return engine;
}

struct calls {
	struct engine *engine;
	struct alarm alarm;
	int64_t interval, times[16];
	size_t count, limit;
};

static void keep_time(void *context)
{
	struct calls *calls = context;

	assert_true(calls->count < 16);
	calls->times[calls->count++] = engine_now(calls->engine);
}

static void test_timers_come_in_order(void **state)
{
	(void)state;
	static const int64_t due[] = {0, 5, 5, HOUR, YEAR};
	static const int order[] = {3, 1, 4, 0, 2};
	struct calls calls = {.engine = engine_of(0)};
	int64_t before = clock_monotonic();

	for (size_t i = 0; i < 5; i++)
		engine_after(calls.engine, due[order[i]], keep_time, &calls);
	assert_true(engine_run(calls.engine));
	assert_int_equal(calls.count, 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(calls.times[i], due[i]);
	assert_int_equal(engine_now(calls.engine), YEAR);
	assert_true(clock_monotonic() - before < SOON);
	engine_free(calls.engine);
}

static void tick(void *context)
{
	struct calls *calls = context;

	calls->count++;
	if (calls->count < calls->limit)
		engine_alarm(
			calls->engine, &calls->alarm, engine_now(calls->engine) + calls->interval);
}

static void test_a_year_of_minutes(void **state)
{
	(void)state;
	struct calls calls = {.engine = engine_of(0), .interval = 60000, .limit = 525600};

	calls.alarm = (struct alarm){.call = tick, .context = &calls};
	engine_alarm(calls.engine, &calls.alarm, 60000);
	assert_true(engine_run(calls.engine));
	assert_int_equal(calls.count, 525600);
	assert_int_equal(engine_now(calls.engine), YEAR);
	engine_free(calls.engine);
}

/* A thread holds the engine and posts; a timer that is due much later must wait for it. */
struct held {
	struct engine *engine;
	pthread_t thread;
	bool timer, released;
};

static void release(void *context)
{
	struct held *held = context;

	assert_false(held->timer);
	assert_int_equal(engine_now(held->engine), 0);
	held->released = true;
	engine_release(held->engine);
}

static void *post_late(void *context)
{
	struct held *held = context;

	pause_for(50, "the loop is to have nothing to do meanwhile");
	engine_post(held->engine, release, NULL, held);
	return NULL;
}

static void after_release(void *context)
{
	struct held *held = context;

	assert_true(held->released);
	assert_int_equal(engine_now(held->engine), HOUR);
	held->timer = true;
}

static void test_time_stands_while_held(void **state)
{
	(void)state;
	struct held held = {.engine = engine_of(0)};

	engine_hold(held.engine);
	engine_after(held.engine, HOUR, after_release, &held);
	assert_int_equal(pthread_create(&held.thread, NULL, post_late, &held), 0);
	assert_true(engine_run(held.engine));
	pthread_join(held.thread, NULL);
	assert_true(held.timer);
	engine_free(held.engine);
}

/* A task: from a file that a thread writes late into a pipe, or from a server. */
struct prometheus_request {
	struct engine *engine;
	const char *fifo;
	struct test test;
	int done;
	bool failed;
	int64_t ended; /* engine_now */
	size_t points;
	int64_t timer;
};

static void keep_end(struct task *task)
{
	struct prometheus_request *asking = task->context;

	asking->done++;
	asking->failed = task->failed;
	asking->ended = engine_now(asking->engine);
	if (!task->failed)
		asking->points = task->query.data.series[0].axis->n;
	task_free(task);
}

static void submit(struct prometheus_request *asking)
{
	struct task *task = task_new(&asking->test, 1700001000000);

	task->done = keep_end;
	task->context = asking;
	engine_submit(asking->engine, task);
}

static void note_timer(void *context)
{
	struct prometheus_request *asking = context;

	assert_int_equal(asking->done, 1);
	asking->timer = engine_now(asking->engine);
}

static void *write_late(void *context)
{
	FILE *stream = fopen(context, "w");

	assert_non_null(stream);
	pause_for(50, "the loop is to have nothing to do meanwhile");
	fputs("time,value\n1700000000,1\n1700000001,2\n", stream);
	fclose(stream);
	return NULL;
}

static void test_time_stands_during_a_read(void **state)
{
	(void)state;
	static const struct plugin csv = {.name = "csv"};
	char path[] = "/tmp/hunter-jumping-XXXXXX";
	struct metric metric = {.name = "value", .scale = 1, .column = "value"};
	struct csv_options options = {0};
	struct prometheus_request asking = {.engine = engine_of(0)};
	pthread_t thread;

	assert_non_null(mkdtemp(path));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	field_defaults(csv_source.plugin.fields, &options);
	options.file = path;
	asking.test = (struct test){.name = "file",
		.source = &csv,
		.options = &options,
		.metrics = &metric,
		.metric_count = 1};
	engine_after(asking.engine, 1, note_timer, &asking);
	submit(&asking);
	assert_int_equal(pthread_create(&thread, NULL, write_late, path), 0);
	assert_true(engine_run(asking.engine));
	pthread_join(thread, NULL);
	assert_int_equal(asking.done, 1);
	assert_false(asking.failed);
	assert_int_equal(asking.points, 2);
	assert_int_equal(asking.ended, 0);
	assert_int_equal(asking.timer, 1);
	engine_free(asking.engine);
	unlink(path);
}

static bool answer_third(struct peer *peer, int fd, const char *request)
{
	(void)request;
	if (atomic_load(&peer->requests) < 3)
		peer_answer(fd, 503, "", "not now");
	else
		peer_answer(fd, 200, "",
			"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{"
			"\"metric\":{},\"values\":[[1700000000,\"1\"],[1700000060,\"2\"]]}]}}");
	return true;
}

/* An hour until a server is asked again, and two until the third time, pass at once. */
static void test_time_passes_until_a_request_is_repeated(void **state)
{
	(void)state;
	static const struct plugin plugin = {.name = "prometheus"};
	struct peer *peer = peer_new(answer_third, NULL);
	struct prometheus_server options;
	struct prometheus_options test_options = {0};
	struct server server = {.name = "prometheus", .source = &plugin, .options = &options};
	struct prometheus_request asking = {.engine = engine_of(HOUR)};
	int64_t before = clock_monotonic();

	memset(&options, 0, sizeof options);
	field_defaults(endpoint_fields, &options.endpoint);
	if (prometheus_source.plugin.server_fields)
		field_defaults(prometheus_source.plugin.server_fields, &options);
	options.endpoint.url = peer->url;
	options.endpoint.retry_for = YEAR;
	options.endpoint.max_body = 1 << 20;
	field_defaults(prometheus_source.plugin.fields, &test_options);
	test_options.query = "up";
	asking.test = (struct test){
		.name = "server", .source = &plugin, .server = &server, .options = &test_options};
	submit(&asking);
	assert_true(engine_run(asking.engine));
	assert_int_equal(asking.done, 1);
	assert_false(asking.failed);
	assert_true(atomic_load(&peer->requests) >= 3);
	assert_in_range(asking.ended, 3 * HOUR / 2, 3 * 3 * HOUR / 2);
	assert_true(clock_monotonic() - before < SOON);
	engine_free(asking.engine);
	peer_free(peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timers_come_in_order),
		cmocka_unit_test(test_a_year_of_minutes),
		cmocka_unit_test(test_time_stands_while_held),
		cmocka_unit_test(test_time_stands_during_a_read),
		cmocka_unit_test(test_time_passes_until_a_request_is_repeated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The engine with real sources: CSV files, and Prometheus played by a server of our own. Notifiers
 * are the tests' own, as they are handed to the engine by the caller.
 */
#include "unit.h"
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include "agent/base/clock.h"
#include "agent/io/engine.h"
#include "agent/io/timers.h"
#include "peer.h"
#include "sources/files/files.h"
#include "sources/prometheus/prometheus.h"
#include "tests/unit/waiting.h"

/*
 * A source of our own, whose read blocks in the kernel until a byte is written to a pipe: what a
 * file on a server that is gone does. The linker is told to hand look-ups to us first.
 */
static int stuck_pipe[2];

static bool read_stuck(struct query *query, struct error *error)
{
	char byte;
	query_notice(query, "began");
	if (read(stuck_pipe[0], &byte, 1) != 1)
		return error_set(error, ERROR_DATA, "no byte");
	query_notice(query, "%s ended", query->branch);
	return true;
}

static const struct source stuck_source = {.plugin.name = "stuck", .read = read_stuck};

/* And one that always has another question. */
static enum step ask_on(
	struct query *query, const struct reply *last, struct transfer *next, struct error *error)
{
	const struct prometheus_server *server = query->server;
	(void)last, (void)error;
	*next = (struct transfer){
		.endpoint = &server->endpoint, .method = "GET", .url = server->endpoint.url};
	return STEP_TRANSFER;
}

static const struct source curious_source = {.plugin.name = "curious", .step = ask_on};

const struct source *__real_source_find(const char *name);
const struct source *__wrap_source_find(const char *name);

const struct source *__wrap_source_find(const char *name)
{
	return strcmp(name, "stuck") == 0     ? &stuck_source
	       : strcmp(name, "curious") == 0 ? &curious_source
					      : __real_source_find(name);
}

static struct engine *engine_of(struct engine_options options)
{
	struct error error;
	struct engine *engine = engine_new(&options, &error);
	assert_non_null(engine);
	return engine;
}

/* A CSV file of `rows` rows and a test that reads it. */
struct feeder;

struct file_test {
	char path[32];
	struct csv_options options;
	struct metric metric;
	struct plugin plugin;
	struct test test;
	int done;
	bool failed;
	struct error error;
	size_t points;
	double sum;
	struct feeder *feeder;
};

static void file_test_set(struct file_test *file, int rows)
{
	*file = (struct file_test){.path = "/tmp/hunter-engine-XXXXXX"};
	int fd = mkstemp(file->path);
	FILE *stream = fdopen(fd, "w");
	fputs("time,value\n", stream);
	for (int i = 0; i < rows; i++)
		fprintf(stream, "%d,%d\n", 1700000000 + i, i);
	fclose(stream);
	field_defaults(csv_source.plugin.fields, &file->options);
	file->options.file = file->path;
	file->metric = (struct metric){.name = "value", .scale = 1, .column = "value"};
	file->plugin = (struct plugin){.name = "csv"};
	file->test = (struct test){.name = "file",
		.source = &file->plugin,
		.options = &file->options,
		.metrics = &file->metric,
		.metric_count = 1};
}

static bool add_up(struct task *task, struct scratch *scratch, struct error *error)
{
	(void)error;
	assert_non_null(scratch);
	double *sum = arena_alloc(task->query.arena, sizeof *sum);
	const struct series *series = &task->query.data.series[0];
	for (size_t i = 0; i < series->axis->n; i++)
		*sum += series->values[i];
	task->result = sum;
	return true;
}

static bool refuse(struct task *task, struct scratch *scratch, struct error *error)
{
	(void)task, (void)scratch;
	return error_set(error, ERROR_DATA, "no");
}

static void keep_result(struct task *task)
{
	struct file_test *file = task->context;
	file->done++;
	file->failed = task->failed;
	file->error = task->error;
	if (!task->failed) {
		file->points = task->query.data.count ? task->query.data.series[0].axis->n : 0;
		file->sum = task->result ? *(double *)task->result : 0;
	}
	task_free(task);
}

static struct task *file_task(struct file_test *file)
{
	struct task *task = task_new(&file->test, 1700001000000);
	task->done = keep_result;
	task->work = add_up;
	task->context = file;
	return task;
}

static void test_files_are_read_and_worked_on(void **state)
{
	(void)state;
	enum { FILES = 20 };
	struct file_test files[FILES];
	struct engine *engine = engine_of((struct engine_options){.jobs = 2});
	for (int i = 0; i < FILES; i++) {
		file_test_set(&files[i], 100 + i);
		engine_submit(engine, file_task(&files[i]));
	}
	assert_true(engine_run(engine));
	for (int i = 0; i < FILES; i++) {
		assert_int_equal(files[i].done, 1);
		assert_false(files[i].failed);
		assert_int_equal(files[i].points, 100 + i);
		assert_true(files[i].sum == (100 + i) * (99 + i) / 2);
		unlink(files[i].path);
	}
	engine_free(engine);
}

static void test_failures_are_told(void **state)
{
	(void)state;
	struct file_test missing, refused, bare;
	struct engine *engine = engine_of((struct engine_options){.jobs = 1});
	file_test_set(&missing, 1);
	unlink(missing.path);
	file_test_set(&refused, 1);
	file_test_set(&bare, 5);
	struct task *task = file_task(&refused);
	task->work = refuse;
	struct task *without = file_task(&bare);
	without->work = NULL;
	engine_submit(engine, file_task(&missing));
	engine_submit(engine, task);
	engine_submit(engine, without);
	assert_true(engine_run(engine));
	assert_true(missing.failed && refused.failed && !bare.failed);
	if (!strstr(missing.error.text, "no such file"))
		fail_msg("%s", missing.error.text);
	assert_string_equal(refused.error.text, "no");
	assert_int_equal(bare.points, 5);
	engine_free(engine);
	unlink(refused.path);
	unlink(bare.path);
}

static void test_freed_with_tasks_left(void **state)
{
	(void)state;
	struct file_test file;
	file_test_set(&file, 1000);
	struct engine *engine = engine_of((struct engine_options){.jobs = 2});
	for (int i = 0; i < 100; i++)
		engine_submit(engine, file_task(&file));
	engine_free(engine);
	assert_int_equal(file.done, 0);
	unlink(file.path);
}

static int released; /* tasks that nothing uses any more */

static void count_release(void *counter)
{
	(*(int *)counter)++;
}

static struct task *stuck_task(struct file_test *file)
{
	struct task *task = file_task(file);
	task->work = NULL;
	task->query.branch = arena_strdup(task->query.arena, "the branch");
	task->release = count_release;
	task->holder = &released;
	return task;
}

static void test_a_read_that_does_not_end(void **state)
{
	(void)state;
	static const struct plugin plugin = {.name = "stuck"};
	struct file_test stuck[5], file, reloaded;
	released = 0;
	struct engine *engine = engine_of((struct engine_options){.jobs = 1, .read_timeout = 20});
	assert_int_equal(pipe(stuck_pipe), 0);
	for (int i = 0; i < 5; i++) { /* one more than there are threads for reading */
		stuck[i] = (struct file_test){.plugin = plugin};
		stuck[i].test = (struct test){.name = "stuck",
			.source = &stuck[i].plugin,
			.fingerprint = (uint64_t)i + 1};
		engine_submit(engine, stuck_task(&stuck[i]));
	}
	file_test_set(&file, 3);
	engine_submit(engine, file_task(&file));
	assert_true(engine_run(engine));
	for (int i = 0; i < 5; i++) {
		assert_int_equal(stuck[i].done, 1);
		assert_non_null(strstr(stuck[i].error.text, "read timed out after"));
	}
	assert_int_equal(file.done, 1);
	assert_int_equal(file.points, 3);

	/* Once more: no other thread is spent on it. */
	engine_submit(engine, stuck_task(&stuck[0]));
	assert_true(engine_run(engine));
	assert_int_equal(stuck[0].done, 2);
	assert_non_null(strstr(stuck[0].error.text, "timed out and is still blocked"));

	/* Nor after the configuration was read again. */
	reloaded = stuck[0];
	engine_submit(engine, stuck_task(&reloaded));
	assert_true(engine_run(engine));
	assert_non_null(strstr(reloaded.error.text, "still blocked"));
	assert_int_equal(released, 2); /* what the five reads use is still held */
	assert_false(engine_free(engine));

	assert_int_equal(write(stuck_pipe[1], "12345", 5), 5);
	wait_until(engine_free(engine)); /* which does not wait for them */
	assert_int_equal(released, 7);
	close(stuck_pipe[0]);
	close(stuck_pipe[1]);
	unlink(file.path);
}

static void test_a_read_that_ends_late(void **state)
{
	(void)state;
	struct file_test stuck = {.plugin = {.name = "stuck"}};
	struct engine *engine = engine_of((struct engine_options){.jobs = 1, .read_timeout = 10});
	stuck.test = (struct test){.name = "stuck", .source = &stuck.plugin};
	assert_int_equal(pipe(stuck_pipe), 0);
	engine_submit(engine, stuck_task(&stuck));
	assert_true(engine_run(engine));
	assert_true(stuck.failed);
	assert_int_equal(write(stuck_pipe[1], "12", 2), 2);
	for (int runs = 2; stuck.failed; runs++) { /* until what was left has come back */
		engine_submit(engine, stuck_task(&stuck));
		assert_true(engine_run(engine));
		assert_int_equal(stuck.done, runs);
	}
	assert_true(engine_free(engine));
	close(stuck_pipe[0]);
	close(stuck_pipe[1]);
}

/* A pipe into which nobody writes costs no thread: the source itself notices. */
static void test_a_pipe_without_a_writer(void **state)
{
	(void)state;
	struct file_test file;
	struct engine *engine = engine_of((struct engine_options){.jobs = 1, .read_timeout = 50});
	file_test_set(&file, 0);
	unlink(file.path);
	assert_int_equal(mkfifo(file.path, 0600), 0);
	engine_submit(engine, file_task(&file));
	assert_true(engine_run(engine));
	assert_int_equal(file.done, 1);
	assert_non_null(strstr(file.error.text, "not read completely within 50ms"));
	assert_true(engine_free(engine));
	unlink(file.path);
}

/* Feeds rows into named pipes, one after the other, as soon as each is read. */
struct feeder {
	struct file_test files[30];
	int done[2];
	atomic_int fed;
};

static void *feed(void *context)
{
	struct feeder *feeder = context;
	for (int i = 0; i < 30; i++) {
		int fd = open(feeder->files[i].path, O_WRONLY | O_CLOEXEC);
		assert_int_equal(write(fd, "time,value\n1,2\n", 15), 15);
		atomic_fetch_add(&feeder->fed, 1);
		close(fd);
	}
	assert_int_equal(write(feeder->done[1], "x", 1), 1);
	return NULL;
}

static int fed_while_working;

/* The first work waits for all to be read, in vain. */
static bool watch_feeder(struct task *task, struct scratch *scratch, struct error *error)
{
	(void)scratch, (void)error;
	struct file_test *file = task->context;
	struct feeder *feeder = file->feeder;
	struct pollfd fd = {.fd = feeder->done[0], .events = POLLIN};
	if (fed_while_working == 0) {
		poll(&fd, 1, 500);
		fed_while_working = atomic_load(&feeder->fed);
	}
	return true;
}

/* Files are not read long before somebody can work on them. */
static void test_reading_does_not_run_ahead(void **state)
{
	(void)state;
	struct feeder *feeder = calloc(1, sizeof *feeder);
	struct engine *engine = engine_of((struct engine_options){.jobs = 1});
	pthread_t thread;
	assert_int_equal(pipe(feeder->done), 0);
	fed_while_working = 0;
	for (int i = 0; i < 30; i++) {
		struct file_test *file = &feeder->files[i];
		file_test_set(file, 0);
		unlink(file->path);
		assert_int_equal(mkfifo(file->path, 0600), 0);
		struct task *task = file_task(file);
		file->feeder = feeder;
		task->work = watch_feeder;
		engine_submit(engine, task);
	}
	pthread_create(&thread, NULL, feed, feeder);
	assert_true(engine_run(engine));
	pthread_join(thread, NULL);
	assert_in_range(fed_while_working, 1, 4 + 1 + 2);
	for (int i = 0; i < 30; i++) {
		assert_int_equal(feeder->files[i].done, 1);
		assert_int_equal(feeder->files[i].failed, 0);
		unlink(feeder->files[i].path);
	}
	assert_true(engine_free(engine));
	close(feeder->done[0]);
	close(feeder->done[1]);
	free(feeder);
}

/* Calls, timers and holds write letters. */
struct letters {
	struct engine *engine;
	char text[32];
	size_t length;
};

static void write_a(void *context)
{
	struct letters *letters = context;
	letters->text[letters->length++] = 'a';
}

static void write_c_and_stop(void *context)
{
	struct letters *letters = context;
	letters->text[letters->length++] = 'c';
	engine_stop(letters->engine);
}

/* Each is begun by the one before: a machine under load may be late with any of them. */
static void write_a_and_end(void *context)
{
	struct letters *letters = context;
	write_a(letters);
	if (letters->length == 4)
		engine_after(letters->engine, 10, write_c_and_stop, letters);
}

static void write_b_and_more(void *context)
{
	struct letters *letters = context;
	letters->text[letters->length++] = 'b';
	engine_after(letters->engine, 1, write_a_and_end, letters);
	engine_post(letters->engine, write_a_and_end, NULL, letters);
}

static void write_a_and_more(void *context)
{
	struct letters *letters = context;
	write_a(letters);
	engine_after(letters->engine, 10, write_b_and_more, letters);
}

static void test_timers_and_posts(void **state)
{
	(void)state;
	struct letters letters = {.engine = engine_of((struct engine_options){.jobs = 1})};
	assert_true(engine_run(letters.engine)); /* nothing to do */
	engine_after(letters.engine, 3600000, write_a, &letters);
	engine_post(letters.engine, write_a_and_more, NULL, &letters);
	int64_t before = clock_monotonic();
	assert_true(engine_run(letters.engine));
	assert_in_range(clock_monotonic() - before, 20, 10000);
	assert_string_equal(letters.text, "abaac");
	engine_free(letters.engine);
}

static void release(void *context)
{
	engine_release(context);
}

/* Calculations on the one worker there is, and a chore that needs them to go on meanwhile. */
struct calculations {
	sem_t chores;
	atomic_int at_once, most_at_once, done;
};

static void calculate(void *context)
{
	struct calculations *c = context;
	int now = atomic_fetch_add(&c->at_once, 1) + 1;

	if (now > atomic_load(&c->most_at_once))
		atomic_store(&c->most_at_once, now);
	sem_wait(&c->chores); /* all readers are free: the chores come */
	sched_yield();
	atomic_fetch_sub(&c->at_once, 1);
}

static void run_chore(void *context)
{
	sem_post(&((struct calculations *)context)->chores);
}

static void count_done(void *context)
{
	atomic_fetch_add(&((struct calculations *)context)->done, 1);
}

static void test_calculations_take_no_place_of_reads(void **state)
{
	enum { MANY = 8 };
	struct engine *engine = engine_of((struct engine_options){.jobs = 1});
	struct calculations c = {0};

	(void)state;
	sem_init(&c.chores, 0, 0);
	for (int i = 0; i < MANY; i++)
		engine_compute(engine, calculate, count_done, &c);
	for (int i = 0; i < MANY; i++)
		engine_run_blocking(engine, run_chore, count_done, &c);
	assert_true(engine_run(engine));
	assert_int_equal(atomic_load(&c.done), 2 * MANY);
	assert_int_equal(atomic_load(&c.most_at_once), 1);
	engine_free(engine);
	sem_destroy(&c.chores);
}

static void *post_release(void *engine)
{
	engine_post(engine, release, NULL, engine);
	return NULL;
}

static void test_a_hold_waits_for_a_post(void **state)
{
	(void)state;
	struct engine *engine = engine_of((struct engine_options){.jobs = 1});
	pthread_t thread;
	engine_hold(engine);
	pthread_create(&thread, NULL, post_release, engine);
	assert_true(engine_run(engine));
	pthread_join(thread, NULL);
	engine_free(engine);
}

/* What was posted and not called any more is handed to whoever drops it. */
static void test_posts_are_dropped(void **state)
{
	(void)state;
	struct letters letters = {.engine = engine_of((struct engine_options){.jobs = 1})};
	engine_post(letters.engine, write_c_and_stop, write_a, &letters);
	engine_post(letters.engine, write_c_and_stop, NULL, &letters);
	engine_free(letters.engine);
	assert_string_equal(letters.text, "a");
}

struct second_work {
	struct engine *engine;
	pthread_t loop;
	int works, ends;
	bool elsewhere;
};

static bool work_again(struct task *task, struct scratch *scratch, struct error *error)
{
	struct second_work *second = task->context;
	second->elsewhere = !pthread_equal(pthread_self(), second->loop);
	second->works++;
	return second->works < 2 || (scratch && error_set(error, ERROR_DATA, "the second time"));
}

static void worked_again(struct task *task)
{
	struct second_work *second = task->context;
	assert_true(pthread_equal(pthread_self(), second->loop));
	assert_true(second->elsewhere);
	if (second->ends++ == 0) {
		assert_false(task->failed);
		assert_int_equal(task->query.data.count, 1);
		engine_work(second->engine, task);
		return;
	}
	assert_true(task->failed);
	assert_string_equal(task->error.text, "the second time");
	task_free(task);
}

static void test_work_on_what_was_fetched(void **state)
{
	(void)state;
	struct engine *engine = engine_of((struct engine_options){.jobs = 2});
	struct second_work second = {.engine = engine, .loop = pthread_self()};
	struct file_test file;
	file_test_set(&file, 10);
	struct task *task = task_new(&file.test, 0);
	task->work = work_again;
	task->done = worked_again;
	task->context = &second;
	engine_submit(engine, task);
	assert_true(engine_run(engine));
	assert_int_equal(second.works, 2);
	assert_int_equal(second.ends, 2);
	unlink(file.path);
	engine_free(engine);
}

static void raise_term(void *context)
{
	(void)context;
	kill(getpid(), SIGTERM);
}

static void test_a_signal_ends_the_run(void **state)
{
	(void)state;
	struct letters letters = {
		.engine = engine_of((struct engine_options){.jobs = 1, .catch_signals = true})};
	engine_after(letters.engine, 0, raise_term, NULL);
	engine_after(letters.engine, 3600000, write_a, &letters);
	assert_false(engine_run(letters.engine));
	/* What was under way may be finished. */
	engine_after(letters.engine, 0, write_c_and_stop, &letters);
	assert_true(engine_run(letters.engine));
	assert_string_equal(letters.text, "c");
	engine_free(letters.engine);
}

static void raise_hangup(void *context)
{
	(void)context;
	kill(getpid(), SIGHUP);
}

static atomic_int worked; /* chores */

static void work(void *context)
{
	(void)context;
	worked++;
}

static void begin_chore(void *context)
{
	struct letters *letters = context;
	write_a(letters);
	engine_run_blocking(letters->engine, work, write_c_and_stop, letters);
}

/* A hangup is a call, and what is done for it may block. */
static void test_a_hangup_and_a_chore(void **state)
{
	(void)state;
	struct letters letters = {0};
	letters.engine = engine_of((struct engine_options){
		.jobs = 1, .catch_signals = true, .hangup = begin_chore, .context = &letters});
	engine_after(letters.engine, 0, raise_hangup, NULL);
	engine_hold(letters.engine);
	assert_true(engine_run(letters.engine));
	assert_string_equal(letters.text, "ac");
	assert_int_equal(worked, 1);

	engine_run_blocking(letters.engine, work, write_c_and_stop, &letters);
	engine_free(letters.engine);
	assert_string_equal(letters.text, "ac"); /* it was not done */
}

/* Tasks go no further, deliveries do. */
static void test_closed(void **state)
{
	(void)state;
	struct file_test file;
	struct letters letters = {.engine = engine_of((struct engine_options){.jobs = 1})};
	file_test_set(&file, 3);
	engine_close(letters.engine);
	struct task *task = file_task(&file);
	released = 0;
	task->release = count_release;
	task->holder = &released;
	engine_submit(letters.engine, task);
	engine_after(letters.engine, 10, write_c_and_stop, &letters);
	assert_true(engine_run(letters.engine));
	assert_int_equal(file.done, 0);
	engine_free(letters.engine);
	assert_int_equal(released, 1);
	unlink(file.path);
}

/* A simulated day of tests that run every minute and take their time: each run that ends sets the
 * alarm for its own next one, as the agent does. */
struct simulation {
	struct timers timers;
	struct alarm alarm;
	int64_t now, due[20], ends[20];
	int calls, runs;
};

static int64_t next_due(const struct simulation *simulation)
{
	int64_t due = INT64_MAX;
	for (size_t i = 0; i < 20; i++)
		if (simulation->due[i] < due)
			due = simulation->due[i];
	return due;
}

static void start_due(void *context)
{
	struct simulation *simulation = context;
	simulation->calls++;
	for (size_t i = 0; i < 20; i++)
		if (simulation->due[i] <= simulation->now) {
			simulation->due[i] = INT64_MAX;
			simulation->ends[i] = simulation->now + 1 + rand() % 70000;
		}
	timers_set_alarm(&simulation->timers, &simulation->alarm, next_due(simulation));
}

static void end_runs(struct simulation *simulation)
{
	for (size_t i = 0; i < 20; i++) {
		if (simulation->ends[i] > simulation->now)
			continue;
		simulation->ends[i] = INT64_MAX;
		simulation->due[i] = (simulation->now / 60000 + 1) * 60000 + (int64_t)i * 1000;
		simulation->runs++;
		timers_set_alarm(&simulation->timers, &simulation->alarm, next_due(simulation));
	}
}

static void test_alarms_do_not_multiply(void **state)
{
	(void)state;
	struct simulation simulation = {0};
	size_t most = 0;
	simulation.alarm = (struct alarm){.call = start_due, .context = &simulation};
	for (size_t i = 0; i < 20; i++) {
		simulation.due[i] = 1 + (int64_t)i * 20;
		simulation.ends[i] = INT64_MAX;
	}
	timers_set_alarm(&simulation.timers, &simulation.alarm, 1);
	srand(7);
	for (; simulation.now < INT64_C(86400000); simulation.now += 50) {
		timers_run(&simulation.timers, simulation.now);
		end_runs(&simulation);
		for (size_t i = 0; i < 20; i++)
			assert_true(simulation.due[i] > simulation.now - 50 ||
				    simulation.due[i] == INT64_MAX);
		if (simulation.timers.count > most)
			most = simulation.timers.count;
	}
	assert_true(simulation.runs > 20 * 24 * 60 / 2);
	assert_true(simulation.calls <= simulation.runs + 20);
	assert_true(most <= 40);
	timers_free(&simulation.timers);
}

static void test_timers_in_order(void **state)
{
	(void)state;
	struct letters letters = {0};
	struct timers timers = {0};
	int64_t due;
	assert_false(timers_next(&timers, &due));
	srand(3);
	for (int i = 0; i < 1000; i++)
		timers_add(&timers, rand() % 100, write_a, &letters);
	for (int64_t now = 0; now < 100; now++) {
		letters.length = 0;
		while (timers_next(&timers, &due) && due == now) {
			assert_true(letters.length < 31);
			struct timers before = timers;
			timers_run(&timers, now);
			assert_int_equal(before.count - timers.count, letters.length);
		}
		assert_true(!timers_next(&timers, &due) || due > now);
	}
	assert_int_equal(timers.count, 0);
	timers_free(&timers);
}

/* A guest counts how often it is served, through a pipe that it empties. */
struct guest_state {
	struct engine *engine;
	int fds[2], served, read;
};

static int64_t serve_guest(void *context)
{
	struct guest_state *guest = context;
	char byte;
	guest->served++;
	struct pollfd fd = {.fd = guest->fds[0], .events = POLLIN};
	if (poll(&fd, 1, 0) == 1 && read(guest->fds[0], &byte, 1) == 1)
		guest->read++;
	if (guest->read == 2 && guest->served >= 5)
		engine_stop(guest->engine);
	return guest->read == 2 ? 1 : -1;
}

static void write_byte(void *context)
{
	struct guest_state *guest = context;
	assert_int_equal(write(guest->fds[1], "x", 1), 1);
}

static void test_a_guest_is_served(void **state)
{
	(void)state;
	struct guest_state guest = {.engine = engine_of((struct engine_options){.jobs = 1})};
	assert_int_equal(pipe(guest.fds), 0);
	engine_host(guest.engine, guest.fds[0], serve_guest, &guest);
	assert_true(engine_run(guest.engine)); /* does not keep the loop going */
	engine_after(guest.engine, 1, write_byte, &guest);
	engine_after(guest.engine, 5, write_byte, &guest);
	engine_after(guest.engine, 3600000, write_byte, &guest);
	assert_true(engine_run(guest.engine));
	assert_int_equal(guest.read, 2);
	assert_int_equal(guest.served, 5);
	engine_unhost(guest.engine, guest.fds[0]);
	engine_free(guest.engine);
	close(guest.fds[0]);
	close(guest.fds[1]);
}

/* A notifier that posts its payload twice and keeps what it is told as receipt. */
static const struct endpoint *receiver;

static enum step step_twice(struct attempt *attempt, const struct reply *last)
{
	if (last && last->kind != REPLY_ANSWER) {
		attempt->retry = true;
		error_set(attempt->error, ERROR_DATA, "%s", last->problem);
		return STEP_FAILED;
	}
	if (last && attempt->receipt) {
		attempt->receipt =
			arena_printf(attempt->arena, "%s+%s", attempt->receipt, last->body);
		return STEP_DONE;
	}
	if (last)
		attempt->receipt = arena_strdup(attempt->arena, last->body);
	*attempt->next = (struct transfer){.kind = TRANSFER_HTTP,
		.endpoint = receiver,
		.method = "POST",
		.url = receiver->url,
		.body = attempt->payload,
		.body_length = strlen(attempt->payload)};
	return STEP_TRANSFER;
}

static const struct notifier twice = {.plugin.name = "twice", .step = step_twice};

struct outcome {
	bool done, sent;
	struct error error;
};

static void keep_outcome(
	struct attempt *attempt, bool sent, const struct error *error, void *context)
{
	struct outcome *outcome = context;
	(void)attempt;
	outcome->done = true;
	outcome->sent = sent;
	outcome->error = *error;
}

static bool answer_number(struct peer *peer, int fd, const char *request)
{
	(void)request;
	char text[16];
	snprintf(text, sizeof text, "%d", atomic_load(&peer->requests));
	peer_answer(fd, 200, "", text);
	return true;
}

static bool answer_503(struct peer *peer, int fd, const char *request)
{
	(void)peer, (void)request;
	peer_answer(fd, 503, "", "not now");
	return true;
}

static struct outcome deliver(struct engine *engine, struct attempt *attempt)
{
	struct outcome outcome = {0};
	engine_deliver(engine, &twice, attempt, keep_outcome, &outcome);
	assert_true(engine_run(engine));
	assert_true(outcome.done);
	return outcome;
}

static void test_deliveries(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_number, NULL);
	char url[64];
	strcpy(url, peer->url);
	struct endpoint endpoint = {.url = url,
		.timeout = 5000,
		.connect_timeout = 5000,
		.max_body = 1000,
		.max_concurrent = 1};
	receiver = &endpoint;
	struct engine *engine = engine_of((struct engine_options){.jobs = 1});
	struct attempt attempt = {.arena = arena_new(), .payload = "news"};
	assert_true(deliver(engine, &attempt).sent);
	assert_string_equal(attempt.receipt, "1+2");
	assert_true(peer_saw(peer, "\r\n\r\nnews"));
	peer_free(peer);

	attempt.receipt = NULL; /* nobody is there any more */
	struct outcome outcome = deliver(engine, &attempt);
	assert_false(outcome.sent);
	assert_true(attempt.retry);
	if (!strstr(outcome.error.text, "cannot reach"))
		fail_msg("%s", outcome.error.text);

	peer = peer_new(answer_503, NULL); /* nothing is sent twice unasked */
	strcpy(url, peer->url);
	assert_true(deliver(engine, &attempt).sent);
	assert_int_equal(atomic_load(&peer->requests), 2);
	engine_free(engine);
	peer_free(peer);
	arena_free(attempt.arena);
}

/* A notifier that prints its payload once. */
static enum step say_step(struct attempt *attempt, const struct reply *last)
{
	if (last && last->kind == REPLY_ANSWER)
		return STEP_DONE;
	if (last) {
		error_set(attempt->error, ERROR_STATE, "%s", last->problem);
		return STEP_FAILED;
	}
	*attempt->next = (struct transfer){.kind = TRANSFER_STDOUT,
		.body = attempt->payload,
		.body_length = strlen(attempt->payload)};
	return STEP_TRANSFER;
}

static const struct notifier say = {.plugin.name = "say", .step = say_step};

/* Standard output is a small pipe, or a file, while `kept` holds the real one. */
struct stage {
	struct engine *engine;
	int kept, ends[2];
};

static void stage_set(struct stage *stage, int fd)
{
	fflush(stdout);
	stage->kept = dup(STDOUT_FILENO);
	dup2(fd, STDOUT_FILENO);
}

static void stage_clear(struct stage *stage)
{
	dup2(stage->kept, STDOUT_FILENO);
	close(stage->kept);
}

enum { LONG_TEXT = 20000 };

static const char *long_text(struct arena *arena, char begin)
{
	char *text = arena_alloc(arena, LONG_TEXT + 1);
	for (int i = 0; i < LONG_TEXT; i++)
		text[i] = (char)(begin + i % 26);
	return text;
}

/* Reads some of what is printed, once there is some, and goes away. */
static void read_some(void *context)
{
	struct stage *stage = context;
	struct pollfd fd = {.fd = stage->ends[0], .events = POLLIN};
	char text[4096];
	if (poll(&fd, 1, 0) == 0) {
		engine_after(stage->engine, 1, read_some, stage);
		return;
	}
	assert_true(read(stage->ends[0], text, sizeof text) > 0);
	close(stage->ends[0]);
}

static void *read_all(void *context)
{
	struct stage *stage = context;
	char *text = calloc(1, 3 * LONG_TEXT);
	size_t length = 0;
	ssize_t got;
	while ((got = read(stage->ends[0], text + length, 3 * LONG_TEXT - length)) > 0)
		length += (size_t)got;
	return text;
}

/* The first call of a timer: the loop is alive, though nobody reads. Then somebody does. */
static void start_reader(void *context)
{
	pthread_t *thread = (pthread_t *)((void **)context)[1];
	pthread_create(thread, NULL, read_all, ((void **)context)[0]);
}

static void test_printing_does_not_hold_up_the_loop(void **state)
{
	(void)state;
	struct stage stage;
	struct engine *engine = engine_of((struct engine_options){.jobs = 2});
	struct arena *arena = arena_new();
	struct attempt deliveries[2] = {{.arena = arena, .payload = long_text(arena, 'a')},
		{.arena = arena, .payload = long_text(arena, 'A')}};
	struct outcome outcomes[2] = {0};
	pthread_t thread;
	void *context[] = {&stage, &thread}, *text;
	assert_int_equal(pipe(stage.ends), 0);
	assert_true(fcntl(stage.ends[1], F_SETPIPE_SZ, 4096) > 0);
	stage_set(&stage, stage.ends[1]);
	for (int i = 0; i < 2; i++)
		engine_deliver(engine, &say, &deliveries[i], keep_outcome, &outcomes[i]);
	engine_after(engine, 20, start_reader, context);
	bool ran = engine_run(engine);
	close(stage.ends[1]);
	stage_clear(&stage);
	assert_true(ran);
	pthread_join(thread, &text);
	for (int i = 0; i < 2; i++)
		assert_true(outcomes[i].sent);
	/* Whole, and one after the other, whichever came first. */
	assert_int_equal(strlen(text), 2 * LONG_TEXT);
	int first = *(char *)text == 'a' ? 0 : 1;
	assert_memory_equal(text, deliveries[first].payload, LONG_TEXT);
	assert_memory_equal((char *)text + LONG_TEXT, deliveries[1 - first].payload, LONG_TEXT);
	free(text);
	close(stage.ends[0]);
	assert_true(engine_free(engine));
	arena_free(arena);
}

/* What follows a text that was cut off begins on a line of its own, and is printed whole. */
static void test_a_print_that_was_cut_off(void **state)
{
	(void)state;
	char path[] = "/tmp/hunter-stdout-XXXXXX", rest[2 * LONG_TEXT + 2] = "";
	struct stage stage;
	struct engine *engine =
		engine_of((struct engine_options){.jobs = 1, .catch_signals = true});
	struct attempt attempt = {.arena = arena_new()};
	struct outcome outcome = {0};
	attempt.payload = long_text(attempt.arena, 'a');
	assert_int_equal(pipe(stage.ends), 0);
	assert_true(fcntl(stage.ends[1], F_SETPIPE_SZ, 4096) > 0);
	stage_set(&stage, stage.ends[1]);
	close(stage.ends[1]);
	engine_deliver(engine, &say, &attempt, keep_outcome, &outcome);
	stage.engine = engine;
	engine_after(engine, 20, read_some, &stage);
	bool ran = engine_run(engine);
	stage_clear(&stage);
	assert_true(ran && outcome.done);
	assert_false(outcome.sent);
	assert_string_equal(outcome.error.text, "standard output: Broken pipe");

	int fd = mkstemp(path);
	stage_set(&stage, fd);
	for (int i = 0; i < 2; i++)
		engine_deliver(engine, &say, &attempt, keep_outcome, &outcome);
	ran = engine_run(engine);
	stage_clear(&stage);
	assert_true(ran && outcome.sent);
	ssize_t length = pread(fd, rest, sizeof rest - 1, 0);
	assert_int_equal(length, 1 + 2 * LONG_TEXT);
	assert_int_equal(rest[0], '\n');
	assert_memory_equal(rest + 1, attempt.payload, LONG_TEXT);
	assert_memory_equal(rest + 1 + LONG_TEXT, attempt.payload, LONG_TEXT);
	close(fd);
	unlink(path);
	assert_true(engine_free(engine));
	arena_free(attempt.arena);
}

/* A test of Prometheus played by a peer, whose answers are numbered from 0. */
struct server_test {
	struct prometheus_server prometheus;
	struct prometheus_options options;
	struct plugin plugin;
	struct server server;
	struct test test;
	int done, failed;
	size_t points;
	struct error error;
};

#define MATRIX                                                                                     \
	"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric\":{},"  \
	"\"values\":[[1700000000,\"1\"],[1700000001,\"2\"]]}]}}"

static void server_test_set(struct server_test *test, const char *url)
{
	*test = (struct server_test){
		.prometheus = {.endpoint = {.url = url,
				       .timeout = 5000,
				       .connect_timeout = 5000,
				       .max_concurrent = 4,
				       .max_body = 100000},
			.flavor = FLAVOR_PROMETHEUS},
		.options = {.query = "up", .range = 3600000},
		.plugin = {.name = "prometheus"},
	};
	test->server = (struct server){.name = "prometheus", .options = &test->prometheus};
	test->test = (struct test){.name = "server",
		.source = &test->plugin,
		.server = &test->server,
		.options = &test->options};
}

static void keep_points(struct task *task)
{
	struct server_test *test = task->context;
	test->done++;
	test->failed += task->failed;
	test->error = task->error;
	if (!task->failed && task->query.data.count == 1)
		test->points += task->query.data.series[0].axis->n;
	task_free(task);
}

static struct task *server_task(struct server_test *test)
{
	struct task *task = task_new(&test->test, 1700000100000);
	task->done = keep_points;
	task->context = test;
	return task;
}

static bool answer_matrix(struct peer *peer, int fd, const char *request)
{
	(void)peer, (void)request;
	peer_answer(fd, 200, "", MATRIX);
	return true;
}

static bool answer_at_last(struct peer *peer, int fd, const char *request)
{
	(void)request;
	int number = atomic_load(&peer->requests);
	if (number == 1)
		peer_answer(fd, 503, "Retry-After: 0\r\n", "not now");
	else if (number == 2)
		peer_reset(fd);
	else
		peer_answer(fd, 200, "", MATRIX);
	return number != 2;
}

static bool answer_429(struct peer *peer, int fd, const char *request)
{
	(void)request;
	peer_answer(fd, 429, peer->context, "slow down");
	return true;
}

static void test_many_questions_to_a_server(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_matrix, NULL);
	struct engine *engine = engine_of((struct engine_options){.jobs = 2});
	struct server_test test;
	server_test_set(&test, peer->url);
	for (int i = 0; i < 300; i++)
		engine_submit(engine, server_task(&test));
	assert_true(engine_run(engine));
	assert_int_equal(test.done, 300);
	assert_int_equal(test.points, 600);
	assert_in_range(atomic_load(&peer->most_at_once), 1, 4);
	engine_free(engine);
	peer_free(peer);
}

static int ask_once_within(struct peer *peer, struct server_test *test, int64_t retry_for)
{
	struct engine *engine = engine_of((struct engine_options){.jobs = 1, .retry_delay = 1});
	server_test_set(test, peer->url);
	test->prometheus.endpoint.retry_for = retry_for;
	engine_submit(engine, server_task(test));
	assert_true(engine_run(engine));
	assert_int_equal(test->done, 1);
	engine_free(engine);
	return atomic_load(&peer->requests);
}

static int ask_once(struct peer *peer, struct server_test *test)
{
	return ask_once_within(peer, test, 30000);
}

static void test_questions_are_repeated(void **state)
{
	(void)state;
	struct server_test test;
	struct peer *peer = peer_new(answer_at_last, NULL);
	assert_int_equal(ask_once(peer, &test), 3);
	assert_int_equal(test.points, 2);
	peer_free(peer);

	peer = peer_new(answer_503, NULL); /* but not for ever */
	assert_int_equal(ask_once(peer, &test), 3);
	assert_true(test.failed);
	assert_non_null(strstr(test.error.text, "status 503"));
	peer_free(peer);

	peer = peer_new(answer_503, NULL);
	assert_int_equal(ask_once_within(peer, &test, 0), 1);
	assert_true(test.failed);
	peer_free(peer);

	char soon[] = "Retry-After: 0\r\n", late[] = "Retry-After: 31\r\n";
	peer = peer_new(answer_429, soon);
	assert_int_equal(ask_once(peer, &test), 3);
	peer_free(peer);
	peer = peer_new(
		answer_429, late); /* nor where the server wants to be left alone for long */
	assert_int_equal(ask_once(peer, &test), 1);
	assert_true(test.failed);
	peer_free(peer);
}

static void test_questions_have_an_end(void **state)
{
	(void)state;
	struct server_test test;
	struct peer *peer = peer_new(answer_matrix, NULL);
	struct engine *engine = engine_of((struct engine_options){.jobs = 1, .retry_delay = 1});
	server_test_set(&test, peer->url);
	test.plugin.name = "curious";
	test.prometheus.endpoint.timeout = 5;
	engine_submit(engine, server_task(&test));
	assert_true(engine_run(engine));
	assert_true(test.failed);
	assert_non_null(strstr(test.error.text, "20 times timeout"));
	engine_free(engine);
	peer_free(peer);
}

static bool answer_never(struct peer *peer, int fd, const char *request)
{
	(void)peer, (void)request;
	peer_hang(fd);
	return false;
}

static void test_freed_in_the_middle_of_transfers(void **state)
{
	(void)state;
	struct peer *peer = peer_new(answer_never, NULL);
	struct letters letters = {.engine = engine_of((struct engine_options){.jobs = 1})};
	struct server_test test;
	server_test_set(&test, peer->url);
	for (int i = 0; i < 20; i++)
		engine_submit(letters.engine, server_task(&test));
	while (atomic_load(&peer->requests) < 4) {
		letters.length = 0;
		engine_after(letters.engine, 1, write_c_and_stop, &letters);
		assert_true(engine_run(letters.engine));
	}
	engine_free(letters.engine);
	assert_int_equal(test.done, 0);
	peer_free(peer);
}

/* Stops the engine when something was written to the file. */
struct watched {
	struct engine *engine;
	int fd;
};

static void stop_when_written(void *context)
{
	struct watched *watched = context;
	char byte;
	if (pread(watched->fd, &byte, 1, 0) == 1)
		engine_stop(watched->engine);
	else
		engine_after(watched->engine, 10, stop_when_written, watched);
}

/* A server that does not answer: after a second the line appears, and at the end it is wiped. A
 * delivery is no test. */
static void test_progress(void **state)
{
	(void)state;
	static const char line[] = "\r\033[K0 of 2 tests", wiped[] = "\r\033[K";
	char path[] = "/tmp/hunter-progress-XXXXXX", text[4096] = "";
	int fd = mkstemp(path), kept = dup(STDERR_FILENO);
	struct peer *peer = peer_new(answer_never, NULL);
	struct watched watched = {
		engine_of((struct engine_options){.jobs = 1, .progress = true}), fd};
	struct server_test test;
	struct outcome outcome = {0};
	struct attempt attempt = {.arena = arena_new(), .payload = "news"};
	server_test_set(&test, peer->url);
	receiver = &(struct endpoint){.url = peer->url,
		.timeout = 60000,
		.connect_timeout = 60000,
		.max_body = 1000,
		.max_concurrent = 1};
	engine_deliver(watched.engine, &twice, &attempt, keep_outcome, &outcome);
	engine_submit(watched.engine, server_task(&test));
	engine_submit(watched.engine, server_task(&test));
	stop_when_written(&watched);
	dup2(fd, STDERR_FILENO);
	assert_true(engine_run(watched.engine));
	dup2(kept, STDERR_FILENO);
	ssize_t length = pread(fd, text, sizeof text - 1, 0);
	assert_true(length > (ssize_t)sizeof line);
	assert_memory_equal(text, line, sizeof line - 1);
	assert_string_equal(text + length - (sizeof wiped - 1), wiped);
	engine_free(watched.engine);
	arena_free(attempt.arena);
	peer_free(peer);
	close(fd);
	close(kept);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files_are_read_and_worked_on),
		cmocka_unit_test(test_failures_are_told),
		cmocka_unit_test(test_freed_with_tasks_left),
		cmocka_unit_test(test_a_read_that_does_not_end),
		cmocka_unit_test(test_a_read_that_ends_late),
		cmocka_unit_test(test_a_pipe_without_a_writer),
		cmocka_unit_test(test_reading_does_not_run_ahead),
		cmocka_unit_test(test_timers_and_posts),
		cmocka_unit_test(test_calculations_take_no_place_of_reads),
		cmocka_unit_test(test_a_hold_waits_for_a_post),
		cmocka_unit_test(test_posts_are_dropped),
		cmocka_unit_test(test_work_on_what_was_fetched),
		cmocka_unit_test(test_a_signal_ends_the_run),
		cmocka_unit_test(test_a_hangup_and_a_chore),
		cmocka_unit_test(test_closed),
		cmocka_unit_test(test_timers_in_order),
		cmocka_unit_test(test_alarms_do_not_multiply),
		cmocka_unit_test(test_a_guest_is_served),
		cmocka_unit_test(test_deliveries),
		cmocka_unit_test(test_printing_does_not_hold_up_the_loop),
		cmocka_unit_test(test_a_print_that_was_cut_off),
		cmocka_unit_test(test_many_questions_to_a_server),
		cmocka_unit_test(test_questions_are_repeated),
		cmocka_unit_test(test_questions_have_an_end),
		cmocka_unit_test(test_freed_in_the_middle_of_transfers),
		cmocka_unit_test(test_progress),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

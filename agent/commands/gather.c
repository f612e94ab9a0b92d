/*
 * Slots hold the tests from submission to their turn. Early results wait in their slot; with
 * each turn taken, the next test is submitted.
 */
#include "agent/commands/gather.h"
#include "agent/analysis/companions.h"
#include "agent/report/table.h"

#include <string.h>

enum { WINDOW = 64, NAMES_SHOWN = 20 };

struct slot {
	struct run *run;
	struct task *tasks[GATHER_PARTS]; /* their context is the slot */
	size_t parts, pending;
};

struct run {
	struct gather *gather;
	struct cli *cli;
	struct engine *engine;
	struct slot slots[WINDOW]; /* test i is in slot i % WINDOW */
	size_t submitted, handed;
	const char **failed;
	struct companions_way way;
	bool submitting; /* tests that fail during submission are handed out afterwards */
};

int exit_stronger(int a, int b)
{
	static const int strength[] = {[EXIT_NOTHING] = 0,
		[EXIT_DATA] = 1,
		[EXIT_REGRESSIONS] = 2,
		[EXIT_USAGE] = 3,
		[EXIT_STATE] = 4};
	return strength[a] >= strength[b] ? a : b;
}

static void task_done(struct task *task);
static void hand_out(struct run *run);

static void submit_companion(void *context, struct task *task)
{
	engine_submit(((struct run *)context)->engine, task);
}

/* Submits the task once the data of other tests has been read, or could not be. */
static void submit(struct task *task)
{
	struct slot *slot = task->context;
	if (task->failed)
		slot->pending--;
	else
		engine_submit(slot->run->engine, task);
	if (task->failed && !slot->run->submitting)
		hand_out(slot->run);
}

static void submit_next(struct run *run)
{
	struct gather *gather = run->gather;
	const struct test *test = gather->tests[run->submitted];
	struct slot *slot = &run->slots[run->submitted++ % WINDOW];
	size_t parts = gather->parts ? gather->parts(gather->context, test) : 1;
	*slot = (struct slot){.run = run, .parts = parts, .pending = parts};
	run->submitting = true;
	for (size_t part = 0; part < parts; part++) {
		struct task *task = slot->tasks[part] = task_new(test, run->cli->now);
		task->done = task_done;
		task->context = slot;
		if (test->unsupported) {
			task->failed =
				!error_set(&task->error, ERROR_DATA, "%s", test->unsupported);
			slot->pending--;
			continue;
		}
		gather->part = part;
		gather->prepare(gather->context, task);
		if (gather->judges)
			companions_fetch(&run->way, task, submit);
		else
			engine_submit(run->engine, task);
	}
	run->submitting = false;
}

/* Records a failure or missing data, also if `ready` has replaced the tasks. */
static void take_result(struct run *run, const struct slot *slot)
{
	struct gather *gather = run->gather;
	for (size_t part = 0; part < slot->parts; part++) {
		const struct task *task = slot->tasks[part];
		if (task->query.incomplete)
			gather->code = exit_stronger(gather->code, EXIT_DATA);
		if (!task->failed)
			continue;
		gather->code = exit_stronger(
			gather->code, task->error.kind == ERROR_USAGE ? EXIT_USAGE : EXIT_DATA);
		run->failed[gather->failed.count++] = task->test->name;
		return;
	}
}

static void hand_out(struct run *run)
{
	struct gather *gather = run->gather;
	while (run->handed < run->submitted && run->slots[run->handed % WINDOW].pending == 0) {
		struct slot *slot = &run->slots[run->handed++ % WINDOW];
		gather->ready(gather->context, slot->tasks);
		take_result(run, slot);
		for (size_t part = 0; part < slot->parts; part++)
			task_free(slot->tasks[part]);
		if (run->submitted < gather->count)
			submit_next(run);
	}
}

static void task_done(struct task *task)
{
	struct slot *slot = task->context;
	slot->pending--;
	hand_out(slot->run);
}

/* "2 of 5 tests could not be analyzed: a, b" */
static void print_failed(const struct gather *gather)
{
	const struct strings *failed = &gather->failed;

	if (failed->count == 0 || gather->count == 1)
		return;
	fprintf(stderr, "hunter-c: %zu of %zu tests could not be analyzed: ", failed->count,
		gather->count);
	for (size_t i = 0; i < failed->count && i < NAMES_SHOWN; i++) {
		fputs(i ? ", " : "", stderr);
		text_print(failed->items[i], stderr);
	}
	if (failed->count > NAMES_SHOWN)
		fprintf(stderr, " and %zu more", failed->count - NAMES_SHOWN);
	putc('\n', stderr);
}

bool gather_run(struct gather *gather, struct cli *cli)
{
	struct error error;
	struct run *run = arena_alloc(cli->arena, sizeof *run);
	run->gather = gather;
	run->cli = cli;
	run->failed = arena_array(cli->arena, gather->count, sizeof *run->failed);
	gather->failed = (struct strings){run->failed, 0};
	gather->code = EXIT_NOTHING;
	run->engine = engine_new(&(struct engine_options){.progress = cli->progress,
					 .read_timeout = gather->config->agent.read_timeout,
					 .max_memory = gather->config->agent.max_memory_in_flight},
		&error);
	if (!run->engine) {
		gather->code = cli_fail(&error);
		return false;
	}
	run->way = (struct companions_way){companions_pool_new(), submit_companion, run};
	while (run->submitted < gather->count && run->submitted < WINDOW)
		submit_next(run);
	hand_out(run); /* unsupported tests are finished already */
	engine_run(run->engine);
	cli->abandoned = !engine_free(run->engine);
	if (!cli->abandoned)
		companions_pool_free(run->way.pool);
	print_failed(gather);
	return true;
}

bool gather_log(const struct task *task)
{
	for (size_t i = 0; i < task->query.notices.count; i++)
		log_event(LEVEL_WARN, task->query.notices.items[i],
			LOG_TEXT("test", task->test->name));
	if (!task->failed)
		return true;
	char named[ERROR_TEXT];
	snprintf(named, sizeof named, "test \"%s\"", task->test->name);
	error_blank(named);
	if (strstr(task->error.text, named))
		fprintf(stderr, "hunter-c: %s\n", task->error.text);
	else
		fprintf(stderr, "hunter-c: %s: %s\n", named, task->error.text);
	return false;
}

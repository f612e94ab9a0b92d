/*
 * `why`: reads a test's data and the agent's state, writes nothing.
 */
#include <string.h>
#include <unistd.h>

#include "agent/commands.h"
#include "agent/core/when.h"
#include "agent/gather.h"
#include "agent/news/store_reader.h"
#include "agent/state_file.h"
#include "agent/watch/why.h"

enum { OUTPUT_TEXT, OUTPUT_JSON, RECORDS_MOST = 100000 };

struct why_options {
	int output;
	const char *state_file;
};

static const char *const outputs[] = {"text", "json", NULL};

static const struct field why_fields[] = {
	{.name = "output",
		.type = FIELD_CHOICE,
		.offset = offsetof(struct why_options, output),
		.initial = "text",
		.choices = outputs,
		.help = "how to print it"},
	{.name = "state_file",
		.type = FIELD_STRING,
		.offset = offsetof(struct why_options, state_file),
		.metavar = "PATH",
		.help = STATE_FILE_HELP},
	{0},
};

static const struct option_part parts[] = {{why_fields, 0}, {0}};

struct asking {
	struct cli *cli;
	const struct test *test;
	struct why_ask ask;
	struct store_request *list, *marks; /* of the state, or NULL */
};

static bool work(struct task *task, struct scratch *scratch, struct error *error)
{
	const struct asking *asking = task->result;
	struct query *query = &task->query;
	struct why *why = arena_alloc(query->arena, sizeof *why);

	task->result = why;
	return why_explain(query->arena, task->test, &query->data, task->companions, &asking->ask,
		scratch, why, error);
}

/* As the agent asks. */
static void prepare(void *context, struct task *task, size_t part)
{
	struct asking *asking = context;

	(void)part;
	why_query(&asking->ask, task);
	task->result = asking;
	task->work = work;
}

static void ready(void *context, struct task *const *tasks)
{
	struct asking *asking = context;
	const struct task *task = tasks[0];
	const struct why_options *options = asking->cli->options;
	struct buf out = {0};

	if (!gather_log(task))
		return;
	if (options->output == OUTPUT_JSON)
		why_put_json(&out, task->result);
	else
		why_put_text(&out, task->result, task->query.arena);
	fwrite(out.data, 1, out.length, asking->cli->out);
	buf_free(&out);
}

static bool read_state(struct asking *asking, const char *path, struct error *error)
{
	const char **names = arena_array(asking->cli->arena, 1, sizeof *names);

	names[0] = asking->test->name;
	asking->list = store_request_new(STORE_LIST, NULL, NULL);
	asking->list->filter = (struct change_filter){.names = {names, 1}, .limit = RECORDS_MOST};
	asking->marks = store_request_new(STORE_MARKS, NULL, NULL);
	asking->marks->test = asking->test->name;
	if (!store_read(path, asking->list, error) || !store_read(path, asking->marks, error))
		return false;
	asking->ask.has_state = true;
	asking->ask.records = asking->list->records;
	asking->ask.record_count = asking->list->record_count;
	asking->ask.marks = asking->marks->marks;
	asking->ask.mark_count = asking->marks->mark_count;
	return true;
}

static int explain(struct asking *asking, const struct config *config, struct error *error)
{
	const struct why_options *options = asking->cli->options;
	const char *path = options->state_file ? options->state_file : config->agent.state;
	struct gather gather = {.tests = &asking->test,
		.count = 1,
		.read_timeout = config->agent.read_timeout,
		.max_memory = config->agent.max_memory_in_flight,
		.judges = true,
		.prepare = prepare,
		.ready = ready,
		.context = asking};

	if ((options->state_file || access(path, F_OK) == 0) && !read_state(asking, path, error))
		return cli_fail(error);
	if (!gather_run(&gather, asking->cli, error))
		return cli_fail(error);
	return (int)gather.code;
}

static int run(struct cli *cli)
{
	struct strings arguments = cli->arguments;
	struct asking asking = {.cli = cli};
	struct config *config;
	struct error error;
	int code;

	if (arguments.count < 2 || arguments.count > 3) {
		error_set(&error, ERROR_USAGE,
			"why takes a test, a metric, and perhaps a time or a commit");
		return cli_fail(&error);
	}
	config = cli_config(cli);
	if (!config)
		return EXIT_USAGE;
	const struct strings name = {arguments.items, 1};
	const struct test *const *tests;
	size_t count;

	if (!config_select(config, &name, cli->arena, &tests, &count, &error) ||
		(count != 1 &&
			!error_set(&error, ERROR_USAGE, "\"%.200s\" is %zu tests; why takes one",
				arguments.items[0], count))) {
		config_free(config);
		return cli_fail(&error);
	}
	asking.test = tests[0];
	asking.ask = (struct why_ask){.metric = arguments.items[1],
		.at = arguments.count > 2 ? arguments.items[2] : NULL,
		.now = cli->now,
		.max_age = config->agent.max_age};
	code = explain(&asking, config, &error);
	if (!cli->abandoned) {
		if (asking.list)
			store_request_free(asking.list);
		if (asking.marks)
			store_request_free(asking.marks);
		config_free(config);
	}
	return code;
}

const struct command why_command = {
	.name = "why",
	.arguments = "TEST METRIC [TIME|COMMIT]",
	.summary = "Explain why a change was told, or why nothing was",
	.details = "Reads the test's data and the agent's state, beside a running agent or "
		   "without one, and goes the agent's way from the points to the message: what "
		   "cycles are removed, which places the detector has tried near the time or the "
		   "commit and what dropped each, whether and with which point the change is "
		   "believed, what the agent knows and has told. In the end it says how large a "
		   "change had to be there to be told within 24 points, by putting steps into the "
		   "data and letting the points come. Without a time it is the last change that "
		   "is known, else the newest point. METRIC may be the name of a series, as "
		   "'p99{region=\"eu\"}'. Nothing is written and nobody is told.\n\n"
		   "The exit code is 0, 2, 3 if the data could not be had, or 4.",
	.parts = parts,
	.options_size = sizeof(struct why_options),
	.run = run,
};

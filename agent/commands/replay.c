/*
 * `replay`: what would the agent have announced, and when?
 *
 * Runs the agent's own parts in a simulation: an engine whose clock jumps from event to event, a
 * wall clock that starts at --from, sources that return the points that had arrived by then, and
 * one receiver, the terminal. Each test's data is read once, for the whole period; runs that would
 * see no new point are skipped. The state lies in a folder of its own, which is removed.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/analysis/companions.h"
#include "agent/analysis/select.h"
#include "agent/analysis/timeline.h"
#include "agent/base/clock.h"
#include "agent/base/database.h"
#include "agent/base/dict.h"
#include "agent/base/order.h"
#include "agent/base/when.h"
#include "agent/commands/commands.h"
#include "agent/commands/replay.h"
#include "agent/monitor/why.h"
#include "agent/service/parts.h"

enum { AFTERWARDS = 60000, PROGRESS_EVERY = 250 };

struct replay_options {
	const char *from, *to;
	int64_t interval;
	int output;
	const char *state;
};

static const struct field replay_fields[] = {
	OPTION_STRING(struct replay_options, from, NULL,
		"required: start time: '6 weeks', yesterday, 2026-01-02, ISO 8601",
		.flags = FIELD_REQUIRED, .metavar = "DATE"),
	OPTION_STRING(struct replay_options, to, NULL, "end time; default: now", .metavar = "DATE"),
	OPTION_DURATION(struct replay_options, interval, NULL, 1000, (double)INT64_MAX,
		"interval of all tests, instead of their own"),
	OPTION_CHOICE(struct replay_options, output, "text", cli_outputs,
		"output format: the messages as they would be sent, or one JSON document"),
	OPTION_STRING(struct replay_options, state, NULL,
		"write the state to this file, for why and changes", .metavar = "FILE"),
	{0},
};

/* ---- the data ---- */

/*
 * A test's data stays in the arena it was read into. The times at which points of a test arrived
 * are listed once, so that a replay can go from one to the next. For a sliding range, data is read
 * from two ranges before the start, since the agent's anchors stay in place for a while.
 */

struct history {
	struct dataset data;
	struct axis arrivals; /* the times of its points, each once */
};

struct replay {
	struct agent_parts parts;
	struct cli *cli;
	struct dict histories; /* by test: those that could be read */
	struct arena *arena;   /* holds the data and the report */
	struct replay_report report;
	struct replay_notice **last_notice;
	struct dict begun; /* by test: int64_t, ms, from when on its first run has read points */
	struct stored_moment *moments; /* the same, for the state that is kept */
	size_t moment_count;
	int64_t progress_due; /* the machine's clock */
	bool failed;          /* of the state */
	bool listed;          /* the report is complete */
};

int64_t replay_since(const struct test *test, int64_t from)
{
	int64_t range = source_range(source_find(test->source->name), test->options);

	if (range > 0)
		return selection_standing_since(from, range) - range;
	return test->source->server_size > 0 ? from - SELECTION_SERVER_RANGE : WHEN_ALWAYS;
}

static void prepare(void *context, struct task *task)
{
	const struct replay *replay = context;

	task->query.until = replay->report.until;
	task->query.since = replay_since(task->test, replay->report.from);
}

static void list_times(struct arena *arena, struct history *history)
{
	size_t axis_count, room = 0, count = 0, kept = 0;
	struct axis **axes = dataset_axes(&history->data, arena, &axis_count);
	int64_t *times;

	for (size_t i = 0; i < axis_count; i++)
		room += axes[i]->n;
	times = arena_array(arena, room, sizeof *times);
	for (size_t i = 0; i < axis_count; i++) {
		if (axes[i]->n)
			memcpy(times + count, axes[i]->times, axes[i]->n * sizeof *times);
		count += axes[i]->n;
	}
	qsort(times, count, sizeof *times, order_times);
	for (size_t i = 0; i < count; i++)
		if (kept == 0 || times[i] != times[kept - 1])
			times[kept++] = times[i];
	history->arrivals = (struct axis){.n = kept, .times = times};
}

/* Takes over the memory of the task's data. */
static void ready(void *context, struct task *const *tasks)
{
	struct replay *replay = context;
	struct task *task = tasks[0];
	struct history *history;

	if (!gather_log(task) || task->abandoned)
		return;
	history = arena_alloc(replay->arena, sizeof *history);
	history->data = task->query.data;
	*dict_place(&replay->histories, task->test->name) = history;
	list_times(replay->arena, history);
	arena_join(replay->arena, task->query.arena);
	task->query.arena = arena_new();
}

/* An axis of the points [first, last) of an axis. */
static struct axis *cut(struct arena *arena, const struct axis *axis, size_t first, size_t last)
{
	struct axis *view = arena_alloc(arena, sizeof *view);

	*view = (struct axis){.n = last - first,
		.times = axis->times + first,
		.columns = arena_array(arena, axis->column_count, sizeof *view->columns),
		.column_count = axis->column_count};
	for (size_t i = 0; i < axis->column_count; i++)
		view->columns[i] =
			(struct column){axis->columns[i].name, axis->columns[i].values + first};
	return view;
}

/* A server does not know a series without points; a file always has its columns. */
static void view_data(const struct replay *replay, const char *test, int64_t since, int64_t until,
	struct arena *arena, struct dataset *out)
{
	const struct history *history = dict_get(&replay->histories, test);
	const struct dataset *data = &history->data;
	const struct axis *shared = NULL;
	struct axis *view = NULL;
	size_t first = 0;

	*out = (struct dataset){arena_array(arena, data->count, sizeof *out->series), 0};
	for (size_t i = 0; i < data->count; i++) {
		const struct series *series = &data->series[i];
		bool alone = i + 1 == data->count || data->series[i + 1].axis != series->axis;

		if (series->axis != shared) {
			size_t last = axis_lower_bound(series->axis, until);

			first = axis_lower_bound(series->axis, since);
			view = cut(arena, series->axis, first, last > first ? last : first);
			if (alone && view->n == 0 && data->count > 1)
				continue;
			shared = series->axis;
		}
		out->series[out->count] = *series;
		out->series[out->count].axis = view;
		out->series[out->count++].values = series->values + first;
	}
}

static int64_t next_point(const struct replay *replay, const char *test, int64_t time)
{
	const struct history *history = dict_get(&replay->histories, test);
	size_t at = axis_lower_bound(&history->arrivals, time);

	return at < history->arrivals.n ? history->arrivals.times[at] : WHEN_NEVER;
}

/* ---- the run ---- */

static struct replay *replay_of(const struct agent *agent)
{
	union {
		const struct agent *agent;
		char *bytes;
	} at = {.agent = agent};

	return (struct replay *)(void *)(at.bytes - offsetof(struct replay, parts.agent));
}

static int64_t wall(const struct agent *agent)
{
	return replay_of(agent)->report.from + engine_now(agent->engine);
}

static void look(struct agent *agent, struct task *task)
{
	struct query *query = &task->query;
	int64_t until = query->until == WHEN_NEVER ? wall(agent) + 1 : query->until;

	view_data(replay_of(agent), query->test, query->since, until, query->arena, &query->data);
	engine_work(agent->engine, task);
}

static void note_begin(struct replay *replay, const struct query *query)
{
	const char *name = query->test;
	const void **place = dict_place(&replay->begun, name);

	if (*place)
		return;
	*place = name;
	if (query->since == WHEN_ALWAYS)
		return;
	replay->moments = arena_grow(
		replay->arena, replay->moments, replay->moment_count, sizeof *replay->moments);
	replay->moments[replay->moment_count++] = (struct stored_moment){
		arena_printf(replay->arena, REPLAYED_SINCE "%s", name), query->since};
}

static void fetch(struct agent *agent, struct task *task)
{
	note_begin(replay_of(agent), &task->query);
	replay_of(agent)->report.runs++;
	look(agent, task);
}

/* The time of the next visible point: the agent reads points up to now, inclusive, or with a
 * delay up to before that. */
static int64_t rest(struct agent *agent, const struct test *test)
{
	struct replay *replay = replay_of(agent);
	int64_t now = wall(agent), delay = test->evaluation_delay;
	int64_t next = next_point(replay, test->name, delay ? now - delay : now + 1);
	int64_t due = next == WHEN_NEVER ? WHEN_NEVER / 2 : next + delay + (delay > 0);
	char when[WHEN_TEXT];

	if (replay->cli->progress && clock_monotonic() >= replay->progress_due) {
		replay->progress_due = clock_monotonic() + PROGRESS_EVERY;
		fprintf(stderr, "\r\033[K%s", when_format(now, when));
		fflush(stderr);
	}
	if (test->stale_after > 0 && test->stale_after < WHEN_NEVER / 4 &&
		due > now + test->stale_after + 1)
		due = now + test->stale_after + 1;
	return (due > now ? due - 1 : now) - replay->report.from;
}

static void keep_notice(struct agent *agent, const struct notice *notice)
{
	struct replay *replay = replay_of(agent);
	struct replay_notice *kept = arena_alloc(replay->arena, sizeof *kept);

	*kept = (struct replay_notice){.subject = arena_strdup(replay->arena, notice->subject),
		.text = arena_strdup(replay->arena, notice->text),
		.told = wall(agent),
		.since = notice->time,
		.recovered = notice->recovered};
	*replay->last_notice = kept;
	replay->last_notice = &kept->next;
	replay->report.notice_count++;
}

static const struct simulation replay_stage = {
	.now = wall, .fetch = fetch, .look = look, .rest = rest, .notice = keep_notice};

static void stop(void *context)
{
	struct replay *replay = context;

	engine_stop(replay->parts.agent.engine);
}

static void begin(struct store_restore *restored)
{
	struct replay *replay = restored->call.context;
	struct agent *agent = &replay->parts.agent;
	int64_t length = replay->report.until - replay->report.from;

	replay->failed = restored->call.failed;
	if (restored->call.failed) {
		store_call_free(&restored->call);
		stop(replay);
		return;
	}
	engine_after(
		agent->engine, length + agent->config->agent.group_wait + AFTERWARDS, stop, replay);
	agent_start(&replay->parts, restored);
}

/* The latest change is the first of the list. */
static void take_changes(struct store_list *request)
{
	struct replay *replay = request->call.context;

	replay->failed |= request->call.failed;
	replay->report.records = request->records;
	arena_join(replay->arena, request->call.arena);
	replay->listed = true;
	stop(replay);
}

/* The answer comes after all of the agent's writes; a list would not wait for them. */
static void take_messages(struct store_restore *request)
{
	struct replay *replay = request->call.context;

	replay->failed |= request->call.failed;
	replay->report.messages = request->messages;
	store_call_free(&request->call);
	store_client_call(&replay->parts.agent, &store_list_new(take_changes, replay)->call);
}

static void take_moments(struct store_queue *request)
{
	struct replay *replay = request->call.context;
	struct store_restore *sent = store_restore_new(take_messages, replay);

	replay->failed |= request->call.failed;
	store_call_free(&request->call);
	sent->counted = true;
	store_client_call(&replay->parts.agent, &sent->call);
}

/* The changes of the state in the replay, then those of the replay in the state. */
static void list_messages(struct replay *replay)
{
	struct store_queue *request = store_queue_new(take_moments, replay);

	replay->moments = arena_grow(
		replay->arena, replay->moments, replay->moment_count, sizeof *replay->moments);
	replay->moments[replay->moment_count++] =
		(struct stored_moment){REPLAYED_UNTIL, replay->report.until};
	request->health.moments = replay->moments;
	request->health.moment_count = replay->moment_count;
	store_client_call(&replay->parts.agent, &request->call);
}

/* Runs the simulation, then reads the results from the store. */
static void play(struct replay *replay)
{
	struct agent *agent = &replay->parts.agent;

	store_client_call(agent, &store_restore_new(begin, replay)->call);
	replay->report.interrupted = !engine_run(agent->engine);
	if (replay->cli->progress)
		fputs("\r\033[K", stderr);
	if (replay->failed)
		return;
	if (replay->report.interrupted)
		replay->report.until = wall(agent);
	agent->stopping = true;
	list_messages(replay);
	while (!replay->listed) /* which takes a moment: another signal changes nothing */
		(void)engine_run(agent->engine);
}

enum { FOLDER_ROOM = 512 };

/* Creates the folder of the state: in TMPDIR, else in memory if possible, as it is temporary. */
static bool make_folder(char folder[FOLDER_ROOM], struct error *error)
{
	const char *const places[] = {getenv("TMPDIR"), "/dev/shm", "/tmp"};

	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (places[i] &&
			snprintf(folder, FOLDER_ROOM, "%s/hunter-replay-XXXXXX", places[i]) <
				FOLDER_ROOM &&
			mkdtemp(folder))
			return true;
	return error_set(error, ERROR_STATE, "cannot create a folder in /tmp");
}

static void remove_folder(const char *folder)
{
	static const char *const files[] = {
		"state.db", "state.db-wal", "state.db-shm", "state.db-journal", "state.db.lock"};
	char path[FOLDER_ROOM + 32];

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, files[i]);
		unlink(path);
	}
	rmdir(folder);
}

/* `folder`: NULL where the state is kept. */
static int play_in(struct replay *replay, const char *folder)
{
	const struct replay_options *options = replay->cli->options;
	struct agent_parts *parts = &replay->parts;
	const struct agent_settings *settings = &parts->agent.config->agent;
	struct engine_options engine = {
		.jobs = (size_t)settings->jobs, .jumping = true, .catch_signals = true};
	char state[FOLDER_ROOM + 32];
	struct error error;
	int code = EXIT_NOTHING;

	snprintf(state, sizeof state, "%s/state.db", folder ? folder : "");
	if (!agent_open(parts, &engine, folder ? state : options->state, &error))
		code = cli_fail(&error);
	else
		play(replay);
	if (replay->failed)
		code = EXIT_STATE;
	if (code == EXIT_NOTHING) {
		(options->output == OUTPUT_JSON ? replay_print_json : replay_print)(
			&replay->report, replay->cli->out);
		fflush(replay->cli->out);
		code = replay->report.interrupted ? EXIT_DATA : EXIT_NOTHING;
	}
	if (folder)
		remove_folder(folder); /* before pending signals have their usual effect */
	if (!agent_stop(parts))
		cli_leave(code);
	agent_close(parts);
	return code;
}

/* The tests, followed by those whose data they need, without duplicates. */
static const struct test **with_companions(
	struct arena *arena, const struct test *const *tests, size_t count, size_t *out_count)
{
	struct dict seen = {.arena = arena};
	size_t room = count, n = 0;
	const struct test **out;

	for (size_t i = 0; i < count; i++)
		room += tests[i]->metric_count + 1;
	out = arena_array(arena, room, sizeof *out);
	for (; n < count; n++)
		out[n] = tests[n];
	for (size_t i = 0; i < count; i++)
		n += companions_tests(tests[i], out + n);
	*out_count = 0;
	for (size_t i = 0; i < n; i++) {
		const void **place = dict_place(&seen, out[i]->name);

		if (!*place)
			*place = out[(*out_count)++] = out[i];
	}
	return out;
}

/* Whether its data and that of the tests it needs could be read. */
static bool has_all(const struct replay *replay, const struct test *test)
{
	size_t count;
	const struct test **all = with_companions(replay->arena, &test, 1, &count);

	while (count > 0 && dict_get(&replay->histories, all[count - 1]->name))
		count--;
	return count == 0;
}

/* Replays the tests whose data can be read. */
static int replay_tests(struct replay *replay)
{
	const struct replay_options *options = replay->cli->options;
	struct config_ref *config_ref = replay->parts.agent.config_ref;
	struct config *config = config_ref->config;
	const struct test **kept = arena_array(config->arena, config_ref->test_count, sizeof *kept);
	struct gather gather = {
		.config = config, .prepare = prepare, .ready = ready, .context = replay};
	char folder[FOLDER_ROOM];
	struct error error;
	size_t count = 0;

	gather.tests = with_companions(
		replay->arena, config_ref->tests, config_ref->test_count, &gather.count);
	if (!gather_run(&gather, replay->cli))
		return gather.code;
	for (size_t i = 0; i < config_ref->test_count; i++)
		if (has_all(replay, config_ref->tests[i]))
			kept[count++] = config_ref->tests[i];
	config_ref->tests = kept;
	config_ref->test_count = replay->report.tests = count;
	if (replay->cli->common.log_level == LEVEL_INFO) /* by default the messages are enough */
		log_setup(LEVEL_ERROR, (enum log_format)replay->cli->common.log_format, stderr);
	if (!options->state && !make_folder(folder, &error))
		return cli_fail(&error);
	return exit_stronger(gather.code, play_in(replay, options->state ? NULL : folder));
}

static bool read_times(struct replay *replay, struct error *error)
{
	const struct replay_options *options = replay->cli->options;
	struct replay_report *report = &replay->report;

	report->until = replay->cli->now;
	if (!options->from)
		return error_set(error, ERROR_USAGE, "--from is required: the start date");
	if (!when_parse(options->from, replay->cli->now, &report->from, error))
		return error_prefix(error, "--from: ");
	if (options->to && !when_parse(options->to, replay->cli->now, &report->until, error))
		return error_prefix(error, "--to: ");
	if (report->until > replay->cli->now)
		report->until = replay->cli->now;
	if (report->from >= report->until)
		return error_set(error, ERROR_USAGE, "--from must be before --to and in the past");
	if (options->state && (database_is(options->state) || store_is_there(options->state)))
		return error_set(error, ERROR_USAGE,
			"--state %.500s: file exists: a replay needs a new state file",
			options->state);
	return true;
}

/* The only receiver prints the messages with their times; with JSON it prints nothing. */
static void set_receiver(struct config *config, bool quiet)
{
	struct receiver *receiver = arena_alloc(config->arena, sizeof *receiver);
	const struct plugin *plugin = config->receivers[0].notifier;
	char *options = arena_alloc(config->arena, plugin->options_size);
	struct error error;

	memcpy(options, config->receivers[0].options, plugin->options_size);
	if (!field_parse(field_find(plugin->fields, "print"), options, quiet ? "nothing" : "dated",
		    config->arena, &error))
		abort();
	*receiver = config->receivers[0];
	receiver->options = options;
	config->receivers = receiver;
	config->receiver_count = 1;
}

static int run_replay(struct cli *cli)
{
	const struct replay_options *options = cli->options;
	struct config_source source = cli_config_source();
	struct replay replay = {.cli = cli};
	struct agent *agent = &replay.parts.agent;
	struct config *config;
	struct error error;
	int code;

	if (!read_times(&replay, &error))
		return cli_fail(&error);
	source.stdout_only = true;
	source.interval = options->interval;
	config = cli_config_from(cli, &source);
	if (!config)
		return EXIT_USAGE;
	set_receiver(config, options->output == OUTPUT_JSON);
	agent->simulation = &replay_stage;
	agent->now = clock_wall;
	agent->schema = source.schema;
	cli->config = NULL; /* its reference's, also if it fails */
	agent->config_ref = config_ref_of(config, &cli->arguments, &error);
	if (!agent->config_ref)
		return cli_fail(&error);
	agent->config = config;
	replay.arena = arena_new();
	replay.begun.arena = replay.histories.arena = replay.arena;
	replay.last_notice = &replay.report.notices;
	code = replay_tests(&replay);
	arena_free(replay.arena);
	if (!cli->abandoned)
		config_ref_release(agent->config_ref);
	return code;
}

static const struct option_part parts[] = {{replay_fields, 0}, {0}};

const struct command replay_command = {
	.name = "replay",
	.arguments = "[TEST|GROUP...]",
	.summary = "Show what the agent would have announced, and when",
	.details = "Runs the agent over past data as if the points were arriving, and prints each "
		   "message with the time of its announcement, then a summary. Changes before "
		   "--from are not announced. Nothing is sent, and the agent's state is not "
		   "touched. Uses the data as stored today, including later corrections by the "
		   "source. --state FILE keeps the state of the replay: why --state FILE "
		   "explains "
		   "why a change was announced or not.\n"
		   "\n"
		   "The exit code is 0, 2, 3 if some data was unavailable or the replay was "
		   "interrupted, or 4.",
	.parts = parts,
	.options_size = sizeof(struct replay_options),
	.run = run_replay,
};

/*
 * `run`: the agent, and with --once a single run of each test.
 *
 * The parts are created in the order of their dependencies, and the first failure ends the
 * command with its exit code: configuration 2, state file or port 4. A signal stops new work at
 * once and gives work in progress a grace period, so that a message in transit is not sent
 * twice.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/clock.h"
#include "agent/base/database.h"
#include "agent/commands/commands.h"
#include "agent/commands/gate.h"
#include "agent/commands/gather.h"
#include "agent/deliver/follow_ups.h"
#include "agent/fleet/tests.h"
#include "agent/io/signals.h"
#include "agent/monitor/bisections.h"
#include "agent/notify/reminders.h"
#include "agent/runtime/agent.h"
#include "agent/service/file_trigger.h"
#include "agent/service/letters.h"
#include "agent/service/parts.h"
#include "agent/service/reload.h"
#include "agent/service/systemd.h"
#include "agent/web/web.h"

/*
 * Renamed tests and metrics: the store's rows of the old name move to the new one.
 *
 * Two histories under one name could not be separated later, so if the new name has changes of
 * its own, the old ones stay where they are, and the user has to decide.
 */

static void applied(struct store_renames *request)
{
	struct agent *agent = request->call.context;

	for (size_t i = 0; i < request->rename_count && !request->call.failed; i++) {
		const struct store_rename *rename = &request->renames[i];

		if (rename->moved)
			log_event(LEVEL_INFO, "renamed", LOG_TEXT("test", rename->test),
				LOG_TEXT("metric", rename->metric ? rename->metric : ""),
				LOG_TEXT("was", rename->was));
		if (!rename->taken)
			continue;
		log_event(LEVEL_ERROR, "was: ignored: the new name already has recorded changes",
			LOG_TEXT("test", rename->test),
			LOG_TEXT("metric", rename->metric ? rename->metric : ""),
			LOG_TEXT("was", rename->was));
		agent->misconfigured = true;
	}
	store_call_free(&request->call);
}

/* Has the store apply the renames of the agent's configuration, before any other call uses the new
 * names. Renames that were applied before are skipped. */
static void renames_apply(struct agent *agent)
{
	const struct config *config = agent->config;
	struct store_renames *request;

	if (config->rename_count == 0)
		return;
	request = store_renames_new(applied, agent);
	request->renames =
		arena_array(request->call.arena, config->rename_count, sizeof *request->renames);
	for (size_t i = 0; i < config->rename_count; i++)
		request->renames[i] = (struct store_rename){
			.test = arena_strdup(request->call.arena, config->renames[i].test),
			.metric = arena_strdup(request->call.arena, config->renames[i].metric),
			.was = arena_strdup(request->call.arena, config->renames[i].was)};
	request->rename_count = config->rename_count;
	store_client_call(agent, &request->call);
}

enum {
	LOG_AGAIN = 600000, /* ms before a lasting problem is logged again */
	LOG_PATIENCE = 200, /* ms to wait for a blocked reader of the log */
};

#define HOUR INT64_C(3600000)
#define DAY (24 * HOUR)
#define REMEMBERED (90 * DAY) /* for settled deliveries and withdrawn changes */

struct run_options {
	bool once, insecure;
	struct gate_flags gate;
};

struct run {
	struct cli *cli;
	struct config_source source;
	const struct gate_flags *gate;
	struct record_rows triaged;
	struct agent_parts parts;
	struct letters *letters;
	struct file_trigger *files;
	struct systemd *systemd;
	struct web *web;
	struct follow_ups *follow_ups;
	struct reminders *reminders;
	struct bisections *bisections;
	bool insecure;
	bool refused; /* a single run, as another agent works on the state */
	bool restored;
	int64_t pruned; /* engine_now, in a fleet; 0: never */
};

static const struct field run_fields[] = {
	OPTION_BOOL(struct run_options, once, "run all tests once, report new changes and exit"),
	OPTION_BOOL(struct run_options, insecure, "allow a public address without authentication"),
	{0},
};

static const char *unready(void *context)
{
	const struct run *run = context;

	if (run->parts.agent.store_error.kind != ERROR_NONE)
		return run->parts.agent.store_error.text;
	if (run->restored && fleet_trouble(&run->parts.agent))
		return fleet_trouble(&run->parts.agent);
	return run->restored ? NULL : "reading the state file";
}

static void collect(void *context)
{
	struct run *run = context;
	const struct agent *agent = &run->parts.agent;
	struct engine_memory memory = engine_memory(agent->engine);

	metrics_set(agent->metrics, METRIC_STORE_SIZE, (double)store_size(agent->store), NULL);
	metrics_set(agent->metrics, METRIC_MEMORY_IN_FLIGHT, (double)memory.used, NULL);
	metrics_set(agent->metrics, METRIC_MEMORY_WAITS, (double)memory.waits, NULL);
	agent_hint(&run->parts.agent, HINT_METRICS);
	store_client_collect(&run->parts.agent);
}

static void hang_up(void *context)
{
	struct run *run = context;

	if (run->parts.agent.reloader)
		agent_reload(&run->parts.agent, NULL, NULL);
}

static const char *adopt(void *context)
{
	struct run *run = context;

	renames_apply(&run->parts.agent);
	agent_hint(&run->parts.agent, HINT_CONFIGURATION);
	agent_hint(&run->parts.agent, HINT_LOOK);
	return web_adopt(run->web);
}

static void reload_begun(void *context)
{
	struct run *run = context;

	systemd_reloading(run->systemd);
}

static void reload_ended(void *context, const struct reload_report *report)
{
	struct run *run = context;

	systemd_reloaded(run->systemd, report->problem);
}

static void silenced(void *context, const struct silence *silence)
{
	struct run *run = context;

	silences_note(dispatcher_silences(run->parts.dispatcher), silence);
}

/* The parts of an agent that --once does not need. */
static bool open_service(struct run *run, struct error *error)
{
	struct agent *agent = &run->parts.agent;
	struct config_source source = run->source;

	run->web = web_open(agent, run->parts.scheduler,
		&(struct web_options){.delivery_manager = run->parts.delivery_manager,
			.insecure = run->insecure,
			.reload = agent_reload,
			.silenced = silenced,
			.unready = unready,
			.collect = collect,
			.context = run},
		error);
	if (!run->web)
		return false;
	run->files = file_trigger_new(agent, run->parts.scheduler);
	run->follow_ups = follow_ups_new(agent);
	run->reminders = reminders_new(agent);
	run->bisections = bisections_new(agent);
	run->systemd = systemd_new(agent, source.env, source.env_context);
	reloader_new(agent, &(struct reloader_options){.source = source,
				    .names = &run->cli->arguments,
				    .adopt = adopt,
				    .begun = reload_begun,
				    .ended = reload_ended,
				    .context = run});
	return true;
}

static void dated(void *context, const char *url, int64_t ahead)
{
	struct run *run = context;

	agent_compare_clock(&run->parts.agent, url, ahead);
}

static bool open_parts(struct run *run, struct error *error)
{
	struct agent *agent = &run->parts.agent;
	const struct agent_settings *settings = &agent->config->agent;
	struct engine_options options = {.jobs = (size_t)settings->jobs,
		.read_timeout = settings->read_timeout,
		.max_memory = settings->max_memory_in_flight,
		.progress = agent->once && run->cli->progress,
		.catch_signals = true,
		.hangup = agent->once ? NULL : hang_up,
		.dated = dated,
		.context = run};

	if (!agent_open(&run->parts, &options, settings->state, error))
		return false;
	expected_elsewhere(
		run->parts.expected, run->triaged, run->gate->state ? "--state" : "--agent");
	run->letters = letters_new(agent, run->parts.dispatcher, run->parts.scheduler);
	return agent->once || open_service(run, error);
}

/* All store requests are on disk when it is closed; a worker stuck in a call or a computation
 * has nothing to save. */
static void close_parts(struct run *run, int code)
{
	web_stop(run->web);
	fleet_leave(&run->parts.agent);
	file_trigger_free(run->files);
	if (!agent_stop(&run->parts)) {
		log_message(
			LEVEL_INFO, "exiting without waiting for a worker or the state's database");
		cli_leave(code);
	}
	reloader_free(run->parts.agent.reloader);
	systemd_free(run->systemd);
	web_free(run->web);
	letters_free(run->letters);
	follow_ups_free(run->follow_ups);
	reminders_free(run->reminders);
	bisections_free(run->bisections);
	agent_close(&run->parts);
}

/* Whether it is this agent's turn to prune; in a fleet that is the leader's work. */
static bool prunes_now(struct run *run)
{
	struct agent *agent = &run->parts.agent;
	int64_t now = engine_now(agent->engine);

	if (!fleet_is_shared(agent))
		return true;
	if (!fleet_holds(agent, FLEET_LEADER) || (run->pruned != 0 && now - run->pruned < DAY))
		return false;
	run->pruned = now;
	return true;
}

/* Daily, as an agent may run for years. */
static void prune(void *context)
{
	struct run *run = context;
	struct agent *agent = &run->parts.agent;
	struct store_prune *request;

	if (agent->stopping)
		return;
	if (!agent->once)
		engine_after(agent->engine, agent->fleet ? HOUR : DAY, prune, run);
	if (!prunes_now(run))
		return;
	request = store_prune_new(NULL, NULL);
	request->before = agent_now(agent) - REMEMBERED;
	request->tests = config_topics(agent->config, request->call.arena);
	request->keeping = follow_ups_keeping(agent->config, request->call.arena);
	fleet_fence(agent, &request->call, FLEET_LEADER);
	store_client_call(agent, &request->call);
}

/* Resumes pending work, then starts the scheduler. */
static void restored(struct store_restore *request)
{
	struct run *run = request->call.context;

	if (request->call.failed) {
		run->parts.agent.stateless = true;
		store_call_free(&request->call);
		engine_stop(run->parts.agent.engine);
		return;
	}
	run->restored = true;
	letters_restore(run->letters, request);
	agent_start(&run->parts, request);
	prune(run);
	if (run->parts.agent.once || run->parts.agent.stopping)
		return;
	reloader_start(run->parts.agent.reloader);
	systemd_ready(run->systemd);
	fleet_start(&run->parts.agent, NULL, NULL);
}

static void stop(void *context)
{
	engine_stop(context);
}

/* Finishes work in progress. A second signal ends the waiting. */
static void wind_up(struct run *run)
{
	struct agent *agent = &run->parts.agent;

	log_message(LEVEL_INFO, "stopping");
	systemd_stopping(run->systemd);
	agent->stopping = true;
	engine_close(agent->engine);
	if (agent->reloader)
		reloader_stop(agent->reloader);
	if (agent_idle(agent))
		return;
	fleet_hurry(agent);
	fleet_move(agent);
	engine_after(agent->engine, agent->config->agent.grace, stop, agent->engine);
	(void)engine_run(agent->engine);
	if (agent->under_way > 0)
		log_event(LEVEL_WARN,
			"exiting with messages in flight; they resume at the next start",
			LOG_INT("messages", agent->under_way));
}

static int run_once(struct run *run)
{
	struct agent *agent = &run->parts.agent;
	int code = EXIT_NOTHING;
	bool done = engine_run(agent->engine);

	if (run->refused)
		return EXIT_STATE;
	if (done) {
		dispatcher_flush(run->parts.dispatcher);
		if (run->restored)
			letters_look(run->letters);
		done = engine_run(agent->engine);
	}
	while (done && dispatcher_is_due(run->parts.dispatcher)) {
		dispatcher_flush(run->parts.dispatcher);
		done = engine_run(agent->engine);
	}
	if (done && run->restored) {
		run->follow_ups = follow_ups_new(agent);
		follow_ups_look(run->follow_ups);
		done = engine_run(agent->engine);
	}
	if (!done)
		wind_up(run);
	gate_print(expected_count(run->parts.expected), run->cli->out);
	if (agent->misconfigured)
		code = exit_stronger(code, EXIT_USAGE);
	if (agent->incomplete || !done)
		code = exit_stronger(code, EXIT_DATA);
	if (agent->stateless)
		code = exit_stronger(code, EXIT_STATE);
	return code;
}

static int run_agent(struct run *run)
{
	struct agent *agent = &run->parts.agent;
	struct buf listen = {0};

	field_print(field_find(agent_fields, "listen"), &agent->config->agent, &listen);

	log_event(LEVEL_INFO, "started", LOG_TEXT("version", HUNTER_VERSION),
		LOG_TEXT("config", agent->config->path),
		LOG_INT("tests", agent->config_ref->test_count),
		LOG_TEXT("state", database_shown(run->cli->arena, agent->config->agent.state)),
		LOG_TEXT("listen", listen.data), LOG_INT("port", web_port(run->web)));
	buf_free(&listen);
	if (web_metrics_port(run->web))
		log_event(LEVEL_INFO, "serving metrics",
			LOG_TEXT("listen", agent->config->agent.metrics_listen),
			LOG_INT("port", web_metrics_port(run->web)));
	log_limit(LOG_AGAIN);
	log_patience(LOG_PATIENCE);
	engine_hold(agent->engine);
	if (engine_run(agent->engine))
		return EXIT_STATE;
	wind_up(run);
	return EXIT_NOTHING;
}

/* Those flags are about a single run: the agent has a state of its own. */
static bool check_flags(const struct run_options *options, struct error *error)
{
	const struct gate_flags *gate = &options->gate;

	if (options->once || (!gate->state && !gate->strict))
		return true;
	return error_set(
		error, ERROR_USAGE, "--%s requires --once", gate->state ? "state" : "strict");
}

static bool read_triaged(struct run *run, struct error *error)
{
	const struct config_ref *tests = run->parts.agent.config_ref;

	if (!run->parts.agent.once || run->gate->strict)
		return true;
	return gate_read(
		run->gate, tests->tests, tests->test_count, run->cli->arena, &run->triaged, error);
}

static void begin(struct run *run)
{
	struct store_restore *request;

	renames_apply(&run->parts.agent);
	request = store_restore_new(restored, run);
	store_client_call(&run->parts.agent, &request->call);
}

/* A single run holds all shards, so no other agent may run. */
static void alone(void *context, const struct error *error)
{
	struct run *run = context;

	if (!error) {
		begin(run);
		return;
	}
	(void)cli_fail(error);
	run->refused = true;
	engine_stop(run->parts.agent.engine);
}

static int run_configured(struct run *run)
{
	struct error error;
	int code;

	if (!read_triaged(run, &error))
		return cli_fail(&error);
	if (!open_parts(run, &error)) {
		int failure = cli_fail(&error);
		close_parts(run, failure);
		return failure;
	}
	if (run->parts.agent.once && run->parts.agent.fleet)
		fleet_start(&run->parts.agent, alone, run);
	else
		begin(run);
	code = run->parts.agent.once ? run_once(run) : run_agent(run);
	close_parts(run, code);
	return code;
}

static int run_command_run(struct cli *cli)
{
	const struct run_options *options = cli->options;
	struct config *config;
	struct config_ref *config_ref;
	struct run run = {.cli = cli,
		.source = cli_config_source(),
		.gate = &options->gate,
		.insecure = options->insecure};
	struct error error;
	int code;

	if (!check_flags(options, &error))
		return cli_fail(&error);
	run.source.known_changes = options->gate.known_changes;

	/* A SIGHUP while the configuration is read waits for the loop; one while the agent stops
	 * does nothing. */
	signals_hold_hangup(!options->once);
	config = cli_config_from(cli, &run.source);
	if (!config)
		return EXIT_USAGE;
	cli->config = NULL; /* its reference's, also if it fails */
	config_ref = config_ref_of(config, &cli->arguments, &error);
	if (!config_ref)
		return cli_fail(&error);
	run.parts.agent = (struct agent){.config_ref = config_ref,
		.config = config_ref->config,
		.schema = &cli_schema,
		.now = clock_wall,
		.once = options->once,
		.strict = options->gate.strict};
	code = run_configured(&run);
	config_ref_release(run.parts.agent.config_ref);
	return code;
}

static const struct option_part parts[] = {
	{run_fields, 0}, {gate_fields, offsetof(struct run_options, gate)}, {0}};

const struct command run_command = {
	.name = "run",
	.reloads = true,
	.arguments = "[TEST|GROUP...]",
	.summary = "Watch the tests and announce changes",
	.details =
		"Runs each test at its interval, records changes in the state file and announces "
		"each new change once to the test's receivers, grouping related changes in one "
		"message. Without arguments, runs all tests. SIGHUP and POST /-/reload reload the "
		"configuration, as a whole or not at all. SIGTERM and SIGINT stop the agent after "
		"the messages in flight. Serves metrics and health on agent.listen.\n"
		"\n"
		"With --once, runs all tests once, announces new changes and exits with 0, 2 (a "
		"receiver or test is misconfigured), 3 (some data unavailable, or a message could "
		"not be sent and stays queued) or 4 (no state file; or the state of --state or the "
		"agent of --agent, whose accepted changes are not announced, is unavailable).",
	.parts = parts,
	.options_size = sizeof(struct run_options),
	.run = run_command_run,
};

/*
 * The worker loads and checks; the loop compares, and replaces the configuration reference
 * between two of its turns, so that no part ever sees half of each.
 */
#include "agent/service/reload.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/dict.h"

enum { LOGGED_MOST = 20, PATIENCE = 60000 };

struct waiter {
	reload_done *done;
	void *context;
	struct waiter *next;
};

/* One load of the configuration. */
struct load {
	struct reloader *reloader;
	struct arena *arena; /* holds the problems and the report */
	const char *path;
	struct problems problems;
	struct config_ref *config_ref; /* NULL: it failed */
	struct error error;
	struct waiter *waiters;
	int64_t due; /* engine_now's clock, when it is given up */
};

struct reloader {
	struct agent *agent;
	struct reloader_options options;
	bool started;
	struct load *load;      /* in progress */
	struct load *stuck;     /* given up; its worker has not returned */
	struct alarm alarm;     /* when the load in progress is given up */
	struct waiter *waiters; /* waiting for the load after it */
};

static void give_up(void *context);

struct reloader *reloader_new(struct agent *agent, const struct reloader_options *options)
{
	struct reloader *reloader = memory_new(1, sizeof *reloader);

	*reloader = (struct reloader){.agent = agent,
		.options = *options,
		.alarm = {.call = give_up, .context = reloader}};
	if (reloader->options.patience == 0)
		reloader->options.patience = PATIENCE;
	agent->reloader = reloader;
	return reloader;
}

static void waiters_free(struct waiter *waiter)
{
	for (struct waiter *next; waiter; waiter = next) {
		next = waiter->next;
		free(waiter);
	}
}

static void load_free(struct load *load)
{
	waiters_free(load->waiters);
	arena_free(load->arena);
	free(load);
}

/* Frees a load that no worker uses any more. */
static void drop(struct load **place)
{
	struct load *load = *place;

	*place = NULL;
	if (!load)
		return;
	config_ref_release(load->config_ref);
	load_free(load);
}

void reloader_free(struct reloader *reloader)
{
	if (!reloader)
		return;
	drop(&reloader->load);
	drop(&reloader->stuck);
	waiters_free(reloader->waiters);
	reloader->agent->reloader = NULL;
	free(reloader);
}

/* On a worker. */
static void read_configuration(void *context)
{
	struct load *load = context;
	const struct problems *problems = &load->problems;
	const struct reloader_options *options = &load->reloader->options;
	struct config *config = config_load(load->path, &options->source, &load->problems);

	if (!config) { /* the first error, and the number of further ones */
		size_t first = 0;

		while (first < problems->count && problems->items[first].warning)
			first++;
		error_set(&load->error, ERROR_USAGE, "%s",
			first < problems->count ? problems->items[first].text : "cannot be read");
		if (problems->errors > 1)
			error_prefix(&load->error, "%zu errors, the first: ", problems->errors);
		return;
	}
	/* Unreadable files are a warning at the start, where a user sees it, but an error here: the
	 * agent would be worse off than before. */
	if (config->unreadable) {
		error_set(&load->error, ERROR_USAGE, "%s", config->unreadable);
		config_free(config);
		return;
	}
	load->config_ref = config_ref_of(config, options->names, &load->error);
}

static void answer_waiters(struct waiter *waiters, const struct reload_report *report)
{
	for (const struct waiter *waiter = waiters; waiter; waiter = waiter->next)
		if (waiter->done)
			waiter->done(waiter->context, report);
	waiters_free(waiters);
}

/* Restores the old values of settings that cannot change. */
static void keep_settings(struct load *load, struct reload_report *report)
{
	static const char *const names[] = {"listen", "metrics_listen", "socket_mode",
		"socket_owner", "web_config", "external_url", "state", "jobs"};
	enum { COUNT = sizeof names / sizeof *names };
	const struct agent_settings *old = &load->reloader->agent->config->agent;
	struct config *config = load->config_ref->config;
	const char **kept = arena_array(load->arena, COUNT, sizeof *kept);

	for (size_t i = 0; i < COUNT; i++) {
		const struct field *field = field_find(agent_fields, names[i]);
		struct buf is = {0}, was = {0};
		struct error error;

		field_print(field, &config->agent, &is);
		field_print(field, old, &was);
		if (strcmp(is.data ? is.data : "", was.data ? was.data : "") != 0) {
			bool parsed = true;

			memset((char *)&config->agent + field->offset, 0,
				field->type == FIELD_LIST     ? sizeof(struct strings)
				: field->type == FIELD_STRING ? sizeof(char *)
							      : sizeof(int64_t));
			if (was.length > 0)
				parsed = field_parse(
					field, &config->agent, was.data, config->arena, &error);
			assert(parsed);
			(void)parsed;
			kept[report->kept.count++] =
				arena_printf(load->arena, "agent.%s", names[i]);
		}
		buf_free(&is);
		buf_free(&was);
	}
	report->kept.items = kept;
}

static void compare_tests(struct load *load, struct reload_report *report)
{
	const struct config_ref *before = load->reloader->agent->config_ref;
	const struct config_ref *after = load->config_ref;
	struct dict known = {.arena = load->arena};
	size_t found = 0;

	for (size_t i = 0; i < before->test_count; i++)
		*dict_place(&known, before->tests[i]->name) = before->tests[i];
	for (size_t i = 0; i < after->test_count; i++) {
		const struct test *test = dict_get(&known, after->tests[i]->name);

		found += test != NULL;
		report->changed += test && test->fingerprint != after->tests[i]->fingerprint;
	}
	report->tests = after->test_count;
	report->added = after->test_count - found;
	report->removed = before->test_count - found;
}

/* The metrics of the configuration in use and of the last reload. */
static void note_metrics(struct agent *agent, const struct reload_report *report)
{
	struct metrics *metrics = agent->metrics;

	metrics_set(metrics, METRIC_RELOAD_SUCCESSFUL, !report->problem, NULL);
	if (!report->loaded)
		return;
	metrics_set(metrics, METRIC_RELOAD_TIME, (double)(agent_now(agent) / 1000), NULL);
	metrics_set(metrics, METRIC_CONFIG_HASH, (double)(agent->config->hash >> 16), NULL);
}

/* Returns why agent.web_config was not adopted, or NULL. */
static const char *take_over(struct load *load)
{
	struct reloader *reloader = load->reloader;
	struct agent *agent = reloader->agent;
	struct config_ref *before = agent->config_ref;
	const char *problem;

	agent->config_ref = load->config_ref;
	agent->config = load->config_ref->config;
	engine_set_read_timeout(agent->engine, agent->config->agent.read_timeout);
	engine_set_max_memory(agent->engine, agent->config->agent.max_memory_in_flight);
	problem = reloader->options.adopt(reloader->options.context);
	config_ref_release(before);
	return problem ? arena_printf(load->arena, "agent.web_config: %s", problem) : NULL;
}

static void start_load(struct reloader *reloader);

/* Reports the result to all waiters. */
static void conclude(
	struct reloader *reloader, struct waiter *waiters, const struct reload_report *report)
{
	note_metrics(reloader->agent, report);
	if (report->loaded)
		log_answer(LEVEL_INFO, "configuration reloaded", LOG_INT("tests", report->tests),
			LOG_INT("added", report->added), LOG_INT("removed", report->removed),
			LOG_INT("changed", report->changed));
	else
		log_answer(LEVEL_ERROR, "configuration not reloaded, keeping the previous one",
			LOG_TEXT("problem", report->problem));
	if (reloader->options.ended)
		reloader->options.ended(reloader->options.context, report);
	answer_waiters(waiters, report);
}

/* The disk with the configuration is blocked: stops waiting for the worker, which keeps its load
 * until it returns. */
static void give_up(void *context)
{
	struct reloader *reloader = context;
	struct load *load = reloader->load;
	struct reload_report report = {.problem = "timed out reading the configuration"};
	struct waiter *waiters;

	if (!load || reloader->agent->stopping)
		return;
	if (engine_now(reloader->agent->engine) < load->due) {
		engine_alarm(reloader->agent->engine, &reloader->alarm, load->due);
		return;
	}
	waiters = load->waiters;
	load->waiters = NULL;
	reloader->load = NULL;
	reloader->stuck = load;
	conclude(reloader, waiters, &report);
	start_load(reloader);
}

static void loaded(void *context)
{
	struct load *load = context;
	struct reloader *reloader = load->reloader;
	struct reload_report report = {.loaded = load->config_ref != NULL};
	const struct problems *problems = &load->problems;
	const char **items;

	if (load == reloader->stuck || reloader->agent->stopping) {
		drop(load == reloader->stuck ? &reloader->stuck : &reloader->load);
		return;
	}
	items = arena_array(load->arena, problems->count, sizeof *items);
	for (size_t i = 0; i < problems->count; i++)
		items[i] = problems->items[i].text;
	report.problems = (struct strings){items, problems->count};
	if (report.loaded) {
		keep_settings(load, &report);
		compare_tests(load, &report);
		report.problem = take_over(load);
	} else {
		report.problem = load->error.text;
	}
	for (size_t i = 0; i < problems->count && i < LOGGED_MOST; i++)
		log_answer(problems->items[i].warning ? LEVEL_WARN : LEVEL_ERROR, "configuration",
			LOG_TEXT("problem", problems->items[i].text));
	if (problems->count > LOGGED_MOST)
		log_answer(LEVEL_WARN,
			"configuration has more problems: `hunter-c validate` lists them all",
			LOG_INT("problems", problems->count));
	for (size_t i = 0; i < report.kept.count; i++)
		log_answer(LEVEL_WARN, "setting changes only with a restart",
			LOG_TEXT("setting", report.kept.items[i]));
	reloader->load = NULL;
	conclude(reloader, load->waiters, &report);
	load->waiters = NULL;
	load_free(load);
	start_load(reloader);
}

static void start_load(struct reloader *reloader)
{
	struct waiter *waiters;
	struct load *load;

	if (!reloader->started || reloader->load || !reloader->waiters)
		return;
	if (reloader->options.begun)
		reloader->options.begun(reloader->options.context);
	waiters = reloader->waiters;
	reloader->waiters = NULL;
	if (reloader->stuck) {
		conclude(reloader, waiters,
			&(struct reload_report){.problem = "previous reload still blocked"});
		return;
	}
	load = memory_new(1, sizeof *load);
	*load = (struct load){.reloader = reloader, .arena = arena_new(), .waiters = waiters};
	load->problems.arena = load->arena;
	load->path = arena_strdup(load->arena, reloader->agent->config->path);
	reloader->load = load;
	load->due = engine_now(reloader->agent->engine) + reloader->options.patience;
	engine_alarm(reloader->agent->engine, &reloader->alarm, load->due);
	engine_run_blocking(reloader->agent->engine, read_configuration, loaded, load);
}

void agent_reload(struct agent *agent, reload_done *done, void *context)
{
	struct reloader *reloader = agent->reloader;
	struct waiter *waiter = memory_new(1, sizeof *waiter), **link = &reloader->waiters;

	while (*link)
		link = &(*link)->next;
	*waiter = (struct waiter){.done = done, .context = context};
	*link = waiter;
	if (agent->stopping)
		reloader_stop(reloader);
	else
		start_load(reloader);
}

void reloader_start(struct reloader *reloader)
{
	reloader->started = true;
	note_metrics(reloader->agent, &(struct reload_report){.loaded = true});
	start_load(reloader);
}

void reloader_stop(struct reloader *reloader)
{
	struct waiter *waiters = reloader->waiters;

	reloader->started = false;
	reloader->waiters = NULL;
	answer_waiters(waiters, &(struct reload_report){.problem = "the agent is stopping"});
	if (!reloader->load)
		return;
	waiters = reloader->load->waiters;
	reloader->load->waiters = NULL;
	answer_waiters(waiters, &(struct reload_report){.problem = "the agent is stopping"});
}

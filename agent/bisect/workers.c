/*
 * A run is a checkout, a command and the extraction of its value. The extraction runs on a worker
 * of the engine, as the output may be long.
 */
#include "agent/bisect/workers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/base/arena.h"
#include "agent/base/log.h"
#include "agent/base/when.h"
#include "agent/bisect/extract.h"
#include "agent/bisect/worktrees.h"
#include "agent/io/engine.h"
#include "agent/io/execution.h"

enum {
	UNTESTABLE = 125, /* as for `git bisect run` */
	NO_ANSWER = 255,  /* of ssh that cannot connect */
	MOST_UNANSWERED = 3,
	MOST_OUTPUT = 1 << 20,
	MOST_LOG = 256 << 10,
	LOGS_KEPT = 200, /* of measured runs, and of others */
	LEAST_SPACE = 1 << 20,
	MOST_VARIABLES = 16,
	MOST_ENVIRONMENT = 1 << 20,
	ENDS_WITHIN = 1000, /* ms, after SIGKILL */
};

struct slot {
	struct execution execution; /* must be first */
	struct workers *all;
	const char *line; /* its command line; NULL: this machine */
	bool busy, stopping, checking_out;
	bool afresh; /* the next checkout removes build products */
	size_t unanswered;
	struct bisect_run run;
	int64_t begun, start; /* ms: wall clock, engine_now */
	struct arena *arena;  /* of the run */
	const char *commit, *log;
	struct pair variables[MOST_VARIABLES];
	struct command_options command_options;
	struct transfer transfer;
	struct worker_report report;
	struct error error; /* of the extraction */
	bool extracted;
};

struct workers {
	struct arena *arena;
	struct workers_options options;
	const struct journal_setup *setup; /* of the options */
	const char *logs;
	struct worktrees *trees;
	struct slot *slots;
	size_t failures; /* logs of failed runs that were kept */
	workers_done *done;
	void *context;
};

/* Whether a process belongs to a bisection in this folder: it inherits the variable. */
static bool is_ours(const char *pid, const char *variable)
{
	char path[64], *text;
	size_t length = strlen(variable), size = 0;
	bool ours = false;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	text = memory_resize(NULL, MOST_ENVIRONMENT, 1);
	size = fread(text, 1, MOST_ENVIRONMENT - 1, file);
	text[size] = '\0';
	for (size_t at = 0; at < size && !ours; at += strlen(text + at) + 1)
		ours = strcmp(text + at, variable) == 0 && text[at + length] == '\0';
	free(text);
	fclose(file);
	return ours;
}

/* The pidfd refers to this process even if its number is reused. Once it has ended it no longer
 * writes to the trees. */
static bool end_process(const char *pid, const char *variable)
{
	int process = pidfd_open((pid_t)strtol(pid, NULL, 10), 0);
	bool ours = process >= 0 && is_ours(pid, variable) &&
		    pidfd_send_signal(process, SIGKILL, NULL, 0) == 0;

	if (ours)
		poll(&(struct pollfd){.fd = process, .events = POLLIN}, 1, ENDS_WITHIN);
	if (process >= 0)
		close(process);
	return ours;
}

/* Ends runs and checkouts that a killed hunter-c left behind. */
static void end_strays(const char *folder)
{
	char *variable = NULL, self[24];
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	size_t ended = 0;

	snprintf(self, sizeof self, "%ld", (long)getpid());
	if (asprintf(&variable, WORKTREES_MARK "=%s", folder) < 0)
		abort();
	while (processes && (entry = readdir(processes)))
		if (strspn(entry->d_name, "0123456789") == strlen(entry->d_name) &&
			strcmp(entry->d_name, self) != 0)
			ended += end_process(entry->d_name, variable);
	if (processes)
		closedir(processes);
	free(variable);
	if (ended > 0)
		log_event(LEVEL_INFO, "stopped processes left by an earlier bisection",
			LOG_INT("count", ended), LOG_TEXT("folder", folder));
}

struct workers *workers_new(const struct workers_options *options, workers_done *done,
	void *context, struct error *error)
{
	const struct journal_setup *setup = options->setup;
	size_t count = setup->options.workers, local = count - setup->lines.count;
	struct workers *all;
	struct arena *arena;

	if (!extract_check(setup->extract, error))
		return NULL;
	all = memory_new(1, sizeof *all);
	arena = arena_new();
	*all = (struct workers){.arena = arena,
		.options = *options,
		.setup = setup,
		.logs = arena_printf(arena, "%s/logs", options->folder),
		.trees = worktrees_new(options->engine, setup->repository, options->folder, count,
			options->by_hand),
		.slots = arena_array(arena, count, sizeof *all->slots),
		.done = done,
		.context = context};
	for (size_t i = 0; i < count; i++)
		all->slots[i] = (struct slot){
			.all = all, .line = i < local ? NULL : setup->lines.items[i - local]};
	if (mkdir(all->logs, 0777) == 0 || errno == EEXIST) {
		end_strays(options->folder);
		return all;
	}
	error_set(error, ERROR_STATE, "%s: %s", all->logs, strerror(errno));
	workers_free(all);
	return NULL;
}

static void rest(struct slot *slot)
{
	buf_free(&slot->execution.output);
	if (slot->command_options.log > 0)
		close(slot->command_options.log);
	slot->command_options.log = 0;
	arena_free(slot->arena);
	slot->arena = NULL;
	slot->busy = slot->stopping = slot->checking_out = false;
}

void workers_free(struct workers *all)
{
	if (!all)
		return;
	for (size_t i = 0; i < all->setup->options.workers; i++)
		rest(&all->slots[i]);
	worktrees_free(all->trees);
	arena_free(all->arena);
	free(all);
}

static bool is_busy(const void *context, size_t worker)
{
	const struct workers *all = context;

	return all->slots[worker].busy;
}

static bool is_gone(const void *context, size_t worker)
{
	const struct workers *all = context;

	return all->slots[worker].unanswered >= MOST_UNANSWERED;
}

/* A measured run's file is kept for a while; one of another run, by a name of its own, if they are
 * not too many. */
static void settle_log(struct slot *slot)
{
	const char *logs = slot->all->logs, *name;

	if (slot->report.result.outcome == BISECT_MEASURED && slot->run.id > LOGS_KEPT)
		unlink(arena_printf(
			slot->arena, "%s/run-%" PRIu64 ".log", logs, slot->run.id - LOGS_KEPT));
	if (slot->report.result.outcome == BISECT_MEASURED || !slot->log)
		return;
	name = arena_printf(slot->arena, "%s/failed-%" PRIu64 ".log", logs, slot->run.id);
	if (++slot->all->failures > LOGS_KEPT) {
		unlink(slot->log);
		slot->log = NULL;
	} else if (rename(slot->log, name) == 0) {
		slot->log = name;
	}
}

static void finish(struct slot *slot, enum bisect_outcome outcome, const char *problem)
{
	struct workers *all = slot->all;
	struct worker_report *report = &slot->report;
	struct arena *arena = slot->arena;
	struct worker_report copy;

	if (slot->stopping) {
		outcome = BISECT_LOST;
		problem = "stopped";
	}
	report->result.id = slot->run.id;
	report->result.worker = slot->run.worker;
	report->result.position = slot->run.position;
	report->result.outcome = outcome;
	report->result.begun = slot->begun;
	report->result.lasted = engine_now(all->options.engine) - slot->start;
	report->problem = problem;
	slot->afresh = outcome == BISECT_FAILED;
	settle_log(slot);
	report->log = slot->log;
	copy = *report;
	slot->arena = NULL;
	rest(slot);
	all->done(all->context, &copy);
	arena_free(arena);
}

static void hopeless(struct slot *slot, const char *problem)
{
	slot->report.hopeless = true;
	finish(slot, BISECT_LOST, problem);
}

/* Reports a failed run, unless the disk is full. */
static void failed(struct slot *slot, const char *problem)
{
	const char *folder = slot->all->options.folder;
	struct statvfs space;

	if (statvfs(folder, &space) == 0 &&
		((uint64_t)space.f_bavail * space.f_frsize < LEAST_SPACE ||
			(space.f_files > 0 && space.f_favail == 0)))
		hopeless(slot, arena_printf(slot->arena, "the disk of %s is full", folder));
	else
		finish(slot, BISECT_FAILED, problem);
}

static void extract(void *context)
{
	struct slot *slot = context;
	const struct buf *output = &slot->execution.output;

	slot->extracted =
		extract_value(slot->all->setup->extract, output->length ? output->data : "",
			output->length, &slot->report.result.value, &slot->error);
}

static void extracted(void *context)
{
	struct slot *slot = context;

	if (slot->extracted)
		finish(slot, BISECT_MEASURED, NULL);
	else
		failed(slot, slot->error.text);
}

static void ended(struct execution *execution)
{
	struct slot *slot = (struct slot *)execution;
	const struct reply *reply = &execution->reply;
	char time[WHEN_TEXT];

	if (reply->kind == REPLY_ANSWER && !slot->stopping)
		slot->unanswered =
			slot->line && reply->status == NO_ANSWER ? slot->unanswered + 1 : 0;
	if (slot->stopping) {
		finish(slot, BISECT_LOST, NULL);
	} else if (reply->kind == REPLY_UNREACHABLE) {
		hopeless(slot, arena_strdup(slot->arena, reply->problem));
	} else if (reply->kind == REPLY_AMBIGUOUS) {
		failed(slot, arena_printf(slot->arena, "timed out after %s",
				     when_format_duration(slot->all->setup->timeout, time)));
	} else if (slot->unanswered > 0) {
		finish(slot, BISECT_LOST,
			"the worker did not answer: its command line ended with status 255");
	} else if (reply->status == UNTESTABLE) {
		finish(slot, BISECT_UNTESTABLE, "exit status 125");
	} else if (reply->status != 0) {
		failed(slot, reply->status > 128 && reply->problem
				     ? arena_printf(slot->arena, "exit status %d: %s",
					       reply->status, reply->problem)
				     : arena_printf(slot->arena, "exit status %d", reply->status));
	} else {
		engine_compute(slot->all->options.engine, extract, extracted, slot);
	}
}

static void add_variable(struct slot *slot, const char *key, const char *value)
{
	slot->variables[slot->transfer.plain.count++] = (struct pair){key, value};
}

/* Variables set by git (in a hook or alias) would point it at the user's work tree. */
static void add_variables(struct slot *slot)
{
	static const char *const removed[] = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE",
		"GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"};
	const struct journal_setup *setup = slot->all->setup;
	struct arena *arena = slot->arena;

	slot->transfer.plain = (struct pairs){slot->variables, 0};
	for (size_t i = 0; i < sizeof removed / sizeof *removed; i++)
		add_variable(slot, removed[i], NULL);
	add_variable(slot, "HUNTER_COMMIT", slot->commit);
	add_variable(
		slot, "HUNTER_BISECT_POSITION", arena_printf(arena, "%zu", slot->run.position));
	add_variable(slot, "HUNTER_BISECT_RUN", arena_printf(arena, "%" PRIu64, slot->run.id));
	add_variable(slot, "HUNTER_WORKER", arena_printf(arena, "%zu", slot->run.worker + 1));
	add_variable(slot, WORKTREES_MARK, slot->all->options.folder);
	if (setup->test) {
		add_variable(slot, "HUNTER_TEST", setup->test);
		add_variable(slot, "HUNTER_METRIC", setup->metric);
	}
}

static void put_quoted(struct buf *out, const char *text)
{
	buf_char(out, '\'');
	for (; *text; text++)
		if (*text == '\'')
			buf_text(out, "'\\''");
		else
			buf_char(out, *text);
	buf_char(out, '\'');
}

/* For a remote shell, which lacks the variables, and has not the folder. */
static const char *script(const struct slot *slot)
{
	const struct pairs *variables = &slot->transfer.plain;
	struct buf out = {0};

	buf_text(&out, slot->transfer.body_length > 0 ? "eval \"$(cat)\"; export" : "export");
	for (size_t i = 0; i < variables->count; i++) {
		const struct pair *one = &variables->items[i];

		if (!one->value || strcmp(one->key, WORKTREES_MARK) == 0)
			continue;
		buf_printf(&out, " %s=", one->key);
		put_quoted(&out, one->value);
	}
	buf_printf(&out, "; %s", slot->all->setup->run);
	return buf_keep(&out, slot->arena);
}

static void run_command(struct slot *slot)
{
	const struct workers_options *options = &slot->all->options;
	const struct pairs *secrets = &options->secrets;
	struct buf exports = {.secret = true};
	const char **command = arena_array(slot->arena, 6, sizeof *command);
	int log = open(slot->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (log < 0)
		slot->log = NULL;
	slot->command_options = (struct command_options){
		.folder = worktrees_path(slot->all->trees, slot->run.worker),
		.inherits = options->by_hand,
		.keeps_end = true,
		.whole_group = true,
		.cancellable = true,
		.log = log < 0 ? 0 : log,
		.most_log = MOST_LOG};
	slot->transfer = (struct transfer){.kind = TRANSFER_EXEC,
		.command = command,
		.body = "",
		.most_output = MOST_OUTPUT,
		.timeout = slot->all->setup->timeout,
		.environment = *secrets,
		.options = &slot->command_options};
	add_variables(slot);
	for (size_t i = 0; slot->line && i < secrets->count; i++) {
		buf_printf(&exports, "export %s=", secrets->items[i].key);
		put_quoted(&exports, secrets->items[i].value);
		buf_char(&exports, '\n');
	}
	if (slot->line) { /* that shell reads the secrets first */
		slot->transfer.body_length = exports.length;
		slot->transfer.body = buf_keep(&exports, slot->arena);
	}
	command[0] = "/bin/sh";
	command[1] = "-c";
	command[2] = slot->line ? arena_printf(slot->arena, "%s \"$@\"", slot->line)
				: slot->all->setup->run;
	if (slot->line) {
		command[3] = "hunter-c";
		command[4] = script(slot);
	}
	engine_execute(options->engine, &slot->execution, &slot->transfer, ended);
}

static void checked_out(void *context, enum worktree_outcome outcome, const char *problem)
{
	struct slot *slot = context;

	slot->checking_out = false;
	problem = arena_strdup(slot->arena, problem);
	if (outcome == WORKTREE_READY && !slot->stopping) {
		slot->log = arena_printf(
			slot->arena, "%s/run-%" PRIu64 ".log", slot->all->logs, slot->run.id);
		run_command(slot);
	} else if (outcome == WORKTREE_VANISHED) {
		finish(slot, BISECT_UNTESTABLE, problem);
	} else if (outcome == WORKTREE_FAILED) {
		hopeless(slot, problem);
	} else {
		finish(slot, BISECT_LOST, problem);
	}
}

static void begin(void *context, const struct bisect_run *run, const char *commit, int64_t begun)
{
	struct workers *all = context;
	struct slot *slot = &all->slots[run->worker];

	slot->busy = slot->checking_out = true;
	slot->run = *run;
	slot->begun = begun;
	slot->start = engine_now(all->options.engine);
	slot->arena = arena_new();
	arena_holds_secrets(slot->arena);
	slot->commit = arena_strdup(slot->arena, commit);
	slot->log = NULL;
	slot->report = (struct worker_report){0};
	worktrees_checkout(all->trees, run->worker, slot->commit,
		all->setup->remove_ignored || slot->afresh, checked_out, slot);
}

static void stop(void *context, size_t worker)
{
	struct workers *all = context;
	struct slot *slot = &all->slots[worker];

	if (!slot->busy || slot->stopping)
		return;
	slot->stopping = true;
	if (slot->checking_out)
		worktrees_stop(all->trees, worker);
	else
		execution_cancel(&slot->execution);
}

const struct bisect_runner workers_runner = {
	.begin = begin, .is_busy = is_busy, .is_gone = is_gone, .stop = stop};

void workers_remove_trees(
	struct workers *all, void (*done)(void *context, const char *problem), void *context)
{
	worktrees_remove(all->trees, done, context);
}

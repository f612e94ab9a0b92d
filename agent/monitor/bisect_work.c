/*
 * The stages follow one another; each begins when what the one before has asked for is there. What
 * is to be written goes through one queue, in the order in which the search was told of it.
 */
#include "agent/monitor/bisect_work.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/base/database.h"
#include "agent/base/hash.h"
#include "agent/base/when.h"
#include "agent/bisect/candidates.h"
#include "agent/bisect/journal.h"
#include "agent/bisect/verdict_text.h"
#include "agent/bisect/workers.h"
#include "agent/model/announcement.h"
#include "agent/monitor/bisect_lab.h"
#include "agent/runtime/fleet.h"

enum {
	AGAIN = 5000,       /* ms until what the store refused is written again */
	ASK_FIRST = 2000,   /* ms until a lab is asked again, doubled each time ... */
	ASK_MOST = 300000,  /* ... up to this */
	PAUSE = 60000,      /* ms after something that no commit can be blamed for */
	PROBLEM_MOST = 300, /* bytes */
	ATTEMPTS = 2,
};

enum stage {
	STAGE_LOADING, /* the row with its journal is read */
	STAGE_CHANGE,  /* its change is read, */
	STAGE_RANGE,   /* git lists the commits, */
	STAGE_SETUP,   /* the first line is written */
	STAGE_SEARCH,
	STAGE_END,      /* the end is written, */
	STAGE_CLEANING, /* the work trees are removed */
	STAGE_OVER,
};

enum slot_state {
	SLOT_IDLE,
	SLOT_RECORDING, /* its run begins once that is written */
	SLOT_RUNNING,
};

/* A worker, or a device of the lab. */
struct slot {
	enum slot_state state;
	struct bisect_run run;
	int64_t begun; /* ms, wall clock */
	/* Of a lab. */
	struct lab_asking *asking; /* or NULL */
	bool asked;                /* the lab has taken the request */
	int64_t ask_at;            /* engine_now, if it is to be asked (again) */
	int64_t ask_again;         /* ms to wait after the next failure */
	int64_t until;             /* engine_now: no answer is waited for after that */
	char problem[PROBLEM_MOST];
};

struct line {
	struct bisection_line line;
	struct line *next;
};

struct bisect_work {
	struct agent *agent;
	struct bisect_work_listener listener;
	struct arena *arena;
	int64_t id, change;
	const char *test, *metric;
	int shard;
	struct config_ref *config_ref;
	const struct bisect_settings *settings;
	const char *repository_given;
	enum stage stage;
	bool dropped;
	const char *cancelled; /* why it is to end, or NULL */

	struct journal_setup *setup;
	struct verdict_commits commits;
	struct candidates_search *searching; /* git is asked, ... */
	struct store_list *range;            /* ... about the change in it */
	struct bisection *search;
	int64_t paused; /* ms that the budget does not count */
	struct workers *workers;
	struct slot slots[BISECT_WORKERS_MOST];
	size_t slot_count;
	int64_t pause_until; /* engine_now */

	struct line *lines, **last_line;
	bool writing, setup_due;
	int64_t write_at;          /* engine_now, after a failure; 0: now */
	const char *end, *verdict; /* what is to be written at the end */
	const struct culprit *culprit;
	size_t calls; /* under way: they have this work as their context */
	bool told;
};

static void advance(struct bisect_work *work);

static int64_t now_of(const struct bisect_work *work)
{
	return agent_now(work->agent);
}

static void call_begins(struct bisect_work *work)
{
	work->calls++;
}

/* Whether the callback has anything to do; to be called by each first. */
static bool call_ends(struct bisect_work *work)
{
	work->calls--;
	return !work->dropped;
}

static void over(struct bisect_work *work)
{
	work->stage = STAGE_OVER;
	if (work->calls == 0)
		work->listener.ended(work->listener.context, work, work->told);
}

static bool is_busy(const struct bisect_work *work)
{
	for (size_t i = 0; i < work->slot_count; i++)
		if (work->slots[i].asking || (work->workers && workers_busy(work->workers, i)))
			return true;
	return false;
}

/* A work that was dropped ends with the last thing that is under way. */
static void end_dropped(struct bisect_work *work)
{
	if (work->calls == 0 && !is_busy(work))
		over(work);
}

/* Writing. */

static void add_line(
	struct bisect_work *work, enum bisection_line_kind kind, uint64_t run, struct buf *text)
{
	struct line *line = memory_new(1, sizeof *line);

	while (text->length > 0 && text->data[text->length - 1] == '\n')
		text->data[--text->length] = '\0';
	line->line =
		(struct bisection_line){.kind = kind, .run = (int64_t)run, .text = buf_steal(text)};
	*work->last_line = line;
	work->last_line = &line->next;
}

static void line_free(struct line *line)
{
	free((char *)(uintptr_t)line->line.text);
	free(line);
}

static void drop_lines(struct bisect_work *work)
{
	while (work->lines) {
		struct line *line = work->lines;

		work->lines = line->next;
		line_free(line);
	}
	work->last_line = &work->lines;
}

static void begin_run(struct bisect_work *work, struct slot *slot)
{
	int64_t now = engine_now(work->agent->engine);

	slot->state = SLOT_RUNNING;
	if (work->workers) {
		workers_run(work->workers, &slot->run, work->commits.ids[slot->run.position],
			now_of(work));
		return;
	}
	slot->ask_at = now;
	slot->ask_again = ASK_FIRST;
	slot->asked = false;
	slot->until = now + work->setup->timeout;
}

static void begin_recorded(struct bisect_work *work, int64_t run)
{
	for (size_t i = 0; i < work->slot_count; i++)
		if (work->slots[i].state == SLOT_RECORDING && (int64_t)work->slots[i].run.id == run)
			begin_run(work, &work->slots[i]);
}

/* Those that were sent, the first of the queue. */
static void take_written(struct bisect_work *work, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct line *line = work->lines;

		work->lines = line->next;
		if (!work->lines)
			work->last_line = &work->lines;
		if (line->line.kind == BISECTION_BEGIN)
			begin_recorded(work, line->line.run);
		line_free(line);
	}
}

static void clean(struct bisect_work *work);

static void written(struct store_bisection_write *call)
{
	struct bisect_work *work = call->call.context;
	bool good = !call->call.failed, gone = call->call.fenced || (good && call->gone);
	bool ended = call->end != NULL, had_setup = call->setup != NULL;
	size_t count = call->line_count;

	work->writing = false;
	store_call_free(&call->call);
	if (!call_ends(work)) {
		end_dropped(work);
		return;
	}
	if (gone) {
		bisect_work_drop(work);
		return;
	}
	work->write_at = good ? 0 : engine_now(work->agent->engine) + AGAIN;
	if (!good) {
		work->listener.due(work->listener.context);
		return;
	}
	if (had_setup) {
		work->setup_due = false;
		work->stage = STAGE_SEARCH;
	}
	take_written(work, count);
	if (!ended) {
		advance(work);
		return;
	}
	metrics_add(work->agent->metrics, METRIC_BISECTIONS_ENDED, 1, work->end, NULL);
	log_event(LEVEL_INFO, "bisection ended", LOG_INT("id", work->id),
		LOG_INT("change", work->change), LOG_TEXT("test", work->test),
		LOG_TEXT("verdict", work->verdict ? work->verdict : work->end));
	work->told = work->culprit != NULL;
	clean(work);
}

static const char *setup_text(const struct bisect_work *work, struct arena *arena)
{
	struct buf out = {0};

	journal_put_setup(&out, work->setup);
	while (out.length > 0 && out.data[out.length - 1] == '\n')
		out.data[--out.length] = '\0';
	return buf_keep(&out, arena);
}

static void copy_lines(struct bisect_work *work, struct store_bisection_write *call)
{
	struct bisection_line *lines;
	size_t count = 0;

	for (const struct line *line = work->lines; line; line = line->next)
		count++;
	lines = arena_array(call->call.arena, count, sizeof *lines);
	call->lines = lines;
	for (const struct line *line = work->lines; line; line = line->next) {
		lines[call->line_count] = line->line;
		lines[call->line_count++].text = arena_strdup(call->call.arena, line->line.text);
	}
}

static void flush(struct bisect_work *work)
{
	struct store_bisection_write *call;

	if (work->writing || (!work->lines && !work->setup_due && work->stage != STAGE_END) ||
		work->write_at > engine_now(work->agent->engine))
		return;
	call = store_bisection_write_new(written, work);
	call->bisection = work->id;
	call->now = now_of(work);
	call->setup = work->setup_due ? setup_text(work, call->call.arena) : NULL;
	copy_lines(work, call);
	if (work->stage == STAGE_END) {
		call->end = arena_strdup(call->call.arena, work->end);
		call->verdict = arena_strdup(call->call.arena, work->verdict);
		call->cancelled = arena_strdup(call->call.arena, work->cancelled);
		call->culprit = culprit_copy(call->call.arena, work->culprit);
	}
	work->writing = true;
	call_begins(work);
	fleet_fence(work->agent, &call->call, work->shard);
	store_client_call(work->agent, &call->call);
}

/* The end. */

static void cleaned(void *context, const char *problem)
{
	struct bisect_work *work = context;

	if (problem)
		log_event(LEVEL_WARN, "cannot remove work trees of a bisection",
			LOG_INT("id", work->id), LOG_TEXT("problem", problem));
	if (call_ends(work))
		over(work);
	else
		end_dropped(work);
}

static void clean(struct bisect_work *work)
{
	work->stage = STAGE_CLEANING;
	if (!work->workers) {
		over(work);
		return;
	}
	call_begins(work);
	workers_remove_trees(work->workers, cleaned, work);
}

static void finish(struct bisect_work *work, const char *end, const char *verdict)
{
	work->stage = STAGE_END;
	work->end = end;
	work->verdict = verdict;
	flush(work);
}

static const struct culprit *culprit_of(
	struct bisect_work *work, const struct bisect_status *status, const char *verdict)
{
	struct culprit *culprit = arena_alloc(work->arena, sizeof *culprit);
	struct culprit_commit *set;
	size_t count = status->set_count < CULPRIT_SET_MOST ? status->set_count : CULPRIT_SET_MOST;

	*culprit = (struct culprit){.bisection = work->id,
		.end = verdict_end_name(status->end),
		.verdict = verdict,
		.set_count = count,
		.set_total = status->set_count};
	culprit->set = set = arena_array(work->arena, count, sizeof *set);
	for (size_t i = 0; i < count; i++)
		set[i] = (struct culprit_commit){work->commits.ids[status->set[i].position],
			status->set[i].probability, status->set[i].broken};
	if (status->end == BISECT_FOUND && count > 0) {
		culprit->commit = set[0].commit;
		culprit->probability = set[0].probability;
	}
	return culprit;
}

static void finish_search(struct bisect_work *work)
{
	const struct bisect_status *status = bisection_status(work->search);
	struct buf text = {0};
	const char *verdict;

	verdict_text(&text, status, &work->commits);
	verdict = buf_keep(&text, work->arena);
	if (status->end != BISECT_CANCELLED)
		work->culprit = culprit_of(work, status, verdict);
	finish(work, verdict_end_name(status->end), verdict);
}

/* Nothing could be searched. */
static void finish_without(struct bisect_work *work, const char *end, const char *why)
{
	if (work->cancelled) {
		finish(work, "cancelled", NULL);
		return;
	}
	finish(work, end, arena_strdup(work->arena, why));
}

/* Runs. */

static const char *const outcome_names[] = {[BISECT_MEASURED] = "measured",
	[BISECT_UNTESTABLE] = "untestable",
	[BISECT_FAILED] = "failed",
	[BISECT_LOST] = "lost"};

static void tell(struct bisect_work *work, const struct bisect_result *result, const char *problem)
{
	struct bisect_result told = *result;
	struct buf text = {0};

	/* The search knows no time in which nobody worked on it; the journal has the clock's. */
	told.begun -= work->paused;
	if (!bisection_tell(work->search, &told))
		return;
	metrics_add(work->agent->metrics, METRIC_BISECTION_RUNS, 1, outcome_names[result->outcome],
		NULL);
	journal_put_result(&text, result, problem);
	add_line(work, BISECTION_RESULT, result->id, &text);
}

static void tell_slot(struct bisect_work *work, struct slot *slot, enum bisect_outcome outcome,
	double value, const char *problem)
{
	int64_t lasted = now_of(work) - slot->begun;

	slot->state = SLOT_IDLE;
	tell(work,
		&(struct bisect_result){.id = slot->run.id,
			.worker = slot->run.worker,
			.position = slot->run.position,
			.outcome = outcome,
			.value = value,
			.begun = slot->begun,
			.lasted = lasted > 0 ? lasted : 0},
		problem);
}

static void run_done(void *context, const struct worker_report *report)
{
	struct bisect_work *work = context;
	struct slot *slot = &work->slots[report->result.worker];

	slot->state = SLOT_IDLE;
	if (work->dropped) {
		end_dropped(work);
		return;
	}
	if (report->problem)
		log_event(report->hopeless ? LEVEL_WARN : LEVEL_INFO,
			"bisection run returned no value", LOG_INT("id", work->id),
			LOG_INT("run", (int64_t)report->result.id),
			LOG_TEXT("commit", work->commits.ids[report->result.position]),
			LOG_TEXT("problem", report->problem));
	if (report->hopeless)
		work->pause_until = engine_now(work->agent->engine) + PAUSE;
	tell(work, &report->result, report->problem);
	advance(work);
}

static struct slot *slot_of(struct bisect_work *work, uint64_t run)
{
	for (size_t i = 0; i < work->slot_count; i++)
		if (work->slots[i].state == SLOT_RUNNING && work->slots[i].run.id == run)
			return &work->slots[i];
	return NULL;
}

static struct slot *slot_asking(struct bisect_work *work, uint64_t run)
{
	for (size_t i = 0; i < work->slot_count; i++)
		if (work->slots[i].asking && work->slots[i].run.id == run)
			return &work->slots[i];
	return NULL;
}

/* Whatever the lab says of the request, its answer is what counts. */
static void lab_was_asked(void *context, uint64_t run, const struct error *error)
{
	struct bisect_work *work = context;
	struct slot *slot = slot_asking(work, run);

	if (slot)
		slot->asking = NULL;
	if (work->dropped) {
		end_dropped(work);
		return;
	}
	if (!slot || slot->state != SLOT_RUNNING) {
		advance(work);
		return;
	}
	slot->asked = !error;
	if (error) {
		snprintf(
			slot->problem, sizeof slot->problem, "%.*s", PROBLEM_MOST - 1, error->text);
		slot->ask_at = engine_now(work->agent->engine) + slot->ask_again;
		slot->ask_again = slot->ask_again * 2 < ASK_MOST ? slot->ask_again * 2 : ASK_MOST;
		log_event(LEVEL_WARN, "bisection lab unavailable", LOG_INT("id", work->id),
			LOG_INT("run", (int64_t)run), LOG_TEXT("lab", work->settings->lab),
			LOG_TEXT("problem", error->text));
	}
	work->listener.due(work->listener.context);
}

static void ask_lab(struct bisect_work *work, struct slot *slot)
{
	const struct config *config = work->config_ref->config;
	const struct lab_request request = {.bisection = work->id,
		.change = work->change,
		.test = work->test,
		.metric = work->metric,
		.lab = work->settings->lab,
		.repository = work->setup->repository,
		.commit = work->commits.ids[slot->run.position],
		.run = slot->run,
		.candidates = work->commits.count,
		.timeout = work->setup->timeout,
		.external_url = config->agent.external_url};

	slot->asking = lab_ask(work->agent, work->config_ref, work->settings->webhook, &request,
		lab_was_asked, work);
}

/* Asks for what is due, and gives up what was not answered in time. */
static void tend_lab(struct bisect_work *work)
{
	int64_t now = engine_now(work->agent->engine);

	for (size_t i = 0; i < work->slot_count; i++) {
		struct slot *slot = &work->slots[i];
		char time[WHEN_TEXT];
		const char *problem;

		if (slot->state != SLOT_RUNNING || slot->asking)
			continue;
		if (slot->until > now) {
			if (!slot->asked && slot->ask_at <= now)
				ask_lab(work, slot);
			continue;
		}
		problem = slot->asked
				  ? arena_printf(work->arena, "the lab has not answered within %s",
					    when_format_rough(work->setup->timeout, time))
				  : arena_printf(work->arena, "the lab could not be asked: %s",
					    slot->problem);
		tell_slot(work, slot, slot->asked ? BISECT_FAILED : BISECT_LOST, (double)NAN,
			problem);
	}
}

void bisect_work_answers(struct bisect_work *work, const struct bisection_lines *lines)
{
	bool told = false;

	if (work->stage != STAGE_SEARCH || work->workers || work->dropped)
		return;
	for (size_t i = 0; i < lines->count; i++) {
		const struct bisection_line *line = &lines->items[i];
		struct slot *slot = slot_of(work, (uint64_t)line->run);
		struct lab_answer answer;

		if (line->kind != BISECTION_ANSWER || !slot || slot->asking ||
			!lab_answer_parse(line->text, &answer))
			continue;
		tell_slot(work, slot, answer.outcome, answer.value, answer.problem);
		told = true;
	}
	if (told)
		advance(work);
}

/* What still runs is of no use. True if nothing does. */
static bool stop_runs(struct bisect_work *work)
{
	bool idle = true;

	for (size_t i = 0; i < work->slot_count; i++) {
		struct slot *slot = &work->slots[i];

		if (work->workers && workers_busy(work->workers, i)) {
			workers_stop(work->workers, i);
			idle = false;
		} else if (slot->asking) {
			idle = false;
		} else if (slot->state != SLOT_IDLE) {
			tell_slot(
				work, slot, BISECT_LOST, (double)NAN, "it was not needed any more");
		}
	}
	return idle;
}

static void begin_next(struct bisect_work *work)
{
	for (size_t i = 0; i < work->slot_count; i++) {
		struct slot *slot = &work->slots[i];
		struct buf text = {0};
		int64_t now = now_of(work);
		struct bisect_run run;

		if (slot->state != SLOT_IDLE || slot->asking ||
			(work->workers && (workers_busy(work->workers, i) ||
						  workers_gone(work->workers, i))) ||
			!bisection_next(work->search, i, now - work->paused, &run))
			continue;
		*slot = (struct slot){.state = SLOT_RECORDING, .run = run, .begun = now};
		journal_put_begin(&text, &run, now);
		add_line(work, BISECTION_BEGIN, run.id, &text);
	}
}

/* Whoever takes it up again tries them again. */
static bool are_all_gone(const struct bisect_work *work)
{
	size_t gone = 0;

	for (size_t i = 0; work->workers && i < work->slot_count; i++)
		gone += workers_gone(work->workers, i) && !workers_busy(work->workers, i);
	return gone > 0 && gone == work->slot_count;
}

static bool is_over(const struct bisect_work *work)
{
	return bisection_status(work->search)->phase == BISECT_OVER;
}

static void advance(struct bisect_work *work)
{
	int64_t now = engine_now(work->agent->engine);

	if (work->dropped)
		return;
	if (work->stage == STAGE_SEARCH && !work->agent->stopping && !is_over(work) &&
		work->pause_until <= now)
		begin_next(work);
	if (work->stage == STAGE_SEARCH && is_over(work) && stop_runs(work)) {
		finish_search(work);
		return;
	}
	if (work->stage == STAGE_SEARCH && !work->lines && !work->writing && are_all_gone(work)) {
		log_event(LEVEL_WARN, "no bisection worker answers", LOG_INT("id", work->id),
			LOG_TEXT("lab", work->settings->lab));
		bisect_work_drop(work);
		return;
	}
	if (work->stage == STAGE_SEARCH && !work->workers)
		tend_lab(work);
	flush(work);
	work->listener.due(work->listener.context);
}

/* Setting up. */

static const char *folder_of(const struct bisect_work *work)
{
	const struct bisect_settings *settings = work->settings;
	const char *state = work->config_ref->config->agent.state;
	const char *slash = strrchr(state, '/');
	uint64_t hash = HASH_START;

	hash = hash_add(hash, work->setup->repository, strlen(work->setup->repository) + 1);
	hash = hash_add(hash, settings->lab, strlen(settings->lab) + 1);
	if (settings->work)
		return arena_printf(work->arena, "%s/%016" PRIx64, settings->work, hash);
	if (database_is(state))
		return NULL;
	return arena_printf(work->arena, "%.*s/bisect/%016" PRIx64,
		slash ? (int)(slash - state) : 1, slash ? state : ".", hash);
}

/* Makes the folder with those above it; only for this user, as what is built there is run. */
static const char *make_folder(struct bisect_work *work, struct error *error)
{
	const char *folder = folder_of(work);
	char *path, *resolved;

	if (!folder) {
		(void)error_set(error, ERROR_USAGE,
			"bisect: `work`, a folder, is missing: the state is a database");
		return NULL;
	}
	path = arena_strdup(work->arena, folder);
	for (char *at = path + 1; *at; at++)
		if (*at == '/') {
			*at = '\0';
			(void)mkdir(path, 0700);
			*at = '/';
		}
	if (mkdir(path, 0700) != 0 && errno != EEXIST) {
		(void)error_set(
			error, ERROR_STATE, "cannot make the folder %s: %s", path, strerror(errno));
		return NULL;
	}
	resolved = realpath(path, NULL);
	folder = arena_strdup(work->arena, resolved ? resolved : path);
	free(resolved);
	return folder;
}

static bool make_workers(struct bisect_work *work, struct error *error)
{
	const struct journal_setup *setup = work->setup;
	const struct bisect_settings *settings = work->settings;
	const struct pair variables[] = {
		{"HUNTER_TEST", work->test}, {"HUNTER_METRIC", work->metric}};
	struct worker_options *each = arena_array(work->arena, work->slot_count, sizeof *each);
	struct workers_options options = {.engine = work->agent->engine,
		.repository = setup->repository,
		.folder = make_folder(work, error),
		.run = settings->run,
		.extract = setup->extract,
		.variables = {variables, sizeof variables / sizeof *variables},
		.secrets = settings->environment,
		.timeout = setup->timeout,
		.workers = each,
		.count = work->slot_count};

	for (size_t i = 0; i < work->slot_count; i++)
		each[i] = (struct worker_options){
			.line = i < settings->worker.count ? settings->worker.items[i] : NULL};
	if (!options.folder)
		return false;
	work->workers = workers_new(&options, run_done, work, error);
	return work->workers != NULL;
}

static bool set_up(struct bisect_work *work, struct error *error)
{
	const struct journal_setup *setup = work->setup;

	work->commits = verdict_commits_of(work->arena, setup);
	work->slot_count = setup->options.workers;
	return work->settings->webhook || make_workers(work, error);
}

static double relative(double value, double of)
{
	return of != 0 && isfinite(value) ? fabs(value / of) : (double)NAN;
}

static struct bisect_options options_of(
	const struct bisect_work *work, const struct change_record *record)
{
	const struct bisect_settings *settings = work->settings;
	const struct change *change = &record->item.change;
	size_t lines = settings->worker.count;

	return (struct bisect_options){.workers = lines > 0 ? lines : (size_t)settings->workers,
		.confidence = settings->confidence,
		.step = relative(change->level_after - change->level_before, change->level_before),
		.spread = relative(change->stddev_before, change->mean_before),
		.direction = record->sign,
		.budget = settings->budget,
		.attempts = ATTEMPTS};
}

/* The command line of each worker, as it is in the file: the journal is shown. */
static struct strings written_lines(const struct bisect_work *work)
{
	const struct strings *lines = &work->settings->worker;
	const char **items = arena_array(work->arena, lines->count, sizeof *items);

	for (size_t i = 0; i < lines->count; i++)
		items[i] = config_written(work->config_ref->config, lines->items[i]);
	return (struct strings){items, lines->count};
}

static const char *written_run(const struct bisect_work *work)
{
	const char *run = config_written(work->config_ref->config, work->settings->run);

	return run ? run : "";
}

/* What a later process needs, whatever the configuration says then. */
static void note_setup(struct bisect_work *work, const struct change_record *record,
	const struct candidate_commits *found)
{
	const struct bisect_settings *settings = work->settings;
	struct journal_setup *setup = arena_alloc(work->arena, sizeof *setup);

	*setup = (struct journal_setup){.repository = found->repository,
		.paths = settings->paths,
		.options = options_of(work, record),
		.run = written_run(work),
		.extract = settings->extract,
		.lines = written_lines(work),
		.timeout = settings->timeout,
		.change = work->change,
		.test = work->test,
		.metric = work->metric,
		.at = now_of(work)};
	journal_set_range(work->arena, setup, found);
	work->setup = setup;
}

static void range_found(
	void *context, const struct candidate_commits *found, const struct error *error)
{
	struct bisect_work *work = context;
	struct store_list *list = work->range;
	struct error problem;

	work->searching = NULL;
	work->range = NULL;
	if (!call_ends(work)) {
		store_call_free(&list->call);
		end_dropped(work);
		return;
	}
	if (!found || work->cancelled) {
		finish_without(work, "impossible", error ? error->text : NULL);
	} else if (found->count < 2) {
		finish_without(work, "single",
			arena_printf(work->arena,
				"nothing to search: the range is the one commit %.12s",
				found->items[0].id));
	} else {
		note_setup(work, &list->records.items[0], found);
		if (set_up(work, &problem)) {
			work->search = bisection_new(&work->setup->options, work->commits.count);
			work->stage = STAGE_SETUP;
			work->setup_due = true;
			flush(work);
		} else {
			finish_without(work, "impossible", problem.text);
		}
	}
	store_call_free(&list->call);
}

static void find_range(struct bisect_work *work, struct store_list *list)
{
	const struct announcement *item = &list->records.items[0].item;
	const char *good, *bad;

	announcement_range(item, &good, &bad);
	if (!good || !bad) {
		finish_without(work, "impossible",
			"the commits on either side of the change are not known");
		store_call_free(&list->call);
		return;
	}
	work->stage = STAGE_RANGE;
	work->range = list;
	call_begins(work);
	work->searching = candidates_find(work->agent->engine, work->arena,
		&(struct candidates_request){.repository = work->repository_given,
			.good = good,
			.bad = bad,
			.paths = work->settings->paths},
		range_found, work);
}

/* What the store could not read is read again a while later: see bisect_work_tick. */
static void again(struct bisect_work *work)
{
	work->write_at = engine_now(work->agent->engine) + AGAIN;
	work->listener.due(work->listener.context);
}

static void change_read(struct store_list *list)
{
	struct bisect_work *work = list->call.context;
	bool failed = list->call.failed;
	bool found = !failed && list->records.count > 0 &&
		     list->records.items[0].item.id == work->change;

	if (!call_ends(work)) {
		store_call_free(&list->call);
		end_dropped(work);
		return;
	}
	if (found) {
		find_range(work, list);
		return;
	}
	store_call_free(&list->call);
	if (failed)
		again(work);
	else
		bisect_work_drop(work);
}

static void read_change(struct bisect_work *work)
{
	struct store_list *list = store_list_new(change_read, work);

	work->stage = STAGE_CHANGE;
	list->filter.before_id = work->change + 1;
	list->filter.limit = 1;
	call_begins(work);
	store_client_call(work->agent, &list->call);
}

/* Going on. */

static bool parse_journal(struct bisect_work *work, const struct bisection_row *row,
	struct journal *out, struct error *error)
{
	struct buf text = {0};
	bool good;

	buf_printf(&text, "%s\n", row->setup);
	for (size_t i = 0; i < row->lines.count; i++)
		if (row->lines.items[i].kind != BISECTION_ANSWER)
			buf_printf(&text, "%s\n", row->lines.items[i].text);
	good = journal_read(work->arena, text.data, text.length, out, error);
	buf_free(&text);
	return good;
}

static bool has_result(const struct journal *journal, uint64_t run)
{
	for (size_t i = 0; i < journal->count; i++)
		if (journal->entries[i].kind == JOURNAL_RESULT &&
			journal->entries[i].result.id == run)
			return true;
	return false;
}

/* A lab goes on with its runs; those of workers of this machine were lost with the program. */
static void take_in_hand(struct bisect_work *work, const struct journal_entry *entry)
{
	size_t worker = entry->run.worker;
	int64_t passed = now_of(work) - entry->at;
	struct slot *slot = &work->slots[worker < work->slot_count ? worker : 0];

	if (worker < work->slot_count) {
		*slot = (struct slot){.run = entry->run, .begun = entry->at};
		if (!work->workers) {
			begin_run(work, slot);
			slot->until -= passed > 0 ? passed : 0;
			return;
		}
	}
	tell(work,
		&(struct bisect_result){.id = entry->run.id,
			.worker = worker,
			.position = entry->run.position,
			.outcome = BISECT_LOST,
			.value = (double)NAN,
			.begun = entry->at},
		"the agent ended");
}

static bool is_same_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

/* Values of another command could not be compared; and what is run comes from the configuration
 * alone, never from the state. */
static bool are_runs_the_same(const struct bisect_work *work, const struct journal_setup *setup)
{
	const struct strings lines = written_lines(work);
	bool same = is_same_text(setup->run, written_run(work)) &&
		    is_same_text(setup->extract, work->settings->extract) &&
		    setup->lines.count == lines.count;

	for (size_t i = 0; same && i < lines.count; i++)
		same = is_same_text(setup->lines.items[i], lines.items[i]);
	return same;
}

static void resume(struct bisect_work *work, const struct bisection_row *row)
{
	struct journal journal;
	struct error error;
	struct buf text = {0};

	if (!parse_journal(work, row, &journal, &error)) {
		finish_without(work, "impossible", error.text);
		return;
	}
	work->setup = journal.setup;
	if (!are_runs_the_same(work, journal.setup))
		work->cancelled = "the command of its runs was changed";
	if (work->cancelled) {
		finish_without(work, "cancelled", NULL);
		return;
	}
	if (!set_up(work, &error)) {
		finish_without(work, "impossible", error.text);
		return;
	}
	work->search = journal_replay(&journal, &work->paused);
	journal_put_resumed(&text, now_of(work));
	add_line(work, BISECTION_NOTE, 0, &text);
	for (size_t i = 0; i < journal.count; i++)
		if (journal.entries[i].kind == JOURNAL_BEGIN &&
			!has_result(&journal, journal.entries[i].run.id))
			take_in_hand(work, &journal.entries[i]);
	log_event(LEVEL_INFO, "bisection resumed", LOG_INT("id", work->id),
		LOG_INT("change", work->change), LOG_TEXT("test", work->test),
		LOG_INT("runs", row->runs));
	work->stage = STAGE_SEARCH;
	bisect_work_answers(work, &row->lines);
	advance(work);
}

static void loaded(struct store_bisections *list)
{
	struct bisect_work *work = list->call.context;
	const struct bisection_row *row = list->rows.items;
	bool failed = list->call.failed;

	if (!call_ends(work))
		end_dropped(work);
	else if (failed)
		again(work);
	else if (list->rows.count == 0 || row->state != BISECTION_RUNNING)
		bisect_work_drop(work);
	else if (work->cancelled && !row->setup)
		finish_without(work, "cancelled", NULL);
	else if (row->setup)
		resume(work, row);
	else
		read_change(work);
	store_call_free(&list->call);
}

static void load(struct bisect_work *work)
{
	struct store_bisections *list = store_bisections_new(loaded, work);

	list->id = work->id;
	list->lines = true;
	call_begins(work);
	store_client_call(work->agent, &list->call);
}

struct bisect_work *bisect_work_new(struct agent *agent, const struct bisection_row *row,
	const struct test *test, int shard, const struct bisect_work_listener *listener)
{
	struct bisect_work *work = memory_new(1, sizeof *work);
	struct arena *arena = arena_new();

	*work = (struct bisect_work){.agent = agent,
		.listener = *listener,
		.arena = arena,
		.id = row->id,
		.change = row->change,
		.test = arena_strdup(arena, row->test),
		.metric = arena_strdup(arena, row->metric),
		.shard = shard,
		.config_ref = config_ref_hold(agent->config_ref),
		.settings = test->bisect,
		.repository_given = test->repository};
	work->last_line = &work->lines;
	load(work);
	return work;
}

void bisect_work_free(struct bisect_work *work)
{
	for (size_t i = 0; i < work->slot_count; i++)
		lab_asking_free(work->slots[i].asking);
	candidates_search_free(work->searching);
	if (work->range)
		store_call_free(&work->range->call);
	drop_lines(work);
	workers_free(work->workers);
	bisection_free(work->search);
	config_ref_release(work->config_ref);
	arena_free(work->arena);
	free(work);
}

int64_t bisect_work_id(const struct bisect_work *work)
{
	return work->id;
}

int bisect_work_shard(const struct bisect_work *work)
{
	return work->shard;
}

const char *bisect_work_test(const struct bisect_work *work)
{
	return work->test;
}

bool bisect_work_asks_a_lab(const struct bisect_work *work)
{
	return work->settings->webhook != NULL;
}

void bisect_work_cancel(struct bisect_work *work, const char *why)
{
	struct buf text = {0};

	if (work->cancelled || work->dropped || work->stage >= STAGE_END)
		return;
	work->cancelled = arena_strdup(work->arena, why);
	if (work->stage != STAGE_SEARCH)
		return;
	bisection_cancel(work->search);
	journal_put_cancelled(&text, now_of(work));
	add_line(work, BISECTION_NOTE, 0, &text);
	advance(work);
}

void bisect_work_drop(struct bisect_work *work)
{
	if (work->dropped || work->stage == STAGE_OVER)
		return;
	work->dropped = true;
	drop_lines(work);
	for (size_t i = 0; work->workers && i < work->slot_count; i++)
		if (workers_busy(work->workers, i))
			workers_stop(work->workers, i);
	end_dropped(work);
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int64_t bisect_work_due(const struct bisect_work *work)
{
	int64_t due = WHEN_NEVER;

	if (work->dropped || work->stage >= STAGE_CLEANING)
		return WHEN_NEVER;
	if (work->write_at != 0 && !work->writing)
		due = work->write_at;
	if (work->stage != STAGE_SEARCH)
		return due;
	if (work->pause_until != 0)
		due = least(due, work->pause_until);
	for (size_t i = 0; i < work->slot_count && !work->workers; i++) {
		const struct slot *slot = &work->slots[i];

		if (slot->state == SLOT_RUNNING && !slot->asking)
			due = least(
				due, slot->asked ? slot->until : least(slot->ask_at, slot->until));
	}
	return due;
}

void bisect_work_tick(struct bisect_work *work)
{
	int64_t now = engine_now(work->agent->engine);

	if (work->dropped || work->stage >= STAGE_CLEANING || bisect_work_due(work) > now)
		return;
	if (work->pause_until <= now)
		work->pause_until = 0;
	if (work->stage == STAGE_LOADING || work->stage == STAGE_CHANGE) {
		work->write_at = 0;
		work->stage == STAGE_LOADING ? load(work) : read_change(work);
		return;
	}
	advance(work);
}

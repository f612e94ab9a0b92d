/*
 * The stages follow one another; each begins when the requests of the previous one are complete.
 * All writes go through one queue, in the order in which the search received the events.
 */
#include "agent/monitor/bisect_work.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/database.h"
#include "agent/base/hash.h"
#include "agent/base/order.h"
#include "agent/base/when.h"
#include "agent/bisect/candidates.h"
#include "agent/bisect/driver.h"
#include "agent/bisect/journal.h"
#include "agent/bisect/verdict_text.h"
#include "agent/bisect/workers.h"
#include "agent/bisect/worktrees.h"
#include "agent/fleet/fleet.h"
#include "agent/model/announcement.h"
#include "agent/monitor/bisect_lab.h"
#include "agent/monitor/bisections.h"

enum {
	AGAIN = 5000,  /* ms until a write that failed is repeated */
	PAUSE = 60000, /* ms after something that no commit can be blamed for */
	ATTEMPTS = 2,
};

static int64_t now_of(void *context)
{
	const struct bisect_work *work = context;

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
		bisections_work_ended(work->owner, work);
}

/* A work that was dropped ends with the last thing in progress. */
static void end_dropped(struct bisect_work *work)
{
	bool idle = !work->driver || bisect_driver_stop(work->driver);

	if (idle && work->calls == 0)
		over(work);
}

/* Writing. */

static void put(void *context, const struct journal_entry *event)
{
	static const enum bisection_line_kind kinds[] = {[JOURNAL_BEGIN] = BISECTION_BEGIN,
		[JOURNAL_RESULT] = BISECTION_RESULT,
		[JOURNAL_RESUMED] = BISECTION_NOTE,
		[JOURNAL_CANCELLED] = BISECTION_NOTE};
	bool ends = event->kind == JOURNAL_RESULT;
	struct bisect_work *work = context;
	struct buf text = {0};

	if (work->dropped)
		return;
	journal_put(&text, event);
	text.data[--text.length] = '\0'; /* without its end */
	work->lines = arena_grow(work->arena, work->lines, work->line_count, sizeof *work->lines);
	work->lines[work->line_count++] = (struct bisection_line){.kind = kinds[event->kind],
		.run = (int64_t)(ends ? event->result.id : event->run.id),
		.text = buf_keep(&text, work->arena)};
	if (ends)
		metrics_add(work->agent->metrics, METRIC_BISECTION_RUNS, 1,
			journal_outcomes[event->result.outcome]);
}

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

/* The search begins with the setup, a run with its line. */
static void written(struct store_bisection_write *call)
{
	struct bisect_work *work = call->call.context;
	bool failed = call->call.failed, gone = call->call.fenced || (!failed && call->gone);
	bool ended = call->end != NULL, wanted = call_ends(work);
	bool good = wanted && !gone && !failed;

	work->writing = false;
	if (good && call->setup) {
		work->stage = STAGE_SEARCH;
		if (work->cancelled)
			bisect_driver_cancel(work->driver);
	}
	for (size_t i = 0; good && i < call->line_count; i++, work->stored++)
		if (call->lines[i].kind == BISECTION_BEGIN)
			bisect_driver_stored(work->driver, (uint64_t)call->lines[i].run);
	store_call_free(&call->call);
	if (!wanted) {
		end_dropped(work);
		return;
	}
	if (gone) {
		bisect_work_drop(work);
		return;
	}
	work->write_at = failed ? engine_now(work->agent->engine) + AGAIN : 0;
	if (failed) {
		bisections_work_due(work->owner);
		return;
	}
	if (!ended) {
		bisect_work_advance(work);
		return;
	}
	metrics_add(work->agent->metrics, METRIC_BISECTIONS_ENDED, 1, work->end);
	log_event(LEVEL_INFO, "bisection ended", LOG_INT("id", work->id),
		LOG_INT("change", work->change), LOG_TEXT("test", work->test),
		LOG_TEXT("verdict", work->verdict ? work->verdict : work->end));
	work->told = work->culprit != NULL;
	work->stage = STAGE_CLEANING;
	if (!work->workers) {
		over(work);
		return;
	}
	call_begins(work);
	workers_remove_trees(work->workers, cleaned, work);
}

static void flush(struct bisect_work *work)
{
	struct store_bisection_write *call;
	struct buf setup = {0};

	if (work->writing || work->write_at > engine_now(work->agent->engine) ||
		(work->stored == work->line_count && work->stage != STAGE_SETUP &&
			work->stage != STAGE_END))
		return;
	call = store_bisection_write_new(written, work);
	call->bisection = work->id;
	call->now = now_of(work);
	call->lines = work->lines ? work->lines + work->stored : NULL;
	call->line_count = work->line_count - work->stored;
	if (work->stage == STAGE_SETUP) {
		journal_put_setup(&setup, work->setup);
		setup.data[--setup.length] = '\0'; /* without its end */
		call->setup = buf_keep(&setup, call->call.arena);
	}
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
		set[i] = (struct culprit_commit){
			journal_commit(work->setup, status->set[i].position),
			status->set[i].probability, status->set[i].broken};
	if (status->end == BISECT_FOUND && count > 0) {
		culprit->commit = set[0].commit;
		culprit->probability = set[0].probability;
	}
	return culprit;
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

static void worker_ended(void *context, const struct worker_report *report)
{
	struct bisect_work *work = context;

	if (report->problem && !work->dropped)
		log_event(report->hopeless ? LEVEL_WARN : LEVEL_INFO,
			"bisection run returned no value", LOG_INT("id", work->id),
			LOG_INT("run", (int64_t)report->result.id),
			LOG_TEXT("commit", journal_commit(work->setup, report->result.position)),
			LOG_TEXT("problem", report->problem));
	if (report->hopeless)
		work->pause_until = engine_now(work->agent->engine) + PAUSE;
	bisect_driver_report(work->driver, &report->result, report->problem);
	bisect_work_advance(work);
}

void bisect_work_answers(struct bisect_work *work, const struct bisection_lines *lines)
{
	if (work->stage == STAGE_SEARCH && work->lab && !work->dropped &&
		lab_take(work->lab, lines))
		bisect_work_advance(work);
}

void bisect_work_advance(struct bisect_work *work)
{
	enum bisect_driver_state state = BISECT_DRIVER_RUNS;
	struct buf text = {0};

	if (work->dropped) {
		end_dropped(work);
		return;
	}
	if (work->stage == STAGE_SEARCH)
		state = bisect_driver_advance(
			work->driver, !work->agent->stopping &&
					      work->pause_until <= engine_now(work->agent->engine));
	if (state == BISECT_DRIVER_OVER) {
		const struct bisect_status *status = bisect_driver_status(work->driver);
		const char *verdict;

		verdict_text(&text, status, work->setup);
		verdict = buf_keep(&text, work->arena);
		if (status->end != BISECT_CANCELLED)
			work->culprit = culprit_of(work, status, verdict);
		finish(work, verdict_end_name(status->end), verdict);
		return;
	}
	/* The next agent or process that resumes it tries them again. */
	if (state == BISECT_DRIVER_GONE && work->stored == work->line_count && !work->writing) {
		log_event(LEVEL_WARN, "no bisection worker responds", LOG_INT("id", work->id),
			LOG_TEXT("lab", work->settings->lab));
		bisect_work_drop(work);
		return;
	}
	if (work->stage == STAGE_SEARCH && work->lab)
		lab_tick(work->lab);
	flush(work);
	bisections_work_due(work->owner);
}

/* Setting up. */

/* Only for this user, as programs built there are run. */
static const char *make_folder(struct bisect_work *work, struct error *error)
{
	const struct bisect_settings *settings = work->settings;
	const char *state = work->config_ref->config->agent.state, *folder = settings->work;
	const char *slash = strrchr(state, '/');
	uint64_t hash = HASH_START;

	hash = hash_add(hash, work->setup->repository, strlen(work->setup->repository) + 1);
	hash = hash_add(hash, settings->lab, strlen(settings->lab) + 1);
	if (!folder && database_is(state)) {
		(void)error_set(error, ERROR_USAGE,
			"bisect: `work` is missing: with a database as state, set it to a folder");
		return NULL;
	}
	if (!folder)
		folder = arena_printf(work->arena, "%.*s/bisect", slash ? (int)(slash - state) : 1,
			slash ? state : ".");
	folder = arena_printf(work->arena, "%s/%016" PRIx64, folder, hash);
	return worktrees_folder(work->arena, folder, 0700, error);
}

static bool set_up(struct bisect_work *work, struct error *error)
{
	const struct bisect_driver_owner owner = {now_of, put, work};
	const struct bisect_settings *settings = work->settings;
	struct workers_options options = {
		.engine = work->agent->engine, .secrets = settings->environment};
	struct journal_setup *setup;

	if (settings->webhook) {
		work->lab = lab_new(work);
		work->driver = bisect_driver_new(work->setup, &owner, &lab_runner, work->lab);
		return true;
	}
	/* The journal has the commands as they are written in the file. */
	options.setup = setup = arena_alloc(work->arena, sizeof *setup);
	*setup = *work->setup;
	setup->run = settings->run;
	setup->lines = settings->worker;
	options.folder = make_folder(work, error);
	if (options.folder)
		work->workers = workers_new(&options, worker_ended, work, error);
	if (!work->workers)
		return false;
	work->driver = bisect_driver_new(work->setup, &owner, &workers_runner, work->workers);
	return true;
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

/* The data that a later process needs, independent of its configuration. */
static void note_setup(struct bisect_work *work, const struct change_record *record,
	const struct candidate_commits *found)
{
	const struct bisect_settings *settings = work->settings;
	struct journal_setup *setup = arena_alloc(work->arena, sizeof *setup);
	size_t lines = settings->worker.count;

	*setup = (struct journal_setup){.repository = found->repository,
		.paths = settings->paths,
		.options = {.workers = lines > 0 ? lines : (size_t)settings->workers,
			.confidence = settings->confidence,
			.budget = settings->budget,
			.attempts = ATTEMPTS},
		.run = written_run(work),
		.extract = settings->extract,
		.lines = written_lines(work),
		.timeout = settings->timeout,
		.at = now_of(work)};
	journal_set_change(setup, record);
	setup->test = work->test;
	setup->metric = work->metric;
	journal_set_range(work->arena, setup, found);
	work->setup = setup;
}

static void range_found(
	void *context, const struct candidate_commits *found, const struct error *error)
{
	struct bisect_work *work = context;
	struct store_bisections *list = work->range;
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
				"nothing to search: the range is a single commit, %.12s",
				found->items[0].id));
	} else {
		note_setup(work, list->due.items, found);
		if (set_up(work, &problem)) {
			work->stage = STAGE_SETUP;
			flush(work);
		} else {
			finish_without(work, "impossible", problem.text);
		}
	}
	store_call_free(&list->call);
}

/* Keeps the list, if it can. */
static void find_range(struct bisect_work *work, struct store_bisections *list)
{
	const char *good, *bad;

	announcement_range(&list->due.items[0].item, &good, &bad);
	if (!good || !bad) {
		finish_without(work, "impossible", "the commits around the change are unknown");
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

/* Going on. */

static void resume(struct bisect_work *work, const struct bisection_row *row)
{
	const struct strings lines = written_lines(work);
	const struct journal_setup *setup;
	struct journal journal;
	struct buf text = {0};
	struct error error;
	bool good;

	buf_printf(&text, "%s\n", row->setup);
	for (size_t i = 0; i < row->lines.count; i++)
		if (row->lines.items[i].kind != BISECTION_ANSWER)
			buf_printf(&text, "%s\n", row->lines.items[i].text);
	good = journal_read(work->arena, text.data, text.length, &journal, &error);
	buf_free(&text);
	if (!good) {
		finish_without(work, "impossible", error.text);
		return;
	}
	work->setup = journal.setup;
	setup = work->setup;
	/* Values of another command could not be compared; and the command comes from the
	 * configuration alone, never from the state. */
	good = order_same(setup->run, written_run(work)) &&
	       order_same(setup->extract, work->settings->extract) &&
	       setup->lines.count == lines.count;
	for (size_t i = 0; good && i < lines.count; i++)
		good = order_same(setup->lines.items[i], lines.items[i]);
	if (!good)
		work->cancelled = "its command was changed";
	if (work->cancelled || !set_up(work, &error)) {
		finish_without(work, "impossible", error.text);
		return;
	}
	bisect_driver_resume(work->driver, &journal, "the agent stopped");
	log_event(LEVEL_INFO, "bisection resumed", LOG_INT("id", work->id),
		LOG_INT("change", work->change), LOG_TEXT("test", work->test),
		LOG_INT("runs", row->runs));
	work->stage = STAGE_SEARCH;
	bisect_work_answers(work, &row->lines);
	bisect_work_advance(work);
}

static void loaded(struct store_bisections *list)
{
	struct bisect_work *work = list->call.context;
	const struct bisection_row *row = list->rows.items;
	bool failed = list->call.failed;

	if (!call_ends(work)) {
		end_dropped(work);
	} else if (failed) { /* it is repeated: see bisect_work_tick */
		work->write_at = engine_now(work->agent->engine) + AGAIN;
		bisections_work_due(work->owner);
	} else if (list->rows.count == 0 || row->state != BISECTION_RUNNING ||
		   list->due.count == 0) {
		bisect_work_drop(work);
	} else if (work->cancelled && !row->setup) {
		finish_without(work, "cancelled", NULL);
	} else if (row->setup) {
		resume(work, row);
	} else {
		find_range(work, list);
		return;
	}
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
	const struct test *test, int shard, struct bisections *owner)
{
	struct bisect_work *work = memory_new(1, sizeof *work);
	struct arena *arena = arena_new();

	*work = (struct bisect_work){.agent = agent,
		.owner = owner,
		.arena = arena,
		.id = row->id,
		.change = row->change,
		.test = arena_strdup(arena, row->test),
		.metric = arena_strdup(arena, row->metric),
		.shard = shard,
		.config_ref = config_ref_hold(agent->config_ref),
		.settings = test->bisect,
		.repository_given = test->repository};
	load(work);
	return work;
}

void bisect_work_free(struct bisect_work *work)
{
	lab_free(work->lab);
	candidates_search_free(work->searching);
	if (work->range)
		store_call_free(&work->range->call);
	workers_free(work->workers);
	bisect_driver_free(work->driver);
	config_ref_release(work->config_ref);
	arena_free(work->arena);
	free(work);
}

void bisect_work_cancel(struct bisect_work *work, const char *why)
{
	if (work->cancelled || work->dropped || work->stage >= STAGE_END)
		return;
	work->cancelled = arena_strdup(work->arena, why);
	if (work->stage != STAGE_SEARCH)
		return;
	bisect_driver_cancel(work->driver);
	bisect_work_advance(work);
}

void bisect_work_drop(struct bisect_work *work)
{
	if (work->dropped || work->stage == STAGE_OVER)
		return;
	work->dropped = true;
	end_dropped(work);
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int64_t bisect_work_due(const struct bisect_work *work)
{
	int64_t due = WHEN_NEVER, budget;

	if (work->dropped || work->stage >= STAGE_CLEANING)
		return WHEN_NEVER;
	if (work->write_at != 0 && !work->writing)
		due = work->write_at;
	if (work->stage != STAGE_SEARCH)
		return due;
	if (work->pause_until != 0)
		due = least(due, work->pause_until);
	if (work->lab)
		due = least(due, lab_due(work->lab));
	budget = bisect_driver_due(work->driver);
	if (budget != INT64_MAX)
		due = least(due, engine_now(work->agent->engine) + budget - agent_now(work->agent));
	return due;
}

void bisect_work_tick(struct bisect_work *work)
{
	int64_t now = engine_now(work->agent->engine);

	if (work->dropped || work->stage >= STAGE_CLEANING || bisect_work_due(work) > now)
		return;
	if (work->pause_until <= now)
		work->pause_until = 0;
	if (work->stage == STAGE_LOADING) {
		work->write_at = 0;
		load(work);
		return;
	}
	bisect_work_advance(work);
}

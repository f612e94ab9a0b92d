/*
 * The search: the driver with the journal's file as its storage and workers as its runner, and
 * progress output.
 *
 * A bisection of a merge, which is next if the culprit is one, has a journal of its own; the lock
 * is that of the first.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/bisect/candidates.h"
#include "agent/bisect/driver.h"
#include "agent/bisect/workers.h"
#include "agent/bisect/worktrees.h"
#include "agent/commands/bisect.h"
#include "agent/io/engine.h"
#include "agent/io/timers.h"
#include "agent/model/json_put.h"
#include "agent/report/table.h"

struct search {
	struct cli *cli;
	const char *folder;
	struct engine *engine;
	struct journal journal; /* as it was opened, or with its setup only */
	const struct journal_setup *setup;
	const struct candidate_commits *candidates;
	struct journal_file *file;
	struct bisect_driver *driver;
	struct workers *workers;
	int64_t wall, monotonic; /* ms: when it began */
	struct alarm budget;
	size_t runs, measured;
	int64_t lasted; /* ms, of all that were measured */
	enum bisect_phase phase;
	bool stopping, hopeless;
	struct error error; /* if hopeless */
};

/* A wall clock that is set takes nothing from the budget. */
static int64_t now_of(void *context)
{
	const struct search *search = context;

	return search->wall + clock_monotonic() - search->monotonic;
}

static void stop_all(struct search *search)
{
	search->stopping = true;
	(void)bisect_driver_stop(search->driver);
}

static void give_up(struct search *search, const struct error *error)
{
	if (!search->hopeless)
		search->error = *error;
	search->hopeless = true;
	stop_all(search);
}

/* After a line that could not be written nothing is: --resume continues from the last whole one. */
static void put(void *context, const struct journal_entry *event)
{
	struct search *search = context;
	struct error error;
	struct buf line = {0};

	if (search->hopeless)
		return;
	journal_put(&line, event);
	if (!journal_write(search->file, &line, &error))
		give_up(search, &error);
	else if (event->kind == JOURNAL_BEGIN)
		bisect_driver_stored(search->driver, event->run.id);
	buf_free(&line);
}

static void print_line(struct buf *line)
{
	fprintf(stderr, "%s\n", line->data);
	buf_free(line);
}

/* How far it is: with each phase, and in the search now and then. */
static void print_progress(struct search *search, const struct bisect_status *status)
{
	size_t workers = search->setup->options.workers;
	bool enters = status->phase != search->phase && status->phase != BISECT_OVER;
	char time[WHEN_TEXT];
	struct buf line = {0};

	search->phase = status->phase;
	if (!enters && (status->phase != BISECT_SEARCH || search->runs % (4 * workers) != 0))
		return;
	verdict_text(&line, status, search->setup);
	if (status->runs_left > 0 && search->measured > 0)
		buf_printf(&line, "; about %zu runs, %s left", status->runs_left,
			when_format_rough(search->lasted / (int64_t)search->measured *
						  (int64_t)status->runs_left / (int64_t)workers,
				time));
	print_line(&line);
}

static void advance(struct search *search)
{
	enum bisect_driver_state state;
	struct error error;
	int64_t due;

	if (search->stopping)
		return;
	state = bisect_driver_advance(search->driver, true);
	due = bisect_driver_due(search->driver);
	search->stopping |= bisect_driver_status(search->driver)->phase == BISECT_OVER;
	if (search->stopping)
		return;
	if (state == BISECT_DRIVER_GONE) {
		error_set(&error, ERROR_DATA, "no worker responds any more");
		give_up(search, &error);
	} else if (due != INT64_MAX) {
		engine_alarm_aside(
			search->engine, &search->budget, search->monotonic + (due - search->wall));
	}
}

static void budget_ended(void *context)
{
	advance(context);
}

static void count_result(struct search *search, const struct bisect_result *result)
{
	search->runs += result->outcome != BISECT_LOST;
	if (result->outcome == BISECT_MEASURED) {
		search->measured++;
		search->lasted += result->lasted;
	}
}

static void run_ended(void *context, const struct worker_report *report)
{
	struct search *search = context;
	struct buf line = {0};
	struct error error;

	if (report->result.outcome != BISECT_LOST || !search->stopping) {
		bisect_put_result(
			&line, search->setup, &report->result, report->problem, report->log);
		print_line(&line);
	}
	bisect_driver_report(search->driver, &report->result, report->problem);
	count_result(search, &report->result);
	if (report->hopeless) {
		error_set(&error, ERROR_DATA, "%s", report->problem);
		give_up(search, &error);
	}
	if (!search->stopping)
		print_progress(search, bisect_driver_status(search->driver));
	advance(search);
}

static void found(
	void *context, const struct candidate_commits *candidates, const struct error *error)
{
	struct search *search = context;

	search->candidates = candidates;
	if (error)
		search->error = *error;
}

static bool find(struct search *search, struct error *error)
{
	const struct journal_setup *setup = search->setup;
	const struct candidates_request request = {
		setup->repository, setup->good, setup->bad, setup->paths};
	struct candidates_search *finding =
		candidates_find(search->engine, search->cli->arena, &request, found, search);

	if (!engine_run(search->engine)) {
		engine_free(search->engine);
		search->engine = NULL;
		candidates_search_free(finding);
		return error_set(error, ERROR_DATA, "interrupted");
	}
	if (search->candidates)
		return true;
	*error = search->error;
	return false;
}

static struct engine *open_engine(struct error *error)
{
	return engine_new(&(struct engine_options){.jobs = 1, .catch_signals = true}, error);
}

const struct candidate_commits *bisect_candidates(
	struct cli *cli, const struct journal_setup *setup, struct error *error)
{
	struct search search = {.cli = cli, .setup = setup};

	search.engine = open_engine(error);
	if (!search.engine || !find(&search, error))
		search.candidates = NULL;
	if (search.engine)
		engine_free(search.engine);
	return search.candidates;
}

/* Whether the repository still has the range of the journal. */
static bool fits(struct search *search, struct error *error)
{
	const struct strings *ids = &search->setup->candidates;

	if (!find(search, error))
		return error_prefix(error, "the repository does not match the journal: ");
	if (search->candidates->count == ids->count) {
		size_t same = 0;

		while (same < ids->count &&
			strcmp(search->candidates->items[same].id, ids->items[same]) == 0)
			same++;
		if (same == ids->count)
			return true;
	}
	return error_set(error, ERROR_USAGE,
		"the repository %s does not match the journal: its commits from %.12s to %.12s "
		"differ",
		search->setup->repository, search->setup->good, search->setup->bad);
}

static void open_driver(struct search *search, bool resumed)
{
	const struct journal *journal = &search->journal;
	const struct bisect_driver_owner owner = {now_of, put, search};

	search->driver = bisect_driver_new(search->setup, &owner, &workers_runner, search->workers);
	search->budget = (struct alarm){.call = budget_ended, .context = search};
	search->wall = clock_wall();
	search->monotonic = clock_monotonic();
	search->phase = BISECT_ENDS;
	for (size_t i = 0; i < journal->count; i++)
		if (journal->entries[i].kind == JOURNAL_RESULT)
			count_result(search, &journal->entries[i].result);
	if (resumed)
		bisect_driver_resume(search->driver, journal, "the program was terminated");
}

static void print_json(struct search *search, const struct bisect_status *status)
{
	const struct journal_setup *setup = search->setup;
	struct buf out = {0};

	json_put(&out, "{repository: %s, good: %s, bad: %s, merge: %s, journal: %s",
		setup->repository, setup->good, setup->bad, setup->into,
		bisect_journal(search->cli->arena, search->folder, bisect_latest(search->folder)));
	verdict_json(&out, status, search->setup);
	buf_text(&out, "}\n");
	text_flush(&out, search->cli->out);
}

static void removed(void *context, const char *problem)
{
	bool *left = context;

	*left = problem != NULL;
	if (problem)
		fprintf(stderr, "hunter-c: could not remove the work tree %s\n", problem);
}

/* How to continue, as it is typed. */
static void print_resume(const struct search *search)
{
	struct buf words = {0};

	for (const char *at = search->folder; *at; at++)
		buf_printf(&words, *at == '\'' ? "'\\''" : "%c", *at);
	fprintf(stderr,
		"hunter-c: the measurements are kept; resume with: hunter-c bisect --resume --work "
		"'%s'\n",
		words.data);
	buf_free(&words);
}

/* Works until it is over or cannot continue. Returns the exit code, -1: over. */
static int work(struct search *search)
{
	advance(search);
	if (!engine_run(search->engine)) {
		stop_all(search);
		if (!engine_run(search->engine))
			fprintf(stderr, "hunter-c: left at once\n");
		print_resume(search);
		return EXIT_INTERRUPTED;
	}
	if (!search->hopeless)
		return -1;
	cli_fail(&search->error);
	print_resume(search);
	return exit_code(search->error.kind);
}

/* A merge that was found is searched next, if that is wanted. */
static struct journal_setup *look_into(
	const struct search *search, const struct bisect_status *status)
{
	const struct journal_setup *setup = search->setup;
	size_t position = status->set_count > 0 ? status->set[0].position : 0;
	const char *id = journal_commit(setup, position);
	struct journal_setup *next;

	if (!setup->merges || status->end != BISECT_FOUND || position == 0 ||
		!search->candidates->items[position - 1].merge)
		return NULL;
	next = arena_alloc(search->cli->arena, sizeof *next);
	*next = *setup;
	next->into = id;
	next->good = arena_printf(search->cli->arena, "%s^1", id);
	next->bad = arena_printf(search->cli->arena, "%s^2", id);
	return next;
}

/* One bisection: from its journal, which is open, to its end. */
static int bisect(struct search *search, bool resumed, struct journal_setup **next)
{
	static const int codes[] = {[BISECT_FOUND] = EXIT_NOTHING,
		[BISECT_NOT_REPRODUCED] = EXIT_NOT_REPRODUCED,
		[BISECT_SET] = EXIT_SET_LEFT,
		[BISECT_OUT_OF_BUDGET] = EXIT_SET_LEFT,
		[BISECT_CANCELLED] = EXIT_SET_LEFT,
		[BISECT_ENDS_BROKEN] = EXIT_DATA};
	const struct bisect_flags *flags = search->cli->options;
	const struct bisect_status *status;
	struct buf line = {0};
	struct error error;
	bool left;
	int code;

	search->setup = search->journal.setup;
	if (!fits(search, &error))
		return cli_fail(&error);
	search->workers = workers_new(&(struct workers_options){.engine = search->engine,
					      .setup = search->setup,
					      .folder = search->folder,
					      .by_hand = true},
		run_ended, search, &error);
	if (!search->workers)
		return cli_fail(&error);
	open_driver(search, resumed);
	code = work(search);
	if (code >= 0)
		return code;
	status = bisect_driver_status(search->driver);
	if (flags->output == BISECT_JSON) {
		print_json(search, status);
	} else {
		verdict_text(&line, status, search->setup);
		buf_char(&line, '\n');
		text_flush(&line, search->cli->out);
	}
	*next = look_into(search, status);
	workers_remove_trees(search->workers, removed, &left);
	return engine_run(search->engine) ? codes[status->end] : EXIT_INTERRUPTED;
}

/* With its own engine, from an open journal, which is closed. *next is set if there is one. */
static int run_one(struct cli *cli, const char *folder, struct journal_file *file,
	const struct journal *journal, bool resumed, struct journal_setup **next)
{
	struct search search = {.cli = cli, .folder = folder, .journal = *journal, .file = file};
	struct error error;
	int code;

	search.engine = open_engine(&error);
	code = search.engine ? bisect(&search, resumed, next) : cli_fail(&error);
	if (search.engine && !engine_free(search.engine)) {
		cli->abandoned = true;
		return code;
	}
	workers_free(search.workers);
	bisect_driver_free(search.driver);
	journal_close(file);
	return code;
}

int bisect_search(struct cli *cli, const char *folder, struct journal_setup *setup)
{
	size_t number = setup ? 1 : bisect_latest(folder);

	for (bool resumed = !setup;; resumed = false) {
		const char *path = bisect_journal(cli->arena, folder, number);
		struct journal journal = {.setup = setup};
		const struct candidate_commits *candidates;
		struct journal_setup *next = NULL;
		struct error error;
		struct journal_file *file =
			resumed ? journal_open(cli->arena, path, &journal, &error)
				: journal_create(path, setup, &error);
		int code;

		if (!file)
			return cli_fail(&error);
		code = run_one(cli, folder, file, &journal, resumed, &next);
		if (!next || cli->abandoned || number == BISECT_JOURNALS) {
			if (!journal.setup->into)
				return code;
			/* No single commit of the merge has the step: the first answer stands. */
			if (code == EXIT_NOT_REPRODUCED)
				fprintf(stderr,
					"none of the commits of %.7s has the step alone: the "
					"culprit is the merge\n",
					journal.setup->into);
			return code == EXIT_NOT_REPRODUCED || code == EXIT_SET_LEFT ? EXIT_NOTHING
										    : code;
		}
		/* The commits of the merge are a bisection of their own. */
		candidates = bisect_candidates(cli, next, &error);
		if (!candidates)
			return cli_fail(&error);
		journal_set_range(cli->arena, next, candidates);
		next->at = clock_wall();
		fprintf(stderr, "%.7s is a merge: searching its %zu commit%s\n", next->into,
			candidates->count, cli_plural(candidates->count));
		setup = next;
		number++;
	}
}

int bisect_clean(struct cli *cli, const char *folder)
{
	const char *path = arena_printf(cli->arena, "%s/previous.jsonl", folder);
	struct worktrees *trees;
	struct journal journal;
	struct engine *engine;
	struct error error;
	bool left = false;

	if (!journal_look(cli->arena, path, &journal, &error))
		return cli_fail(&error);
	engine = open_engine(&error);
	if (!engine)
		return cli_fail(&error);
	trees = worktrees_new(engine, journal.setup->repository, folder, 0, false);
	worktrees_remove(trees, removed, &left);
	left = !engine_run(engine) || left;
	engine_free(engine);
	worktrees_free(trees);
	return left ? EXIT_STATE : EXIT_NOTHING;
}

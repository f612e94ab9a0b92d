/* `bisect`: the flags, the setup made from them, and the display of a journal. */
#include "agent/commands/bisect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "agent/base/hash.h"
#include "agent/base/utf8.h"
#include "agent/bisect/candidates.h"
#include "agent/bisect/extract.h"
#include "agent/bisect/worktrees.h"
#include "agent/commands/commands.h"
#include "agent/commands/records.h"
#include "agent/model/record_json.h"
#include "agent/report/table.h"
#include "agent/store/store.h"

enum { ATTEMPTS = 2 };

static const char *const directions[] = {"either", "up", "down", NULL};
static const char marker[] = "hunter-bisect";

static const struct field bisect_fields[] = {
	OPTION_STRING(
		struct bisect_flags, good, NULL, "commit with the old level", .metavar = "COMMIT"),
	OPTION_STRING(struct bisect_flags, bad, NULL, "commit with the new level; default: HEAD",
		.metavar = "COMMIT"),
	OPTION_STRING(struct bisect_flags, change, NULL,
		"recorded change whose range, levels and spread to use", .metavar = "ID"),
	OPTION_STRING(struct bisect_flags, repo, NULL,
		"clone to search; default: that of the change's test, or the current folder",
		.metavar = "PATH"),
	OPTION_STRING(struct bisect_flags, run, NULL,
		"command that builds and measures, run in a work tree of $HUNTER_COMMIT",
		.metavar = "COMMAND"),
	OPTION_STRING(struct bisect_flags, extract, "last",
		"how to read the value from its output: last (number) or json:PATH",
		.metavar = "HOW"),
	OPTION_DURATION(
		struct bisect_flags, timeout, "1h", 1000, 30.0 * 86400000, "timeout of a run"),
	OPTION_INT(struct bisect_flags, workers, NULL, 0, BISECT_WORKERS_MOST,
		"parallel runs on this machine; default: 1, with --worker 0"),
	OPTION_LIST(struct bisect_flags, worker,
		"additional worker: command that executes its runs, such as 'ssh dev1'; repeatable",
		.flags = FIELD_WHOLE | FIELD_COMMAND, .metavar = "COMMAND"),
	OPTION_LIST(struct bisect_flags, paths, "only commits that touch these paths",
		.flags = FIELD_WHOLE | FIELD_MANY, .metavar = "PATH"),
	OPTION_BOOL(struct bisect_flags, merges,
		"if the culprit is a merge, search the commits it brought in"),
	OPTION_BOOL(struct bisect_flags, clean, "clean build: also remove ignored files"),
	OPTION_CHOICE(struct bisect_flags, direction, "either", directions,
		"direction of the step; default: that of the change"),
	OPTION_DOUBLE(struct bisect_flags, confidence, "0.95", 0.5, 0.9999,
		"probability at which one commit counts as found"),
	OPTION_DOUBLE(struct bisect_flags, step, NULL, -99, 1e6,
		"expected step in percent; default: that of the change", .metavar = "PERCENT"),
	OPTION_DOUBLE(struct bisect_flags, spread, NULL, 0, 1e6,
		"standard deviation of single runs in percent; default: that of the change",
		.metavar = "PERCENT"),
	OPTION_DURATION(struct bisect_flags, budget, NULL, 1000, 365.0 * 86400000,
		"time limit; the remaining commits are printed"),
	OPTION_INT(struct bisect_flags, max_runs, NULL, 1, 1e6, "maximum number of runs"),
	OPTION_STRING(struct bisect_flags, work, NULL,
		"folder for work trees, logs and the journal; default: a folder below "
		"$XDG_STATE_HOME or ~/.local/state",
		.metavar = "DIR"),
	OPTION_BOOL(struct bisect_flags, resume, "resume the bisection of the work folder"),
	OPTION_BOOL(struct bisect_flags, discard,
		"discard the unfinished bisection of the work folder and its work trees; with "
		"--run, start a new one"),
	OPTION_BOOL(struct bisect_flags, log, "print the runs of the work folder's bisection"),
	OPTION_BOOL(struct bisect_flags, show,
		"print its levels and probabilities, also while it runs"),
	OPTION_CHOICE(struct bisect_flags, output, "text", cli_outputs, "output format"),
	{0},
};

static const struct option_part parts[] = {
	{bisect_fields, 0}, {state_fields, offsetof(struct bisect_flags, state)}, {0}};

const char *bisect_journal(struct arena *arena, const char *folder, size_t number)
{
	return number == 1 ? arena_printf(arena, "%s/journal.jsonl", folder)
			   : arena_printf(arena, "%s/journal-%zu.jsonl", folder, number);
}

size_t bisect_latest(const char *folder)
{
	struct arena *arena = arena_new();
	size_t number = BISECT_JOURNALS;

	while (number > 0 && access(bisect_journal(arena, folder, number), F_OK) != 0)
		number--;
	arena_free(arena);
	return number;
}

/* Whether it is text, so that the journal keeps it as it is. */
static bool check_text(const char *flag, const char *text, struct error *error)
{
	const char *at = text ? text : "", *end = at + strlen(at);
	size_t size;

	while (at < end && (size = utf8_length(at, (size_t)(end - at))) > 0)
		at += size;
	return at == end || error_set(error, ERROR_USAGE, "%s is not UTF-8", flag);
}

/* Its real path, or NULL. */
static const char *real_path(struct arena *arena, const char *path)
{
	char *found = realpath(path, NULL);
	const char *copy = arena_strdup(arena, found);

	free(found);
	return copy;
}

static const char *repository_at(struct arena *arena, const char *path, struct error *error)
{
	const char *real = real_path(arena, path);

	if (!real)
		error_set(error, ERROR_USAGE, "--repo: %s: %s", path, strerror(errno));
	return real;
}

/* The folder of the clone that the path is in; the path itself if there is none above it. */
static const char *top_of(struct arena *arena, const char *path)
{
	char *at = arena_strdup(arena, path), *slash;

	for (;;) {
		if (access(arena_printf(arena, "%s/.git", at), F_OK) == 0)
			return at;
		slash = strrchr(at, '/');
		if (!slash || slash == at)
			return path;
		*slash = '\0';
	}
}

/* That of --work, by default one for each clone, by its path. */
static const char *folder_of(struct cli *cli, const char *repository, struct error *error)
{
	const struct bisect_flags *flags = cli->options;
	struct arena *arena = cli->arena;
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	const char *top = top_of(arena, repository), *name = strrchr(top, '/');

	if (flags->work)
		return flags->work;
	if ((!state || *state != '/') && (!home || *home != '/')) {
		error_set(error, ERROR_USAGE, "--work DIR is required: $HOME is not set");
		return NULL;
	}
	return arena_printf(arena, "%s%s/hunter-c/bisect/%s-%016" PRIx64,
		state && *state == '/' ? state : home,
		state && *state == '/' ? "" : "/.local/state", name && name[1] ? name + 1 : "root",
		hash_add(HASH_START, top, strlen(top)));
}

static bool is_empty(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	bool empty = true;

	while (folder && empty && (entry = readdir(folder)))
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	if (folder)
		closedir(folder);
	return empty;
}

/* Claims the folder: its content may be removed from then on. Returns its real path, or NULL. */
static const char *claim(struct arena *arena, const char *path, struct error *error)
{
	const char *folder = worktrees_folder(arena, path, 0777, error), *mark;
	int fd;

	if (!folder)
		return NULL;
	mark = arena_printf(arena, "%s/%s", folder, marker);
	if (access(mark, F_OK) != 0 && !is_empty(folder)) {
		error_set(error, ERROR_USAGE,
			"%s contains files that do not belong to a bisection; --work needs an "
			"empty or new folder",
			path);
		return NULL;
	}
	fd = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0) {
		error_set(error, ERROR_STATE, "%s: %s", mark, strerror(errno));
		return NULL;
	}
	close(fd);
	return folder;
}

/* Removes the files of a finished bisection; its journals are kept as previous*.jsonl. */
static bool put_aside(struct cli *cli, const char *folder, struct error *error)
{
	const struct bisect_flags *flags = cli->options;
	size_t latest = bisect_latest(folder);
	struct arena *arena = cli->arena;
	struct journal_file *file;
	struct journal journal;
	bool over = true;

	if (latest == 0)
		return true;
	file = journal_open(arena, bisect_journal(arena, folder, latest), &journal, error);
	if (!file && !(flags->discard && error->kind == ERROR_DATA))
		return false; /* in use; or no journal, which may be dropped */
	if (file) {
		struct bisection *bisection = journal_replay(&journal, NULL);

		over = bisection_status(bisection)->phase == BISECT_OVER;
		bisection_free(bisection);
	}
	if (!over && !flags->discard) {
		journal_close(file);
		return error_set(error, ERROR_USAGE,
			"%s has an unfinished bisection: resume it with --resume or discard it "
			"with --discard",
			folder);
	}
	for (size_t i = 1; i <= latest; i++) {
		const char *name = bisect_journal(arena, folder, i);

		if (rename(name, i == 1 ? arena_printf(arena, "%s/previous.jsonl", folder)
					: arena_printf(arena, "%s/previous-%zu.jsonl", folder,
						  i)) != 0 &&
			errno != ENOENT) {
			journal_close(file);
			return error_set(error, ERROR_STATE, "%s: %s", name, strerror(errno));
		}
	}
	journal_close(file);
	return true;
}

/* The folder of an earlier bisection. */
static const char *earlier_folder(struct cli *cli, struct error *error)
{
	const struct bisect_flags *flags = cli->options;
	const char *repository = repository_at(cli->arena, flags->repo ? flags->repo : ".", error);
	const char *folder = repository ? folder_of(cli, repository, error) : NULL;
	const char *real = folder ? real_path(cli->arena, folder) : NULL;

	if (real && bisect_latest(real) > 0)
		return real;
	if (folder)
		error_set(error, ERROR_USAGE,
			"%s has no bisection; locate it with --work DIR or --repo PATH", folder);
	return NULL;
}

static bool check_flags(const struct bisect_flags *flags, struct error *error)
{
	size_t workers = (size_t)flags->workers + flags->worker.count;

	if (!extract_check(flags->extract, error))
		return error_prefix(error, "--extract: ");
	if (!flags->good && !flags->change)
		return error_set(error, ERROR_USAGE,
			"--good COMMIT or --change ID is required: the start of the range");
	if (!flags->run)
		return error_set(error, ERROR_USAGE,
			"--run COMMAND is required: it builds a commit and prints its measurement");
	if (workers > BISECT_WORKERS_MOST)
		return error_set(error, ERROR_USAGE, "--workers and --worker: more than %d in all",
			BISECT_WORKERS_MOST);
	for (size_t i = 0; i < flags->worker.count; i++)
		if (!check_text("--worker", flags->worker.items[i], error))
			return false;
	for (size_t i = 0; i < flags->paths.count; i++)
		if (!check_text("--paths", flags->paths.items[i], error))
			return false;
	return check_text("--run", flags->run, error) &&
	       check_text("--extract", flags->extract, error);
}

/* Without an agent. */
static bool perform(void *context, const char *state, const struct config *config,
	struct buf *answer, struct error *error)
{
	struct store_excerpts *found = store_excerpts_new(NULL, NULL);
	const int64_t *id = context;
	bool read;

	(void)config;
	found->changes = id;
	found->change_count = 1;
	read = store_tx(state, STORE_READ, &found->call, error);
	if (read && found->count == 0)
		read = error_set(error, ERROR_USAGE, "--change: there is no change %" PRId64, *id);
	if (read) {
		buf_text(answer, "{\"change\": ");
		record_put_json(answer, &found->items[0].record);
		buf_char(answer, '}');
	}
	store_call_free(&found->call);
	return read;
}

/* In the API's JSON, from the agent or made of what the state has. */
static bool read_change(
	struct cli *cli, const char *text, struct change_record *out, struct error *error)
{
	const struct bisect_flags *flags = cli->options;
	int64_t id = 0;
	struct state_request request = {.flags = &flags->state,
		.key = "change",
		.reads = true,
		.perform = perform,
		.context = &id};
	json_t *answer;
	bool read;

	if (strspn(text, "0123456789") == strlen(text) && strlen(text) <= 18)
		id = strtoll(text, NULL, 10);
	if (id <= 0)
		return error_set(error, ERROR_USAGE, "--change takes the id of a change");
	request.path = arena_printf(cli->arena, "/api/v1/changes/%" PRId64, id);
	answer = state_request(cli, &request, error);
	if (!answer)
		return false;
	read = record_read(cli->arena, json_object_get(answer, "change"), out) ||
	       error_set(error, ERROR_STATE,
		       "%s: the response is not a change: is it a hunter-c of this version?",
		       flags->state.agent.agent ? flags->state.agent.agent : "the agent");
	json_decref(answer);
	return read;
}

/* All but the commits: the range and the step are those of a recorded change, if one is named, and
 * the clone is that of its test. */
static bool make_setup(struct cli *cli, struct journal_setup *setup, struct error *error)
{
	static const int signs[] = {0, 1, -1};
	const struct bisect_flags *flags = cli->options;
	size_t workers = (size_t)flags->workers + flags->worker.count;
	const char *repository = flags->repo;
	struct change_record record;

	*setup = (struct journal_setup){.bad = "HEAD",
		.paths = flags->paths,
		.options = {.step = (double)NAN,
			.spread = (double)NAN,
			.workers = workers + (workers == 0),
			.confidence = flags->confidence,
			.budget = flags->budget,
			.most_runs = (size_t)flags->max_runs,
			.attempts = ATTEMPTS},
		.run = flags->run,
		.extract = flags->extract,
		.lines = flags->worker,
		.timeout = flags->timeout,
		.remove_ignored = flags->clean,
		.merges = flags->merges,
		.at = cli->now};
	if (!check_flags(flags, error))
		return false;
	if (flags->change) {
		const struct test *test;

		if (!read_change(cli, flags->change, &record, error))
			return false;
		journal_set_change(setup, &record);
		announcement_range(&record.item, &setup->good, &setup->bad);
		test = cli->config ? config_test(cli->config, setup->test) : NULL;
		repository = repository || !test ? repository : test->repository;
	}
	if (flags->step != 0)
		setup->options.step = flags->step / 100;
	if (flags->spread > 0)
		setup->options.spread = flags->spread / 100;
	if (flags->direction)
		setup->options.direction = signs[flags->direction];
	setup->repository = repository_at(cli->arena, repository ? repository : ".", error);
	setup->good = flags->good ? flags->good : setup->good;
	setup->bad = flags->bad ? flags->bad : setup->bad;
	if (!setup->repository || !check_text("--repo", setup->repository, error))
		return false;
	return (setup->good && setup->bad) ||
	       error_set(error, ERROR_USAGE,
		       "change %" PRId64
		       " has no commits recorded: give the range with --good and --bad",
		       setup->change);
}

static void print_notes(const struct candidate_commits *candidates)
{
	if (candidates->base_of)
		fprintf(stderr,
			"note: the good commit %.12s is not an ancestor of the bad one: the range "
			"begins at their merge base, %.12s\n",
			candidates->base_of, candidates->good);
	if (candidates->dirty)
		fprintf(stderr, "note: %s has uncommitted changes: the runs do not include them\n",
			candidates->repository);
	if (candidates->count == 1)
		fprintf(stderr,
			"note: the range has a single commit, %.12s: the runs can only confirm or "
			"reject the step\n",
			candidates->items[0].id);
}

static int begin(struct cli *cli)
{
	const struct candidate_commits *candidates;
	struct journal_setup setup;
	struct error error;
	const char *folder;

	if (!make_setup(cli, &setup, &error))
		return state_fail(&error);
	candidates = bisect_candidates(cli, &setup, &error);
	if (!candidates)
		return cli_fail(&error);
	journal_set_range(cli->arena, &setup, candidates);
	print_notes(candidates);
	folder = folder_of(cli, setup.repository, &error);
	folder = folder ? claim(cli->arena, folder, &error) : NULL;
	if (!folder || !put_aside(cli, folder, &error))
		return cli_fail(&error);
	fprintf(stderr, "%zu candidates from %.12s to %.12s, %zu worker%s, in %s\n",
		candidates->count, setup.good, setup.bad, setup.options.workers,
		cli_plural(setup.options.workers), folder);
	return bisect_search(cli, folder, &setup);
}

static void print_levels(struct cli *cli, const struct journal *journal)
{
	struct bisection *bisection = journal_replay(journal, NULL);
	const struct bisect_status *status = bisection_status(bisection);
	const struct bisect_flags *flags = cli->options;
	struct winsize size = {.ws_col = 100};
	struct buf out = {0};

	if (ioctl(fileno(cli->out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
		size.ws_col = 100;
	if (flags->output == BISECT_JSON) {
		buf_char(&out, '{');
		verdict_json(&out, status, journal->setup);
		buf_text(&out, "}\n");
	} else {
		verdict_plot(&out, status, journal, size.ws_col);
		verdict_text(&out, status, journal->setup);
		buf_char(&out, '\n');
	}
	text_flush(&out, cli->out);
	bisection_free(bisection);
}

void bisect_put_result(struct buf *out, const struct journal_setup *setup,
	const struct bisect_result *result, const char *problem, const char *log)
{
	static const char *const words[] = {"measured", "cannot be tested", "failed", "lost"};
	char lasted[WHEN_TEXT], id[VERDICT_ID];
	struct buf line = {0};

	buf_printf(out, "run %" PRIu64 ": %s ", result->id,
		verdict_short(setup, result->position, id));
	if (result->outcome == BISECT_MEASURED)
		buf_printf(out, "%.6g", result->value);
	else
		buf_text(out, words[result->outcome]);
	if (problem) {
		buf_text(&line, problem);
		error_blank(line.data);
		buf_printf(out, ": %s", line.data);
		buf_free(&line);
	}
	if (log && result->outcome != BISECT_MEASURED)
		buf_printf(out, "; see %s", log);
	buf_printf(out, " (worker %zu, %s)", result->worker + 1,
		(result->lasted < 1000 ? when_format_duration : when_format_rough)(
			result->lasted, lasted));
}

static void print_log(struct cli *cli, const struct journal *journal)
{
	const struct bisect_flags *flags = cli->options;

	for (size_t i = 0; i < journal->count; i++) {
		const struct journal_entry *entry = &journal->entries[i];
		struct buf line = {0};
		char time[WHEN_TEXT];

		if (entry->kind == JOURNAL_BEGIN)
			continue;
		if (flags->output == BISECT_JSON) {
			journal_put(&line, entry);
		} else {
			buf_printf(&line, "%s ", when_format(entry->at, time));
			if (entry->kind == JOURNAL_RESULT)
				bisect_put_result(&line, journal->setup, &entry->result,
					entry->problem, NULL);
			else
				buf_text(&line,
					entry->kind == JOURNAL_RESUMED ? "resumed" : "cancelled");
			buf_char(&line, '\n');
		}
		text_flush(&line, cli->out);
	}
}

/* --log, --show: each journal of the folder. */
static int look(struct cli *cli)
{
	const struct bisect_flags *flags = cli->options;
	struct error error;
	const char *folder = earlier_folder(cli, &error);
	size_t latest = folder ? bisect_latest(folder) : 0;

	if (!folder)
		return cli_fail(&error);
	for (size_t i = 1; i <= latest; i++) {
		struct journal journal;

		if (!journal_look(
			    cli->arena, bisect_journal(cli->arena, folder, i), &journal, &error))
			return cli_fail(&error);
		if (flags->log)
			print_log(cli, &journal);
		if (flags->show)
			print_levels(cli, &journal);
	}
	return EXIT_NOTHING;
}

static int run(struct cli *cli)
{
	const struct bisect_flags *flags = cli->options;
	bool fresh = flags->good || flags->bad || flags->change || flags->run;
	struct error error;
	const char *folder;

	if (flags->log || flags->show)
		return look(cli);
	if (flags->resume && fresh)
		return cli_refuse("--resume keeps the range and command of the bisection: omit "
				  "--good, --bad, --change and --run");
	if (fresh || !(flags->resume || flags->discard))
		return begin(cli);
	folder = earlier_folder(cli, &error);
	if (!folder)
		return cli_fail(&error);
	if (flags->resume)
		return bisect_search(cli, folder, NULL);
	/* Drops an unfinished bisection, with its work trees. */
	return put_aside(cli, folder, &error) ? bisect_clean(cli, folder) : cli_fail(&error);
}

const struct command bisect_command = {
	.name = "bisect",
	.summary = "Find the commit that changed a metric, from noisy runs",
	.details =
		"Builds and measures commits between a good and a bad one, one per worker at a "
		"time, until one commit is the first bad one with the probability of --confidence, "
		"and compares it with its parent. --run is a shell command; it runs in a separate "
		"work tree with $HUNTER_COMMIT checked out and prints a number. Exit status 125 "
		"marks a commit that cannot be tested; other failures are retried. The ends are "
		"measured first: if they do not reproduce the step, the search stops.\n"
		"\n"
		"Each run is kept in a journal: resume with --resume after Ctrl-C, a crash or a "
		"reboot. Your work tree is not touched. See docs/operate/bisect.md.\n"
		"\n"
		"The exit code is 0 if the commit was found, 1 if the step was not reproduced, 5 "
		"if several commits are left, 2 for wrong flags, 3 if nothing can be measured, 4 "
		"if the journal, the work folder or the state is unavailable, and 130 if "
		"interrupted.",
	.misuse = "bisect takes flags only; quote the command: --run 'COMMAND'",
	.parts = parts,
	.options_size = sizeof(struct bisect_flags),
	.run = run,
};

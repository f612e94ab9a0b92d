/*
 * Each worker runs one git at a time. Only one worker at a time changes git's list of work trees,
 * as git may read a half-written entry. Remains of a killed checkout (a lock, half a tree) are not
 * examined: a tree in which git fails is recreated.
 */
#include "agent/bisect/worktrees.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/io/engine.h"
#include "agent/io/execution.h"
#include "agent/io/git.h"

enum {
	WITHIN = 1800000, /* ms */
	MOST_TRIES = 3,   /* to create a tree: another program may change the list */
	TRY_AGAIN = 1000, /* ms */
	LONGEST_ENTRY = 32,
	NO_SUCH_OBJECT = 1, /* status of `git cat-file -e`; any other is git's failure */
};

enum stage {
	STAGE_IDLE,
	STAGE_FILTERS,
	STAGE_CHECKOUT,
	STAGE_KNOWN, /* does the commit still exist? */
	STAGE_FORGET,
	STAGE_DELETE,
	STAGE_FORGET_AGAIN,
	STAGE_ADD,
	STAGE_CLEAN,
};

struct tree {
	struct execution execution; /* must be first */
	struct worktrees *all;
	const char *path;
	enum stage stage;
	const char *commit; /* NULL: it is removed */
	bool remove_ignored, remade, stopping;
	size_t tries;
	bool waiting;        /* for its turn to change the list */
	const char *problem; /* the latest one */
	worktrees_done *done;
	void *context;
	struct arena *arena;         /* of the git in progress */
	const char *const *checkout; /* git's arguments */
	struct transfer transfer;
};

struct worktrees {
	struct engine *engine;
	struct arena *arena;
	const char *repository, *folder;
	struct pair mark; /* marks our processes */
	bool fetches;
	struct tree *trees; /* [count]; the last one is for removals */
	size_t count;
	struct tree *lister; /* whose git changes the list, or NULL */
	const char **leftovers;
	size_t leftover_count, removed;
	const char *problem;
	worktrees_removed *done;
	void *context;
};

const char *worktrees_folder(
	struct arena *arena, const char *path, unsigned mode, struct error *error)
{
	char *copy = arena_strdup(arena, path), *real;

	for (char *slash = copy; (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		(void)mkdir(copy, mode);
		*slash = '/';
	}
	(void)mkdir(copy, mode);
	real = realpath(copy, NULL);
	if (!real)
		error_set(error, ERROR_STATE, "%s: %s", path, strerror(errno));
	path = arena_strdup(arena, real);
	free(real);
	return path;
}

struct worktrees *worktrees_new(struct engine *engine, const char *repository, const char *folder,
	size_t workers, bool fetches)
{
	struct worktrees *all = memory_new(1, sizeof *all);
	struct arena *arena = arena_new();

	*all = (struct worktrees){.engine = engine,
		.arena = arena,
		.repository = repository,
		.folder = folder,
		.mark = {WORKTREES_MARK, folder},
		.fetches = fetches,
		.trees = arena_array(arena, workers + 1, sizeof *all->trees),
		.count = workers};
	for (size_t i = 0; i <= workers; i++)
		all->trees[i] = (struct tree){
			.all = all, .path = arena_printf(arena, "%s/worker-%zu", folder, i + 1)};
	return all;
}

static void rest(struct tree *tree)
{
	buf_free(&tree->execution.output);
	arena_free(tree->arena);
	tree->arena = NULL;
	tree->stage = STAGE_IDLE;
	tree->stopping = tree->waiting = false;
}

void worktrees_free(struct worktrees *all)
{
	if (!all)
		return;
	for (size_t i = 0; i <= all->count; i++)
		rest(&all->trees[i]);
	arena_free(all->arena);
	free(all);
}

const char *worktrees_path(const struct worktrees *all, size_t worker)
{
	return all->trees[worker].path;
}

static void finish(struct tree *tree, enum worktree_outcome outcome, const char *problem)
{
	struct arena *arena = tree->arena;

	tree->arena = NULL;
	rest(tree);
	tree->done(tree->context, outcome, problem);
	arena_free(arena);
}

static void next_stage(struct tree *tree, bool good);
static void start(struct tree *tree);

/* Starts the next one that waits for the list. */
static void wake(struct worktrees *all)
{
	for (size_t i = 0; i <= all->count && !all->lister; i++)
		if (all->trees[i].waiting && !all->trees[i].stopping) {
			all->trees[i].waiting = false;
			all->lister = &all->trees[i];
			start(&all->trees[i]);
		}
}

static void ended(struct execution *execution)
{
	struct tree *tree = (struct tree *)execution;
	struct worktrees *all = tree->all;
	const struct reply *reply = &execution->reply;

	if (all->lister == tree)
		all->lister = NULL;
	if (tree->stopping)
		finish(tree, WORKTREE_STOPPED, "stopped");
	else
		next_stage(tree, reply->kind == REPLY_ANSWER && reply->status == 0);
	wake(all);
}

static void execute(struct tree *tree)
{
	static const struct command_options cancellable = {.cancellable = true};

	tree->transfer.plain = (struct pairs){&tree->all->mark, 1};
	tree->transfer.timeout = WITHIN;
	tree->transfer.options = &cancellable;
	engine_execute(tree->all->engine, &tree->execution, &tree->transfer, ended);
}

static void git(struct tree *tree, const char *folder, const char *const *arguments)
{
	tree->transfer = git_transfer(tree->arena, folder, arguments, tree->all->fetches);
	tree->transfer.most_output = tree->stage == STAGE_FILTERS ? GIT_FILTERS_MOST : 0;
	execute(tree);
}

static void start(struct tree *tree)
{
	const char *repository = tree->all->repository, *path = tree->path;
	const char *const forget[] = {"worktree", "remove", "--force", "--force", path, NULL};
	const char *const add[] = {"worktree", "add", "--no-checkout", "-q", "-f", "-f", "--detach",
		path, tree->commit, NULL};
	const char *const clean[] = {
		"clean", "-q", "-ffd", tree->remove_ignored ? "-x" : NULL, NULL};
	const char **command;

	switch (tree->stage) {
	case STAGE_FILTERS: git(tree, path, git_filters); break;
	case STAGE_CHECKOUT: git(tree, path, tree->checkout); break;
	case STAGE_KNOWN:
		git(tree, repository, (const char *const[]){"cat-file", "-e", tree->commit, NULL});
		break;
	case STAGE_FORGET:
	case STAGE_FORGET_AGAIN: git(tree, repository, forget); break;
	case STAGE_DELETE:
		command = arena_array(tree->arena, 5, sizeof *command);
		memcpy(command, (const char *const[]){"rm", "-rf", "--", path},
			4 * sizeof *command);
		tree->transfer =
			(struct transfer){.kind = TRANSFER_EXEC, .command = command, .body = ""};
		execute(tree);
		break;
	case STAGE_ADD: git(tree, repository, add); break;
	case STAGE_CLEAN: git(tree, path, clean); break;
	case STAGE_IDLE: break;
	}
}

static void enter(struct tree *tree, enum stage stage)
{
	struct worktrees *all = tree->all;
	bool lists = stage == STAGE_FORGET || stage == STAGE_FORGET_AGAIN || stage == STAGE_ADD;

	tree->stage = stage;
	tree->waiting = lists && all->lister;
	if (tree->waiting)
		return;
	if (lists)
		all->lister = tree;
	start(tree);
}

/* After the tree has gone. */
static void gone(struct tree *tree)
{
	if (tree->commit)
		enter(tree, STAGE_ADD);
	else if (access(tree->path, F_OK) == 0)
		finish(tree, WORKTREE_FAILED, tree->problem);
	else
		finish(tree, WORKTREE_READY, NULL);
}

static void make_again(void *context)
{
	struct tree *tree = context;

	if (tree->stopping)
		finish(tree, WORKTREE_STOPPED, "stopped");
	else
		enter(tree, STAGE_FORGET);
}

static void take_filters(struct tree *tree)
{
	const char *const checkout[] = {"-c", "advice.detachedHead=false", "checkout", "-q",
		"--force", "--detach", tree->commit, "--", NULL};

	tree->checkout = git_without_filters(tree->arena, &tree->execution.output, checkout);
	buf_free(&tree->execution.output);
	if (tree->checkout)
		enter(tree, STAGE_CHECKOUT);
	else
		finish(tree, WORKTREE_FAILED,
			"cannot disable the filters of the clone's configuration: a name contains "
			"\"=\", or there are too many");
}

/* Goes to the next stage. */
static void next_stage(struct tree *tree, bool good)
{
	bool forgets = tree->stage == STAGE_FORGET || tree->stage == STAGE_FORGET_AGAIN;
	bool listed = tree->stage == STAGE_FILTERS && git_listed_filters(&tree->execution.reply);

	if (!good && !forgets && !listed && tree->stage != STAGE_KNOWN) /* those may fail */
		tree->problem = git_problem(tree->arena, &tree->execution);
	switch (tree->stage) {
	case STAGE_FILTERS:
		if (listed)
			take_filters(tree);
		else
			enter(tree, STAGE_KNOWN);
		break;
	case STAGE_CHECKOUT: enter(tree, good ? STAGE_CLEAN : STAGE_KNOWN); break;
	case STAGE_KNOWN:
		if (tree->execution.reply.kind == REPLY_ANSWER &&
			tree->execution.reply.status == NO_SUCH_OBJECT)
			finish(tree, WORKTREE_VANISHED,
				arena_printf(tree->arena,
					"commit %s is no longer in the repository", tree->commit));
		else if (!tree->remade)
			enter(tree, STAGE_FORGET);
		else if (++tree->tries < MOST_TRIES)
			engine_after(tree->all->engine, TRY_AGAIN, make_again, tree);
		else
			finish(tree, WORKTREE_FAILED, tree->problem);
		break;
	case STAGE_FORGET:
		if (good)
			gone(tree);
		else
			enter(tree, STAGE_DELETE);
		break;
	case STAGE_DELETE: enter(tree, STAGE_FORGET_AGAIN); break;
	case STAGE_FORGET_AGAIN: gone(tree); break;
	case STAGE_ADD:
		tree->remade = true;
		enter(tree, good ? STAGE_FILTERS : STAGE_KNOWN);
		break;
	case STAGE_CLEAN:
		finish(tree, good ? WORKTREE_READY : WORKTREE_FAILED, tree->problem);
		break;
	case STAGE_IDLE: break;
	}
}

static void start_checkout(
	struct tree *tree, const char *commit, worktrees_done *done, void *context)
{
	tree->arena = arena_new();
	tree->commit = arena_strdup(tree->arena, commit);
	tree->remade = false;
	tree->tries = 0;
	tree->problem = NULL;
	tree->done = done;
	tree->context = context;
}

void worktrees_checkout(struct worktrees *all, size_t worker, const char *commit,
	bool remove_ignored, worktrees_done *done, void *context)
{
	struct tree *tree = &all->trees[worker];
	const char *marker;

	start_checkout(tree, commit, done, context);
	tree->remove_ignored = remove_ignored;
	marker = arena_printf(tree->arena, "%s/.git", tree->path);
	if (access(marker, F_OK) == 0)
		enter(tree, STAGE_FILTERS);
	else
		enter(tree, STAGE_FORGET);
}

/* A checkout that was waiting. */
static void stopped(void *context)
{
	finish(context, WORKTREE_STOPPED, "stopped");
}

void worktrees_stop(struct worktrees *all, size_t worker)
{
	struct tree *tree = &all->trees[worker];

	if (tree->stage == STAGE_IDLE || tree->stopping)
		return;
	tree->stopping = true;
	if (tree->waiting)
		engine_after(all->engine, 0, stopped, tree);
	else
		execution_cancel(&tree->execution);
}

static void remove_next(struct worktrees *all);

static void removed(void *context, enum worktree_outcome outcome, const char *problem)
{
	struct worktrees *all = context;

	if (outcome != WORKTREE_READY && !all->problem)
		all->problem = arena_strdup(
			all->arena, problem ? problem : "still there after its removal");
	remove_next(all);
}

static void all_removed(void *context)
{
	struct worktrees *all = context;

	all->done(all->context, all->problem);
}

static void remove_next(struct worktrees *all)
{
	struct tree *tree = &all->trees[all->count];

	if (all->removed == all->leftover_count) {
		engine_after(all->engine, 0, all_removed, all);
		return;
	}
	start_checkout(tree, NULL, removed, all);
	tree->path = all->leftovers[all->removed++];
	enter(tree, STAGE_FORGET);
}

static bool is_tree(const char *name)
{
	static const char beginning[] = "worker-";
	const char *number = name + sizeof beginning - 1;

	return strncmp(name, beginning, sizeof beginning - 1) == 0 && *number &&
	       strlen(name) < LONGEST_ENTRY && strspn(number, "0123456789") == strlen(number);
}

void worktrees_remove(struct worktrees *all, worktrees_removed *done, void *context)
{
	DIR *folder = opendir(all->folder);
	struct dirent *entry;

	all->done = done;
	all->context = context;
	all->problem = NULL;
	all->removed = all->leftover_count = 0;
	all->leftovers = NULL;
	while (folder && (entry = readdir(folder)))
		if (is_tree(entry->d_name)) {
			all->leftovers = arena_grow(all->arena, all->leftovers, all->leftover_count,
				sizeof *all->leftovers);
			all->leftovers[all->leftover_count++] =
				arena_printf(all->arena, "%s/%s", all->folder, entry->d_name);
		}
	if (folder)
		closedir(folder);
	remove_next(all);
}

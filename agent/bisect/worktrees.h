/*
 * Work trees of a bisection: one for each worker, FOLDER/worker-N, made by `git worktree` beside
 * the user's, which is not touched.
 *
 * A tree left by a killed bisection is reused, or recreated if git refuses it. Between two commits
 * untracked files are removed; ignored ones (build products) stay unless remove_ignored.
 */
#ifndef AGENT_BISECT_WORKTREES_H
#define AGENT_BISECT_WORKTREES_H

#include "agent/base/arena.h"
#include "agent/base/error.h"

struct engine;
struct worktrees;

/* Every process of a bisection has this variable, set to the folder; it identifies processes left
 * by a killed program. */
#define WORKTREES_MARK "HUNTER_BISECT_WORK"

enum worktree_outcome {
	WORKTREE_READY,
	WORKTREE_VANISHED, /* the repository does not have the commit any more */
	WORKTREE_FAILED,   /* not the commit's fault: disk full, no git */
	WORKTREE_STOPPED,  /* by worktrees_stop */
};

/* Makes a folder for them with those above it; its real path, in the arena. NULL: ERROR_STATE. */
const char *worktrees_folder(
	struct arena *arena, const char *path, unsigned mode, struct error *error);

/* `repository` and `folder` are absolute and exist; both are borrowed. The folder is the
 * bisection's own: anything called worker-N in it may be removed. If it `fetches`, a checkout may
 * fetch what a partial clone lacks. */
struct worktrees *worktrees_new(struct engine *engine, const char *repository, const char *folder,
	size_t workers, bool fetches);
/* After the engine was freed. The trees stay. Accepts NULL. */
void worktrees_free(struct worktrees *worktrees);

/* Absolute path of a worker's tree; workers count from 0, folders from 1. */
const char *worktrees_path(const struct worktrees *worktrees, size_t worker);

/* Checks a commit (full id) out. `done` is called on the loop's thread, with a problem unless it is
 * ready: one sentence, valid during the call. One at a time for each worker. */
typedef void worktrees_done(void *context, enum worktree_outcome outcome, const char *problem);
void worktrees_checkout(struct worktrees *worktrees, size_t worker, const char *commit,
	bool remove_ignored, worktrees_done *done, void *context);

/* Ends the git that is checking out for the worker, if there is one. */
void worktrees_stop(struct worktrees *worktrees, size_t worker);

/* Removes the trees of all workers, and others that an earlier bisection left in the folder; those
 * in use must have been stopped. `done` is called with the first problem, or NULL. */
typedef void worktrees_removed(void *context, const char *problem);
void worktrees_remove(struct worktrees *worktrees, worktrees_removed *done, void *context);

#endif

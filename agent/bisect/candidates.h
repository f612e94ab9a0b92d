/*
 * The commits of a bisection: those of a range, from the oldest, as a local clone has them.
 *
 * git is run without a shell and without the clone's hooks (agent/io/git.h). Names from users are
 * resolved by `git rev-parse --verify --end-of-options`; from then on only full ids are used. By
 * default the line of first parents is followed, so that a merge is one candidate.
 */
#ifndef AGENT_BISECT_CANDIDATES_H
#define AGENT_BISECT_CANDIDATES_H

#include "agent/base/arena.h"
#include "agent/base/field.h"

struct engine;

/* Longest full id (SHA-256), and the limit of a subject, in characters. */
enum { CANDIDATE_ID = 64, CANDIDATE_TEXT = 200 };

struct candidates_request {
	const char *repository; /* a folder of the clone */
	const char *good, *bad; /* any name of a commit: v1.2, HEAD, 4f2c91a */
	struct strings paths;   /* only commits that touch these; none: all */
};

struct candidate_commit {
	const char *id, *subject; /* the subject may be cut; no controls */
	bool merge;
};

struct candidate_commits {
	const char *repository; /* its top folder, or the folder of a bare one; absolute */
	const char *good, *bad; /* full ids; `good` is position 0 */
	const char *base_of; /* full id of the given good commit if it is not an ancestor of the bad
				end, in which case `good` is their merge base; or NULL */
	bool dirty;          /* the work tree has uncommitted changes, which runs ignore */
	struct candidate_commit *items; /* [count]; items[0] is position 1 */
	size_t count;                   /* 1 to BISECT_CANDIDATES_MOST */
};

/*
 * Finds the commits, on the loop's thread; `done` gets them, in the arena, or NULL and an error:
 * ERROR_USAGE for a wrong request (unknown commit, empty range, no repository), ERROR_DATA if the
 * clone lacks data (shallow, git missing). The texts of the request are borrowed. The search is
 * freed before `done` is called. If the engine is freed first, `done` is not called, and the search
 * is to be freed.
 */
struct candidates_search;
typedef void candidates_done(
	void *context, const struct candidate_commits *candidates, const struct error *error);
struct candidates_search *candidates_find(struct engine *engine, struct arena *arena,
	const struct candidates_request *request, candidates_done *done, void *context);
void candidates_search_free(struct candidates_search *search); /* accepts NULL */

/* Parses git's output, the latest commit first: id, parents' ids and subject, a line each,
 * commits ended by NUL. Sets items and count. False and an error: malformed, or too many. */
bool candidates_parse(struct arena *arena, const char *text, size_t length,
	struct candidate_commits *out, struct error *error) MUST_USE;

#endif

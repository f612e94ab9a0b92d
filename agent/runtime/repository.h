/*
 * The commits between two, from a local clone (`repository` of a test): possible causes of a
 * change.
 *
 * They are read by the program git, without a shell, with bounds of time, number and bytes, and so
 * that a clone cannot make it run other programs. Results are cached for a while, and equal
 * requests share one git process. For the loop's thread.
 */
#ifndef AGENT_RUNTIME_REPOSITORY_H
#define AGENT_RUNTIME_REPOSITORY_H

#include "agent/runtime/agent.h"

enum {
	COMMITS_MOST = 200,
	COMMIT_SUBJECT = 200, /* characters at most, of an author, too */
};

struct commit {
	const char *id, *author, *subject;
	int64_t time; /* ms, of the author */
};

/* Commits, the latest first. */
struct commits {
	const struct commit *items;
	size_t count;
	bool more;           /* there are more than COMMITS_MOST */
	const char *problem; /* why there are none, as a sentence, or NULL */
};

struct repositories;

struct repositories *repositories_new(struct agent *agent);
/* After the engine was freed: waiting requests fail, as the agent is stopping. Accepts NULL. */
void repositories_free(struct repositories *repositories);

/* Those that `to` has and `from` does not, or with `from` NULL only `to`, as the clone at that path
 * has them. `done` is called with them, possibly before this returns. */
typedef void repository_done(void *context, const struct commits *commits);
void repository_commits(struct repositories *repositories, const char *path, const char *from,
	const char *to, repository_done *done, void *context);

/* Parses git's output: a line each of id, author, time in s, and subject, commits ended by NUL.
 * False: another format. Copies to the arena. */
bool repository_parse(
	struct arena *arena, const char *text, size_t length, struct commits *out) MUST_USE;

#endif

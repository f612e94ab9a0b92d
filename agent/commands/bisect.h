/* `bisect`: shared by its files. bisect.c has the flags, reads a recorded change and displays
 * journals, bisect_search.c searches. */
#ifndef AGENT_COMMANDS_BISECT_H
#define AGENT_COMMANDS_BISECT_H

#include "agent/base/when.h"
#include "agent/bisect/journal.h"
#include "agent/bisect/verdict_text.h"
#include "agent/cli/cli.h"
#include "agent/commands/state_file.h"

enum bisect_output { BISECT_TEXT, BISECT_JSON };

/* Besides those of cli.h: a set of commits is left. */
enum { EXIT_NOT_REPRODUCED = 1, EXIT_SET_LEFT = 5, EXIT_INTERRUPTED = 130 };

struct bisect_flags {
	struct state_flags state;
	const char *good, *bad, *repo, *change, *run, *extract, *work;
	struct strings paths, worker;
	int64_t workers, timeout, budget, max_runs;
	double confidence, step, spread;
	int direction, output;
	bool merges, clean, resume, discard, log, show;
};

/* Runs a new bisection, or without a setup goes on with the folder's. Returns the exit code. */
int bisect_search(struct cli *cli, const char *folder, struct journal_setup *setup);

/* Removes the work trees that a bisection which was put aside has left. Returns the exit code. */
int bisect_clean(struct cli *cli, const char *folder);

/* Finds the commits of a setup that names a repository, ends and paths. */
struct candidate_commits;
const struct candidate_commits *bisect_candidates(
	struct cli *cli, const struct journal_setup *setup, struct error *error);

/* Names of the journals of a folder: the first, and those of merges that were searched next. */
enum { BISECT_JOURNALS = 16 };
const char *bisect_journal(struct arena *arena, const char *folder, size_t number);
/* The number of the latest one, from 1; 0: there is none. */
size_t bisect_latest(const char *folder);

/* "run 31: 4f2c91a 12.34 (worker 2, 35s)". `problem` and `log`, its file, may be NULL. */
void bisect_put_result(struct buf *out, const struct journal_setup *setup,
	const struct bisect_result *result, const char *problem, const char *log);

#endif

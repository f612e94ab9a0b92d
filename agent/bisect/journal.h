/*
 * The journal of a bisection as JSON lines: the setup, then the start and the result of each run.
 *
 *     {"hunter_bisect": 1, "repository": "/src/app", "good": "...", "candidates": [...], ...}
 *     {"begin": {"id": 1, "worker": 0, "position": 0, "phase": "ends", "round": 1, "at": ms}}
 *     {"result": {"id": 1, "worker": 0, "position": 0, "outcome": "measured", "value": 1.5, ...}}
 *     {"resumed": {"at": ms}}
 *     {"cancelled": {"at": ms}}
 *
 * Lines are encoded and decoded one by one, for the command's file and for rows of the store.
 */
#ifndef AGENT_BISECT_JOURNAL_H
#define AGENT_BISECT_JOURNAL_H

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/base/field.h"
#include "agent/bisect/bisection.h"

enum { JOURNAL_VERSION = 1, JOURNAL_LINE_MOST = 8 << 20 };

struct candidate_commits;
struct change_record;

struct journal_setup {
	const char *repository;    /* absolute */
	const char *good, *bad;    /* full ids */
	struct strings candidates; /* full ids, positions 1 to count */
	struct strings subjects;   /* of positions 0 to count, or none */
	struct strings paths;
	struct bisect_options options;
	const char *run, *extract; /* extract may be NULL */
	struct strings lines;      /* of remote workers */
	int64_t timeout;           /* ms */
	bool remove_ignored;
	bool merges;               /* if the culprit is a merge, its commits are searched next */
	int64_t change;            /* the id of the change that it is about; 0: none */
	const char *test, *metric; /* of that; or NULL */
	int64_t at;                /* ms, wall clock */
	const char *into;          /* the merge that is searched, full id; NULL: none */
};

enum journal_kind {
	JOURNAL_SETUP,
	JOURNAL_BEGIN,
	JOURNAL_RESULT,
	JOURNAL_RESUMED,
	JOURNAL_CANCELLED,
};

struct journal_entry {
	enum journal_kind kind;
	int64_t at;                  /* ms, wall clock; of a result: when it had ended */
	struct journal_setup *setup; /* of JOURNAL_SETUP */
	struct bisect_run run;       /* of JOURNAL_BEGIN */
	struct bisect_result result; /* of JOURNAL_RESULT */
	const char *problem;         /* of JOURNAL_RESULT: why there is no value; or NULL */
};

/* Their words, by enum bisect_phase and bisect_outcome: "ends", "measured"; NULL-terminated. */
extern const char *const journal_phases[], *const journal_outcomes[];

/* Puts the change that it is about into a setup, with the step to expect; borrows its texts. */
void journal_set_change(struct journal_setup *setup, const struct change_record *record);
/* Puts the ends and the commits of a range into a setup; borrows their texts. */
void journal_set_range(struct arena *arena, struct journal_setup *setup,
	const struct candidate_commits *candidates);

/* The commit at a position, full id. */
const char *journal_commit(const struct journal_setup *setup, size_t position);

/* Append a line, with its end. */
void journal_put_setup(struct buf *out, const struct journal_setup *setup);
void journal_put(struct buf *out, const struct journal_entry *entry);

struct journal {
	struct journal_setup *setup;
	struct journal_entry *entries; /* without the setup */
	size_t count;
	size_t torn; /* bytes at the end that are no whole line */
};

/* Decodes all lines; the last one is dropped if its end is missing. Texts are copied to the arena.
 * Ids, positions, workers and times are range-checked. Errors (ERROR_DATA) name the line. */
bool journal_read(struct arena *arena, const char *text, size_t length, struct journal *out,
	struct error *error) MUST_USE;

/* A budget does not count the time in which no program worked on a bisection: its own times are
 * wall clock minus pauses. */
struct journal_times {
	int64_t paused; /* ms */
	int64_t first;  /* ms, wall clock minus pauses: when its first run began; 0: none has */
	int64_t last;   /* ms, wall clock: of the latest event */
};

/* A new bisection as its journal leaves it. Runs without a result are in progress: the caller
 * reports them as lost. `times` may be NULL. */
struct bisection *journal_replay(const struct journal *journal, struct journal_times *times);

/*
 * The file. Each event is on disk when a put returns. Only one program can open it at a time
 * (ERROR_STATE).
 */
struct journal_file;

/* Creates it (fails if it exists), or opens it and reads it whole, dropping a torn last line. */
struct journal_file *journal_create(
	const char *path, const struct journal_setup *setup, struct error *error);
struct journal_file *journal_open(
	struct arena *arena, const char *path, struct journal *out, struct error *error);
/* Reads it without the lock, while another program may write. */
bool journal_look(
	struct arena *arena, const char *path, struct journal *out, struct error *error) MUST_USE;
bool journal_write(struct journal_file *file, const struct buf *line, struct error *error) MUST_USE;
void journal_close(struct journal_file *file); /* accepts NULL */

#endif

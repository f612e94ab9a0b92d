/* Bisections of changes, and their journals. */
#ifndef AGENT_STORE_BISECTIONS_H
#define AGENT_STORE_BISECTIONS_H

#include "agent/store/changes.h"

enum {
	STORE_BISECTIONS_MOST = 1000,   /* in a list */
	STORE_BISECTION_LINE = 1 << 20, /* bytes of a line of a journal */
};

/* The numbers are stored. */
enum bisection_state {
	BISECTION_WAITING = 1, /* for its lab, or for another day */
	BISECTION_RUNNING,
	BISECTION_OVER,
	BISECTION_STATES,
};

/* By state: "waiting", "running", "over"; NULL for 0. */
extern const char *const bisection_state_names[BISECTION_STATES + 1];

/* The numbers are stored. */
enum bisection_line_kind {
	BISECTION_BEGIN = 1, /* a run begins */
	BISECTION_RESULT,
	BISECTION_NOTE,   /* another line of the journal */
	BISECTION_ANSWER, /* a lab's answer about a run; for the agent that has the bisection */
	BISECTION_LINES,
};

/* A line of a bisection's journal (agent/bisect/journal.h). */
struct bisection_line {
	int64_t number; /* out: from 1, in the order in which they were written */
	enum bisection_line_kind kind;
	int64_t run; /* its id; 0: it is about none */
	const char *text;
};

struct bisection_lines {
	struct bisection_line *items;
	size_t count;
};

/* A bisection as it is stored. */
struct bisection_row {
	int64_t id, change;
	const char *test, *metric; /* of the change */
	const char *lab;
	enum bisection_state state;
	int64_t asked, begun, ended; /* ms; 0: not yet */
	const char *person;          /* who requested it; NULL: the agent itself */
	const char *setup;     /* the first line of its journal, with `lines`; NULL: none yet */
	int64_t runs;          /* that have ended */
	const char *end;       /* of one that is over: "found", "cancelled", ..., else NULL */
	const char *verdict;   /* the same: one line for people */
	const char *cancelled; /* why it is to end, or ended, early; or NULL */
	/* Of its change, as it is now. */
	enum change_state change_state;
	enum triage_state triage;
	const struct culprit *culprit; /* of the change; may be that of another bisection */
	struct bisection_lines lines;  /* if requested */
};

struct bisection_rows {
	struct bisection_row *items;
	size_t count;
};

/* Bisections, latest first, and changes that have none yet. Members that are 0 or NULL select all.
 * Delays no other call, and may miss the latest writes. */
struct store_bisections {
	struct store_call call;
	int64_t id, change;       /* ids */
	unsigned states;          /* bits 1 << enum bisection_state */
	int64_t before_id;        /* only those with a smaller id */
	int64_t limit;            /* 0: STORE_BISECTIONS_MOST */
	bool lines;               /* with their journals */
	bool answers;             /* with lines of BISECTION_ANSWER alone */
	struct strings due_tests; /* also select changes of these tests without a bisection, */
	int64_t due_since;        /* ... first seen at or after it (ms) */

	struct bisection_rows rows; /* out */
	bool more;                  /* out: there are more than the limit */
	/* Out: of `due_tests` the regressions that are confirmed and not accepted, by id; with
	 * `lines` the change of the first row. */
	struct record_rows due;
};

STORE_CALL(bisections);

/*
 * Requests a bisection of a change. One that waits or runs already is returned; without a person
 * also one that has ended.
 */
struct store_bisection_ask {
	struct store_call call;
	int64_t change, now;
	const char *lab;
	struct actor actor; /* person NULL: the agent itself */

	bool missing;               /* out: there is no such change */
	bool refused;               /* out: the change is withdrawn, over or accepted */
	bool added;                 /* out: it is new */
	struct bisection_rows rows; /* out: one, unless missing or refused */
};

STORE_CALL(bisection_ask);

/* Begins one that waits, if no other one runs in its lab, and fewer than `most` of its test have
 * begun at or after `since`. */
struct store_bisection_begin {
	struct store_call call;
	int64_t bisection, since, most, now;

	bool begun;                 /* out */
	struct bisection_rows rows; /* out: its present state */
};

STORE_CALL(bisection_begin);

/* Writes of one that runs. A result of a run removes the lab's answer for it. */
struct store_bisection_write {
	struct store_call call;
	int64_t bisection, now;
	const char *setup; /* NULL: as it is */
	const struct bisection_line *lines;
	size_t line_count;
	const char *end; /* it is over; NULL: it continues */
	const char *verdict;
	const char *cancelled;         /* why it ended early, or NULL */
	const struct culprit *culprit; /* goes to its change, and is announced; or NULL */

	bool gone;                  /* out: it does not run, nothing was written */
	struct bisection_rows rows; /* out: its present state, unless it is gone */
};

STORE_CALL(bisection_write);

/* A message about a bisection: a lab's result of a run, or a person's request to end it. */
struct store_bisection_say {
	struct store_call call;
	int64_t bisection, now;
	bool cancel;
	struct actor actor;         /* of `cancel` */
	const char *why;            /* the same */
	struct bisection_line line; /* else: of kind BISECTION_ANSWER */

	bool found;                 /* out: there is such a bisection */
	bool taken;                 /* out: and it, or the run, was not over */
	bool repeated;              /* out: the run had an answer already */
	struct bisection_rows rows; /* out: its present state, if found */
};

STORE_CALL(bisection_say);

#endif

/* Changes as runs find them and people judge them, and how far series have been processed. */
#ifndef AGENT_STORE_CHANGES_H
#define AGENT_STORE_CHANGES_H

#include "agent/model/change_record.h"
#include "agent/model/health.h"
#include "agent/store/silences.h"

enum {
	STORE_EXCERPTS_MOST = 200,
	STORE_RELATED_MOST = 100,
};

/* Numbers of changes. */
struct store_counts {
	int64_t states[CHANGE_STATES]; /* by state */
	struct store_due due;
};

/* A known change of which a run found different data. */
struct change_record_update {
	int64_t id, time, now; /* ms */
	enum change_state state;
	int64_t runs;       /* 0: unchanged */
	const char *reason; /* NULL: unchanged */
	int64_t held_until;
	struct recovered over; /* of CHANGE_RECOVERED */
	bool silent;           /* of CHANGE_RECOVERED: not announced */
	bool corrected;        /* the item has other suspects, to be announced as a correction */
	const struct announcement *item; /* current numbers, place, commits and members; or NULL */
	struct packed_excerpt excerpt;   /* none: as it is */
};

/* How far a series has been processed. */
struct series_checkpoint {
	const char *series, *branch;
	int64_t anchor;     /* ms: earlier points are ignored */
	int64_t last_point; /* ms */
	int64_t revision;   /* of the detectors in its last run; 0: unknown */
	int64_t revised;    /* ms: its last point when the revision changed; 0: it never did */
};

struct checkpoint_rows {
	struct series_checkpoint *items;
	size_t count;
};

/* The records of a test: id, series, branch, sign, time, state, news, first_seen, spacing, runs,
 * reason, held_until, place_from, place_to, suspects, triage, and of the change only count_after,
 * kind and levels. */
struct store_known {
	struct store_call call;
	const char *test;

	struct record_rows records; /* out: by series, branch and id */
};

STORE_CALL(known);

struct store_checkpoints {
	struct store_call call;
	const char *test;

	struct checkpoint_rows checkpoints; /* out: the test's, by series and branch */
};

STORE_CALL(checkpoints);

/* What the last run of a test with an environment saw, as text (agent/analysis/environment.h). */
struct seen_run {
	const char *test, *label; /* the name of its environment */
	int64_t ended;            /* ms */
	const char *text;         /* NULL, when it is written: as it is, since the run failed */
};

struct seen_rows {
	struct seen_run *items;
	size_t count;
};

/*
 * Records what a run found. A `confirmed` record has its id and is rewritten whole, except
 * first_seen. A pending record that an update withdraws becomes NOTIFY_HELD, or NOTIFY_QUEUED if
 * some receivers have it; so does one that recovers. What happens to a change that was announced is
 * an event that is due (struct due_event), but for a recovery if the update is `silent`.
 *
 * A triaged change that has outgrown its size then is open again, and becomes pending as if no
 * receiver had it. The recovery of one that is ignored, infra or false is not announced.
 */
struct store_record {
	struct store_call call;
	const char *test;           /* of the checkpoints */
	struct record_rows records; /* their ids are set */
	struct change_record_update *updates;
	size_t update_count;
	struct checkpoint_rows checkpoints; /* added or replaced */
	struct seen_run *seen;              /* added or replaced; or NULL */

	size_t renewed; /* out: known changes that are pending again */
};

STORE_CALL(record);

/* Selects changes. Members that are 0 or NULL select all. */
struct change_filter {
	unsigned states;      /* bits 1 << enum change_state */
	int64_t since, until; /* ms, of the change's time; until exclusive */
	struct strings names; /* of tests, exact */
	const char *test;     /* name or shell pattern */
	int64_t updated;      /* ms: only those written at or after it */
	int64_t before_id;    /* only those that a list has after this one */
	int64_t limit;
	unsigned triage;  /* bits 1 << enum triage_state */
	int64_t incident; /* id */
	int64_t now;      /* ms: triage expired by then counts as open; 0: as stored */
	bool open; /* changes that need attention: confirmed (or moved), are no improvements, end no
		      other change, and whose triage is open or acknowledged; the worst first, the
		      largest in percent */
};

/* Changes with their history, latest recorded first (see `open`). May take long; delays no other
 * call. */
struct store_list {
	struct store_call call;
	struct change_filter filter;
	const char *about; /* a test, "" for none but the health of all, or NULL */
	/* Instead of `records`, for many of which little is needed: called on the store's thread
	 * with NULL, to restart, and with each change, without its events, latest recorded first
	 * for each state. The record is gone when it returns. True: it is taken, and counts for the
	 * filter's limit, which is for each state. `taken` is called at the end if all went well so
	 * far. */
	bool (*take)(struct store_list *list, const struct change_record *record);
	void (*taken)(struct store_list *list);
	void *taker;   /* of these two */
	int64_t looks; /* at most so many of each state are read for `take`; 0: all */

	struct record_rows records; /* out */
	bool more;                  /* out: more records than the filter's limit, or than `looks` */
	struct environment_rows environments; /* out: all */
	struct checkpoint_rows checkpoints;   /* out: of the test that it is about, ... */
	struct health_rows health;            /* ... and of all tests */
	struct silence_rows silences; /* out: if it is about one: not over, or not summed yet */
};

STORE_CALL(list);

/* Changes with the points around them. Delays no other call. */
struct store_excerpts {
	struct store_call call;
	const int64_t *changes; /* ids, of which the first STORE_EXCERPTS_MOST are read */
	size_t change_count;
	int64_t now; /* ms: what has expired by then is open; 0: as stored */

	struct excerpted *items; /* out: those that exist, in that order */
	size_t count;
};

STORE_CALL(excerpts);

/* The relation of a change to another; bits. */
enum relation {
	RELATED_COMMIT = 1,  /* its first point has the same commit, or version */
	RELATED_MESSAGE = 2, /* a message is about both */
	RELATED_CLUSTER = 4, /* one is the cluster's, or both are of one */
	RELATED_ENVIRONMENT = 8,
	RELATIONS = 4,
};

/* By bit: "commit", "message" ... */
extern const char *const relation_names[RELATIONS];

struct related_change {
	struct change_record record; /* without events */
	struct excerpt excerpt;
	unsigned relations; /* bits of enum relation */
};

/* The tests of a group of `type: cluster`. */
struct store_cluster {
	const char *name;
	struct strings tests;
};

/* One change with its history, and related changes: open ones first, the worst first. Delays no
 * other call, as store_list. */
struct store_story {
	struct store_call call;
	int64_t change, now; /* id; ms */
	const struct store_cluster *clusters;
	size_t cluster_count;
	size_t limit; /* of the related, at most STORE_RELATED_MOST */

	struct record_rows records;     /* out: it, or none */
	struct excerpt excerpt;         /* out */
	bool pruned;                    /* out: there was one with this id */
	int64_t cluster;                /* out: id of the cluster's change that it is part of; 0 */
	int64_t last_point;             /* out: ms, newest of its series; WHEN_NEVER: unknown */
	int64_t ended;                  /* out: ms, its series has vanished; WHEN_NEVER: no */
	struct related_change *related; /* out */
	size_t related_count, related_total;
	struct silence_rows silences; /* out: not over, or not summed yet */
};

STORE_CALL(story);

/* Rows that store_prune has deleted. */
struct pruned {
	int64_t changes, deliveries, events, checkpoints, silences;
};

/*
 * Deletes rows settled before a time: sent and abandoned deliveries, withdrawn changes and
 * candidates before their series' anchor, checkpoints of series that have vanished for good,
 * history except announcements, silences, and the audit log except what is about changes that
 * stand. Never deletes what is to be announced, or was in a message that is still kept. What people
 * said about a change goes with it.
 */
struct store_prune {
	struct store_call call;
	int64_t before;         /* ms */
	struct strings tests;   /* all existing tests: changes and checkpoints of removed ones are
				   deleted, too; none: unknown */
	bool thorough;          /* also confirmed changes before their series' anchor */
	struct strings keeping; /* receivers whose messages stay as long as one of their changes
				   stands, or they are to be edited */

	struct pruned pruned; /* out */
};

STORE_CALL(prune);

/* Renames the rows of a test, or of one of its metrics. */
struct store_rename {
	const char *test, *metric,
		*was; /* `was`: the old name, of the metric if that is set, else of the test */
	bool moved;   /* out: there were rows under the old name, ... */
	bool taken;   /* ... but the new name has rows, too: nothing was moved */
};

struct store_renames {
	struct store_call call;
	struct store_rename *renames; /* out: moved and taken */
	size_t rename_count;
};

STORE_CALL(renames);

/* Ids, both included. */
struct id_range {
	int64_t from, to;
};

/*
 * A person's triage of changes. Selects by ids, by the message that announced them or by the
 * incident of those that stand; `test` and `commit` narrow that down, or, alone, select among all
 * that stand: confirmed, moved or candidates. Fails with ERROR_USAGE if nothing is given.
 *
 * An accepted change counts as settled: if it was to be announced, that is done when it is open
 * again. An expiry and a note go with the state that they were given with. Saying the same again
 * changes nothing.
 */
struct store_triage {
	struct store_call call;
	const struct id_range *ranges;
	size_t range_count;
	const char *test;     /* name or shell pattern */
	const char *commit;   /* beginning of the change's commit, or of a suspect's */
	const char *message;  /* key of a delivery */
	int64_t incident;     /* id */
	struct triage triage; /* state 0: as it is; owner, note, link NULL: as they are, "": none;
				 until -1: as it is. Its person, time and sizes are not read */
	int64_t said;         /* only changes triaged at exactly that time; 0: all */
	const char *reaction; /* stored with that message, even if nothing is changed; or NULL */
	int64_t version;      /* as seen, of several changes the sum; -1: any */
	struct actor actor;
	int64_t now; /* ms */
	bool each;   /* nothing is changed unless there is a change for each range of a single id */
	bool dry_run;

	struct record_rows records; /* out: their present states, by id; without events */
	size_t changed;             /* out: of them; with dry_run: that would be */
	size_t pending;             /* out: changes that are to be announced again */
	bool missing;  /* out: with `each`: there is none for one of them; `records` has the others
			*/
	bool conflict; /* out: the version was not as seen, and the stored triage differs */
};

STORE_CALL(triage);

/* Reopens expired triage. */
struct store_reopen_due {
	struct store_call call;
	int64_t now; /* ms */

	struct record_rows records; /* out: those opened, by id */
	size_t pending;             /* out: of them, to be announced again */
	int64_t next;               /* out: ms, when the next expires; 0: none does */
};

STORE_CALL(reopen_due);

#endif

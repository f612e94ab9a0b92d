/*
 * The store: the agent's durable state, in a file used by one thread, behind the functions
 * of backend.h.
 *
 * The loop submits calls and gets replies on its own thread; a reply without `failed` is on the
 * disk. Calls that wait together are committed together. The file is locked for one agent and
 * checked when it is opened; a damaged file is refused, never replaced. Of the points it holds
 * those around a change.
 *
 * A change is announced in three durable steps: it is recorded as NOTIFY_PENDING; rendered
 * deliveries are queued, and in the same transaction it becomes NOTIFY_QUEUED once all its
 * receivers have theirs; the deliveries are sent. After a crash the next process continues from
 * there. The start of an attempt is recorded, too, so that the next process knows which messages
 * may have arrived. Recoveries and retractions are announced in the same way.
 */
#ifndef AGENT_STORE_STORE_H
#define AGENT_STORE_STORE_H

#include "agent/base/arena.h"
#include "agent/model/culprit.h"
#include "agent/model/excerpt.h"
#include "agent/model/triage.h"
#include "notifiers/notifier.h"

struct store;

/* The numbers of this and the enums below are stored: never change them. */
enum change_state {
	CHANGE_CONFIRMED = 1,
	CHANGE_MOVED,     /* found again at another time */
	CHANGE_WITHDRAWN, /* no longer found; kept, so that its return is not announced */
	CHANGE_CANDIDATE, /* not yet confirmed, not announced */
	CHANGE_RECOVERED, /* over: the earlier level is back (detectors/recovery.h) */
	CHANGE_STATES,
};

enum notify_state {
	NOTIFY_SILENT,   /* recorded only: too old to announce */
	NOTIFY_PENDING,  /* to be announced, waits for its group */
	NOTIFY_QUEUED,   /* in a delivery */
	NOTIFY_HELD,     /* announced once confirmed; or recovered before it was announced */
	NOTIFY_RECOVERY, /* announced; its recovery is still to be announced */
	NOTIFY_COUNT,
};

enum condition_kind {
	CONDITION_SOURCE = 1, /* a source is down */
	CONDITION_TEST,       /* a test fails, its source is up */
	CONDITION_STALE,      /* a test's data is stale */
	CONDITION_MANY_FAIL,  /* more failing tests of a source than are reported one by one */
	CONDITION_MANY_STALE,
};

/* A problem that began, or is over. */
struct condition {
	const char *subject; /* unique: "source NAME", "test NAME", "data NAME", ... */
	enum condition_kind kind;
	int64_t since;    /* ms, wall clock: the first failure, the last point */
	const char *text; /* one sentence for people; of one that is over: that it recovered */
	bool over;
};

/* A series that was reported as vanished; stored. */
struct vanished {
	const char *test, *series; /* series: its identity */
	int64_t ended;             /* ms, its last point */
	bool back;                 /* it has points again: to be deleted */
};

/* What happens to a change. */
enum event_kind {
	EVENT_FOUND = 1, /* first seen */
	EVENT_CONFIRMED, /* a candidate was confirmed */
	EVENT_MOVED,
	EVENT_WITHDRAWN,
	EVENT_RETURNED,  /* found again after it was withdrawn */
	EVENT_ANNOUNCED, /* a message about it was delivered */
	EVENT_RECOVERED,
	EVENT_STORED,                 /* those before it; the audit log has the others: */
	EVENT_TRIAGED = EVENT_STORED, /* a person said something about it */
	EVENT_REOPENED, /* its triage is open again: it expired, or the change has grown */
	EVENT_KINDS,
};

/* Names by enum value, NULL where 0 has no meaning: "confirmed", "pending", "found" ... */
extern const char *const change_state_names[CHANGE_STATES];
extern const char *const notify_state_names[NOTIFY_COUNT];
extern const char *const event_names[EVENT_KINDS];

/* Who does something, from where: "10.1.2.3", "unix socket", "Slack #perf", "command line". */
struct actor {
	const char *person, *origin;
};

/* A row of the audit log: what a person, or the agent itself, has changed. The log is also the
 * history of triage. */
struct audit_entry {
	int64_t id, time; /* ms */
	struct actor actor;
	const char *action;  /* "triage", "reopen", "silence", "end silence", "run", "reload" */
	int64_t change;      /* id; 0: it is about none */
	const char *subject; /* what it is about, or NULL */
	const char *detail;  /* or NULL */
};

/* What is not told for a while. */
struct silence {
	int64_t id;                          /* 0: to be added */
	const char *matchers;                /* canonical text */
	int64_t from, until;                 /* ms; until exclusive */
	const char *owner, *reason, *person; /* or NULL */
	int64_t created;                     /* ms */
	int64_t ended;                       /* ms; 0: was not ended early */
	const char *ended_by;                /* or NULL */
	bool reminded;                       /* its owner was told that it ends soon */
	bool summed;                         /* the summary at its end was queued */
};

struct event {
	enum event_kind kind;
	int64_t time;  /* ms, when it happened */
	int64_t point; /* ms, the change's time at that moment */
	union {
		const char *receiver; /* EVENT_ANNOUNCED; else NULL */
		const char *person;   /* EVENT_TRIAGED, EVENT_REOPENED: who, ... */
	};
	union {
		const char *destination; /* EVENT_ANNOUNCED; else NULL */
		const char *origin;      /* ... from where, ... */
	};
	const char *detail; /* ... and what; else NULL */
};

/* One change of one series. */
struct change_record {
	struct announcement item; /* its id is 0 until it is recorded; has no URLs; store_record
				     stores its excerpt, if it has one and is no candidate */
	const char *series;       /* the metric's identity */
	const char *branch;       /* "" for none */
	int sign;
	enum change_state state;
	enum notify_state news;
	int64_t first_seen;         /* ms */
	int64_t spacing;            /* ms between points of the series, near the change */
	int64_t environment_event;  /* id of the event that it is announced with; 0: none */
	int64_t environment_stored; /* as stored */
	int64_t ends;               /* id of the change that it ends, if it stands; 0: of none */
	int64_t runs;               /* runs in which it was seen */
	int64_t updated;            /* ms, when it was last written; of one being confirmed: now */
	struct triage triage;
	struct strings told; /* NOTIFY_PENDING: receivers with a delivery about it in the outbox */
	int64_t handed;      /* the dispatcher's: engine_now when it took the record, ... */
	bool held;           /* ... a filter holds it, ... */
	bool covered; /* ... or suppresses it, as another message covers it; of a silent one: the
			 recovery of another change covers it */
	const char *summary; /* the dispatcher's: what held it is over (struct message); or NULL */
	bool confirmed;      /* store_record: confirms the candidate with this id, no new record */
	const struct event *events; /* store_list: history, oldest first */
	size_t event_count;
};

/* A known change of which a run found different data. */
struct change_record_update {
	int64_t id, time, now; /* ms */
	enum change_state state;
	int64_t runs;          /* 0: unchanged */
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

/* When a named event that happens once, or once in a while, happened last. */
struct store_moment {
	const char *name;
	int64_t time; /* ms, wall clock */
};

/* Renames the rows of a test, or of one of its metrics. */
struct store_rename {
	const char *test, *metric,
		*was; /* `was`: the old name, of the metric if that is set, else of the test */
	bool moved;   /* out: there were rows under the old name, ... */
	bool taken;   /* ... but the new name has rows, too: nothing was moved */
};

/* A change that is announced as part of an environment event. `silent`: it is in no message of its
 * own, and counts as announced by those about the others. */
struct store_member {
	int64_t change, event; /* ids */
	bool silent;
};

enum delivery_state {
	DELIVERY_QUEUED = 1,
	DELIVERY_SENT,
	DELIVERY_ABANDONED, /* given up, see `problem` */
};

/* A delivery in the outbox. */
struct delivery {
	int64_t id;
	const char *key, *receiver, *destination, *payload;
	const char *thread; /* key of the delivery whose thread it continues, or NULL */
	const char *kind;   /* the notifier that has written the payload; NULL: unknown */
	const char *receipt, *problem; /* or NULL; a NULL receipt does not overwrite a stored one */
	enum delivery_state state;
	int64_t attempts, now; /* now: ms, when it was created or settled */
	bool begun;            /* an attempt began, and its outcome is unknown */
	int64_t not_before;    /* ms: earliest next attempt that the receiver allows; 0: any time */
	const char *thread_receipt; /* store_attempt: stored receipt of `thread` */
	const int64_t *changes;     /* ids of its changes, for store_queue */
	size_t change_count;
	const struct change_record *records; /* its changes, for the delivery manager */
	size_t record_count;
};

/* Selects changes. Members that are 0 or NULL select all. */
struct change_filter {
	unsigned states;      /* bits 1 << enum change_state */
	int64_t since, until; /* ms, of the change's time; until exclusive */
	struct strings names; /* of tests, exact */
	const char *test;     /* name or shell pattern */
	int64_t updated;      /* ms: only those written at or after it */
	int64_t before_id;    /* only those with a smaller id */
	int64_t limit;
	unsigned triage; /* bits 1 << enum triage_state */
	int64_t now;     /* ms: what has expired by then is open; 0: as stored */
	bool open;       /* what waits for somebody: changes that are confirmed (or moved), are no
			    improvements, end no other change, and whose triage is open or
			    acknowledged */
};

/* Rows that store_prune has deleted. */
struct pruned {
	int64_t changes, deliveries, events, checkpoints, silences, audit;
};

/* Ids, both included. */
struct id_range {
	int64_t from, to;
};

/* Rows that several calls take or return. */
struct record_rows {
	struct change_record *items;
	size_t count;
};

struct delivery_rows {
	struct delivery *items;
	size_t count;
};

struct environment_rows {
	struct environment_event *items;
	size_t count;
};

struct silence_rows {
	struct silence *items;
	size_t count;
};

struct checkpoint_rows {
	struct series_checkpoint *items;
	size_t count;
};

/* What is wrong with sources and tests, and when what was said last. */
struct health_rows {
	struct condition *conditions; /* all, or those to write */
	size_t condition_count;
	struct store_moment *moments;
	size_t moment_count;
	struct vanished *vanished;
	size_t vanished_count;
};

/* A sent message that announced a change which no longer holds as it was announced. */
struct retraction {
	struct delivery message; /* with that one record */
	bool corrected;          /* its suspects are others; false: it was withdrawn */
};

struct retraction_rows {
	struct retraction *items;
	size_t count;
};

/* What is to be said of a change that was announced; bits. */
enum said_kind {
	SAID_UPDATED = 1, /* it has moved, grown, or was found again */
	SAID_TRIAGED = 2,
	SAID_CULPRIT = 4, /* a bisection of it has ended */
};

/* A sent message that announced a change of which something is to be said. */
struct said {
	struct delivery message; /* with that one record */
	unsigned what;           /* bits of enum said_kind */
};

struct said_rows {
	struct said *items;
	size_t count;
};

/* Numbers of what is still to be announced. */
struct store_due {
	int64_t changes;     /* in NOTIFY_PENDING */
	int64_t recoveries;  /* in NOTIFY_RECOVERY */
	int64_t retractions; /* of one message each */
	int64_t said;        /* the same of what is to be said of announced changes */
};

/* Numbers of changes. */
struct store_counts {
	int64_t states[CHANGE_STATES]; /* by state */
	struct store_due due;
};

enum {
	STORE_RETRACTIONS = 300, /* per call */
	STORE_RECOVERIES = 100,
	STORE_REMINDERS_MOST = 50,
	STORE_ATTRIBUTES_MAX = 20, /* per change */
	STORE_EXCERPTS_MOST = 200,
	STORE_RELATED_MOST = 100,
	STORE_PICTURED = 500,
	STORE_SHARDS = 256,
	STORE_LEASE = 15000,            /* ms */
	STORE_BISECTIONS_MOST = 1000,   /* in a list */
	STORE_BISECTION_LINE = 1 << 20, /* bytes of a line of a journal */
	STORE_TABLES = 15,              /* that a state consists of */
};

/* The threads that calls are performed on: the store's, one for what may read many rows, and two of
 * a fleet (see agent/runtime/fleet.h). */
enum store_lane { STORE_WORK, STORE_LISTS, STORE_TURNS, STORE_FLEET, STORE_LANES };

struct tx;

/* What a call does, defined where it is done: in a transaction with others that wait, or by itself
 * if one of them fails, so that it may run more than once. */
struct store_work {
	void (*run)(struct tx *tx, void *call);
	enum store_lane lane;
	bool writes;
	bool is_long;  /* it may read or write much of the state */
	size_t counts; /* offset of its struct store_counts; 0: it has none */
};

/* What every call begins with. */
struct store_call {
	const struct store_work *work;
	struct arena *arena;                    /* owns the call and all its content */
	void (*reply)(struct store_call *call); /* on the loop; takes over the call */
	void *context;                          /* the client's */
	bool failed;                            /* nothing was written; see error */
	struct error *error;                    /* if it failed; else not to be read */
	int shard;      /* with a term: what the call is about; see agent/runtime/fleet.h */
	int64_t term;   /* performed only if this agent holds the shard with it; 0: whoever does */
	int64_t holder; /* the agent's instance, in a fleet; set with the term, or by
			   store_client_call */
	bool fenced;    /* it failed, since another agent has taken that over */
	int64_t transaction;     /* the backend's: the one that was to write it; 0: none */
	struct store_call *next; /* for whoever has the call */
};

/*
 * The calls. Each is a struct store_NAME, and is made by store_NAME_new, which takes the client's
 * reply: on the loop, it takes over the call; with NULL the call is freed. Its store_NAME_work is
 * in the file of what it is about. What comes in is borrowed until the reply; what goes out lies in
 * the call's arena.
 */

#define STORE_CALLS(CALL)                                                                          \
	CALL(restore);                                                                             \
	CALL(known);                                                                               \
	CALL(checkpoints);                                                                         \
	CALL(record);                                                                              \
	CALL(queue);                                                                               \
	CALL(pending);                                                                             \
	CALL(queued);                                                                              \
	CALL(reminders);                                                                           \
	CALL(settle);                                                                              \
	CALL(attempt);                                                                             \
	CALL(reopen);                                                                              \
	CALL(list);                                                                                \
	CALL(excerpts);                                                                            \
	CALL(story);                                                                               \
	CALL(prune);                                                                               \
	CALL(renames);                                                                             \
	CALL(triage);                                                                              \
	CALL(reopen_due);                                                                          \
	CALL(silence);                                                                             \
	CALL(silences);                                                                            \
	CALL(audit);                                                                               \
	CALL(audit_add);                                                                           \
	CALL(follow_ups);                                                                          \
	CALL(amended);                                                                             \
	CALL(send_anew);                                                                           \
	CALL(bisections);                                                                          \
	CALL(bisection_ask);                                                                       \
	CALL(bisection_begin);                                                                     \
	CALL(bisection_write);                                                                     \
	CALL(bisection_say);                                                                       \
	CALL(turn);                                                                                \
	CALL(views);                                                                               \
	CALL(requests);                                                                            \
	CALL(configuration)

#define STORE_DECLARE(name)                                                                        \
	struct store_##name;                                                                       \
	extern const struct store_work store_##name##_work;                                        \
	struct store_##name *store_##name##_new(                                                   \
		void (*reply)(struct store_##name * name), void *context)
STORE_CALLS(STORE_DECLARE);

/* What an agent resumes from. */
struct store_restore {
	struct store_call call;
	void (*reply)(struct store_restore *restored);
	int64_t since; /* ms; 0: nothing is recent */

	struct delivery_rows deliveries; /* out: queued ones, without payloads; the last 1,000 of
					    them with their records */
	struct delivery_rows recent;     /* out: the last 1,000 deliveries about changes that were
					    sent at or after `since`, newest first, without
					    payloads */
	struct environment_rows environments; /* out: all */
	struct health_rows health;            /* out: all */
	struct silence_rows silences;         /* out: not over, or not summed yet */
	struct store_counts counts;           /* out */
};

/* The records of a test: id, series, branch, sign, time, state, news, first_seen, spacing, runs,
 * place_from, place_to, suspects, triage, and of the change only count_after, kind and levels. */
struct store_known {
	struct store_call call;
	void (*reply)(struct store_known *known);
	const char *test;

	struct record_rows records; /* out: by series, branch and id */
};

struct store_checkpoints {
	struct store_call call;
	void (*reply)(struct store_checkpoints *found);
	const char *test;

	struct checkpoint_rows checkpoints; /* out: the test's, by series and branch */
};

/*
 * Records what a run found. A `confirmed` record has its id and is rewritten whole, except
 * first_seen. A pending record that an update withdraws becomes NOTIFY_HELD, or NOTIFY_QUEUED if
 * some receivers have it. One that recovers becomes NOTIFY_RECOVERY if it was announced and the
 * update is not `silent`, NOTIFY_HELD if it is pending and no receiver has it. What an update
 * withdraws or corrects is to be retracted where messages about it were sent; what has moved, grown
 * or is back is to be said there.
 *
 * A triaged change that has outgrown its size then is open again, and becomes pending as if no
 * receiver had it. The recovery of one that is ignored, infra or false is not announced.
 */
struct store_record {
	struct store_call call;
	void (*reply)(struct store_record *recorded);
	const char *test;           /* of the checkpoints */
	struct record_rows records; /* their ids are set */
	struct change_record_update *updates;
	size_t update_count;
	struct checkpoint_rows checkpoints; /* added or replaced */

	size_t renewed;             /* out: known changes that are pending again */
	struct store_counts counts; /* out, if store_record_counts */
};

/* Whether it is about changes: checkpoints alone leave all counts as they are. */
bool store_record_counts(const struct store_record *record);

/* Queues messages, with all that is settled by it. */
struct store_queue {
	struct store_call call;
	void (*reply)(struct store_queue *queued);
	struct delivery_rows deliveries; /* ids are set; one whose key is already queued or sent
					    gets the id of that delivery and DELIVERY_SENT, and only
					    its changes are added to it */
	const int64_t *told;             /* ids of changes that become NOTIFY_QUEUED, or
					    NOTIFY_RECOVERY if they have recovered in the meantime */
	size_t told_count;
	struct retraction_rows retracted; /* these are done with */
	struct said_rows said;            /* so are these, unless more has become known */
	struct health_rows health; /* conditions, added or replaced by subject, deleted if `over`;
				      moments, added or replaced by name; vanished series, added or
				      replaced by test and series, deleted if they are back */
	struct environment_rows environments; /* added or replaced by id */
	const int64_t *reminded; /* ids of deliveries that people are reminded of ... */
	size_t reminded_count;
	int64_t now; /* ... at this time, ms */
	const struct store_member *members;
	size_t member_count;

	struct store_due due; /* out; of `health` alone, which changes nothing of it, zeros */
};

/* What is to be announced, until a store_queue settles it. */
struct store_pending {
	struct store_call call;
	void (*reply)(struct store_pending *pending);

	struct record_rows records;         /* out: all of NOTIFY_PENDING, by id; the
					       STORE_PICTURED largest with their excerpts */
	struct record_rows recoveries;      /* out: of NOTIFY_RECOVERY, at most STORE_RECOVERIES */
	struct delivery_rows messages;      /* out: for each of the recoveries its recipients and
					       messages, each with that one record, without a key
					       if the message was pruned */
	struct retraction_rows retractions; /* out: at most STORE_RETRACTIONS */
	struct said_rows said;              /* out: at most STORE_RETRACTIONS */
	struct environment_rows environments; /* out: all, if there are recoveries */
};

/* What is queued, whoever has queued it. */
struct store_queued {
	struct store_call call;
	void (*reply)(struct store_queued *queued);

	struct delivery_rows deliveries; /* out: queued ones by id, without payloads and records */
};

/* Sent messages of a receiver of which people are to be reminded: they have regressions that stand
 * and of which nobody has said anything, and are its last about these. */
struct store_reminders {
	struct store_call call;
	void (*reply)(struct store_reminders *found);
	const char *receiver;
	int64_t before; /* ms: only those sent, and reminded of, at or before it */
	int64_t after;  /* only those with a larger id */

	struct delivery_rows messages; /* out: at most STORE_REMINDERS_MOST, with all their records
					*/
};

/* Writes a delivery's state, receipt, problem, attempts, begun and not_before. */
struct store_settle {
	struct store_call call;
	void (*reply)(struct store_settle *settled);
	struct delivery delivery;

	bool retracts; /* out: it was sent, and some of its changes are not what they were */
};

/*
 * Records that an attempt begins. A delivery without an earlier attempt whose changes have all been
 * withdrawn is given up instead; these changes are announced again should they return.
 */
struct store_attempt {
	struct store_call call;
	void (*reply)(struct store_attempt *begun);
	bool pictured;            /* `worst` is wanted */
	struct delivery delivery; /* id and now; out: state, records, thread_receipt, payload: NULL
				     if no such delivery is queued */
	struct excerpted *worst;  /* out: of its changes with points the worst; NULL: none */
};

/* Gives up deliveries that cannot be sent any more, with their problem. Their changes, except
 * withdrawn ones, become pending again. */
struct store_reopen {
	struct store_call call;
	void (*reply)(struct store_reopen *reopened);
	struct delivery_rows deliveries;
};

/* Changes with their history, latest recorded first. May take long; delays no other call. */
struct store_list {
	struct store_call call;
	void (*reply)(struct store_list *list);
	struct change_filter filter;
	const char *about; /* a test, "" for none but the health of all, or NULL */
	/* Instead of `records`, for many of which little is needed: called on the store's thread
	 * with each change, without its events, latest recorded first for each state. The record is
	 * gone when it returns. NULL: it is not taken; else it counts for the filter's limit, which
	 * is for each state, and the place is where the first message about it goes, or the one
	 * that this continues; 0: none; it has to last until
	 * `taken`, which is called if all went well. */
	int64_t *(*take)(struct store_list *list, const struct change_record *record);
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

/* A change with the points around it. */
struct excerpted {
	struct change_record record; /* without events */
	struct excerpt excerpt;      /* empty: there is none of a candidate */
};

/* Changes with the points around them. Delays no other call. */
struct store_excerpts {
	struct store_call call;
	void (*reply)(struct store_excerpts *found);
	const int64_t *changes; /* ids, of which the first STORE_EXCERPTS_MOST are read */
	size_t change_count;
	int64_t now; /* ms: what has expired by then is open; 0: as stored */

	struct excerpted *items; /* out: those that exist, in that order */
	size_t count;
};

/* What a change has in common with another; bits. */
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

/* One change with its history, and those that have something in common with it: what stands first,
 * the worst first. Delays no other call, as store_list. */
struct store_story {
	struct store_call call;
	void (*reply)(struct store_story *story);
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

/*
 * Deletes what was settled before a time: sent and abandoned deliveries, withdrawn changes and
 * candidates before their series' anchor, checkpoints of series that have vanished for good,
 * history except announcements, silences, and the audit log except what is about changes that
 * stand. Never deletes what is to be announced, or was in a message that is still kept. What people
 * said about a change goes with it.
 */
struct store_prune {
	struct store_call call;
	void (*reply)(struct store_prune *pruned);
	int64_t before;         /* ms */
	struct strings tests;   /* all that exist: of others, changes and checkpoints are deleted,
				   too; none: unknown */
	bool thorough;          /* also confirmed changes before their series' anchor */
	struct strings keeping; /* receivers whose messages stay as long as one of their changes
				   stands, or they are to be edited */

	struct pruned pruned;       /* out */
	struct store_counts counts; /* out */
};

struct store_renames {
	struct store_call call;
	void (*reply)(struct store_renames *renamed);
	struct store_rename *renames; /* out: moved and taken */
	size_t rename_count;
};

/*
 * What a person says about changes. Selects by ids, or by the message that announced them; `test`
 * and `commit` narrow that down, or, alone, select among all that stand: confirmed, moved or
 * candidates. Fails with ERROR_USAGE if nothing is given.
 *
 * An accepted change counts as settled: if it was to be announced, that is done when it is open
 * again. An expiry and a note go with the state that they were given with. Saying the same again
 * changes nothing.
 */
struct store_triage {
	struct store_call call;
	void (*reply)(struct store_triage *triaged);
	const struct id_range *ranges;
	size_t range_count;
	const char *test;     /* name or shell pattern */
	const char *commit;   /* beginning of the change's commit, or of a suspect's */
	const char *message;  /* key of a delivery */
	struct triage triage; /* state 0: as it is; owner, note, link NULL: as they are, "": none;
				 until -1: as it is. Its person, time and sizes are not read */
	int64_t said; /* only changes of which something was said at just that time; 0: all */
	const char *reaction; /* stored with that message, even if nothing is changed; or NULL */
	int64_t version;      /* as seen, of several changes the sum; -1: any */
	struct actor actor;
	int64_t now; /* ms */
	bool each;   /* nothing is changed unless there is a change for each range of a single id */
	bool dry_run;

	struct record_rows records; /* out: as they are now, by id; without events */
	size_t changed;             /* out: of them; with dry_run: that would be */
	size_t pending;             /* out: changes that are to be announced again */
	bool missing;  /* out: with `each`: there is none for one of them; `records` has the others
			*/
	bool conflict; /* out: the version was not as seen, and what was said is something else */
};

/* A change of a message as it is known now, and when it was by the message (ms). */
struct told_record {
	struct change_record record;
	int64_t time;
};

/* A sent message that is to be edited, read for answers, or said again. */
struct followed_message {
	struct delivery
		message; /* id, key, receiver, destination, receipt, now: when it was sent */
	int64_t mark;    /* counts what has become known of its changes since it was last edited; 0:
			    nothing */
	bool answers;    /* it is to be read for answers */
	bool stands;     /* it is to be said again */
	/* Of one message alone; with its payload. */
	const char *reaction; /* what was read there last, or NULL */
	int64_t amended;      /* how often it was edited */
	struct told_record *told;
	size_t count;
};

/* How many messages of a receiver, with receipts, are about changes that stand. */
struct standing_messages {
	const char *receiver;
	int64_t count;
};

enum {
	STORE_AMENDMENTS = 200,  /* messages in a list to be edited, the oldest, ... */
	STORE_ANSWERS = 500,     /* ... to be read, the latest, ... */
	STORE_STANDING = 100000, /* ... and to be said again */
};

/*
 * Messages of these receivers that are to be edited: what they say of changes is no longer all that
 * is known. Those sent at or after `since` that are to be read: about changes that stand and are
 * open or acknowledged, or where something was taken. And all about such changes, to be said again.
 * Or one message with all that is needed for either, if it was sent.
 */
struct store_follow_ups {
	struct store_call call;
	void (*reply)(struct store_follow_ups *found);
	struct strings amending, listening, refreshing; /* receivers */
	int64_t since;                                  /* ms */
	int64_t delivery;                               /* id of the one message; 0: lists */
	bool count_standing;                            /* with the lists: `standing` is wanted */

	struct followed_message *messages; /* out */
	size_t count;
	struct standing_messages *standing; /* out: of all receivers, configured or not */
	size_t standing_count;
};

/* A message was edited, or never will be: it is marked no more, unless more has become known. */
struct store_amended {
	struct store_call call;
	void (*reply)(struct store_amended *amended);
	int64_t delivery;    /* id */
	int64_t mark;        /* as it was read */
	const char *receipt; /* its new one, or NULL */

	bool marked; /* out: more has become known */
};

/* A message that was sent is gone: it is queued again, as it is, and marked to be edited. */
struct store_send_anew {
	struct store_call call;
	void (*reply)(struct store_send_anew *anew);
	int64_t delivery; /* id */

	bool queued; /* out: it was there */
};

/* The numbers are stored. */
enum bisection_state {
	BISECTION_WAITING = 1, /* for its lab, or for another day */
	BISECTION_RUNNING,
	BISECTION_OVER,
	BISECTION_STATES,
};

/* By state: "waiting", "running", "over"; NULL for 0. */
extern const char *const bisection_state_names[BISECTION_STATES];

/* The numbers are stored. */
enum bisection_line_kind {
	BISECTION_BEGIN = 1, /* a run begins */
	BISECTION_RESULT,
	BISECTION_NOTE,   /* another line of the journal */
	BISECTION_ANSWER, /* what a lab said of a run; to be taken by whoever has the bisection */
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
	const char *person;          /* who has asked for it; NULL: the agent itself */
	const char *setup;     /* the first line of its journal, with `lines`; NULL: none yet */
	int64_t runs;          /* that have ended */
	const char *end;       /* of one that is over: "found", "cancelled", ..., else NULL */
	const char *verdict;   /* the same: one line for people */
	const char *cancelled; /* why it is to end, or ended, early; or NULL */
	/* Of its change, as it is now. */
	enum change_state change_state;
	enum triage_state triage;
	const struct culprit *culprit; /* of the change; may be that of another bisection */
	struct bisection_lines lines;  /* if they were asked for */
};

struct bisection_rows {
	struct bisection_row *items;
	size_t count;
};

/* Bisections, latest first, and changes that have none yet. Members that are 0 or NULL select all.
 * Delays no other call, and may not see what was written a moment ago. */
struct store_bisections {
	struct store_call call;
	void (*reply)(struct store_bisections *list);
	int64_t id, change;       /* ids */
	unsigned states;          /* bits 1 << enum bisection_state */
	int64_t before_id;        /* only those with a smaller id */
	int64_t limit;            /* 0: STORE_BISECTIONS_MOST */
	bool lines;               /* with their journals */
	bool answers;             /* with lines of BISECTION_ANSWER alone */
	struct strings due_tests; /* changes of these are wanted that no bisection was asked for, */
	int64_t due_since;        /* ... first seen at or after it (ms) */

	struct bisection_rows rows; /* out */
	bool more;                  /* out: there are more than the limit */
	struct record_rows due; /* out: regressions that are confirmed and not accepted, by id */
	int64_t last;           /* out: id of the last bisection; 0: none */
};

/*
 * Asks for a bisection of a change. One that waits or runs already is the answer; without a person
 * so is any that there was.
 */
struct store_bisection_ask {
	struct store_call call;
	void (*reply)(struct store_bisection_ask *asked);
	int64_t change, now;
	const char *lab;
	struct actor actor; /* person NULL: the agent itself */

	bool missing;               /* out: there is no such change */
	bool refused;               /* out: the change is withdrawn, over or accepted */
	bool added;                 /* out: it is new */
	struct bisection_rows rows; /* out: one, unless missing or refused */
};

/* Begins one that waits, if no other one runs in its lab, and fewer than `most` of its test have
 * begun at or after `since`. */
struct store_bisection_begin {
	struct store_call call;
	void (*reply)(struct store_bisection_begin *begun);
	int64_t bisection, since, most, now;

	bool begun;                 /* out */
	bool lab_busy;              /* out: false: it does not wait, or too many have begun */
	struct bisection_rows rows; /* out: as it is now */
};

/* Writes of one that runs. A result of a run removes what a lab has answered for it. */
struct store_bisection_write {
	struct store_call call;
	void (*reply)(struct store_bisection_write *written);
	int64_t bisection, now;
	const char *setup; /* NULL: as it is */
	const struct bisection_line *lines;
	size_t line_count;
	const char *end; /* it is over; NULL: it goes on */
	const char *verdict;
	const char *cancelled;         /* why it ended early, or NULL */
	const struct culprit *culprit; /* goes to its change, and is to be told; or NULL */

	bool gone;                  /* out: it does not run, nothing was written */
	struct bisection_rows rows; /* out: as it is now, unless it is gone */
};

/* What somebody says of a bisection: a lab what came of a run, a person that it shall end. */
struct store_bisection_say {
	struct store_call call;
	void (*reply)(struct store_bisection_say *said);
	int64_t bisection, now;
	bool cancel;
	struct actor actor;         /* of `cancel` */
	const char *why;            /* the same */
	struct bisection_line line; /* else: of kind BISECTION_ANSWER */

	bool found;                 /* out: there is such a bisection */
	bool taken;                 /* out: and it, or the run, was not over */
	bool repeated;              /* out: the run had an answer already */
	struct bisection_rows rows; /* out: as it is now, if found */
};

/* Opens what has expired. */
struct store_reopen_due {
	struct store_call call;
	void (*reply)(struct store_reopen_due *due);
	int64_t now; /* ms */

	struct record_rows records; /* out: those opened, by id */
	size_t pending;             /* out: of them, to be announced again */
	int64_t next;               /* out: ms, when the next expires; 0: none does */
};

/* Adds a silence; one that is there with the same words and times is not added again. Of one with
 * an id, writes `ended` with ended_by unless it has ended, and sets `reminded` and `summed`. */
struct store_silence {
	struct store_call call;
	void (*reply)(struct store_silence *written);
	struct silence silence; /* out: as it is now, if found */
	struct actor actor;
	int64_t now; /* ms */

	bool found; /* out: there is one with this id, or it was added */
};

struct store_silences {
	struct store_call call;
	void (*reply)(struct store_silences *list);
	bool all;    /* else those that are not over, or not summed yet */
	int64_t now; /* ms */

	struct silence_rows silences; /* out: by id */
};

/* The audit log, latest first. Delays no other call. */
struct store_audit {
	struct store_call call;
	void (*reply)(struct store_audit *list);
	int64_t since;     /* ms */
	int64_t before_id; /* only entries with a smaller id; 0: all */
	int64_t limit;     /* 0: none */
	int64_t change;    /* id; 0: all */

	struct audit_entry *entries; /* out */
	size_t entry_count;
	bool more; /* out: more entries than the limit */
};

struct store_audit_add {
	struct store_call call;
	void (*reply)(struct store_audit_add *added);
	struct audit_entry entry; /* without id */
};

/* An agent of a fleet. All times are ms of the database's clock. */
struct store_agent {
	int64_t instance; /* another one with each start; not 0 */
	const char *name, *address, *version;
	int64_t configuration;          /* hash */
	int64_t tests;                  /* that it has */
	int64_t joined, renewed, until; /* its lease ends at `until` */
	int64_t late;                   /* renewals that came after the lease's end */
	int64_t gone;                   /* it has left, or others took over; 0: neither */
};

/* Who works on a shard: instances of agents, 0: none. The term grows with each change of the
 * holder, the epoch with each of the deputy. */
struct store_shard {
	int64_t holder, term, deputy, epoch;
};

/*
 * An agent's turn in its fleet: what it does about shards, then its lease is renewed, and all is
 * read that the agent needs to know of the others. Without an instance nothing is written. Delays
 * no other call, nor do those after it.
 */
struct store_turn {
	struct store_call call;
	void (*reply)(struct store_turn *turn);
	struct store_agent self;    /* instance, name, address, version, configuration, tests */
	bool join;                  /* it is added first */
	bool leave;                 /* it is gone after that, with all that it holds */
	bool release[STORE_SHARDS]; /* it holds these no more */
	bool reap;    /* agents whose lease is over, or ends implausibly late, are gone */
	int64_t take; /* at most so many shards that nobody holds become its own */

	bool renewed;               /* out: false: it is gone, and holds nothing */
	int64_t now;                /* out: ms of the database's clock */
	struct store_agent *agents; /* out: all, also those gone for less than a day */
	size_t agent_count;
	struct store_shard shards[STORE_SHARDS]; /* out */
	size_t reaped;                           /* out: agents */
	size_t taken_over;                       /* out: shards of agents that were reaped */
	struct store_due due;                    /* out: what is to be announced, ... */
	int64_t due_set, queued, said, views; /* out: ... numbers that are others when what is to be
						 announced is, deliveries that are queued are,
						 rows of the audit log or of views are, ... */
	int64_t requests; /* out: ... and how many runs of its shards are asked for */
};

/* What an agent thinks of a source. */
enum view_verdict {
	VIEW_NONE, /* it does not know yet */
	VIEW_UP,
	VIEW_DOWN,
};

enum view_aspect { VIEW_FAILS, VIEW_STALE, VIEW_ASPECTS };

/* How an agent of a fleet sees a source, by those of its tests that it runs itself. */
struct source_view {
	const char *source;
	const char *agent; /* out: its name, ... */
	bool own;          /* ... and whether it is this agent */
	enum view_verdict verdict;
	int64_t since;    /* ms; of one that is down */
	const char *text; /* the same: a sentence for people; else "" */
	/* Tests that fail, and those whose data are stale: told one by one, and not. */
	int64_t told[VIEW_ASPECTS], many[VIEW_ASPECTS];
	bool awaited; /* some of its tests have not run yet */
};

/* Writes how this agent sees sources, and reads what all agents that live have written. Only in a
 * fleet. */
struct store_views {
	struct store_call call;
	void (*reply)(struct store_views *views);
	const struct source_view *write; /* replace what was there of the same source, ... */
	size_t write_count;
	struct strings forget; /* ... of these sources nothing stays */

	struct source_view *views; /* out: by source and agent */
	size_t view_count;
};

/* A run that somebody has asked for, of a test that another agent runs. */
struct run_request {
	const char *test;
	int shard;
	int64_t asked; /* out: which of the requests for the test it is */
};

/* Asks other agents to run tests, or looks at what this one is asked to run: as the shard's holder,
 * or as its deputy if the test is on that's list. It stays until it is said to have begun. To ask
 * twice is to ask once. Only in a fleet. */
struct store_requests {
	struct store_call call;
	void (*reply)(struct store_requests *requests);
	const struct run_request *add;
	size_t add_count;
	bool take;                       /* what this agent is asked to run, ... */
	const struct run_request *begun; /* ... after these, which it has begun to run */
	size_t begun_count;

	struct run_request *found; /* out: each test once */
	size_t found_count;
};

struct announced_configuration {
	int64_t configuration, announced; /* hash; when an agent announced it last */
};

/* What a configuration says of a test. */
struct announced_test {
	const char *name;
	int64_t configuration; /* out */
	int64_t fingerprint;
	int shard;
};

/* Tests of a shard that its deputy runs and not its holder. */
struct delegation {
	int shard;
	int64_t deputy; /* 0: none is needed, and there are no tests */
	int64_t epoch;  /* out */
	struct strings tests;
};

/*
 * What agents are configured to do, while that differs: see agent/monitor/rollout.h. The shards'
 * deputies and lists are replaced, of those that this agent still holds. Only in a fleet.
 */
struct store_configuration {
	struct store_call call;
	void (*reply)(struct store_configuration *configuration);
	int64_t configuration; /* the agent's own, ... */
	bool announce;         /* ... to be announced, with its tests */
	const struct announced_test *tests;
	size_t test_count;
	const struct delegation *delegate; /* to be written */
	size_t delegate_count;

	struct announced_configuration *configurations; /* out: of agents that live, and its own */
	size_t configuration_count;
	struct announced_test *versions; /* out: of tests that these say different things of, by
					    name and configuration */
	size_t version_count;
	struct delegation *delegated; /* out: whose deputy it is, by shard */
	size_t delegated_count;
};

/* Tests whether the state can be written. */
extern const struct store_work store_probe_work;
struct store_call *store_probe_new(void);

void store_call_free(struct store_call *call);

/* The counts that a call returns, or NULL. */
struct store_counts *store_call_counts(const struct store_call *call);

/* How the store calls back: runs `call` on the loop's thread soon, or `drop` if the loop ends
 * before that. Called from the store's thread. */
typedef void store_post(
	void *loop, void (*call)(void *argument), void (*drop)(void *argument), void *argument);

/* Opens or creates the file, locks and checks it. NULL and an ERROR_STATE on failure. */
struct store *store_open(const char *path, store_post *post, void *loop, struct error *error);

/* Has a call of a fleet performed when the store closes, once everything that was submitted is
 * done; not if that takes too long. It is freed, without a reply. */
void store_last(struct store *store, struct store_call *call);

/* Finishes all submitted calls, then closes. Replies are posted; run the loop to receive them.
 * False: a database did not answer within STORE_CLOSING ms; then nothing is freed, and calls may be
 * under way. Accepts NULL. */
enum { STORE_CLOSING = 20000 };
bool store_close(struct store *store);

/* What a database was asked, since the store was opened. */
struct store_traffic {
	int64_t round_trips, connections;
	int64_t retries; /* of transactions that met others */
	double seconds;  /* waited for answers */
};

/* For any thread. False: the state is a file. */
bool store_traffic(const struct store *store, struct store_traffic *traffic);

/* Bytes on the disk, including the log. For any thread. */
int64_t store_size(const struct store *store);

/* Adds a receiver to those that have the record. */
void record_told(struct arena *arena, struct change_record *record, const char *receiver);

/* Whether it was written by that notifier: a receiver of the same name may be of another kind now.
 */
bool delivery_is_of(const struct delivery *delivery, const char *kind);

/* What has expired by `now` is open, even if the store has not noticed yet. */
void record_by_clock(struct change_record *record, int64_t now);

/* Whether several agents can work on it. */
bool store_is_shared(const struct store *store);

/* Performs a call of a fleet at once, on the caller's thread, before any other was submitted. */
bool store_turn_now(struct store *store, struct store_turn *turn, struct error *error) MUST_USE;

/* Submits the call; it belongs to the store until its reply. */
void store_submit(struct store *store, struct store_call *call);

/*
 * Performs a read-only call without opening the store, also while an agent has it open: writes
 * nothing, creates no file. ERROR_STATE if the file is missing, unreadable, damaged, foreign or of
 * another version. The caller keeps the call.
 */
bool store_read(const char *path, struct store_call *call, struct error *error) MUST_USE;

/* Contents and problems of the file. */
struct store_report {
	int64_t version, size; /* size: bytes */
	int64_t changes, deliveries, queued, series;
	struct strings problems; /* at most 100; none: the file is intact */
};

/* Checks the whole file. ERROR_STATE if it is missing or not a state file. */
bool store_check(const char *path, struct arena *arena, struct store_report *report,
	struct error *error) MUST_USE;

/* Rows that store_copy has copied. */
struct store_copied {
	struct {
		const char *name; /* of the table */
		int64_t rows;
	} tables[STORE_TABLES];
};

/*
 * Takes a whole state over into another, which is empty or does not exist, with all ids, whatever
 * kinds of database both are, and compares them. ERROR_STATE if an agent has either, and if `to` is
 * not empty; nothing was written then.
 */
bool store_copy(const char *from, const char *to, struct store_copied *copied,
	struct error *error) MUST_USE;

/* Performs a writing call on a file that no agent has open; with `dry_run` on a temporary copy,
 * even while one has. */
bool store_perform(
	const char *path, struct store_call *call, bool dry_run, struct error *error) MUST_USE;

/* Whether another process has the file open, as far as this user can tell: true if it may not
 * look. */
bool store_is_held(const char *path);

/* Whether there is such a file, or a state in the database. If that cannot be found out it is true:
 * whatever is done with it next fails, and says why. */
bool store_is_there(const char *path);

/* Fails if there is no such file, and says what makes it. What reads a state does so itself. */
bool store_expect(const char *path, struct error *error) MUST_USE;

/* Bytes on the disk, including the log. */
int64_t store_size_of(const char *path);

/*
 * Writes a consistent copy to `target`: complete, checked and synced, or not at all. Replaces an
 * existing file only with `force`.
 */
bool store_backup(const char *path, const char *target, bool force, struct error *error) MUST_USE;

#endif

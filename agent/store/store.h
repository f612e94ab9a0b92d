/*
 * The agent's memory: what is known, what was said, what waits to be said. A SQLite file, and the
 * one thread that opens it.
 *
 * The loop hands requests over and gets them back, answered, on its own thread; what is answered
 * without `failed` is on the disk. Requests that wait together are committed together. The file is
 * locked for one agent, checked when it is opened, and never replaced: a damaged one is refused. It
 * holds no points.
 *
 * A change is announced in three durable moves: recorded with NOTIFY_PENDING; queued as deliveries,
 * rendered, together with the news becoming NOTIFY_QUEUED when all its receivers have theirs; sent.
 * A program that dies in between goes on from there. That an attempt to send begins is written
 * down, too, so that the next program knows which messages may have arrived.
 */
#ifndef AGENT_STORE_STORE_H
#define AGENT_STORE_STORE_H

#include "agent/core/arena.h"
#include "notifiers/notifier.h"

struct store;

/* Stored, as are the numbers of the enums below: they stay. */
enum change_state {
	CHANGE_CONFIRMED = 1,
	CHANGE_MOVED,     /* found again at another time */
	CHANGE_WITHDRAWN, /* not found any more; remembered, so that its return is no news */
	CHANGE_CANDIDATE, /* seen, not yet believed; not announced */
	CHANGE_RECOVERED, /* over: the level of before is back (detectors/recovery.h) */
	CHANGE_STATES,
};

enum notify_state {
	NOTIFY_SILENT,   /* recorded only: too old to be told */
	NOTIFY_PENDING,  /* to be told, waits for its group */
	NOTIFY_QUEUED,   /* in a delivery */
	NOTIFY_HELD,     /* to be told once it is believed; or it was over before it was told */
	NOTIFY_RECOVERY, /* it was told; that it has recovered is to be told */
	NOTIFY_COUNT,
};

enum condition_kind {
	CONDITION_SOURCE = 1, /* is down */
	CONDITION_TEST,       /* fails alone */
	CONDITION_STALE,      /* a test's data */
	CONDITION_MANY_FAIL,  /* more tests of a source than are told one by one */
	CONDITION_MANY_STALE,
};

/* What has begun, or is over. */
struct condition {
	const char *subject; /* unique: "source NAME", "test NAME", "data NAME", ... */
	enum condition_kind kind;
	int64_t since;    /* ms, wall clock: the first failure, the last point */
	const char *text; /* for people, one sentence; of one that is over: that it is */
	bool over;
};

/* A series of a test that was told to have vanished; stored. */
struct vanished {
	const char *test, *series; /* series: its identity */
	int64_t ended;             /* ms, its last point */
	bool back;                 /* it has points again: to be forgotten */
};

/* What happens to a change. */
enum event_kind {
	EVENT_FOUND = 1, /* first seen */
	EVENT_CONFIRMED, /* a candidate is believed */
	EVENT_MOVED,
	EVENT_WITHDRAWN,
	EVENT_RETURNED,  /* is found again after it was withdrawn */
	EVENT_ANNOUNCED, /* a message about it has arrived */
	EVENT_RECOVERED,
	EVENT_KINDS,
};

/* By the numbers of the enums, NULL for 0 where that is none: "confirmed", "pending", "found" ...
 */
extern const char *const change_state_names[CHANGE_STATES];
extern const char *const notify_state_names[NOTIFY_COUNT];
extern const char *const event_names[EVENT_KINDS];

struct event {
	enum event_kind kind;
	int64_t time;                       /* ms, when it happened */
	int64_t point;                      /* ms, the change's time by then */
	const char *receiver, *destination; /* EVENT_ANNOUNCED; else NULL */
};

/* One change of one series. */
struct change_record {
	struct announcement item; /* its id is 0 until it is recorded; has no URLs */
	const char *series;       /* identity of the metric */
	const char *branch;       /* "" for none */
	int sign;
	enum change_state state;
	enum notify_state news;
	int64_t first_seen;         /* ms */
	int64_t spacing;            /* ms from point to point of the series, near the change */
	int64_t environment_event;  /* id of the one that it is told as part of; 0: none */
	int64_t environment_stored; /* the same as the store has it */
	int64_t runs;               /* passes in which it was seen */
	int64_t updated;            /* ms, when it was written last; of a believed one: now */
	struct strings told; /* NOTIFY_PENDING: receivers that have it in the outbox already */
	size_t told_stored;  /* how many of them are in the store */
	int64_t handed;      /* the announcer's: engine_now when it got it, */
	bool held;           /* ... a filter holds it back, */
	bool covered;        /* ... or suppresses it, as something else tells it; or, of a
				silent one, the end of another change does */
	bool confirmed;      /* STORE_RECORD: is no new one, but a candidate of this id */
	const struct event *events; /* STORE_LIST: its history, oldest first */
	size_t event_count;
};

/* A change that is known and was seen otherwise. */
struct change_record_update {
	int64_t id, time, now; /* ms */
	enum change_state state;
	int64_t runs;                    /* 0: as they were */
	struct recovered over;           /* of CHANGE_RECOVERED */
	bool silent;                     /* of CHANGE_RECOVERED: not to be told */
	bool corrected;                  /* the item's suspects are others, which is to be told */
	const struct announcement *item; /* its numbers, place, commits and members now; or NULL */
};

/* Where a series of a test stands. */
struct series_checkpoint {
	const char *series, *branch;
	int64_t anchor;     /* ms: points before it are not looked at */
	int64_t last_point; /* ms */
	int64_t revision;   /* of the detectors that it was looked at with last; 0: unknown */
	int64_t revised;    /* ms: its last point when that became another; 0: it never did */
};

/* When something of that name was, that happens once or once in a while. */
struct store_moment {
	const char *name;
	int64_t time; /* ms, wall clock */
};

/* Of what is known under a name, a test's or with `metric` a metric's of that test, another is to
 * be the name. */
struct store_rename {
	const char *test, *metric, *was; /* metric: NULL, it is the test */
	bool moved;                      /* out: something was known, ... */
	bool taken; /* ... but the new name has changes or places of its own: nothing is moved */
};

/* A change that is told as part of an environment's. `silent`: it is in no message of its own, but
 * counts as told by those that told the others. */
struct store_member {
	int64_t change, event; /* ids */
	bool silent;
};

enum delivery_state {
	DELIVERY_QUEUED = 1,
	DELIVERY_SENT,
	DELIVERY_ABANDONED, /* given up; `problem` says why */
};

/* A delivery in the outbox. */
struct delivery {
	int64_t id;
	const char *key, *receiver, *destination, *payload;
	const char *thread;            /* key of the delivery whose thread it goes into, or NULL */
	const char *receipt, *problem; /* or NULL; a receipt that is stored is not lost by NULL */
	enum delivery_state state;
	int64_t attempts, now;      /* now: ms, when it was made or settled */
	bool begun;                 /* an attempt has begun, and nobody knows how far it came */
	int64_t not_before;         /* ms: until then its receiver has asked to be left alone; 0 */
	const char *thread_receipt; /* STORE_ATTEMPT: of `thread`, as the store knows it */
	const int64_t *changes;     /* ids of those in it, for STORE_QUEUE */
	size_t change_count;
	const struct change_record *records; /* the changes in it, for who carries it */
	size_t record_count;
};

/* Which changes are asked for. What is 0 or NULL asks for all. */
struct change_filter {
	unsigned states;      /* bits 1 << enum change_state */
	int64_t since, until; /* ms, of the change's time; until exclusive */
	struct strings names; /* of tests, exact */
	const char *test;     /* name or shell pattern */
	int64_t updated;      /* ms: only those written at or after it */
	int64_t before_id;    /* only those recorded before this one */
	int64_t limit;
};

/* What STORE_PRUNE has forgotten. */
struct pruned {
	int64_t changes, deliveries, events, marks;
};

enum store_kind {
	/*
	 * Out: the pending records, the queued parcels without payloads (the last 1,000 with their
	 * records), how many changes there are of each state, the conditions, the moments, the
	 * vanished series, the environments, and `recent`: the last 1,000 parcels about changes
	 * that were sent at or after `since`, newest first, without payloads.
	 */
	STORE_RESTORE,
	/* In: test; out: its records (id, series, branch, sign, time, state, news, first_seen,
	 * spacing, runs, place_from, place_to, suspects, and of the change count_after, kind and
	 * levels only), ordered by series, branch and id. */
	STORE_KNOWN,
	STORE_MARKS,  /* in: test; out: its marks, ordered by series and branch */
	STORE_HEALTH, /* out: the conditions and the vanished series, of all tests */
	/*
	 * In: records (ids come out), updates; marks of `test`, which are added or replaced. A
	 * record that is `believed` has its id and is written anew whole, its first_seen excepted.
	 * One that an update withdraws while it is pending becomes NOTIFY_HELD; or NOTIFY_QUEUED,
	 * if some have been told. One that recovers becomes NOTIFY_RECOVERY if it was told and the
	 * update is not `silent`, NOTIFY_HELD if it is pending and nobody has been told. Out:
	 * retractions: for each change that is withdrawn or corrected now the messages about it
	 * that were sent and have a receipt, as parcels with that one record; recoveries.
	 */
	STORE_RECORD,
	/* In: parcels (their ids come out; one whose key a delivery has that is queued or sent gets
	 * the id of that, is DELIVERY_SENT, and nothing but its changes is added to it); told:
	 * changes that become NOTIFY_QUEUED, or NOTIFY_RECOVERY if they have recovered meanwhile;
	 * conditions; moments, added or replaced by name; vanished series, added or replaced by
	 * test and series, forgotten if they are back; environments, added or replaced by id;
	 * members. Out: recoveries. */
	STORE_QUEUE,
	/* Out: environments, and records of NOTIFY_RECOVERY, at most STORE_RECOVERIES, and in
	 * `recent` who was told of each and by which message, as parcels with that one record;
	 * without a key where the message is forgotten. */
	STORE_RECOVERED,
	/*
	 * In: parcels whose state, receipt, problem, attempts, begun and not_before are written.
	 * Out: retractions: as above, of those that were sent and have a receipt, for changes that
	 * were withdrawn in the meantime.
	 */
	STORE_SETTLE,
	/*
	 * In: parcels (ids, now). Writes down that an attempt to send them begins. One that nobody
	 * has begun to send yet and whose changes have all been withdrawn is given up instead, and
	 * these are news again should they return. Out: state; their payloads, NULL where there is
	 * none that is queued; thread_receipt and records.
	 */
	STORE_ATTEMPT,
	/*
	 * In: parcels that nobody can deliver any more. They are given up, for their problem, and
	 * their changes, but for withdrawn ones, are to be told again. Out: these, as pending
	 * records.
	 */
	STORE_REOPEN,
	/* In: conditions, added or replaced by subject; `over`: forgotten. And moments and vanished
	 * series, as in STORE_QUEUE. */
	STORE_CONDITION,
	/* In: filter; out: records with their history, latest recorded first, and the environments
	 * that they are part of; more */
	STORE_LIST,
	/*
	 * In: before, tests. Forgets what was settled before it: parcels that were sent or given
	 * up, withdrawn changes and candidates that lie before their series' anchor, marks of
	 * series that have vanished for good, all but the announcements in the history of others.
	 * If `tests` has any, they are those there still are: the changes of all others go, too,
	 * and their marks. With `thorough` so do confirmed changes before their series' anchor.
	 * What is to be told, or was in a message that is still remembered, stays. Out: pruned.
	 */
	STORE_PRUNE,
	STORE_RENAME, /* in: renames; out: of each what became of it */
	STORE_PROBE,  /* writes and says whether that can be done */
};

enum {
	STORE_RETRACTIONS = 300, /* that a request may have, about */
	STORE_RECOVERIES = 100,
	STORE_ATTRIBUTES_MAX = 20, /* that a change may have */
};

/* False for those that only read. */
bool store_writes(enum store_kind kind);

struct store_request {
	enum store_kind kind;
	struct arena *arena; /* of the request; all its content lives there */
	void (*reply)(
		struct store_request *request); /* on the loop; owns the request from then on */
	void *context;

	const char *test;
	int64_t before; /* ms */
	int64_t since;  /* ms */
	struct change_record *records;
	size_t record_count;
	struct change_record_update *updates;
	size_t update_count;
	struct series_checkpoint *marks;
	size_t mark_count;
	struct delivery *deliveries;
	size_t parcel_count;
	struct delivery *recent;
	size_t recent_count;
	struct delivery *retractions;
	size_t retraction_count;
	int64_t recoveries;  /* out, of RESTORE, RECORD and QUEUE: changes of NOTIFY_RECOVERY */
	const int64_t *told; /* ids */
	size_t told_count;
	struct condition *conditions;
	size_t condition_count;
	struct store_moment *moments;
	size_t moment_count;
	struct store_rename *renames;
	size_t rename_count;
	struct vanished *vanished;
	size_t vanished_count;
	struct environment_event *environments;
	size_t environment_count;
	const struct store_member *members;
	size_t member_count;
	struct change_filter filter;
	bool more; /* there are more records than the filter's limit */
	struct strings tests;
	bool thorough;
	struct pruned pruned;

	int64_t state_counts[CHANGE_STATES]; /* out, of RESTORE, RECORD and PRUNE */

	bool failed; /* nothing of it was written; error says why */
	struct error error;
	struct store_request *next;
};

/* How the store calls back: runs `call` on the loop's thread soon, or `drop` if the loop ends
 * before. Called from the store's thread. */
typedef void store_call(void *argument);
typedef void store_post(void *loop, store_call *call, store_call *drop, void *argument);

/* Opens or creates the file, locks and checks it. NULL and an ERROR_STATE otherwise. */
struct store *store_open(const char *path, store_post *post, void *loop, struct error *error);

/* Answers what was handed over, then closes. The replies are posted; run the loop to get them.
 * Accepts NULL. */
void store_close(struct store *store);

/* Bytes that the file takes on the disk, its log included. For any thread. */
int64_t store_size(const struct store *store);

/* Adds a receiver to those that have been told of the record. */
void record_told(struct arena *arena, struct change_record *record, const char *receiver);

struct store_request *store_request_new(
	enum store_kind kind, void (*reply)(struct store_request *request), void *context);
void store_request_free(struct store_request *request);

/* Hands the request over. */
void store_submit(struct store *store, struct store_request *request);

/*
 * Performs a request that only reads, beside a running agent or without one: nothing is written,
 * and no file comes to be. ERROR_STATE if there is no such file, or if it cannot be
 * read, is damaged, not ours or of another version. The request stays the caller's.
 */
bool store_read(const char *path, struct store_request *request, struct error *error) MUST_USE;

#endif

/*
 * The agent's memory: what is known, what was said, what waits to be said. A SQLite file, and the
 * one thread that opens it.
 *
 * The loop hands requests over and gets them back, answered, on its own thread; what is answered
 * without `failed` is on the disk. Requests that wait together are committed together. The file is
 * locked for one agent, checked when it is opened, and never replaced: a damaged one is refused. It
 * holds no points.
 *
 * A change is announced in three durable moves: recorded with NEWS_PENDING; queued as deliveries,
 * rendered, together with the news becoming NEWS_QUEUED when all its receivers have theirs; sent. A
 * program that dies in between goes on from there.
 */
#ifndef AGENT_STORE_H
#define AGENT_STORE_H

#include "agent/core/arena.h"
#include "notifiers/notifier.h"

struct store;

enum change_state {
	CHANGE_CONFIRMED = 1,
	CHANGE_MOVED,     /* found again at another time */
	CHANGE_WITHDRAWN, /* not found any more; remembered, so that its return is no news */
	CHANGE_STATES,
};

enum news {
	NEWS_SILENT,  /* recorded only: too old to be told */
	NEWS_PENDING, /* to be told, waits for its group */
	NEWS_QUEUED,  /* in a delivery */
};

/* One change of one series. */
struct record {
	struct announcement item; /* its id is 0 until it is recorded */
	const char *series;       /* identity of the metric */
	const char *branch;       /* "" for none */
	int sign;
	enum change_state state;
	enum news news;
	int64_t first_seen;  /* ms */
	int64_t spacing;     /* ms from point to point of the series, near the change */
	struct strings told; /* NEWS_PENDING: receivers that have it in the outbox already */
	size_t told_stored;  /* how many of them are in the store */
};

/* A change that is known and was seen otherwise. */
struct record_update {
	int64_t id, time, now; /* ms */
	enum change_state state;
};

enum parcel_state {
	PARCEL_QUEUED = 1,
	PARCEL_SENT,
	PARCEL_ABANDONED, /* given up; `problem` says why */
};

/* A delivery in the outbox. */
struct parcel {
	int64_t id;
	const char *key, *receiver, *destination, *payload;
	const char *receipt, *problem; /* or NULL */
	enum parcel_state state;
	int64_t attempts, now; /* now: ms, when it was made or settled */
	bool restored; /* STORE_RESTORE: nobody knows how far an earlier process came with it */
	const int64_t *changes; /* ids of those in it, for STORE_QUEUE */
	size_t change_count;
};

enum store_kind {
	STORE_RESTORE, /* out: the pending records and the queued parcels */
	STORE_KNOWN,   /* in: test; out: its records (id, series, branch, sign, time and state only)
			*/
	STORE_RECORD,  /* in: new records (their ids come out), updates */
	STORE_QUEUE,   /* in: parcels (their ids come out); told: changes that become NEWS_QUEUED */
	STORE_SETTLE,  /* in: parcels whose state, receipt, problem and attempts are written */
	STORE_PRUNE,   /* in: before; parcels that were sent or given up before it are forgotten */
};

struct store_request {
	enum store_kind kind;
	struct arena *arena; /* of the request; all its content lives there */
	void (*reply)(
		struct store_request *request); /* on the loop; owns the request from then on */
	void *context;

	const char *test;
	int64_t before; /* ms */
	struct record *records;
	size_t record_count;
	struct record_update *updates;
	size_t update_count;
	struct parcel *parcels;
	size_t parcel_count;
	const int64_t *told; /* ids */
	size_t told_count;

	int64_t state_counts[CHANGE_STATES]; /* STORE_RESTORE: how many changes there are of each
						state */

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

/* Adds a receiver to those that have been told of the record. */
void record_told(struct arena *arena, struct record *record, const char *receiver);

struct store_request *store_request_new(
	enum store_kind kind, void (*reply)(struct store_request *request), void *context);
void store_request_free(struct store_request *request);

/* Hands the request over. */
void store_submit(struct store *store, struct store_request *request);

#endif

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
 * may have arrived. What happens to
 * an announced change is an event that is due until a round has queued its messages.
 */
#ifndef AGENT_STORE_STORE_H
#define AGENT_STORE_STORE_H

#include "agent/store/bisections.h"
#include "agent/store/deliveries.h"
#include "agent/store/fleet.h"

struct store;

enum { STORE_TABLES = 16 }; /* that a state consists of */

/* Tests whether the state can be written. */
extern const struct store_work store_probe_work;
struct store_call *store_probe_new(void);

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
 * in progress. Accepts NULL. */
enum { STORE_CLOSING = 20000 };
bool store_close(struct store *store);

/* Statistics of a database since the store was opened. */
struct store_traffic {
	int64_t round_trips, connections;
	int64_t retries; /* of conflicting transactions */
	double seconds;  /* waited for answers */
};

/* For any thread. False: the state is a file. */
bool store_traffic(const struct store *store, struct store_traffic *traffic);

/* Bytes on the disk, including the log. For any thread. */
int64_t store_size(const struct store *store);

/* Whether several agents can work on it. */
bool store_is_shared(const struct store *store);

/* Performs a call of a fleet at once, on the caller's thread, before any other was submitted. */
bool store_turn_now(struct store *store, struct store_turn *turn, struct error *error) MUST_USE;

/* Submits the call; it belongs to the store until its reply. */
void store_submit(struct store *store, struct store_call *call);

/* The purpose of opening a state. */
enum store_use {
	STORE_OWN,  /* it is made if it is not there, and locked for this process */
	STORE_READ, /* as it is, also while an agent has it: nothing is written, no file made */
	STORE_TRY,  /* the same, and writes are lost: a temporary copy */
};

/*
 * Performs a call at once, on the caller's thread, without a store that is open. ERROR_STATE if the
 * state is missing, unreadable, damaged, foreign, of another version, or not available for this
 * use. The caller keeps the call.
 */
bool store_tx(const char *path, enum store_use use, struct store_call *call,
	struct error *error) MUST_USE;

/* Contents and problems of the file. */
struct store_report {
	int64_t size; /* bytes */
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
 * Copies a whole state with all ids to another, which is empty or does not exist, between any two
 * kinds of database, and compares them. ERROR_STATE if an agent has either, and if `to` is not
 * empty; nothing was written then.
 */
bool store_copy(const char *from, const char *to, struct store_copied *copied,
	struct error *error) MUST_USE;

/* Of a file: whether another process has it open, as far as this user can tell: true if it may not
 * look. */
bool store_is_held(const char *path);

/* Whether there is such a file, or a state in the database. True if that cannot be determined: the
 * next operation then fails with the reason. */
bool store_is_there(const char *path);

/* Fails if there is no such file, with a hint how to create it. Functions that read a state do so
 * themselves. */
bool store_expect(const char *path, struct error *error) MUST_USE;

/*
 * Writes a consistent copy to `target`: complete, checked and synced, or not at all. Replaces an
 * existing file only with `force`. Out: its bytes.
 */
bool store_backup(const char *path, const char *target, bool force, int64_t *size,
	struct error *error) MUST_USE;

#endif

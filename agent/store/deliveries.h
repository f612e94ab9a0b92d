/*
 * Messages about changes: those that are due, the queued deliveries, and the follow-ups of
 * delivered ones.
 */
#ifndef AGENT_STORE_DELIVERIES_H
#define AGENT_STORE_DELIVERIES_H

#include "agent/model/incident.h"
#include "agent/store/changes.h"

enum {
	STORE_DUE = 300, /* events per call */
	STORE_REMINDERS_MOST = 50,
	STORE_PICTURED = 500,
	STORE_INCIDENTS = 2000,
	STORE_SAMPLE = 20000,
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
	bool amends; /* store_queue: the message that it continues is to be edited */
	const struct change_record *records; /* its changes, for the delivery manager */
	size_t record_count;
};

/* Whether it was written by that notifier: a receiver of the same name may be of another kind now.
 */
bool delivery_is_of(const struct delivery *delivery, const char *kind);

struct delivery_rows {
	struct delivery *items;
	size_t count;
};

/* An event that is due, about an announced change; once decided, what is to become of it. */
struct due_event {
	struct event event; /* settled if `due` is 0, for the reason */
	struct change_record *record;
	struct delivery_rows
		messages; /* queued and sent ones about the change, by id; of EVENT_RECOVERED the
			     first to each destination, without a key if it was pruned */
};

struct due_rows {
	struct due_event *items;
	size_t count;
};

/* The state that an agent resumes from. */
struct store_restore {
	struct store_call call;
	bool queued;   /* only `deliveries` are wanted */
	bool counted;  /* `messages` is wanted */
	int64_t known; /* the caller has read deliveries up to this id; or 0 */

	struct delivery_rows deliveries; /* out: queued ones by id, of any agent; without payloads,
					    and those that are known without records */
	size_t messages;                 /* out: how many about changes were sent */
	struct health_rows health;       /* out: all */
	struct silence_rows silences;    /* out: not over, or not summed yet */
};

STORE_CALL(restore);

/* A change that is now in an incident, and of an environment event or 0. `silent`: it is in no
 * message of its own, and counts as announced by those about its incident. */
struct store_member {
	int64_t change, incident, event; /* ids */
	bool silent;
	const struct triage *inherited; /* of its incident, unless it is triaged; or NULL */
};

/* A pending change that becomes NOTIFY_QUEUED, or is `held`. */
struct decided_change {
	int64_t id;
	bool held;
	const char *reason; /* why it waits, or is not announced; NULL: it is */
};

/* Queues messages, with all that is settled by it. */
struct store_queue {
	struct store_call call;
	struct delivery_rows deliveries; /* ids are set; one whose key is already queued or sent
					    gets the id of that delivery and DELIVERY_SENT, and only
					    its changes are added to it */
	const struct decided_change *changes;
	size_t change_count;
	struct due_rows events;    /* `due` and `reason` are written */
	struct health_rows health; /* conditions, added or replaced by subject, deleted if `over`;
				      moments, added or replaced by name; vanished series, added or
				      replaced by test and series, deleted if they are back */
	struct environment_rows environments; /* added or replaced by id */
	const int64_t *reminded; /* ids of deliveries that people are reminded of ... */
	size_t reminded_count;
	int64_t now;                      /* ... at this time, ms */
	const struct incident *incidents; /* added or replaced by id */
	size_t incident_count;
	const struct store_member *members;
	size_t member_count;

	struct store_due due; /* out; of `health` alone, which changes nothing of it, zeros */
};

STORE_CALL(queue);

/* The name of a series. */
struct series_name {
	const char *test, *series;
};

/* Pending announcements, until a store_queue settles them. */
struct store_pending {
	struct store_call call;

	struct record_rows records;           /* out: all of NOTIFY_PENDING, by id; the
						 STORE_PICTURED largest with their excerpts */
	struct due_rows events;               /* out: the first STORE_DUE, by id */
	struct environment_rows environments; /* out: all, if there are events, or records with
						 an environment */
	struct seen_rows seen;                /* out: all by test, if there are such records */
};

STORE_CALL(pending);

/* A message about an incident that is open to further changes. */
struct incident_message {
	int64_t incident;
	struct delivery message; /* with one record: of the incident's that it shows the first */
	struct incident_worst worst; /* of the incident's changes in it, as they were announced */
};

struct incident_messages {
	struct incident_message *items;
	size_t count;
};

/* Changes in one environment alone that were announced to a destination before their event was
 * found. */
struct early_changes {
	const char *receiver, *destination;
	int64_t count;
};

/* An announced environment event. */
struct event_told {
	int64_t event; /* id */
	const char *environment;
	int64_t from, to; /* ms: of its changes */

	struct early_changes *early; /* out: of these times */
	size_t early_count;
};

/* The state of incidents, read once changes are to be announced. */
struct store_incidents {
	struct store_call call;
	int64_t now;  /* ms */
	bool sampled; /* `series` is wanted */
	struct event_told *events;
	size_t event_count;
	int64_t *joined; /* ids of incidents that have pending changes, open or not */
	size_t joined_count;

	struct incident_rows incidents;    /* out: those that changes may join, at most
					      STORE_INCIDENTS, the last joined first, and those of
					      environment events */
	struct incident_messages messages; /* out: about these, and those joined, by id */
	struct series_name
		*series; /* out: of about STORE_SAMPLE of the series that are in no open incident */
	size_t series_count;
	struct record_rows
		members; /* out, if sampled: of the incidents with until >= now, or of those events,
			    that have accepted changes all that are in them, by incident and id */
};

STORE_CALL(incidents);

/* Sent messages of a receiver to remind of: those with open regressions without triage, and its
 * last about these. */
struct store_reminders {
	struct store_call call;
	const char *receiver;
	int64_t before; /* ms: only those sent, and reminded of, at or before it */
	int64_t after;  /* only those with a larger id */

	struct delivery_rows messages; /* out: at most STORE_REMINDERS_MOST, with all their records
					*/
};

STORE_CALL(reminders);

/* Writes a delivery's state, receipt, problem, attempts, begun and not_before. */
struct store_settle {
	struct store_call call;
	struct delivery delivery;
	bool reroutes; /* its changes, except withdrawn ones, become pending again */
};

STORE_CALL(settle);

/*
 * Records that an attempt begins. A delivery without an earlier attempt whose changes have all been
 * withdrawn is given up instead; these changes are announced again should they return.
 */
struct store_attempt {
	struct store_call call;
	bool pictured;            /* `worst` is wanted */
	struct delivery delivery; /* id and now; out: state, records, thread_receipt, payload: NULL
				     if no such delivery is queued */
	struct excerpted *worst;  /* out: of its changes with points the worst; NULL: none */
};

STORE_CALL(attempt);

/* A change of a message as it is known now, and when it was by the message (ms). */
struct told_record {
	struct change_record record;
	int64_t time;
};

/* A sent message to edit, poll for answers, or refresh. */
struct followed_message {
	struct delivery
		message; /* id, key, receiver, destination, receipt, now: when it was sent */
	int64_t mark;    /* number of updates of its changes since the last edit; 0: none */
	bool answers;    /* it is to be read for answers */
	bool stands;     /* it is to be refreshed */
	/* Of one message alone; with its payload. */
	const char *reaction; /* the answers read last, or NULL */
	int64_t amended;      /* how often it was edited */
	struct told_record *told;
	size_t count;
	struct told_record
		*joined; /* changes that joined its incident since, announced in its thread */
	size_t joined_count;
};

/* How many messages of a receiver, with receipts, are about changes that stand. */
struct standing_messages {
	const char *receiver;
	int64_t count;
};

enum {
	STORE_AMENDMENTS = 200,  /* messages in a list to be edited, the oldest, ... */
	STORE_ANSWERS = 500,     /* ... to be read, the latest, ... */
	STORE_STANDING = 100000, /* ... and to be refreshed */
};

/*
 * Messages of these receivers to edit, as their changes were updated. Those sent at or after
 * `since` to poll: about standing changes that are open or acknowledged, or with applied answers.
 * And all about such changes, to refresh. Or one message with the data for any of these, if it was
 * sent.
 */
struct store_follow_ups {
	struct store_call call;
	struct strings amending, listening, refreshing; /* receivers */
	int64_t since;                                  /* ms */
	int64_t delivery;                               /* id of the one message; 0: lists */
	bool count_standing;                            /* with the lists: `standing` is wanted */

	struct followed_message *messages; /* out */
	size_t count;
	struct standing_messages *standing; /* out: of all receivers, configured or not */
	size_t standing_count;
};

STORE_CALL(follow_ups);

/* A message was edited, or never will be: it is marked no more, unless more has become known. */
struct store_amended {
	struct store_call call;
	int64_t delivery;    /* id */
	int64_t mark;        /* as it was read */
	const char *receipt; /* its new one, or NULL */

	bool marked; /* out: more has become known */
};

STORE_CALL(amended);

/* A message that was sent is gone: it is queued again, as it is, and marked to be edited. */
struct store_send_anew {
	struct store_call call;
	int64_t delivery; /* id */

	bool queued; /* out: it was there */
};

STORE_CALL(send_anew);

#endif

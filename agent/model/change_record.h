/*
 * A recorded change: the finding, its state, and its history.
 */
#ifndef AGENT_MODEL_CHANGE_RECORD_H
#define AGENT_MODEL_CHANGE_RECORD_H

#include "agent/model/announcement.h"
#include "agent/model/event.h"
#include "agent/model/triage.h"

enum { RECORD_ATTRIBUTES = 20 /* per change */ };

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
	NOTIFY_SILENT,  /* recorded only: too old to announce */
	NOTIFY_PENDING, /* to be announced, waits for its group */
	NOTIFY_QUEUED,  /* in a delivery */
	NOTIFY_HELD,    /* announced once confirmed; or recovered before it was announced */
	NOTIFY_COUNT,
};

/* By value, NULL where 0 has no meaning: "confirmed", "pending" ... */
extern const char *const change_state_names[CHANGE_STATES + 1];
extern const char *const notify_state_names[NOTIFY_COUNT];

/* One change of one series. */
struct change_record {
	struct announcement item; /* its id is 0 until it is recorded; has no URLs */
	const char *series;       /* the metric's identity */
	const char *branch;       /* "" for none */
	int sign;
	enum change_state state;
	enum notify_state news;
	int64_t first_seen;         /* ms */
	int64_t environment_event;  /* id of the event that it is announced with; 0: none */
	int64_t environment_stored; /* as stored */
	int64_t incident_stored;    /* the item's, as stored */
	int64_t ends;               /* id of the change that it ends, if it stands; 0: of none */
	int64_t runs;               /* runs in which it was seen */
	const char *reason;         /* why it waits, or is not announced: a sentence; or NULL */
	int64_t held_until;         /* ms: end of a candidate's hold; 0: none */
	int64_t updated;            /* ms, when it was last written; of one being confirmed: now */
	struct triage triage;
	struct strings told; /* NOTIFY_PENDING: receivers with a delivery about it in the outbox */
	int64_t handed;      /* the dispatcher's: engine_now when it took the record, ... */
	bool held;           /* ... a filter holds it, ... */
	bool noted;          /* ... for a reason that is not stored yet, ... */
	bool covered; /* ... or suppresses it, as another message covers it, or it inherits the
			 triage of its incident; of a silent one: the recovery of another change
			 covers it */
	const char *summary; /* the dispatcher's: the hold that ended (struct message); or NULL */
	bool confirmed;      /* store_record: confirms the candidate with this id, no new record */
	const struct event *events; /* store_list: history, oldest first */
	size_t event_count;
};

/* Whether it is announced, or due to be, and not over. */
static inline bool change_stands(enum change_state state)
{
	return state == CHANGE_CONFIRMED || state == CHANGE_MOVED;
}

/* Whether it is unconfirmed, or was when it was lost. */
static inline bool change_was_candidate(const struct change_record *record)
{
	return record->state == CHANGE_CANDIDATE ||
	       (record->state == CHANGE_WITHDRAWN && record->news == NOTIFY_HELD);
}

/* Adds a receiver to those that have the record. */
void record_told(struct arena *arena, struct change_record *record, const char *receiver);

/* Triage that has expired by `now` counts as open, even if the store has not noticed yet. */
void record_by_clock(struct change_record *record, int64_t now);

struct record_rows {
	struct change_record *items;
	size_t count;
};

/* A change with the points around it. */
struct excerpted {
	struct change_record record; /* without events */
	struct excerpt excerpt;      /* empty: a candidate has none */
};

#endif

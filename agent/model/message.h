/*
 * Messages: their kinds, and a count and a ranking of their changes.
 */
#ifndef AGENT_MODEL_MESSAGE_H
#define AGENT_MODEL_MESSAGE_H

#include "agent/model/announcement.h"
#include "agent/model/triage.h"

/* A notification about something other than a change, such as an unavailable server. */
struct notice {
	const char *subject; /* its topic: "prometheus", a test's name */
	const char *text;    /* one sentence */
	int64_t time;        /* ms, since when */
	int64_t ended;       /* ms, end; 0: ongoing, or a single moment */
	bool recovered;      /* the problem is over */
};

/* The kinds of messages: the events that a receiver chooses from (`events:`). */
enum message_kind {
	MESSAGE_NEW,       /* changes */
	MESSAGE_UPDATED,   /* more changes of an earlier message's incident */
	MESSAGE_RECOVERED, /* recoveries of announced changes, see their `over` */
	MESSAGE_WITHDRAWN, /* an earlier message no longer holds, or not as it was written */
	MESSAGE_TRIAGED,   /* triage of announced changes */
	MESSAGE_REMINDER,  /* untriaged regressions */
	MESSAGE_DIGEST,    /* open changes, and events since the last one */
	MESSAGE_NOTICE,    /* something other than a change */
	MESSAGE_HEARTBEAT, /* a sign of life */
	MESSAGE_TEST,      /* shows that messages arrive; not chosen, sent on request only */
	MESSAGE_KINDS,
};

/* "new", "updated" ... */
extern const char *const message_kind_names[MESSAGE_KINDS];

/* Sets of kinds, bits 1 << kind. */
enum {
	MESSAGES_OF_CHANGES = 1u << MESSAGE_NEW | 1u << MESSAGE_UPDATED,
	MESSAGES_ALL = (1u << MESSAGE_TEST) - 1,
	/* Default of a receiver for people. */
	MESSAGES_USUAL = MESSAGES_ALL & ~(1u << MESSAGE_TRIAGED | 1u << MESSAGE_HEARTBEAT),
};

/* A part of a digest: "open, team-pay", and a line for each thing. */
struct digest_section {
	const char *title;
	struct strings lines;
	size_t more; /* things that have no line */
};

struct message {
	const char *key; /* idempotency key of the delivery, stable across restarts */
	enum message_kind kind;
	/*
	 * A group of changes, sorted by time, test, worst first. None of notices, heartbeats,
	 * digests and tests; of MESSAGE_WITHDRAWN and MESSAGE_TRIAGED the notice alone is the
	 * content where there are none.
	 */
	const struct announcement *items;
	size_t count;
	const char *thread; /* key of the earlier message that this one continues, or NULL */
	const struct announcement *more_of; /* of MESSAGE_UPDATED: that one's first change */
	bool loud; /* of MESSAGE_UPDATED: worse than all before; shown outside of its thread, too */
	const struct environment_event
		*environment; /* the event that all items are part of, or NULL */
	size_t early;         /* changes of that event that were reported before, on their own */
	/* For changes that an expired silence has held: the silence, its owner and reason; else
	 * NULL. */
	const char *summary;
	bool first_look;             /* most were there before: a list by test, the worst first */
	const struct notice *notice; /* the message's sentence, or NULL */
	const struct digest_section *sections; /* of MESSAGE_DIGEST */
	size_t section_count;
};

/* How an announced change stands. */
enum announced_state { ANNOUNCED_STANDS, ANNOUNCED_RECOVERED, ANNOUNCED_WITHDRAWN };

/* A change of a sent message as it is known now. */
struct announced_change {
	struct announcement item; /* with links */
	int64_t told;             /* ms: its time in the message */
	enum announced_state state;
	struct triage triage;
};

/* Whether it is settled: recovered, withdrawn, or triaged as expected, ignored, infra, false or
 * fixed. */
bool announced_is_over(const struct announced_change *change);

/* Counts for the first line of a message. */
struct tally {
	size_t changes, tests, regressions, improvements;
};

struct tally message_tally(const struct message *message);

/* Sorts items, most important first: regressions, then by relative difference of the levels. */
void message_rank(const struct announcement **items, size_t count);

/* All items, ranked. The caller frees the list. */
const struct announcement **message_by_weight(const struct message *message);

/* Sorts items into reading order: blocks of the same time (not in a first look), in them blocks of
 * the same test; blocks and items are ordered by importance. */
void message_arrange(const struct announcement **items, size_t count, bool first_look);

/* The `most` most important items, in the message's order; *count: how many they are. The caller
 * frees the list. */
const struct announcement **message_select(
	const struct message *message, size_t most, size_t *count);

/* The incident that all of the message's changes are in; 0: there is none. */
int64_t message_incident(const struct message *message);

/* The time of the earliest change. */
int64_t message_since(const struct message *message);

#endif

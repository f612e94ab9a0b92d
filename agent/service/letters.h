/*
 * What a receiver gets at times of its own: its digest (`digest: {at, days, zone}`) and its weekly
 * heartbeat (`heartbeat: weekly`).
 *
 * What became due while the agent was down is sent once; the state has the time of the last one. A
 * letter and its time are stored in one transaction. In a fleet the leader sends them.
 */
#ifndef AGENT_SERVICE_LETTERS_H
#define AGENT_SERVICE_LETTERS_H

#include "agent/monitor/scheduler.h"
#include "agent/notify/dispatcher.h"

struct letters;

struct letters *letters_new(
	struct agent *agent, struct dispatcher *dispatcher, const struct scheduler *scheduler);
void letters_free(struct letters *letters); /* after the engine */

/* Takes the times of earlier ones from store_restore; before letters_look. */
void letters_restore(struct letters *letters, const struct store_restore *restored);

/* Sends what is due, now and, unless with --once, from then on; so does HINT_LOOK, unless with
 * --once. */
void letters_look(struct letters *letters);

/* The rest is for their kinds. */

enum { LETTER_LISTS = 3 };

/* One in preparation. Everything is in the arena. */
struct letter {
	struct letters *letters;
	const struct letter_kind *kind;
	struct agent *agent;
	struct dispatcher *dispatcher;
	const struct scheduler *scheduler;
	struct arena *arena;
	const char *receiver;
	int64_t since, now;                     /* since: the last one; 0: there was none */
	struct store_list *lists[LETTER_LISTS]; /* as the kind has asked for */
	size_t asked;

	/* What it says. */
	struct notice notice;
	struct digest_section *sections;
	size_t section_count;
};

struct letter_kind {
	const char *name; /* in the state, before the receiver's: "digest " */
	enum message_kind message;
	size_t lists;
	bool at_once; /* a new receiver gets one; else its first one covers the time from then on */
	bool measures; /* the runs of the day before measure what it reports */
	/* When one was due last, and will be; `last`: when one was sent, or 0. False: the receiver
	 * wants none. */
	bool (*times)(const struct receiver *receiver, int64_t last, int64_t now, int64_t *before,
		int64_t *next);
	/* What to ask the store for. */
	void (*filter)(const struct letter *letter, size_t number, struct change_filter *filter);
	void (*write)(struct letter *letter, const struct receiver *receiver);
};

extern const struct letter_kind digest_letter, heartbeat_letter;

/* Whether the receiver is among them. */
bool letter_goes_to(const struct strings *receivers, const char *receiver);

/* The state of a test; if another agent runs it, as far as the state has it: a condition is stored
 * when it is reported. Series and points of such a test are unknown. */
struct scheduler_test letter_test(
	const struct scheduler_test *state, const struct health_rows *health);

#endif

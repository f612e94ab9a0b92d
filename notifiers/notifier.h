/*
 * Notifiers write and send messages; the registry finds them by name.
 *
 * Delivery has two halves. `render` turns a message into the text that is stored in the outbox;
 * `step` sends rendered text, as a state machine like a source's (called with NULL, then with each
 * reply). The program may end in between: rendered text is sent after the restart. A message of
 * several posts is sent in as many rounds; each ends with a receipt (Slack's `ts` and the number of
 * posts), which is stored before the next round begins. Adding a notifier takes one file and one
 * registry line.
 */
#ifndef NOTIFIERS_NOTIFIER_H
#define NOTIFIERS_NOTIFIER_H

#include "agent/base/arena.h"
#include "agent/base/plugin.h"
#include "agent/base/transfer.h"
#include "agent/model/delivery.h"
#include "agent/model/message.h"

enum follow_up_kind {
	FOLLOW_UP_READ,    /* polls answers of people to a message */
	FOLLOW_UP_AMEND,   /* updates the message to the current state; may be repeated */
	FOLLOW_UP_REFRESH, /* refreshes open alerts; see `refresh` of struct notifier */
	FOLLOW_UP_KINDS,
};

/* Work on a sent message. */
struct follow_up {
	enum follow_up_kind kind;
	const struct announced_change *changes; /* of the message, in the order of their ids */
	size_t count;
	const struct announced_change *joined; /* of its incident, announced in its thread */
	size_t joined_count;
	bool amended; /* it was amended before */
	/*
	 * Of FOLLOW_UP_READ. The notifier's notes on the answers read so far: in: as stored, or
	 * NULL; out: to be stored together with the triage, in the arena.
	 */
	const char *taken;
	/* Out, on STEP_DONE: the state that `person` gives all its changes; 0: nothing new. Or the
	 * time (ms) of a triage that is taken back; else 0. Both are in the arena. */
	enum triage_state state;
	const char *person, *origin; /* origin: "Slack #perf" */
	int64_t undone;
	const char *overrides; /* out: another answer, which no longer counts */
	/* Out, on STEP_FAILED: the message is gone, or can never be edited; and that somebody has
	 * deleted it: it is sent again while one of its changes stands. */
	bool gone, deleted;
};

/* A picture of a change, as PNG. */
struct illustration {
	const char *bytes;
	size_t length;
	unsigned width, height; /* px */
	const char *title;      /* "db.read p99" */
};

/* A message that is to be rendered for a destination, as the payload. */
struct draft {
	const struct notifier *notifier;
	const struct message *message;
	const void *options;
	const char *destination;
	struct buf *payload;
	struct error *error;
};

struct attempt {
	/* Set by notifier_step: where the step puts its next request, or its error. */
	const struct notifier *notifier;
	struct transfer *next;
	struct error *error;
	struct arena *arena;
	struct follow_up *follow_up; /* of a sent message; NULL: to be sent */
	const void *options;         /* of the plugin's options_size */
	const char *destination;     /* e.g. a Slack channel; "" if there is only one */
	const char *key;
	const char *payload; /* rendered text */
	int64_t made;        /* ms, when it was queued */
	int64_t now;         /* ms, wall clock, start of this round */
	const char *receipt; /* in: the stored receipt or NULL; out: a new one, in the arena */
	const char *thread;  /* receipt of the message that it continues, or NULL */
	void *state;         /* the notifier's own, between steps */
	const struct transfer *queue; /* its requests that follow, where they are known before */
	size_t queued;
	/*
	 * In: draws the worst change of the message, by `drawn`; NULL: no picture, or no time for
	 * one. For a step; takes a moment, and may fail. The picture is in the arena. A message
	 * never waits for a picture that fails.
	 */
	bool (*draw)(struct attempt *attempt, struct illustration *out, struct error *error);
	const void *drawn;
	/*
	 * In: not MAYBE_DELIVERED_NO if an earlier attempt may have arrived. Out, on STEP_FAILED:
	 * whether this one may have.
	 */
	enum maybe_delivered maybe_delivered;
	const char *notice; /* out: a warning although the delivery continues, in the arena */
	/* Out, on STEP_DONE: more posts follow; call again with the receipt, after the spacing. */
	bool more;
	/*
	 * Out, on STEP_FAILED. True: a retry may help. False with ERROR_USAGE: the configuration
	 * has to be changed first; with another kind: permanent.
	 */
	bool retry;
	int64_t retry_after; /* out: minimum ms to wait, -1: the caller's backoff */
	bool answered; /* the driver's: the server has answered the last request, and neither with
			  an error of its own nor that it is too busy */
};

struct notifier {
	struct plugin plugin;
	int64_t spacing; /* minimum ms between two deliveries to a destination */
	/* The kinds of messages that it supports, and its default ones; bits 1 << enum
	 * message_kind. */
	unsigned events, defaults;
	/* By default it gets retractions in threads only, and no updates of changes that have moved
	 * or grown. */
	bool brief;
	bool gathers; /* see notifier_gathers */
	bool threads; /* a message can continue another one, although it edits none */
	/* Optional, by default one, "": the destinations with these options, e.g. Slack channels;
	 * at least one, or none with an error. */
	bool (*destinations)(
		const void *options, struct arena *arena, struct strings *out, struct error *error);
	/* Optional: whether destinations that the options do not name can be used. */
	bool (*accepts_destination)(const void *options, struct error *error);
	bool (*render)(const struct draft *draft);
	enum step (*step)(struct attempt *attempt, const struct reply *last);
	const void *shape; /* of notifiers that share a step: struct http_json, struct tracker */
	/*
	 * Optional: whether it can edit its messages with these options, and whether it polls
	 * answers to them; after how many ms it must refresh open alerts, 0: never; and a step of
	 * attempt->follow_up, whose receipt is that of the message, if it is another one.
	 */
	bool (*amends)(const void *options);
	bool (*pictures)(const void *options); /* whether its messages may show one; NULL: never */
	bool (*listens)(const void *options);
	int64_t (*refresh)(const void *options);
	int64_t pace; /* minimum ms between two follow-ups of a receiver; 0: the default, 3 s */
	enum step (*follow_up)(struct attempt *attempt, const struct reply *last);
};

extern const struct notifier alertmanager_notifier, discord_notifier, email_notifier, exec_notifier,
	github_notifier, gitlab_notifier, jira_notifier, mattermost_notifier, msteams_notifier,
	pagerduty_notifier, slack_notifier, stdout_notifier, webhook_notifier;
extern const struct plugin *const notifiers[]; /* each begins a struct notifier */

const struct notifier *notifier_find(const char *name);

/* Whether it is for people and, with these options, without threads: what joins an incident that it
 * was told of, it is told together. */
bool notifier_gathers(const struct notifier *notifier, const void *options);

bool notifier_destinations(const struct notifier *notifier, const void *options,
	struct arena *arena, struct strings *out, struct error *error) MUST_USE;

bool notifier_render(const struct notifier *notifier, const struct message *message,
	const void *options, const char *destination, struct buf *payload,
	struct error *error) MUST_USE;

/* A step of the attempt, whose outputs it resets. */
enum step notifier_step(const struct notifier *notifier, struct attempt *attempt,
	const struct reply *last, struct transfer *next, struct error *error);

/* STEP_FAILED with the error "NAME: what". */
enum step notifier_fail(
	struct attempt *attempt, bool retry, enum error_kind kind, const char *what);

/* For `amends`: always. */
bool notifier_amends(const void *options);

/* Whether messages continue others with these options: its receipts say which. */
bool notifier_threads(const struct notifier *notifier, const void *options);

extern const struct notifier grafana_notifier; /* for commands, too: grafana.h */

#endif

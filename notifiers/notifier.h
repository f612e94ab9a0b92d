/*
 * Notifiers: how people are told, and the registry that knows them by name.
 *
 * Telling has two halves. `render` turns a message into the text that is stored in the outbox;
 * `step` carries rendered text out, as a state machine like a source's (called with NULL, then with
 * each reply). Between the two the program may die: what was rendered is sent after the restart. A
 * message that goes out in several posts is carried in as many rounds: each ends with a receipt
 * (Slack's `ts` and how many are there), which is stored before the next round begins. Adding a
 * notifier is one file and one registry line.
 */
#ifndef NOTIFIERS_NOTIFIER_H
#define NOTIFIERS_NOTIFIER_H

#include "agent/core/arena.h"
#include "agent/core/attribution.h"
#include "agent/core/buf.h"
#include "agent/core/change.h"
#include "agent/core/transfer.h"
#include "agent/core/url_template.h"

/* What else is known of a change: an attribute of the points other than commit and version. */
struct attribute {
	const char *name, *before, *after; /* the values as those of commit_before, commit_after */
};

/* How a change came to its end. */
struct recovered {
	int64_t time; /* ms, of the first point at the level that is back; 0: it has not */
	double level;
};

/* The other series that one is judged by. */
enum basis {
	BASIS_NONE,   /* there is no other one */
	BASIS_LOAD,   /* the change is one at equal load */
	BASIS_RATIO,  /* it is one relative to a control */
	BASIS_UNUSED, /* a load that explains nothing: the change is one of the values as they are
		       */
};

struct announcement;

/* What a digest needs (digest.h), and what it makes; apart, as few of many changes have it. */
struct extras {
	int64_t spacing; /* ms from point to point of the series around it; 0: not known */
	/* What the dashboard, the runbook and the owner were made of; NULL: not known. */
	const struct url_templates *templates;
	const struct url_values *values;
	/* The changes of a crowd, `members` of them, worst first; and what all series of the test
	 * share, which their names here lack. NULL but in a digest. */
	const struct announcement *const *folded;
	const char *common;
};

/* One change as it is announced. Strings are borrowed. */
struct announcement {
	int64_t id;                       /* the store's, stable over restarts */
	const char *test, *metric, *unit; /* unit may be NULL */
	int direction; /* the metric's: 1 higher is better, -1 lower is better, 0 either way */
	enum basis basis;
	int64_t time; /* ms, of the first point of the new regime */
	struct change change;
	/* Attributes at the last point before and the first point of the new regime; NULL where
	 * unknown. */
	const char *commit_before, *commit_after;
	const char *version_before, *version_after;
	/*
	 * Between which times the new level began, by change.place_from and place_to; of a trend,
	 * from when to when it went. With the attributes at the last point that is surely before
	 * that, and the first that is surely behind it.
	 */
	int64_t place_from, place_to; /* ms */
	const char *place_commit_before, *place_commit_after;
	const char *place_version_before, *place_version_after;
	struct attribution suspects; /* the deployments that it can come from */
	double slope; /* of a trend: how much it rises from point to point; else NaN */
	const struct attribute *attributes;
	size_t attribute_count;
	/* Of a cluster: how many series moved alike, of which this is one, and what they share
	 * ("96% renderer=gpu"). 0 and NULL of a single series. */
	size_t members;
	const char *shared;
	const char *environment; /* where the series was measured (`environment` of its test), NULL:
				    nothing says so */
	struct recovered over;
	const char *other;  /* TEST/METRIC, NULL without a basis */
	bool other_changed; /* where this one did, ... */
	double other_size;  /* ... in percent; else 0 */
	/* Pages about the commit, the range, the series and what to do, http(s) and escaped; NULL
	 * where unknown. */
	const char *commit_url, *compare_url, *dashboard, *runbook;
	const char *owner;           /* or NULL */
	const struct extras *extras; /* NULL: there are none */
};

/* Changes of one time that hit most of one environment, and not the same tests elsewhere
 * (agent/analysis/environment.h). Strings are borrowed. */
struct environment_event {
	int64_t id;                /* of its first change, stable over restarts */
	const char *label, *value; /* "runner", "runner-7" */
	int64_t time, spacing; /* ms; median of the changes' times, and their tolerance's base */
	size_t hit, total;     /* series of the environment: that changed, and all */
	size_t up, down, worse, better;      /* of those that changed */
	double size;                         /* percent, their median; NaN: none has one */
	size_t elsewhere, elsewhere_changed; /* the same tests in other environments */
	size_t told;                         /* `hit` when it was told last; 0: it was not */
	bool followed;                       /* the same was seen in another environment, later */
	int64_t created;                     /* ms, wall clock */
	size_t standing; /* its changes in the store that are not over, when it was read */
};

/* Something other than a change that people should know, as that a server is down. */
struct notice {
	const char *subject; /* whom or what it is about: "prometheus", a test's name */
	const char *text;    /* one sentence */
	int64_t time;        /* ms, since when */
	int64_t ended;       /* ms, until when; 0: it goes on, or is of that moment */
	bool recovered;      /* it has recovered */
};

enum message_kind {
	MESSAGE_CHANGES,
	MESSAGE_NOTICE,
	MESSAGE_RECOVERED, /* of changes that were told: they are over, as their `over` says */
};

/* Those of the item, never NULL. */
const struct extras *announcement_extras(const struct announcement *item);

struct message {
	const char *key; /* idempotency key of the delivery, stable over restarts */
	enum message_kind kind;
	/* Changes that belong together, sorted by time, test, worst first. */
	const struct announcement *items;
	size_t count;
	/* An earlier message these belong to: its key and its first change; NULL if there is none.
	 */
	const char *thread;
	const struct announcement *more_of;
	const struct environment_event *environment; /* that all items are part of, or NULL */
	const struct notice *notice;                 /* of MESSAGE_NOTICE, which has no items */
};

/* Whether a delivery may have arrived though nobody said so. */
enum maybe_delivered {
	MAYBE_DELIVERED_NO,
	MAYBE_DELIVERED_CHECK, /* it may, and the notifier looks first when it is called again */
	MAYBE_DELIVERED_BLIND, /* it may, and nobody can look: it is sent once more */
};

struct attempt {
	struct arena *arena;
	const void *options;     /* of notifier->options_size */
	const char *destination; /* Slack channel and the like; "" where there is one only */
	const char *key;
	const char *payload; /* what render made */
	int64_t made;        /* ms, when it was queued first */
	int64_t now;         /* ms, wall clock, when this round began */
	const char *receipt; /* in: the stored receipt or NULL; out: a new one, in the arena */
	const char *thread;  /* receipt of the message it continues, or NULL */
	void *state;         /* the notifier's own, between steps */
	/*
	 * In: anything but MAYBE_DELIVERED_NO if an earlier attempt may have arrived. Out, on
	 * STEP_FAILED: what is to be thought of this one.
	 */
	enum maybe_delivered maybe_delivered;
	const char *notice; /* out: what people should know though it goes on, in the arena */
	/* Out, on STEP_DONE: there is more to send. To be carried again with the receipt, after the
	 * spacing. */
	bool more;
	/*
	 * Out, on STEP_FAILED. True: trying again later may help. False with an error of kind
	 * ERROR_USAGE: somebody must change the configuration first; of another kind: it never
	 * will.
	 */
	bool retry;
	int64_t retry_after; /* out: ms to wait at least, -1: the caller's backoff */
};

struct notifier {
	const char *name;
	const char *summary;
	const struct field
		*fields;     /* the section's options, e.g. of `slack:`, besides endpoint_fields */
	size_t options_size; /* the struct begins with a struct endpoint where `http` is true */
	bool http;
	/* Optional: what the table of fields cannot say; as a source's. ERROR_DATA: nobody can be
	 * told by these options, though they are no mistake. */
	bool (*check)(const void *options, struct error *error);
	int64_t spacing; /* ms to leave between two deliveries to one destination */
	/* The destinations of a message under these options, e.g. Slack channels; at least one, or
	 * none with an error. */
	bool (*destinations)(
		const void *options, struct arena *arena, struct strings *out, struct error *error);
	/* Optional: whether these options can tell destinations that they do not name. */
	bool (*accepts_destination)(const void *options, struct error *error);
	bool (*render)(const struct message *message, const void *options, const char *destination,
		struct buf *payload, struct error *error);
	enum step (*step)(struct attempt *attempt, const struct reply *last, struct transfer *next,
		struct error *error);
};

extern const struct notifier slack_notifier, stdout_notifier, webhook_notifier;
extern const struct notifier *const notifiers[]; /* ends with NULL */

const struct notifier *notifier_find(const char *name);

/* 1 if the change is a regression in the metric's direction, -1 an improvement, 0 either way; by
 * the levels, which outliers do not turn over. */
int announcement_verdict(const struct announcement *item);

#endif

/*
 * Patience: what to do about a message that could not be sent, and when.
 *
 * A pure function. What passes is tried again after a wait that doubles, never before the receiver
 * wants it. Whoever may have the message already is left in peace longer: it needs time to show
 * what it has, and one that cannot be asked is spared the second message if the trouble lasts. What
 * a person must mend is never given up, and neither is anything in a single pass, which leaves it
 * to the next one. Only time that this process spent trying counts, so that an alarm which waited
 * while nobody tried is not thrown away.
 */
#ifndef AGENT_NOTIFY_PATIENCE_H
#define AGENT_NOTIFY_PATIENCE_H

#include "agent/core/error.h"
#include "notifiers/notifier.h"

struct failed_attempt {
	enum error_kind kind;
	bool retry;                           /* delivery.retry */
	enum maybe_delivered maybe_delivered; /* delivery.doubt */
	int64_t retry_after;                  /* delivery.retry_after */
	int64_t tries;                        /* of this process, with this one: 1, 2, ... */
	int64_t trying;        /* ms since this process took it up, or since it had to be mended */
	int64_t give_up_after; /* ms; WHEN_NEVER */
	bool once;             /* a single pass */
};

enum retry_policy {
	RETRY_POLICY_TRY_AGAIN,
	RETRY_POLICY_CONFIG,   /* somebody must act; tried again, in case it was done */
	RETRY_POLICY_NEXT_RUN, /* for the next run; a single pass only */
	RETRY_POLICY_GIVE_UP,  /* it never will, or trying for so long did not help */
};

/* ms: how long what may have arrived takes to show, with room to spare; how long a receiver is left
 * alone if it wishes, after which it is tried all the same; and how long a single pass waits. */
enum { RETRY_POLICY_LOOK = 3000, RETRY_POLICY_WISH = 3600000, RETRY_POLICY_ONCE = 30000 };

/* `wait` is in ms, until the next attempt. */
enum retry_policy retry_policy_for(const struct failed_attempt *setback, int64_t *wait);

#endif

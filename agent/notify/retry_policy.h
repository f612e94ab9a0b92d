/*
 * Decides whether and when a failed delivery is retried.
 *
 * A pure function. Temporary failures are retried with exponential backoff, not before the receiver
 * allows it (an hour at most). If the message may have arrived, the wait is longer: it needs time
 * to become visible, and where nobody can check, a longer wait means fewer duplicates during an
 * outage. Configuration errors are retried without limit. A single pass gives up permanent errors
 * only and leaves the rest to the next one. Only time spent trying in this process counts towards
 * `give_up_after`, so the agent's downtime loses no alarm.
 */
#ifndef AGENT_NOTIFY_RETRY_POLICY_H
#define AGENT_NOTIFY_RETRY_POLICY_H

#include "agent/base/error.h"
#include "notifiers/notifier.h"

struct failed_attempt {
	enum error_kind kind;
	bool retry;                           /* attempt.retry */
	enum maybe_delivered maybe_delivered; /* attempt.maybe_delivered */
	int64_t retry_after;                  /* attempt.retry_after */
	int64_t tries;                        /* by this process, including this one: 1, 2, ... */
	int64_t trying; /* ms of trying by this process, since the last configuration error */
	int64_t give_up_after; /* ms; WHEN_NEVER */
	bool once;             /* a single pass */
};

enum retry_policy {
	RETRY_POLICY_TRY_AGAIN,
	RETRY_POLICY_CONFIG,   /* configuration error; retried, in case it was corrected */
	RETRY_POLICY_NEXT_RUN, /* left to the next process; in a single pass only */
	RETRY_POLICY_GIVE_UP,  /* permanent error, or `give_up_after` is over */
};

/* ms: how long until a message that may have arrived is visible, with a margin; the longest pause
 * that a receiver may ask for; the longest wait in a single pass. */
enum { RETRY_POLICY_LOOK = 3000, RETRY_POLICY_WISH = 3600000, RETRY_POLICY_ONCE = 30000 };

/* Sets `wait` to the ms until the next attempt. */
enum retry_policy retry_policy_for(const struct failed_attempt *failed, int64_t *wait);

#endif

/*
 * Decides whether and when a failed delivery is retried.
 *
 * Temporary failures are retried with exponential backoff, not before the receiver allows it (an
 * hour at most). If the message may have arrived, the wait is longer: it needs time to become
 * visible, and where that cannot be checked, a longer wait means fewer duplicates during an outage.
 * Configuration errors are retried without limit. A single pass gives up permanent errors only and
 * leaves the rest to the next one. Only time spent trying in this process counts towards
 * `give_up_after`, so the agent's downtime loses no alarm.
 */
#ifndef AGENT_DECIDE_RETRY_H
#define AGENT_DECIDE_RETRY_H

#include "agent/base/error.h"
#include "agent/decide/decision.h"
#include "agent/model/delivery.h"

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

/* ms: how long until a message that may have arrived is visible, with a margin; the longest pause
 * that a receiver may ask for; the longest wait in a single pass. */
enum { RETRY_LOOK = 3000, RETRY_WISH = 3600000, RETRY_ONCE = 30000 };

/* PASS: this process tries again in `until` ms; HOLD: the next one does, no earlier; DROP:
 * never. */
struct decision retry_decide(const struct failed_attempt *failed);

#endif

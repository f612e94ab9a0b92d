/*
 * In a single pass nobody waits for a receiver that is down: after three attempts,
 * or where it is to be left alone for longer than half a minute, the message waits for the next
 * run.
 */
#include "agent/notify/retry_policy.h"

enum {
	FIRST_WAIT = 1000,
	LONGEST_WAIT = 300000,
	MENDING_WAIT = 300000,
	BLIND_WAIT = 60000,
	ONCE_TRIES = 3
};

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
	return value < least ? least : value > most ? most : value;
}

static int64_t wait_of(const struct failed_attempt *setback, bool mend)
{
	int64_t doubled = (int64_t)FIRST_WAIT << (clamp(setback->tries, 1, 10) - 1);
	int64_t least = setback->maybe_delivered == MAYBE_DELIVERED_BLIND   ? BLIND_WAIT
			: setback->maybe_delivered == MAYBE_DELIVERED_CHECK ? RETRY_POLICY_LOOK
									    : FIRST_WAIT;

	if (setback->retry_after >= 0)
		return clamp(setback->retry_after, least, RETRY_POLICY_WISH);
	return mend ? MENDING_WAIT : clamp(doubled, least, LONGEST_WAIT);
}

enum retry_policy retry_policy_for(const struct failed_attempt *setback, int64_t *wait)
{
	bool mend = !setback->retry && setback->kind == ERROR_USAGE;

	*wait = wait_of(setback, mend);
	if (!setback->retry && !mend)
		return RETRY_POLICY_GIVE_UP;
	if (setback->once && (setback->tries >= ONCE_TRIES || *wait > RETRY_POLICY_ONCE))
		return RETRY_POLICY_NEXT_RUN;
	if (mend)
		return RETRY_POLICY_CONFIG;
	if (setback->trying > setback->give_up_after && !setback->once)
		return RETRY_POLICY_GIVE_UP;
	return RETRY_POLICY_TRY_AGAIN;
}

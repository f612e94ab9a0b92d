/*
 * A single pass does not wait for a receiver that is down: after three attempts, or if the receiver
 * asks for a pause of more than RETRY_POLICY_ONCE, the message is left to the next process.
 */
#include "agent/notify/retry_policy.h"

enum {
	FIRST_WAIT = 1000,
	WAIT_MAX = 300000,
	CONFIG_WAIT = 300000,
	BLIND_WAIT = 60000,
	ONCE_TRIES = 3
};

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
	return value < least ? least : value > most ? most : value;
}

static int64_t wait_of(const struct failed_attempt *failed, bool config_error)
{
	int64_t doubled = (int64_t)FIRST_WAIT << (clamp(failed->tries, 1, 10) - 1);
	int64_t least = failed->maybe_delivered == MAYBE_DELIVERED_BLIND   ? BLIND_WAIT
			: failed->maybe_delivered == MAYBE_DELIVERED_CHECK ? RETRY_POLICY_LOOK
									   : FIRST_WAIT;

	if (failed->retry_after >= 0)
		return clamp(failed->retry_after, least, RETRY_POLICY_WISH);
	return config_error ? CONFIG_WAIT : clamp(doubled, least, WAIT_MAX);
}

enum retry_policy retry_policy_for(const struct failed_attempt *failed, int64_t *wait)
{
	bool config_error = !failed->retry && failed->kind == ERROR_USAGE;

	*wait = wait_of(failed, config_error);
	if (!failed->retry && !config_error)
		return RETRY_POLICY_GIVE_UP;
	if (failed->once && (failed->tries >= ONCE_TRIES || *wait > RETRY_POLICY_ONCE))
		return RETRY_POLICY_NEXT_RUN;
	if (config_error)
		return RETRY_POLICY_CONFIG;
	if (failed->trying > failed->give_up_after && !failed->once)
		return RETRY_POLICY_GIVE_UP;
	return RETRY_POLICY_TRY_AGAIN;
}

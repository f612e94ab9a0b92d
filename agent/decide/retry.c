/*
 * A single pass does not wait for a receiver that is down: after three attempts, or if the receiver
 * asks for a pause of more than RETRY_ONCE, the message is left to the next process.
 */
#include "agent/decide/retry.h"

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
			: failed->maybe_delivered == MAYBE_DELIVERED_CHECK ? RETRY_LOOK
									   : FIRST_WAIT;

	if (failed->retry_after >= 0)
		return clamp(failed->retry_after, least, RETRY_WISH);
	return config_error ? CONFIG_WAIT : clamp(doubled, least, WAIT_MAX);
}

struct decision retry_decide(const struct failed_attempt *failed)
{
	bool config_error = !failed->retry && failed->kind == ERROR_USAGE;
	int64_t wait = wait_of(failed, config_error);

	if (!failed->retry && !config_error)
		return (struct decision){DROP, "another attempt would fail as well", 0};
	if (failed->once && (failed->tries >= ONCE_TRIES || wait > RETRY_ONCE))
		return (struct decision){HOLD, "a single run (--once) does not retry", wait};
	if (!config_error && failed->trying > failed->give_up_after && !failed->once)
		return (struct decision){DROP, "give_up_after exceeded", 0};
	return (struct decision){PASS, NULL, wait};
}

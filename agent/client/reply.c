#include "agent/client/reply.h"

#include "detectors/random.h"

bool reply_worth_repeating(const struct reply *reply)
{
	if (reply->kind == REPLY_AMBIGUOUS)
		return true;
	if (reply->kind != REPLY_ANSWER)
		return false;
	return reply->status == 429 || reply->status == 500 ||
	       (reply->status >= 502 && reply->status <= 504);
}

int64_t reply_wait(const struct reply *reply, int64_t delay, uint64_t *seed)
{
	delay = delay / 2 + (int64_t)(random_next(seed) % (uint64_t)(delay + 1));
	return delay > reply->retry_after ? delay : reply->retry_after;
}

const char *reply_trouble(const struct reply *reply)
{
	if (reply->kind == REPLY_UNREACHABLE)
		return "unreachable";
	if (reply->kind == REPLY_AMBIGUOUS)
		return "no_answer";
	if (reply->kind == REPLY_TOO_BIG)
		return "too_big";
	if (reply->status == 429)
		return "limited";
	if (reply->status >= 500)
		return "server_error";
	return reply->status == 401 || reply->status == 403 || reply->status == 407 ? "denied"
										    : NULL;
}

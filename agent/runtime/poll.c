#include "agent/runtime/poll.h"

#include "agent/base/when.h"

void poll_now(struct poll *poll)
{
	poll->again = poll->asking;
	if (poll->asking || poll->agent->stopping)
		return;
	poll->asking = true;
	poll->ask(poll->context);
}

static void on_alarm(void *context)
{
	poll_now(context);
}

void poll_after(struct poll *poll, int64_t wait)
{
	struct engine *engine = poll->agent->engine;
	int64_t at;

	if (wait == WHEN_NEVER || poll->agent->stopping || (poll->agent->once && !poll->aside))
		return;
	at = engine_now(engine) + wait;
	poll->alarm.call = on_alarm;
	poll->alarm.context = poll;
	if (poll->aside)
		engine_alarm_aside(engine, &poll->alarm, at);
	else
		engine_alarm(engine, &poll->alarm, at);
}

void poll_answered(struct poll *poll, int64_t wait)
{
	poll->asking = false;
	if (poll->again)
		poll_now(poll);
	else
		poll_after(poll, wait);
}

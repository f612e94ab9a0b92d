#include "agent/decide/environment.h"

static bool is_alone(const struct environment_tally *tally)
{
	return 2 * tally->compared >= tally->hit &&
	       100 * tally->elsewhere_changed <= ENVIRONMENT_ELSEWHERE * tally->elsewhere;
}

static bool are_enough(const struct environment_tally *tally, size_t hit)
{
	return hit >= ENVIRONMENT_LEAST && 100 * hit >= ENVIRONMENT_SHARE * tally->total;
}

bool environment_stands_out(const struct environment_tally *tally)
{
	return are_enough(tally, tally->hit) && is_alone(tally);
}

bool environment_may_stand_out(const struct environment_tally *tally)
{
	return are_enough(tally, tally->hit + tally->behind) && is_alone(tally);
}

const char environment_one_event[] = "most series of one environment changed, and few elsewhere";

struct decision environment_decide(const struct environment_case *at)
{
	bool few = !are_enough(&at->tally, at->ready);

	if (at->is_event && !at->has_grown)
		return (struct decision){DROP, "part of an announced change of its environment", 0};
	if (at->is_event || at->follows)
		return (struct decision){0};
	if (at->runs > 0 && at->awaits &&
		(environment_stands_out(&at->tally) ||
			are_enough(&at->tally, at->tally.hit + at->more)))
		return (struct decision){
			HOLD, "waiting for other tests of its environment to run", at->runs};
	if (!environment_stands_out(&at->tally)) {
		if (at->confirmation <= 0 ||
			!(at->unknown || environment_may_stand_out(&at->tally)))
			return (struct decision){0};
		return (struct decision){HOLD,
			"waiting for data of other series of its environment", at->confirmation};
	}
	if (few && at->confirmation > 0)
		return (struct decision){HOLD,
			"waiting for confirmation of other changes in its environment",
			at->confirmation};
	/* The recovery of an event is announced as such; only series at a different level
	 * remain. */
	if (at->ready < ENVIRONMENT_LEAST && at->is_end)
		return (struct decision){0};
	return (struct decision){PASS, environment_one_event, 0};
}

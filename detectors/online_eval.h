/*
 * A series as an agent sees it, point by point: what is announced, when, and what becomes of it.
 *
 * Two ways of counting. Tracked, a change is followed from pass to pass as the agent does, by sign
 * and nearest place, so that one which moves is still the same, and one that is not found stands
 * while there is evidence of it (detectors/retraction.h). Untracked, alarms are told apart
 * and looked for in the end by place alone, which is how detectors of others were measured.
 */
#ifndef DETECTORS_FOLLOW_H
#define DETECTORS_FOLLOW_H

#include "detectors/confirm.h"
#include "detectors/score.h"

enum {
	FOLLOW_FIRST = 10,   /* points a series has when it is first looked at */
	FOLLOW_SAME = 5,     /* points apart, at most, and it is the same alarm */
	FOLLOW_SETTLED = 50, /* points, after which a change that is one has been seen */
};

struct follower;
struct follower *follower_new(const struct confirm_rule *rule, bool tracked);
void follower_free(struct follower *follower);

/* One pass over what was found among the first `seen` values. A candidate that is gone is
 * forgotten. */
void follower_take(struct follower *follower, const double *values, size_t seen,
	const struct change *changes, size_t count);

/*
 * The values have become others, as other cycles are removed from them, and this is what is found
 * in those that were there in the last pass. What was there before and was not seen is no news, if
 * it lies FOLLOW_SETTLED points back: it will not be announced.
 */
void follower_accept(
	struct follower *follower, size_t seen, const struct change *changes, size_t count);

struct followed {
	size_t alarms,
		wrong;    /* announced; those neither near a label nor where labels are unsure */
	size_t withdrawn; /* announced, and taken back at the end */
	size_t true_withdrawn; /* of those that were right */
};

/* At the end, when the changes are those of the last pass. */
struct followed follower_judge(const struct follower *follower, const struct labels *labels,
	const struct change *changes, size_t count);

/* Points after `place` until an alarm near it; false: there was none. */
bool follower_delay(const struct follower *follower, size_t place, size_t *delay);

#endif

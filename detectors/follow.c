#include "detectors/follow.h"

#include <stdlib.h>

#include "detectors/scratch.h"

/* A change that is followed from pass to pass. */
struct known {
	size_t index, first_count;
	size_t alarm; /* number from 1; 0: none of its own */
	int sign;
	bool there, announced;
};

struct alarm {
	size_t at, seen;
};

struct follower {
	struct confirm_rule rule;
	bool tracked;
	struct known *known;
	size_t count, capacity;
	struct alarm *alarms;
	size_t alarm_count, alarm_capacity;
};

struct follower *follower_new(const struct confirm_rule *rule, bool tracked)
{
	struct follower *follower = scratch_resize(NULL, 1, sizeof *follower);
	*follower = (struct follower){.rule = *rule, .tracked = tracked};
	return follower;
}

void follower_free(struct follower *follower)
{
	if (!follower)
		return;
	free(follower->known);
	free(follower->alarms);
	free(follower);
}

static size_t distance(size_t a, size_t b)
{
	return a > b ? a - b : b - a;
}

static int sign_of(const struct change *change)
{
	return change->mean_after > change->mean_before ? 1 : -1;
}

static struct known *add_known(struct follower *follower, const struct change *change)
{
	if (follower->count == follower->capacity) {
		follower->capacity = 2 * follower->capacity + 8;
		follower->known = scratch_resize(
			follower->known, follower->capacity, sizeof *follower->known);
	}
	struct known *known = &follower->known[follower->count++];
	*known = (struct known){.sign = sign_of(change), .first_count = change->count_after};
	return known;
}

/* The known change that this one is, the nearest of its sign; else a new one. */
static struct known *find_known(struct follower *follower, const struct change *change)
{
	struct known *best = NULL;
	for (size_t i = 0; i < follower->count; i++) {
		struct known *known = &follower->known[i];
		size_t away = distance(known->index, change->index);
		if (known->there || known->sign != sign_of(change) || away > FOLLOW_SAME)
			continue;
		if (!best || away < distance(best->index, change->index))
			best = known;
	}
	return best ? best : add_known(follower, change);
}

static bool is_told(const struct follower *follower, size_t index)
{
	for (size_t i = 0; i < follower->alarm_count; i++)
		if (distance(follower->alarms[i].at, index) <= FOLLOW_SAME)
			return true;
	return false;
}

static void announce(struct follower *follower, struct known *known, size_t seen)
{
	known->announced = true;
	if (is_told(follower, known->index))
		return;
	if (follower->alarm_count == follower->alarm_capacity) {
		follower->alarm_capacity = 2 * follower->alarm_capacity + 8;
		follower->alarms = scratch_resize(
			follower->alarms, follower->alarm_capacity, sizeof *follower->alarms);
	}
	follower->alarms[follower->alarm_count++] = (struct alarm){known->index, seen};
	known->alarm = follower->alarm_count;
}

void follower_take(
	struct follower *follower, const struct change *changes, size_t count, size_t seen)
{
	for (size_t i = 0; i < follower->count; i++)
		follower->known[i].there = false;
	for (size_t i = 0; i < count; i++) {
		struct known *known = find_known(follower, &changes[i]);
		known->index = changes[i].index;
		known->there = true;
		if (known->announced && follower->tracked)
			continue;
		if (known->announced ||
			confirm_holds(&follower->rule, &changes[i], known->first_count))
			announce(follower, known, seen);
	}
	for (size_t i = 0; i < follower->count; i++)
		if (!follower->known[i].there && !follower->known[i].announced)
			follower->known[i--] = follower->known[--follower->count];
}

static bool is_near(struct places places, size_t index)
{
	for (size_t k = 0; k < places.count; k++)
		if (distance(places.at[k], index) <= FOLLOW_SAME)
			return true;
	return false;
}

static bool is_left(
	const struct follower *follower, size_t alarm, const struct change *changes, size_t count)
{
	for (size_t i = 0; follower->tracked && i < follower->count; i++)
		if (follower->known[i].alarm == alarm + 1 && follower->known[i].there)
			return true;
	for (size_t i = 0; i < count; i++)
		if (distance(changes[i].index, follower->alarms[alarm].at) <= FOLLOW_SAME)
			return true;
	return false;
}

struct followed follower_judge(const struct follower *follower, const struct labels *labels,
	const struct change *changes, size_t count)
{
	struct followed out = {.alarms = follower->alarm_count};
	for (size_t a = 0; a < follower->alarm_count; a++) {
		size_t at = follower->alarms[a].at;
		bool right = is_near(labels->all, at);
		bool left = is_left(follower, a, changes, count);
		out.wrong += !right && !labels_unsure(labels, at);
		out.withdrawn += !left;
		out.true_withdrawn += right && !left;
	}
	return out;
}

bool follower_delay(const struct follower *follower, size_t place, size_t *delay)
{
	for (size_t a = 0; a < follower->alarm_count; a++) {
		const struct alarm *alarm = &follower->alarms[a];
		if (distance(alarm->at, place) > FOLLOW_SAME || alarm->seen <= place)
			continue;
		*delay = alarm->seen - place;
		return true;
	}
	return false;
}

/*
 * docs/design/algorithms.md section 9. All changes that were ever announced are kept, and the
 * candidates that are found now.
 */
#include "detectors/online_eval.h"

#include <stdlib.h>

#include "agent/base/arena.h"
#include "detectors/retraction.h"

#define NONE SIZE_MAX

/* A change that is tracked from run to run. */
struct known {
	size_t index, first_count;
	size_t followed; /* points that followed it when it was announced */
	size_t alarm;    /* number from 1; 0: it raised none */
	int sign;
	bool present; /* found now, perhaps elsewhere */
	bool announced;
	bool silent; /* counted as announced, without an alarm */
	bool withdrawn;
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
	struct follower *follower = memory_new(1, sizeof *follower);
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

static struct known *add_known(struct follower *follower, const struct change *change)
{
	follower->known = memory_grow(
		follower->known, &follower->capacity, follower->count + 1, sizeof *follower->known);
	struct known *known = &follower->known[follower->count++];
	*known = (struct known){.sign = change_sign(change), .first_count = change->count_after};
	return known;
}

/* The index of the known change that this one is: the nearest of its sign; NONE if it is new. */
static size_t find_known(const struct follower *follower, const struct change *change)
{
	size_t best = NONE;
	for (size_t i = 0; i < follower->count; i++) {
		const struct known *known = &follower->known[i];
		size_t away = distance(known->index, change->index);
		if (known->present || known->sign != change_sign(change) || away > ONLINE_SAME)
			continue;
		if (best == NONE || away < distance(follower->known[best].index, change->index))
			best = i;
	}
	return best;
}

/* Raises an alarm, unless one was raised near the place. */
static void announce(struct follower *follower, struct known *known, size_t seen)
{
	known->announced = true;
	known->followed = seen - known->index;
	for (size_t i = 0; i < follower->alarm_count; i++)
		if (distance(follower->alarms[i].at, known->index) <= ONLINE_SAME)
			return;
	follower->alarms = memory_grow(follower->alarms, &follower->alarm_capacity,
		follower->alarm_count + 1, sizeof *follower->alarms);
	follower->alarms[follower->alarm_count++] = (struct alarm){known->index, seen};
	known->alarm = follower->alarm_count;
}

/* Matches known changes that have moved farther. */
static void match_moved(
	struct follower *follower, const struct change *changes, size_t count, size_t *known_of)
{
	size_t most = count + follower->count, marked = 0;
	struct mark *marks = memory_new(most, sizeof *marks);
	struct move *moves = memory_new(most / 2, sizeof *moves);
	for (size_t i = 0; i < count; i++)
		marks[marked++] = (struct mark){.place = (double)changes[i].index,
			.sign = change_sign(&changes[i]),
			.index = i,
			.found = true,
			.known = known_of[i] != NONE};
	for (size_t i = 0; i < follower->count; i++) {
		const struct known *known = &follower->known[i];
		if (!known->present && known->announced && !known->withdrawn)
			marks[marked++] = (struct mark){.place = (double)known->index,
				.followed = (double)known->followed,
				.sign = known->sign,
				.index = i,
				.tie = (int64_t)known->alarm};
	}
	size_t moved = retraction_moves(marks, marked, moves);
	for (size_t i = 0; i < moved; i++) {
		known_of[moves[i].found] = moves[i].known;
		follower->known[moves[i].known].present = true;
	}
	free(marks);
	free(moves);
}

/* Updates or adds a known change, and announces it if it is confirmed. */
static void take_change(
	struct follower *follower, const struct change *change, size_t number, size_t seen)
{
	struct known *known =
		number == NONE ? add_known(follower, change) : &follower->known[number];
	known->index = change->index;
	known->present = true;
	known->withdrawn = false;
	if (known->silent || (known->announced && follower->tracked))
		return;
	if (known->announced || confirm_holds(&follower->rule, change, known->first_count, false))
		announce(follower, known, seen);
}

void follower_take(struct follower *follower, const double *values, size_t seen,
	const struct change *changes, size_t count)
{
	size_t *known_of = memory_new(count, sizeof *known_of);
	for (size_t i = 0; i < follower->count; i++)
		follower->known[i].present = false;
	for (size_t i = 0; i < count; i++) {
		known_of[i] = find_known(follower, &changes[i]);
		if (known_of[i] != NONE)
			follower->known[known_of[i]].present = true;
	}
	/* Announced changes that are not found now and have no evidence any more are withdrawn. */
	for (size_t i = 0; i < follower->count && follower->tracked; i++) {
		struct known *known = &follower->known[i];
		if (!known->present && known->announced && !known->withdrawn)
			known->withdrawn = !retraction_holds(
				values, seen, changes, count, known->index, known->sign);
	}
	if (follower->tracked)
		match_moved(follower, changes, count, known_of);
	for (size_t i = 0; i < count; i++)
		take_change(follower, &changes[i], known_of[i], seen);
	free(known_of);
	for (size_t i = 0; i < follower->count; i++)
		if (!follower->known[i].present && !follower->known[i].announced)
			follower->known[i--] = follower->known[--follower->count];
}

void follower_accept(
	struct follower *follower, size_t seen, const struct change *changes, size_t count)
{
	for (size_t i = 0; i < follower->count; i++)
		follower->known[i].present = false;
	for (size_t i = 0; i < count; i++) {
		size_t number = find_known(follower, &changes[i]);
		struct known *known;

		if (number != NONE) {
			follower->known[number].present = true;
			continue;
		}
		if (changes[i].index + ONLINE_SETTLED >= seen)
			continue;
		known = add_known(follower, &changes[i]);
		known->index = changes[i].index;
		known->followed = seen - known->index;
		known->present = known->announced = known->silent = true;
	}
}

/* Whether an announced change still holds. */
static bool is_standing(
	const struct follower *follower, size_t alarm, const struct change *changes, size_t count)
{
	for (size_t i = 0; follower->tracked && i < follower->count; i++)
		if (follower->known[i].alarm == alarm + 1 && !follower->known[i].withdrawn)
			return true;
	for (size_t i = 0; i < count; i++)
		if (distance(changes[i].index, follower->alarms[alarm].at) <= ONLINE_SAME)
			return true;
	return false;
}

struct followed follower_judge(const struct follower *follower, const struct labels *labels,
	const struct change *changes, size_t count)
{
	struct followed out = {.alarms = follower->alarm_count};
	for (size_t a = 0; a < follower->alarm_count; a++) {
		size_t at = follower->alarms[a].at;
		bool right = false;
		for (size_t k = 0; k < labels->all.count; k++)
			right |= distance(labels->all.at[k], at) <= ONLINE_SAME;
		bool left = is_standing(follower, a, changes, count);
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
		if (distance(alarm->at, place) > ONLINE_SAME || alarm->seen <= place)
			continue;
		*delay = alarm->seen - place;
		return true;
	}
	return false;
}

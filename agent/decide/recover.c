/*
 * Compares the known changes of a series one by one with those found now, and closes those whose
 * level has come back.
 */
#include "agent/decide/recover.h"

#include <math.h>
#include <stdlib.h>

#include "agent/base/when.h"
#include "agent/model/series.h"
#include "detectors/precedent.h"

/* NEAR: how many points a change may lie off the end of the other change that it ends. */
enum { NEAR = CHANGE_TOLERANCE, TAIL_MOST = 25 };
/* Points after a level has nearly come back during which it may still be confirmed that it has. */
enum { PATIENCE = 100 };

static int64_t time_at(const struct closing *closing, size_t index)
{
	return closing->times[index];
}

static bool is_improvement(const struct closing *closing, int sign)
{
	return closing->direction * sign > 0;
}

static bool is_near(size_t a, size_t b)
{
	return a > b ? a - b <= NEAR : b - a <= NEAR;
}

static bool was_announced(const struct change_record *record)
{
	return change_stands(record->state) &&
	       (record->news == NOTIFY_PENDING || record->news == NOTIFY_QUEUED);
}

/* The last values lie at the level of the change, beyond the middle of its step. */
static bool is_up_again(const struct closing *closing, size_t which, size_t from)
{
	const struct change *change = &closing->changes[which];
	double middle = 0.5 * (change->level_before + change->level_after);
	size_t beyond = 0, seen = 0;

	for (size_t i = closing->n; i > from && seen < TAIL_MOST; i--) {
		double value = closing->values[i - 1];

		if (!isfinite(value))
			continue;
		seen++;
		beyond += (value - middle) * (change->level_after - change->level_before) > 0;
	}
	return seen >= RECOVERY_LEAST && 2 * beyond > seen;
}

/* The end of a change by days off whose cycle is not known yet: it waits, and is none if the level
 * is there again afterwards. `which`: the change among those found, or MATCH_NONE. */
static struct recovery after_days_off(
	const struct closing *closing, size_t which, struct recovery end)
{
	int64_t until = closing->until && end.way != SIZE_MAX ? closing->until[end.way] : 0;

	if (until == 0 || end.verdict != RECOVERY_OVER)
		return end;
	if (closing->now < until) {
		end.verdict = RECOVERY_WAIT;
		end.few = true;
	} else if (which != MATCH_NONE && is_up_again(closing, which, end.from)) {
		end.verdict = RECOVERY_NONE;
	}
	return end;
}

/* Whether a later found change undoes each found change; improvements are left out. */
static void judge_found(struct closing *closing)
{
	closing->ends = arena_array(closing->arena, closing->count, sizeof *closing->ends);
	closing->covered = arena_array(closing->arena, closing->count, sizeof *closing->covered);
	closing->doubts = arena_array(closing->arena, closing->count, sizeof *closing->doubts);
	closing->passed = arena_array(closing->arena, closing->count, sizeof *closing->passed);
	for (size_t i = 0; i < closing->count; i++) {
		int sign = change_sign(&closing->changes[i]);

		closing->ends[i] = (struct recovery){.way = SIZE_MAX};
		if (!is_improvement(closing, sign))
			closing->ends[i] = after_days_off(closing, i,
				recovery_by_changes(closing->values, closing->n, closing->changes,
					closing->count, i));
	}
}

/* The level from before the change is back, while the change itself lies before the first point. */
static struct recovery end_of_old(const struct closing *closing, const struct change_record *known)
{
	if (closing->n == 0 || known->item.time >= closing->times[0] ||
		is_improvement(closing, known->sign))
		return (struct recovery){.way = SIZE_MAX};
	return recovery_of_old(closing->values, closing->n, closing->changes, closing->count,
		known->item.change.level_before, known->item.change.level_after);
}

static struct recovery end_of_excursion(
	const struct closing *closing, const struct change_record *known)
{
	const struct change *change = &known->item.change;
	struct told_step told = {
		.place = times_lower_bound(closing->times, closing->n, known->item.time),
		.step = change->level_after - change->level_before,
		.followed = change->count_after};

	return recovery_of_excursion(
		closing->values, closing->n, closing->changes, closing->count, &told);
}

static void judge_known(struct closing *closing, const struct change_record *known, enum fate fate,
	size_t partner, struct closure *closure)
{
	struct recovery end = {.way = SIZE_MAX};

	*closure = (struct closure){0};
	if (!change_stands(known->state))
		return;
	if (partner != MATCH_NONE)
		end = closing->ends[partner];
	else if (fate == FATE_OUTSIDE)
		end = after_days_off(closing, MATCH_NONE, end_of_old(closing, known));
	else if (known->item.change.kind == CHANGE_STEP)
		end = after_days_off(closing, MATCH_NONE, end_of_excursion(closing, known));
	closing->waiting |= end.verdict == RECOVERY_WAIT && closing->n - end.from <= PATIENCE;
	if (end.verdict == RECOVERY_OVER)
		*closure = (struct closure){
			.ending = ENDING_OVER, .over = {time_at(closing, end.from), end.level}};
	else if (end.verdict == RECOVERY_WAIT && end.few && fate == FATE_GONE)
		closure->ending = ENDING_WAIT;
	if (end.way != SIZE_MAX && was_announced(known)) {
		closing->covered[end.way] |= end.verdict == RECOVERY_OVER && !end.beyond;
		if (end.verdict == RECOVERY_WAIT && end.few && !end.beyond)
			closing->doubts[end.way] = DOUBT_END;
	}
}

/* Whether the change brings back the level of one that has recovered, earlier or now. */
static bool ends_one(const struct closing *closing, const struct change_record *known, size_t from,
	size_t count, size_t index, int sign)
{
	for (size_t i = from; i < count; i++) {
		const struct recovered *over = known[i].state == CHANGE_RECOVERED
						       ? &known[i].item.over
						       : &closing->closures[i].over;
		const struct change *change = &known[i].item.change;
		double step = change->level_after - change->level_before;
		/* The level went as far again at its end. */
		bool beyond = (over->level - change->level_before) / step < -0.5;

		if (over->time > known[i].item.time && known[i].sign == -sign &&
			is_near(times_lower_bound(closing->times, closing->n, over->time), index) &&
			!beyond)
			return true;
	}
	return false;
}

/* The end of an excursion goes with the excursion, unless it was announced: receivers who saw it
 * need to learn that the other is over. */
static void judge_ways(struct closing *closing, const struct change_record *known, size_t open,
	size_t count, const struct matching *result)
{
	for (size_t i = 0; i < open; i++) {
		struct closure *closure = &closing->closures[i];
		size_t index = times_lower_bound(closing->times, closing->n, known[i].item.time);
		bool tells = was_announced(&known[i]) && known[i].item.change.kind == CHANGE_STEP;

		if (!change_stands(known[i].state) || closure->ending != ENDING_NONE ||
			!ends_one(closing, known, 0, count, index, known[i].sign))
			continue;
		for (size_t j = 0; tells && j < open; j++)
			if (closing->closures[j].ending == ENDING_OVER &&
				known[j].sign == -known[i].sign &&
				is_near(times_lower_bound(closing->times, closing->n,
						closing->closures[j].over.time),
					index))
				closing->closures[j].silent = true;
		if (result->fates[i] == FATE_GONE)
			closure->ending = tells ? ENDING_WAIT : ENDING_LOST;
	}
}

/* A recovered change that is found again is reopened if its level is no longer undone. */
static void judge_recovered(struct closing *closing, const struct change_record *known,
	size_t which, struct closure *closure)
{
	*closure = (struct closure){0};
	if (which != MATCH_NONE && closing->ends[which].verdict == RECOVERY_NONE &&
		is_up_again(closing, which,
			times_lower_bound(closing->times, closing->n, known->item.over.time)))
		closure->ending = ENDING_BACK;
}

/* Whether it was, or is to be, announced: one that ends another change is not. */
static bool is_news(const struct closing *closing, const struct change_record *known, size_t which,
	size_t record)
{
	if (record != MATCH_NONE)
		return known[record].news != NOTIFY_SILENT;
	return !closing->silent[which] && !closing->covered[which] &&
	       time_at(closing, closing->changes[which].index) >= closing->oldest;
}

/* A change that is not confirmed yet is announced together with its end once it is confirmed; the
 * change that brings its level back is then no news of its own. */
static void judge_unannounced(
	struct closing *closing, const struct change_record *known, const struct matching *result)
{
	for (size_t i = 0; i < closing->count; i++) {
		const struct recovery *end = &closing->ends[i];
		size_t record = result->known_of[i];

		if (end->way == SIZE_MAX ||
			(record != MATCH_NONE && change_stands(known[record].state)))
			continue;
		if (end->verdict == RECOVERY_WAIT && end->few && !end->beyond)
			closing->doubts[end->way] = DOUBT_END;
		else if (end->verdict == RECOVERY_OVER && !end->beyond &&
			 is_news(closing, known, i, record))
			closing->covered[end->way] = true;
	}
}

/* Whether the found change was not announced to any receiver. */
static bool is_untold(const struct change_record *known, size_t record)
{
	return record == MATCH_NONE || known[record].news == NOTIFY_SILENT ||
	       change_was_candidate(&known[record]);
}

/*
 * A movement of a service that is over before its announcement is not announced, nor is its end;
 * while that is undecided, both wait. It is final once the level has been back for PRECEDENT_SHORT
 * points: until then the apparent end may turn out to be a dip.
 */
static void judge_passed(
	struct closing *closing, const struct change_record *known, const struct matching *result)
{
	for (size_t i = 0; closing->service && i < closing->count; i++) {
		struct recovery end;
		size_t back;
		bool near;

		if (!is_untold(known, result->known_of[i]))
			continue;
		end = after_days_off(closing, i,
			recovery_by_changes(
				closing->values, closing->n, closing->changes, closing->count, i));
		if (end.verdict == RECOVERY_NONE)
			continue;
		back = closing->changes[end.way].index;
		near = back - closing->changes[i].index <= PRECEDENT_PAIR &&
		       is_untold(known, result->known_of[end.way]);
		if (closing->n - back < PRECEDENT_SHORT || end.verdict == RECOVERY_WAIT) {
			if (closing->doubts[i] == DOUBT_NONE)
				closing->doubts[i] = DOUBT_OVER;
			if (near && !end.beyond)
				closing->doubts[end.way] = DOUBT_END;
		} else if (end.verdict == RECOVERY_OVER) {
			closing->ends[i] = end;
			closing->passed[i] = true;
			closing->passed[end.way] |= near && !end.beyond;
		}
	}
}

void recover_judge(struct closing *closing, const struct change_record *known, size_t open,
	size_t count, const struct matching *result)
{
	judge_found(closing);
	closing->closures = arena_array(closing->arena, count, sizeof *closing->closures);
	for (size_t i = 0; i < open; i++)
		judge_known(closing, &known[i], result->fates[i], result->found_of[i],
			&closing->closures[i]);
	judge_ways(closing, known, open, count, result);
	for (size_t i = 0; i < closing->count; i++)
		closing->covered[i] |= ends_one(closing, known, open, count,
			closing->changes[i].index, change_sign(&closing->changes[i]));
	judge_unannounced(closing, known, result);
	judge_passed(closing, known, result);
	for (size_t i = open; i < count; i++)
		judge_recovered(closing, &known[i], result->found_of[i], &closing->closures[i]);
}

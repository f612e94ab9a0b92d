/*
 * All candidates count for the false discovery rate, including those that wait for something else:
 * the rate is about all that was found.
 */
#include "agent/decide/confirm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/decide/hold.h"
#include "detectors/fdr.h"

const char *const confirm_reasons[CONFIRM_REASONS] = {
	[CONFIRM_RULE] = "the `confirm` rule does not hold yet: too few points follow it",
	[CONFIRM_AGAIN] = "no new point since the series was last judged: the next one decides",
	[CONFIRM_END] = "perhaps the end of an earlier change of the other direction: the next "
			"points decide",
	[CONFIRM_DOUBT] = "perhaps over: the level before it seems to be back, and the next points "
			  "decide",
	[CONFIRM_SHARE] = "not among the changes that `fdr` allows all series together",
	[CONFIRM_HELD] = "held until a cycle can be ruled out",
	[CONFIRM_AGE] = "older than max_age when first seen",
	[CONFIRM_SEEN] = "appeared in points that the agent had already seen",
	[CONFIRM_OVER] = "over before it was announced",
	[CONFIRM_BACK] = "over before its hold ended",
	[CONFIRM_COVERED] = "the end of another change, announced as its recovery",
	[CONFIRM_LOST] = "no longer found",
};

static const char *const words[CONFIRM_REASONS] = {
	[CONFIRM_RULE] = "confirmation",
	[CONFIRM_AGAIN] = "confirmation",
	[CONFIRM_END] = "confirmation",
	[CONFIRM_DOUBT] = "confirmation",
	[CONFIRM_SHARE] = "fdr",
	[CONFIRM_HELD] = "hold",
	[CONFIRM_AGE] = "max_age",
	[CONFIRM_SEEN] = "silent",
	[CONFIRM_OVER] = "silent",
	[CONFIRM_BACK] = "silent",
	[CONFIRM_COVERED] = "way_back",
	[CONFIRM_LOST] = "withdrawn",
};

const char *confirm_word(const char *reason)
{
	for (size_t i = 0; reason && i < CONFIRM_REASONS; i++)
		if (strncmp(reason, confirm_reasons[i], strlen(confirm_reasons[i])) == 0)
			return words[i];
	for (int i = PRECEDENT_NONE + 1; reason && i <= PRECEDENT_WEEKLY; i++)
		if (strcmp(reason, precedent_reasons[i]) == 0)
			return "precedent";
	return NULL;
}

/* The reason why it waits, apart from other series; NULL: none. `ripe`: the rule is satisfied. An
 * earlier change that it may end takes longest, so it comes first. */
static const char *wait_of(const struct confirm_case *at, bool ripe)
{
	if (at->at_once)
		return NULL;
	if (!at->silent && !at->again && at->doubt == DOUBT_END)
		return confirm_reasons[CONFIRM_END];
	if (!ripe)
		return confirm_reasons[CONFIRM_RULE];
	if (at->again)
		return at->again;
	if (!at->silent && at->doubt == DOUBT_OVER)
		return confirm_reasons[CONFIRM_DOUBT];
	if (!at->silent && at->precedent != PRECEDENT_NONE)
		return precedent_reasons[at->precedent];
	return NULL;
}

/* Whether it competes for the share: a change without a p-value passes, and one that is announced
 * with another is no discovery. */
static bool is_counted(const struct confirm_case *at, double share)
{
	return at->share == share && !at->at_once && !isnan(at->change->pvalue) &&
	       !(at->covered && at->decision.verdict == PASS);
}

/* Applies one share to all cases that have it. */
static void apply_share(
	struct arena *arena, struct confirm_case *cases, size_t count, double share, size_t series)
{
	double *pvalues = memory_new(count, sizeof *pvalues), limit;
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		if (is_counted(&cases[i], share))
			pvalues[found++] = cases[i].change->pvalue;
	series = series > found ? series : found;
	limit = fdr_limit(pvalues, found, series, share);
	for (size_t i = 0; i < count; i++) {
		struct decision *decision = &cases[i].decision;
		double pvalue = cases[i].change->pvalue;
		size_t rank;

		if (decision->verdict == HOLD || !is_counted(&cases[i], share) || pvalue <= limit)
			continue;
		rank = fdr_rank(pvalues, found, pvalue);
		decision->verdict = HOLD;
		decision->reason = arena_printf(arena,
			"%s: rank %zu among %zu series, p %.2g > %.2g (fdr %g x %zu / %zu)",
			confirm_reasons[CONFIRM_SHARE], rank, series, pvalue,
			share * (double)rank / (double)series, share, rank, series);
	}
	free(pvalues);
}

static int compare_times(const void *a, const void *b)
{
	const struct confirm_case *const *left = a, *const *right = b;
	int64_t x = (*left)->time, y = (*right)->time;

	return x != y ? (x > y) - (x < y) : (*left > *right) - (*left < *right);
}

static struct hold hold_of(const struct confirm_case *at)
{
	const struct change *change = at->change;
	double spread = 2 * change->stddev_after / sqrt(fmax(1, (double)change->count_after));
	double percent = fabs(change->level_before) / 100;
	struct hold hold = {.seen = at->seen,
		.until = at->until,
		.off = at->off,
		.confirmed = at->decision.verdict != HOLD || at->on_hold,
		.level_before = change->level_before,
		.level_after = change->level_after,
		.low = change->level_after - spread,
		.high = change->level_after + spread};

	if (isfinite(change->size_low) && isfinite(change->size_high)) {
		hold.low = change->level_before + percent * change->size_low;
		hold.high = change->level_before + percent * change->size_high;
	}
	return hold;
}

static void apply_hold(struct confirm_case *at, const struct hold *judged)
{
	if (judged->verdict == DROP)
		at->decision = (struct decision){DROP, confirm_reasons[CONFIRM_BACK], 0};
	if (judged->verdict != HOLD)
		return;
	at->on_hold = true;
	if (at->decision.verdict == PASS)
		at->decision =
			(struct decision){HOLD, confirm_reasons[CONFIRM_HELD], judged->until};
}

/* Applies holds to the cases of one series, except those that are never announced. */
static void hold_series(struct confirm_case *cases, size_t count)
{
	struct confirm_case **ordered = memory_new(count, sizeof *ordered);
	struct hold *holds = memory_new(count, sizeof *holds);
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (!cases[i].silent)
			ordered[n++] = &cases[i];
	qsort(ordered, n, sizeof *ordered, compare_times);
	for (size_t i = 0; i < n; i++)
		holds[i] = hold_of(ordered[i]);
	hold_judge(holds, n, cases->clock);
	for (size_t i = 0; i < n; i++)
		apply_hold(ordered[i], &holds[i]);
	free(holds);
	free(ordered);
}

/* A change that is never announced has the same reason from the beginning on. */
static void settle(struct confirm_case *at)
{
	struct decision *decision = &at->decision;

	if (decision->verdict == PASS && (at->silent || at->covered))
		*decision = (struct decision){DROP, confirm_reasons[CONFIRM_COVERED], 0};
	if (at->silent)
		decision->reason = at->silent;
}

void confirm_decide(struct arena *arena, struct confirm_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct confirm_case *at = &cases[i];
		bool ripe = confirm_holds(at->rule, at->change, at->first_count, at->service);
		const char *wait = wait_of(at, ripe);

		at->decision = (struct decision){wait ? HOLD : PASS, wait, 0};
		at->on_hold = ripe && wait && !at->again;
	}
	for (size_t i = 0; i < count; i++)
		if (cases[i].share > 0 && (i == 0 || cases[i].share != cases[i - 1].share))
			apply_share(arena, cases, count, cases[i].share, cases[i].series);
	for (size_t i = 0, next; i < count; i = next) {
		for (next = i + 1; next < count && cases[next].of == cases[i].of;)
			next++;
		hold_series(&cases[i], next - i);
	}
	for (size_t i = 0; i < count; i++)
		settle(&cases[i]);
}

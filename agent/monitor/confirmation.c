/*
 * All candidates count for the false discovery rate, including those that the `confirm` rule
 * rejects: they are what was found among so many series.
 *
 * For a candidate that stays one, only its place and the runs are updated; its numbers stay as
 * they were when it was found, because the rule counts the points that followed it then. A held
 * candidate is only written when it moves, and its count of points is that between its place and
 * the point at which it was first seen.
 */
#include "agent/monitor/confirmation.h"

#include <math.h>
#include <stdlib.h>

#include "agent/core/arena.h"
#include "detectors/fdr.h"

size_t confirmation_series(const struct test *test, const struct dataset *data, double share)
{
	size_t count = 0;

	for (size_t i = 0; i < data->count; i++) {
		const struct series *series = &data->series[i];

		count += series->axis->n > 0 &&
			 analysis_configured(test, series->metric)->fdr == share;
	}
	return count;
}

static bool is_counted(const struct candidate *suspect, double share)
{
	return suspect->detection->fdr == share && !suspect->exempt &&
	       !isnan(suspect->record->item.change.pvalue);
}

static double limit_of_share(
	const struct analysis *analysis, const struct candidates *suspects, double share)
{
	double *pvalues = memory_new(suspects->count, sizeof *pvalues), limit;
	size_t series = confirmation_series(analysis->test, analysis->data, share), found = 0;

	for (size_t i = 0; i < suspects->count; i++)
		if (is_counted(&suspects->items[i], share))
			pvalues[found++] = suspects->items[i].record->item.change.pvalue;
	limit = fdr_limit(pvalues, found, series > found ? series : found, share);
	free(pvalues);
	return limit;
}

/* Candidates of one share are adjacent, as series of one metric are. */
void confirmation_share(const struct analysis *analysis, struct candidates *suspects)
{
	double share = 0, limit = 1;

	for (size_t i = 0; i < suspects->count; i++) {
		struct candidate *suspect = &suspects->items[i];

		if (suspect->detection->fdr == 0)
			continue;
		if (suspect->detection->fdr != share) {
			share = suspect->detection->fdr;
			limit = limit_of_share(analysis, suspects, share);
		}
		if (is_counted(suspect, share) && suspect->record->item.change.pvalue > limit)
			suspect->confirmed = false;
	}
}

static int compare_times(const void *a, const void *b)
{
	const struct candidate *const *left = a, *const *right = b;
	int64_t x = (*left)->record->item.time, y = (*right)->record->item.time;

	return x != y ? (x > y) - (x < y) : (*left > *right) - (*left < *right);
}

static struct held held_of(const struct candidate *suspect)
{
	const struct change *change = &suspect->record->item.change;
	double spread = 2 * change->stddev_after / sqrt(fmax(1, (double)change->count_after));
	double percent = fabs(change->level_before) / 100;
	struct held held = {.seen = suspect->seen,
		.until = suspect->until,
		.confirmed = suspect->confirmed,
		.level_before = change->level_before,
		.level_after = change->level_after,
		.low = change->level_after - spread,
		.high = change->level_after + spread};

	if (isfinite(change->size_low) && isfinite(change->size_high)) {
		held.low = change->level_before + percent * change->size_low;
		held.high = change->level_before + percent * change->size_high;
	}
	return held;
}

static void hold_one(struct candidate *suspect, const struct held *judged)
{
	if (judged->verdict == HOLD_OVER)
		suspect->record->news = NOTIFY_SILENT;
	suspect->waiting = judged->verdict == HOLD_WAIT;
	if (!suspect->waiting)
		return;
	if (suspect->confirmed && suspect->realignment &&
		judged->until < suspect->realignment->held)
		suspect->realignment->held = judged->until;
	suspect->confirmed = false;
}

/* Applies holds to the candidates of one series, which are adjacent, except those that are not
 * announced anyway. */
static void hold_series(struct candidate *suspects, size_t count)
{
	struct candidate **ordered = memory_new(count, sizeof *ordered);
	struct held *held = memory_new(count, sizeof *held);
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (suspects[i].record->news == NOTIFY_PENDING)
			ordered[n++] = &suspects[i];
	qsort(ordered, n, sizeof(struct candidate *), compare_times);
	for (size_t i = 0; i < n; i++)
		held[i] = held_of(ordered[i]);
	hold_judge(held, n, suspects[0].clock);
	for (size_t i = 0; i < n; i++)
		hold_one(ordered[i], &held[i]);
	free(held);
	free(ordered);
}

void confirmation_hold(struct candidates *suspects)
{
	for (size_t i = 0, next; i < suspects->count; i = next) {
		for (next = i + 1;
			next < suspects->count &&
			suspects->items[next].record->series == suspects->items[i].record->series;)
			next++;
		hold_series(&suspects->items[i], next - i);
	}
}

static void write_candidate(const struct candidate *suspect, struct store_request *request)
{
	const struct change_record *record = suspect->record, *known = suspect->known;
	struct change_record_update update = {.id = record->item.id,
		.time = record->item.time,
		.now = record->updated,
		.state = CHANGE_CANDIDATE};

	if (!known) {
		struct change_record *fresh = &request->records[request->record_count++];

		*fresh = *record;
		fresh->state = CHANGE_CANDIDATE;
		fresh->news = record->news == NOTIFY_PENDING ? NOTIFY_HELD : NOTIFY_SILENT;
		return;
	}
	if (known->state == CHANGE_WITHDRAWN) {
		struct announcement *item = arena_alloc(request->arena, sizeof *item);

		*item = record->item; /* its place may be that of another change */
		update.item = item;
		update.runs = 1;
	} else if (suspect->waiting) {
		struct announcement *item = arena_alloc(request->arena, sizeof *item);

		if (update.time == known->item.time)
			return;
		*item = record->item;
		item->change.count_after = suspect->first_count;
		update.item = item;
	} else if (suspect->grown) {
		update.runs = record->runs;
	} else if (update.time == known->item.time) {
		return;
	}
	request->updates[request->update_count++] = update;
}

void confirmation_write(
	const struct candidates *suspects, struct store_request *request, struct news_tally *tally)
{
	for (size_t i = 0; i < suspects->count; i++) {
		const struct candidate *suspect = &suspects->items[i];

		tally->found += !suspect->known;
		if (!suspect->confirmed) {
			write_candidate(suspect, request);
			tally->candidates++;
			if (suspect->realignment)
				suspect->realignment->candidates++;
			continue;
		}
		if (suspect->covered && suspect->record->news == NOTIFY_PENDING) {
			suspect->record->news = NOTIFY_SILENT;
			suspect->record->covered = true;
		}
		if (suspect->record->news == NOTIFY_PENDING)
			tally->fresh++;
		else
			tally->silent++;
		request->records[request->record_count++] = *suspect->record;
	}
}

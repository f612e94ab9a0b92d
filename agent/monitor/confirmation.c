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

#include "agent/base/arena.h"
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

/* The p-value below which the detector reports a change; 0 if it has no such option. */
static double p_value_of(const struct detection *detection)
{
	const struct field *field = field_find(detection->detector->fields, "p_value");

	if (!field || field->type != FIELD_DOUBLE)
		return 0;
	return *(const double *)(const void *)((const char *)detection->options + field->offset);
}

void confirmation_notice(const struct test *test, struct query *query)
{
	const struct dataset *data = &query->data;
	double told = 0;

	for (size_t i = 0; i < data->count; i++) {
		const struct detection *detection =
			analysis_configured(test, data->series[i].metric);
		double share = detection->fdr, p = p_value_of(detection);

		if (share == 0 || share == told || p == 0)
			continue;
		told = share;
		size_t series = confirmation_series(test, data, share);
		if ((double)series * p <= share)
			query_notice(query,
				"fdr %g has no effect on %zu series: with a p_value of %g it needs "
				"more than %.0f",
				share, series, p, floor(share / p * (1 + 1e-9)));
	}
}

static bool is_counted(const struct candidate *candidate, double share)
{
	return candidate->detection->fdr == share && !candidate->exempt &&
	       !isnan(candidate->record->item.change.pvalue);
}

static double limit_of_share(
	const struct analysis *analysis, const struct candidates *candidates, double share)
{
	double *pvalues = memory_new(candidates->count, sizeof *pvalues), limit;
	size_t series = confirmation_series(analysis->test, analysis->data, share), found = 0;

	for (size_t i = 0; i < candidates->count; i++)
		if (is_counted(&candidates->items[i], share))
			pvalues[found++] = candidates->items[i].record->item.change.pvalue;
	limit = fdr_limit(pvalues, found, series > found ? series : found, share);
	free(pvalues);
	return limit;
}

/* Candidates of one share are adjacent, as series of one metric are. */
void confirmation_share(const struct analysis *analysis, struct candidates *candidates)
{
	double share = 0, limit = 1;

	for (size_t i = 0; i < candidates->count; i++) {
		struct candidate *candidate = &candidates->items[i];

		if (candidate->detection->fdr == 0)
			continue;
		if (candidate->detection->fdr != share) {
			share = candidate->detection->fdr;
			limit = limit_of_share(analysis, candidates, share);
		}
		if (is_counted(candidate, share) && candidate->record->item.change.pvalue > limit)
			candidate->confirmed = false;
	}
}

static int compare_times(const void *a, const void *b)
{
	const struct candidate *const *left = a, *const *right = b;
	int64_t x = (*left)->record->item.time, y = (*right)->record->item.time;

	return x != y ? (x > y) - (x < y) : (*left > *right) - (*left < *right);
}

static struct hold hold_of(const struct candidate *candidate)
{
	const struct change *change = &candidate->record->item.change;
	double spread = 2 * change->stddev_after / sqrt(fmax(1, (double)change->count_after));
	double percent = fabs(change->level_before) / 100;
	struct hold hold = {.seen = candidate->seen,
		.until = candidate->until,
		.confirmed = candidate->confirmed || candidate->on_hold,
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

static void hold_one(struct candidate *candidate, const struct hold *judged)
{
	if (judged->verdict == DROP) {
		candidate->record->news = NOTIFY_SILENT;
		candidate->confirmed = true;
	}
	if (judged->verdict != HOLD)
		return;
	candidate->on_hold = true;
	if (candidate->confirmed && candidate->realignment &&
		judged->until < candidate->realignment->hold_ends)
		candidate->realignment->hold_ends = judged->until;
	candidate->confirmed = false;
}

/* Applies holds to the candidates of one series, which are adjacent, except those that are not
 * announced anyway. */
static void hold_series(struct candidate *candidates, size_t count)
{
	struct candidate **ordered = memory_new(count, sizeof *ordered);
	struct hold *holds = memory_new(count, sizeof *holds);
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (candidates[i].record->news == NOTIFY_PENDING)
			ordered[n++] = &candidates[i];
	qsort(ordered, n, sizeof(struct candidate *), compare_times);
	for (size_t i = 0; i < n; i++)
		holds[i] = hold_of(ordered[i]);
	hold_judge(holds, n, candidates[0].clock);
	for (size_t i = 0; i < n; i++)
		hold_one(ordered[i], &holds[i]);
	free(holds);
	free(ordered);
}

void confirmation_hold(struct candidates *candidates)
{
	for (size_t i = 0, next; i < candidates->count; i = next) {
		for (next = i + 1;
			next < candidates->count && candidates->items[next].record->series ==
							    candidates->items[i].record->series;)
			next++;
		hold_series(&candidates->items[i], next - i);
	}
}

static void write_candidate(const struct candidate *candidate, struct store_record *request)
{
	const struct change_record *record = candidate->record, *known = candidate->known;
	struct change_record_update update = {.id = record->item.id,
		.time = record->item.time,
		.now = record->updated,
		.state = CHANGE_CANDIDATE};

	if (!known) {
		struct change_record *fresh = &request->records.items[request->records.count++];

		*fresh = *record;
		fresh->state = CHANGE_CANDIDATE;
		fresh->news = record->news == NOTIFY_PENDING ? NOTIFY_HELD : NOTIFY_SILENT;
		return;
	}
	if (known->state == CHANGE_WITHDRAWN) {
		struct announcement *item = arena_alloc(request->call.arena, sizeof *item);

		*item = record->item; /* its place may be that of another change */
		update.item = item;
		update.runs = 1;
	} else if (candidate->on_hold) {
		struct announcement *item = arena_alloc(request->call.arena, sizeof *item);

		if (update.time == known->item.time)
			return;
		*item = record->item;
		item->change.count_after = candidate->first_count;
		update.item = item;
	} else if (candidate->grown) {
		update.runs = record->runs;
	} else if (update.time == known->item.time) {
		return;
	}
	request->updates[request->update_count++] = update;
}

void confirmation_write(
	const struct candidates *candidates, struct store_record *request, struct news_tally *tally)
{
	for (size_t i = 0; i < candidates->count; i++) {
		const struct candidate *candidate = &candidates->items[i];

		tally->found += !candidate->known;
		if (!candidate->confirmed) {
			write_candidate(candidate, request);
			tally->candidates++;
			if (candidate->realignment)
				candidate->realignment->candidates++;
			continue;
		}
		if (candidate->covered && candidate->record->news == NOTIFY_PENDING) {
			candidate->record->news = NOTIFY_SILENT;
			candidate->record->covered = true;
		}
		if (candidate->record->news == NOTIFY_PENDING)
			tally->fresh++;
		else
			tally->silent++;
		request->records.items[request->records.count++] = *candidate->record;
	}
}

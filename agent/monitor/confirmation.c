/*
 * For a candidate that stays one, only its place and the runs are updated; its numbers stay as
 * they were when it was found, because the rule counts the points that followed it then. A held
 * candidate is only written when it moves, and its count of points is that between its place and
 * the point at which it was first seen.
 */
#include "agent/monitor/confirmation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"

/* How many series of the data have that share in their detection. */
static size_t count_series(const struct test *test, const struct dataset *data, double share)
{
	size_t count = 0;

	for (size_t i = 0; i < data->count; i++) {
		const struct series *series = &data->series[i];

		count += series->axis->n > 0 &&
			 analysis_configured(test, series->metric)->fdr == share;
	}
	return count;
}

void confirmation_notice(const struct test *test, struct query *query)
{
	const struct dataset *data = &query->data;
	double told = 0;

	for (size_t i = 0; i < data->count; i++) {
		const struct detection *detection =
			analysis_configured(test, data->series[i].metric);
		const struct field *field = field_find(detection->detector->fields, "p_value");
		double share = detection->fdr, p = 0;

		/* The p-value below which the detector reports a change. */
		if (field && field->type == FIELD_DOUBLE)
			p = *(const double *)(const void *)((const char *)detection->options +
							    field->offset);
		if (share == 0 || share == told || p == 0)
			continue;
		told = share;
		size_t series = count_series(test, data, share);
		if ((double)series * p <= share)
			query_notice(query,
				"fdr %g has no effect on %zu series: with a p_value of %g it needs "
				"more than %.0f",
				share, series, p, floor(share / p * (1 + 1e-9)));
	}
}

static void write_candidate(const struct candidate *candidate, struct store_record *request)
{
	const struct change_record *record = candidate->record, *known = candidate->known;
	struct change_record_update update = {.id = record->item.id,
		.time = record->item.time,
		.now = record->updated,
		.state = CHANGE_CANDIDATE,
		.reason = record->reason,
		.held_until = record->held_until};
	bool same = known && update.time == known->item.time && known->reason &&
		    strcmp(known->reason, update.reason) == 0 &&
		    known->held_until == update.held_until;

	if (!known) {
		struct change_record *fresh = &request->records.items[request->records.count++];

		*fresh = *record;
		fresh->state = CHANGE_CANDIDATE;
		if (candidate->at->on_hold)
			fresh->item.change.count_after = candidate->first_count;
		fresh->news = record->news == NOTIFY_PENDING ? NOTIFY_HELD : NOTIFY_SILENT;
		return;
	}
	if (known->state == CHANGE_WITHDRAWN) {
		struct announcement *item = arena_alloc(request->call.arena, sizeof *item);

		*item = record->item; /* its place may be that of another change */
		update.item = item;
		update.runs = 1;
	} else if (candidate->at->on_hold) {
		if (same)
			return;
		if (update.time != known->item.time) {
			struct announcement *item = arena_alloc(request->call.arena, sizeof *item);

			*item = record->item;
			item->change.count_after = candidate->first_count;
			update.item = item;
		}
	} else if (candidate->realignment->grown) {
		update.runs = record->runs;
	} else if (same) {
		return;
	}
	request->updates[request->update_count++] = update;
}

void confirmation_write(const struct analysis *analysis, const struct candidates *candidates,
	struct store_record *request, struct news_tally *tally)
{
	struct confirm_case *cases = candidates->cases;

	/* Series of one metric are adjacent, and have the same share. */
	for (size_t i = 0; i < candidates->count; i++)
		cases[i].series =
			cases[i].share == 0 ? 0
			: i > 0 && cases[i].share == cases[i - 1].share
				? cases[i - 1].series
				: count_series(analysis->test, analysis->data, cases[i].share);
	confirm_decide(request->call.arena, cases, candidates->count);
	for (size_t i = 0; i < candidates->count; i++) {
		const struct candidate *candidate = &candidates->items[i];
		struct realignment *realignment = candidate->realignment;
		struct change_record *record = candidate->record;
		const struct decision *decision = &cases[i].decision;
		bool silent = cases[i].silent || decision->verdict == DROP;

		if (decision->until != 0 && decision->until < realignment->hold_ends)
			realignment->hold_ends = decision->until;
		record->news = silent ? NOTIFY_SILENT : NOTIFY_PENDING;
		record->reason = decision->reason;
		record->held_until = decision->until;
		tally->found += !candidate->known;
		if (decision->verdict == HOLD) {
			write_candidate(candidate, request);
			tally->candidates++;
			realignment->candidates++;
			continue;
		}
		record->covered = decision->reason == confirm_reasons[CONFIRM_COVERED];
		*(silent ? &tally->silent : &tally->fresh) += 1;
		request->records.items[request->records.count++] = *record;
	}
}

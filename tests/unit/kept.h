/*
 * The store, as far as it matters to what is news: what is known of a test's only series, "s".
 */
#ifndef TESTS_UNIT_KEPT_H
#define TESTS_UNIT_KEPT_H

#include <stdio.h>
#include <stdlib.h>

#include "agent/base/when.h"
#include "agent/monitor/series_cache.h"

enum { MOST_RECORDS = 500 };

struct kept {
	struct change_record records[MOST_RECORDS];
	size_t count;
	char reasons[MOST_RECORDS][256];
	size_t told[MOST_RECORDS]; /* how often the record was to be told */
	size_t hushed;             /* ends of what was told that nothing tells */
	bool has_checkpoint;
	struct series_checkpoint checkpoint;
	size_t requests, passes;
	struct news_tally tally; /* of the last pass */
};

static int kept_compare_ids(const void *a, const void *b)
{
	const struct change_record *left = a, *right = b;

	return (left->item.id > right->item.id) - (left->item.id < right->item.id);
}

static struct change_record *kept_find(struct kept *kept, int64_t id)
{
	struct change_record key = {.item.id = id};
	struct change_record *record =
		bsearch(&key, kept->records, kept->count, sizeof key, kept_compare_ids);

	assert_non_null(record);
	return record;
}

static void kept_reason(struct kept *kept, struct change_record *record, const char *reason)
{
	char *place = kept->reasons[record - kept->records];

	if (reason)
		snprintf(place, sizeof *kept->reasons, "%s", reason);
	record->reason = reason ? place : NULL;
}

/* Every text of a record but its series and reason is gone with the request. */
static void kept_record(struct kept *kept, const struct change_record *record)
{
	struct change_record *place = record->confirmed ? kept_find(kept, record->item.id)
							: &kept->records[kept->count++];
	int64_t first_seen = record->confirmed ? place->first_seen : record->first_seen;

	assert_true(kept->count < MOST_RECORDS);
	*place = *record;
	place->item.id = place - kept->records + 1;
	place->first_seen = first_seen;
	place->runs = record->runs > 0 ? record->runs : 1;
	place->confirmed = false;
	place->series = "s";
	place->branch = "";
	kept_reason(kept, place, record->reason);
	kept->told[place - kept->records] += record->news == NOTIFY_PENDING;
}

/* Whether a change that was told, and stands, is the end of the record. */
static bool kept_tells_end(const struct kept *kept, const struct change_record *record)
{
	for (size_t i = 0; i < kept->count; i++)
		if (kept->told[i] > 0 && kept->records[i].state != CHANGE_WITHDRAWN &&
			kept->records[i].sign == -record->sign &&
			llabs(kept->records[i].item.time - record->item.over.time) <=
				2 * CHANGE_TOLERANCE * kept->records[i].item.spacing)
			return true;
	return false;
}

static void kept_store(struct kept *kept, const struct store_record *request)
{
	kept->requests++;
	for (size_t i = 0; i < request->records.count; i++)
		kept_record(kept, &request->records.items[i]);
	for (size_t i = 0; i < request->update_count; i++) {
		const struct change_record_update *update = &request->updates[i];
		struct change_record *record = kept_find(kept, update->id);

		record->state = update->state;
		record->item.time = update->time;
		record->held_until = update->held_until;
		if (update->reason)
			kept_reason(kept, record, update->reason);
		if (update->over.time != 0)
			record->item.over = update->over;
		record->runs = update->runs > 0 ? update->runs : record->runs;
		if (update->item)
			record->item.change = update->item->change;
	}
	for (size_t i = 0; i < request->update_count; i++) {
		const struct change_record *record = kept_find(kept, request->updates[i].id);

		kept->hushed += request->updates[i].silent &&
				kept->told[record - kept->records] > 0 &&
				!kept_tells_end(kept, record);
	}
	if (request->checkpoints.count == 0)
		return;
	kept->has_checkpoint = true;
	kept->checkpoint = request->checkpoints.items[0];
	kept->checkpoint.series = "s";
}

/* A pass of the test, whose only series has these values; series_cache_begin was called. `failing`:
 * the store cannot write. */
static void kept_pass(struct kept *kept, struct series_cache *memory, const struct test *test,
	const struct axis *axis, double *values, int64_t now, struct scratch *scratch, bool failing)
{
	struct arena *arena = arena_new();
	struct axis own = *axis;
	struct series series = {.name = "s", .identity = "s", .axis = &own, .values = values};
	struct dataset data = {&series, 1};
	struct analysis analysis;
	struct realignment **realignments;
	struct store_record *request = store_record_new(NULL, NULL);
	struct error error;

	kept->tally = (struct news_tally){0};
	assert_true(series_cache_detect(
		memory, arena, test, &data, NULL, scratch, &analysis, &realignments, &error));
	if (!series_cache_settled(memory, now))
		kept->tally = news_find(&analysis, realignments, kept->records, kept->count,
			&(struct news_clock){.now = now, .oldest = WHEN_ALWAYS}, request);
	bool news = request->records.count + request->update_count > 0;
	kept->passes++;
	if (!failing) {
		if (series_cache_checkpoints(memory, request, news) > 0 || news)
			kept_store(kept, request);
		series_cache_recorded(memory, kept->tally.beyond == 0);
	}
	store_call_free(&request->call);
	arena_free(arena);
}

#endif

/*
 * The store, as far as it matters to what is news: what is known of a test's only series, "s".
 */
#ifndef TESTS_UNIT_KEPT_H
#define TESTS_UNIT_KEPT_H

#include <stdlib.h>

#include "agent/news/store.h"

enum { MOST_RECORDS = 500 };

struct kept {
	struct record records[MOST_RECORDS];
	size_t count;
	size_t told[MOST_RECORDS]; /* how often the record was to be told */
	bool marked;
	struct series_mark mark;
	size_t requests, passes;
};

static int kept_compare_ids(const void *a, const void *b)
{
	const struct record *left = a, *right = b;

	return (left->item.id > right->item.id) - (left->item.id < right->item.id);
}

static struct record *kept_find(struct kept *kept, int64_t id)
{
	struct record key = {.item.id = id};
	struct record *record =
		bsearch(&key, kept->records, kept->count, sizeof key, kept_compare_ids);

	assert_non_null(record);
	return record;
}

/* Every text of a record but its series is gone with the request. */
static void kept_record(struct kept *kept, const struct record *record)
{
	struct record *place =
		record->believed ? kept_find(kept, record->item.id) : &kept->records[kept->count++];
	int64_t first_seen = record->believed ? place->first_seen : record->first_seen;

	assert_true(kept->count < MOST_RECORDS);
	*place = *record;
	place->item.id = place - kept->records + 1;
	place->first_seen = first_seen;
	place->believed = false;
	place->series = "s";
	place->branch = "";
	kept->told[place - kept->records] += record->news == NEWS_PENDING;
}

static void kept_store(struct kept *kept, const struct store_request *request)
{
	kept->requests++;
	for (size_t i = 0; i < request->record_count; i++)
		kept_record(kept, &request->records[i]);
	for (size_t i = 0; i < request->update_count; i++) {
		const struct record_update *update = &request->updates[i];
		struct record *record = kept_find(kept, update->id);

		record->state = update->state;
		record->item.time = update->time;
		record->runs = update->runs > 0 ? update->runs : record->runs;
		if (update->item)
			record->item.change = update->item->change;
	}
	if (request->mark_count == 0)
		return;
	kept->marked = true;
	kept->mark = request->marks[0];
	kept->mark.series = "s";
}

#endif

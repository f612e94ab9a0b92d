/*
 * A cluster is recorded as a change of its group: the name and levels are those of the member
 * nearest to its centroid, the size is the median of its members. The record's series column lists
 * the best members, by which the cluster is recognised in later runs. Clusters that are not found
 * any more are left as they are: if a cluster falls apart later, its members have still changed
 * together.
 */
#include "agent/monitor/cluster_news.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/shapes_coalesce.h"
#include "agent/base/buf.h"
#include "agent/base/hash.h"
#include "agent/decide/confirm.h"
#include "agent/decide/match.h"
#include "agent/notify/announce.h"

enum { LABELS_TOLD = 3 };

void cluster_cache_free(struct cluster_cache *cache)
{
	free(cache->keys);
	free(cache->covered);
	*cache = (struct cluster_cache){0};
}

static struct cluster_change_key *find_key(const struct cluster_cache *cache, int64_t id)
{
	for (size_t i = 0; i < cache->key_count; i++)
		if (cache->keys[i].id == id)
			return &cache->keys[i];
	return NULL;
}

static uint64_t hash_series(const char *test, const char *identity)
{
	uint64_t hash = hash_add(HASH_START, test, strlen(test) + 1);

	return hash_add(hash, identity, strlen(identity) + 1);
}

static int compare_covered(const void *a, const void *b)
{
	const struct covered *left = a, *right = b;

	return (left->series > right->series) - (left->series < right->series);
}

static void set_covered(struct cluster_cache *cache, const struct shape_report *report)
{
	size_t count = 0;

	for (size_t i = 0; i < report->count; i++)
		count += report->shapes[i].count;
	free(cache->covered);
	cache->reach = report->reach;
	cache->covered = memory_new(count, sizeof *cache->covered);
	cache->covered_count = 0;
	for (size_t i = 0; i < report->count; i++) {
		const struct shape *shape = &report->shapes[i];

		for (size_t j = 0; j < shape->count; j++)
			cache->covered[cache->covered_count++] = (struct covered){
				hash_series(shape->members[j].test, shape->members[j].identity),
				shape->time, shape->spacing, shape->sign};
	}
	qsort(cache->covered, count, sizeof *cache->covered, compare_covered);
}

bool cluster_covers(const struct cluster_cache *cache, const struct change_record *record)
{
	uint64_t series = hash_series(record->item.test, record->series);
	size_t low = 0, high = cache->covered_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (cache->covered[middle].series < series)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < cache->covered_count && cache->covered[low].series == series; low++) {
		const struct covered *at = &cache->covered[low];
		int64_t spacing = at->spacing > record->spacing ? at->spacing : record->spacing;
		int64_t apart = at->time - record->item.time;

		if (at->sign == record->sign && llabs(apart) <= CHANGE_TOLERANCE * spacing)
			return true;
	}
	return false;
}

/* "96% renderer=gpu, 90% region=eu", or NULL. */
static const char *shared_text(const struct shape *shape, struct arena *arena)
{
	struct buf text = {0};
	const char *shared = NULL;

	for (size_t i = 0; i < shape->label_count && i < LABELS_TOLD; i++)
		buf_printf(&text, "%s%.0f%% %s", i ? ", " : "", 100 * shape->labels[i].share,
			shape->labels[i].text);
	if (text.length > 0)
		shared = arena_strndup(arena, text.data, text.length);
	buf_free(&text);
	return shared;
}

/* The levels of the nearest member, the size of all. */
static struct change change_of(const struct shape *shape)
{
	struct change change = shape->change;

	if (isfinite(shape->ratio)) {
		change.size = 100 * (shape->ratio - 1);
		change.size_low = change.size_high = (double)NAN;
	}
	return change;
}

static struct announcement announce(
	struct arena *arena, const char *group, const struct shape *shape)
{
	const struct announcement item = {.test = group,
		.metric = arena_printf(
			arena, "%s: %s", shape->members[0].test, shape->members[0].series),
		.unit = shape->unit,
		.direction = shape->direction,
		.time = shape->time,
		.change = change_of(shape),
		.commit_before = shape->commit_before,
		.commit_after = shape->commit_after,
		.version_before = shape->version_before,
		.version_after = shape->version_after,
		.slope = (double)NAN,
		.place_from = shape->time,
		.place_to = shape->time,
		.place_commit_before = shape->commit_before,
		.place_commit_after = shape->commit_after,
		.place_version_before = shape->version_before,
		.place_version_after = shape->version_after,
		.members = shape->count,
		.suspects = shape->suspects,
		.shared = shared_text(shape, arena)};

	return announce_copy(arena, &item);
}

static struct change_record record_of(
	struct arena *arena, const char *group, const struct shape *shape, int64_t now)
{
	return (struct change_record){.item = announce(arena, group, shape),
		.series = coalesce_best(shape, arena),
		.branch = "",
		.sign = shape->sign,
		.state = CHANGE_CONFIRMED,
		.news = NOTIFY_PENDING,
		.first_seen = now,
		.spacing = shape->spacing};
}

static struct known_shape *list_known(struct arena *arena, const struct cluster_cache *cache,
	const struct change_record *known, size_t count)
{
	struct known_shape *list = arena_array(arena, count, sizeof *list);

	for (size_t i = 0; i < count; i++) {
		const struct cluster_change_key *last = find_key(cache, known[i].item.id);

		list[i] = (struct known_shape){.time = last ? last->time : known[i].item.time,
			.spacing = known[i].spacing,
			.sign = known[i].sign,
			.best = known[i].series};
	}
	return list;
}

/* Notes that a known cluster was found again: true if it is clearer than ever since the start. */
static bool note_seen(struct cluster_cache *cache, int64_t id, const struct shape *shape)
{
	struct cluster_change_key *last = find_key(cache, id);

	if (!last) {
		cache->keys = memory_resize(cache->keys, cache->key_count + 1, sizeof *cache->keys);
		cache->keys[cache->key_count++] =
			(struct cluster_change_key){id, shape->time, shape->regression};
		return false;
	}
	last->time = shape->time;
	if (fabs(shape->regression) <= fabs(last->regression))
		return false;
	last->regression = shape->regression;
	return true;
}

static void add_update(struct store_record *request, const struct change_record *known,
	const struct shape *shape, const char *group, int64_t now)
{
	struct announcement *item = arena_alloc(request->call.arena, sizeof *item);

	*item = announce(request->call.arena, group, shape);
	request->updates[request->update_count++] =
		(struct change_record_update){.id = known->item.id,
			.time = shape->time,
			.now = now,
			.state = shape->time != known->item.time ? CHANGE_MOVED : known->state,
			.item = item};
}

void cluster_news(const char *group, const struct shape_report *report,
	const struct change_record *known, size_t known_count, const struct news_clock *clock,
	struct cluster_cache *cache, struct store_record *request, int64_t *changes)
{
	bool newer = cache->reach > 0 && report->reach > cache->reach;
	int64_t now = clock->now, oldest = news_oldest(clock, report->times, report->points, newer);
	struct arena *arena = request->call.arena;
	size_t *known_of = arena_array(arena, report->count, sizeof *known_of);
	bool *seen = arena_array(arena, known_count, sizeof *seen);

	request->records.items = arena_array(arena, report->count, sizeof *request->records.items);
	request->updates = arena_array(arena, report->count, sizeof *request->updates);
	coalesce(report->shapes, report->count, list_known(arena, cache, known, known_count),
		known_count, known_of);
	for (size_t i = 0; i < report->count; i++) {
		const struct shape *shape = &report->shapes[i];
		size_t at = known_of[i];

		changes[i] = at == COALESCE_NONE ? -1 - (int64_t)request->records.count
						 : known[at].item.id;
		if (at == COALESCE_NONE) {
			struct change_record *record =
				&request->records.items[request->records.count++];

			*record = record_of(arena, group, shape, now);
			if (shape->time < oldest) {
				record->news = NOTIFY_SILENT;
				record->reason = confirm_reasons[CONFIRM_AGE];
			}
		} else if (!seen[at]) {
			seen[at] = true;
			if (note_seen(cache, known[at].item.id, shape))
				add_update(request, &known[at], shape, group, now);
		}
	}
	set_covered(cache, report);
}

/*
 * See threads.h. A thread remembers marks (a time or a commit) of what it told, not the changes;
 * many changes share theirs, so that few marks stand for all but the strangest messages.
 */
#include "agent/news/threads.h"

#include <stdlib.h>
#include <string.h>

#include "agent/news/group.h"

enum { THREADS_MOST = 1000, COMMITS_MOST = 64, TIMES_MOST = 64 };

/* A time that was told, with the distance of the points of its series; both ms. */
struct moment {
	int64_t time, spacing;
};

struct entry {
	struct thread thread;
	struct arena *arena;
	const char *receiver, *destination, *receipt;
	int64_t updated, interval;
	const char *commits[COMMITS_MOST];
	struct moment moments[TIMES_MOST];
	size_t commit_count, moment_count;
	struct entry *next;
};

struct threads {
	struct entry *first; /* the latest begun */
	size_t count;
};

struct threads *threads_new(void)
{
	return memory_new(1, sizeof(struct threads));
}

void threads_free(struct threads *threads)
{
	if (!threads)
		return;
	for (struct entry *entry = threads->first, *next; entry; entry = next) {
		next = entry->next;
		arena_free(entry->arena);
	}
	free(threads);
}

static struct entry *find(const struct threads *threads, const char *key)
{
	struct entry *entry = key ? threads->first : NULL;

	while (entry && strcmp(entry->thread.key, key) != 0)
		entry = entry->next;
	return entry;
}

static bool has_commit(const struct entry *entry, const char *commit)
{
	for (size_t i = 0; i < entry->commit_count; i++)
		if (strcmp(entry->commits[i], commit) == 0)
			return true;
	return false;
}

static void add_commits(struct entry *entry, const struct record *records, size_t count)
{
	for (size_t i = 0; i < count && entry->commit_count < COMMITS_MOST; i++) {
		const char *commit = records[i].item.commit_after;

		if (commit && *commit && !has_commit(entry, commit))
			entry->commits[entry->commit_count++] = arena_strdup(entry->arena, commit);
	}
}

static bool near_moment(const struct entry *entry, const struct record *record)
{
	for (size_t i = 0; i < entry->moment_count; i++)
		if (group_near(entry->moments[i].time, entry->moments[i].spacing, record->item.time,
			    record->spacing))
			return true;
	return false;
}

/* One for each time that is not near another: a message may tell several groups. */
static void add_moments(struct entry *entry, const struct record *records, size_t count)
{
	for (size_t i = 0; i < count && entry->moment_count < TIMES_MOST; i++)
		if (!near_moment(entry, &records[i]))
			entry->moments[entry->moment_count++] =
				(struct moment){records[i].item.time, records[i].spacing};
}

static void forget_last(struct threads *threads)
{
	struct entry **link = &threads->first;

	while ((*link)->next)
		link = &(*link)->next;
	arena_free((*link)->arena);
	*link = NULL;
	threads->count--;
}

static void copy_texts(struct arena *arena, struct announcement *item)
{
	const char **texts[] = {&item->test, &item->metric, &item->unit, &item->commit_before,
		&item->commit_after, &item->version_before, &item->version_after, &item->shared};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		*texts[i] = arena_strdup(arena, *texts[i]);
	item->commit_url = item->compare_url = NULL;
}

static struct entry *begin(struct threads *threads, const struct parcel *parcel)
{
	struct arena *arena = arena_new();
	struct entry *entry = arena_alloc(arena, sizeof *entry);
	const struct record *first = &parcel->records[0];

	for (size_t i = 1; i < parcel->record_count; i++)
		if (parcel->records[i].item.time < first->item.time)
			first = &parcel->records[i];
	*entry = (struct entry){.arena = arena,
		.thread = {.key = arena_strdup(arena, parcel->key), .first = first->item},
		.receiver = arena_strdup(arena, parcel->receiver),
		.destination = arena_strdup(arena, parcel->destination),
		.next = threads->first};
	copy_texts(arena, &entry->thread.first);
	threads->first = entry;
	if (++threads->count > THREADS_MOST)
		forget_last(threads);
	return entry;
}

void threads_add(struct threads *threads, const struct parcel *parcel, int64_t interval)
{
	struct entry *entry = find(threads, parcel->thread);

	if (parcel->record_count == 0)
		return;
	if (!entry)
		entry = find(threads, parcel->key);
	if (!entry)
		entry = begin(threads, parcel);
	if (entry->updated < parcel->now)
		entry->updated = parcel->now;
	if (entry->interval < interval)
		entry->interval = interval;
	if (parcel->receipt && !entry->receipt)
		entry->receipt = arena_strdup(entry->arena, parcel->receipt);
	add_commits(entry, parcel->records, parcel->record_count);
	add_moments(entry, parcel->records, parcel->record_count);
}

static bool belongs(const struct entry *entry, const struct record *const *records, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct announcement *item = &records[i]->item;

		if (item->commit_after && *item->commit_after &&
			has_commit(entry, item->commit_after))
			return true;
		if (near_moment(entry, records[i]))
			return true;
	}
	return false;
}

const struct thread *threads_find(const struct threads *threads, const char *receiver,
	const char *destination, const struct record *const *records, size_t count,
	int64_t interval, int64_t now)
{
	const struct entry *best = NULL;

	for (const struct entry *entry = threads->first; entry; entry = entry->next) {
		int64_t open = entry->interval > interval ? entry->interval : interval;

		if (now - entry->updated > open || strcmp(entry->receiver, receiver) != 0 ||
			strcmp(entry->destination, destination) != 0 ||
			!belongs(entry, records, count))
			continue;
		if (!best || entry->updated > best->updated)
			best = entry;
	}
	return best ? &best->thread : NULL;
}

void threads_sent(struct threads *threads, const char *key, const char *receipt)
{
	struct entry *entry = find(threads, key);

	if (entry && receipt && !entry->receipt)
		entry->receipt = arena_strdup(entry->arena, receipt);
}

const char *threads_receipt(const struct threads *threads, const char *key)
{
	const struct entry *entry = find(threads, key);

	return entry ? entry->receipt : NULL;
}

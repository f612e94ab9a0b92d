/*
 * A thread keeps times and commits instead of changes: many changes share a few of them.
 */
#include "agent/notify/threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/hash.h"
#include "agent/decide/group.h"
#include "agent/notify/announce.h"

enum { THREADS_MOST = 1000, COMMITS_MOST = 64, MOMENTS_MOST = 64 };

/* A time that was announced, with the spacing of its series; both ms. */
struct moment {
	int64_t time, spacing;
	uint64_t environment; /* where it was measured; 0: unknown */
	size_t count;         /* changes that it stands for */
};

struct commit {
	const char *name;
	struct moment moment; /* of a change that has it */
};

struct marks {
	struct commit commits[COMMITS_MOST];
	struct moment moments[MOMENTS_MOST];
	size_t commit_count, moment_count;
};

struct entry {
	struct thread thread;
	struct change_record first; /* its own: of which the thread's is a part */
	struct arena *arena;
	const char *receiver, *destination, *receipt;
	int64_t updated, interval;
	int64_t environment; /* the event that it is about, whose changes alone belong to it; 0:
				none */
	struct marks marks;
	struct entry *next;
};

struct threads {
	pthread_mutex_t mutex; /* held by the loop while it changes them, and by readers */
	struct entry *first;   /* newest first */
	size_t count;
};

struct threads *threads_new(void)
{
	struct threads *threads = memory_new(1, sizeof *threads);

	pthread_mutex_init(&threads->mutex, NULL);
	return threads;
}

void threads_clear(struct threads *threads)
{
	pthread_mutex_lock(&threads->mutex);
	for (struct entry *entry = threads->first, *next; entry; entry = next) {
		next = entry->next;
		arena_free(entry->arena);
	}
	threads->first = NULL;
	threads->count = 0;
	pthread_mutex_unlock(&threads->mutex);
}

void threads_free(struct threads *threads)
{
	if (!threads)
		return;
	threads_clear(threads);
	pthread_mutex_destroy(&threads->mutex);
	free(threads);
}

static struct entry *find(const struct threads *threads, const char *key)
{
	struct entry *entry = key ? threads->first : NULL;

	while (entry && strcmp(entry->thread.key, key) != 0)
		entry = entry->next;
	return entry;
}

static bool has_commit(const struct marks *marks, const char *commit)
{
	for (size_t i = 0; i < marks->commit_count; i++)
		if (strcmp(marks->commits[i].name, commit) == 0)
			return true;
	return false;
}

static bool is_near(const struct moment *a, const struct moment *b)
{
	return change_near(a->time, a->spacing, b->time, b->spacing);
}

static bool has_moment(const struct marks *marks, const struct moment *moment)
{
	for (size_t i = 0; i < marks->moment_count; i++)
		if (is_near(&marks->moments[i], moment))
			return true;
	return false;
}

static bool knows_commit(const struct marks *marks, const char *commit, const struct moment *moment)
{
	for (size_t i = 0; i < marks->commit_count; i++)
		if (marks->commits[i].moment.environment == moment->environment &&
			is_near(&marks->commits[i].moment, moment) &&
			strcmp(marks->commits[i].name, commit) == 0)
			return true;
	return false;
}

static struct moment *find_moment(struct marks *marks, const struct moment *moment)
{
	for (size_t i = 0; i < marks->moment_count; i++)
		if (marks->moments[i].environment == moment->environment &&
			is_near(&marks->moments[i], moment))
			return &marks->moments[i];
	return NULL;
}

static uint64_t environment_of(const struct change_record *record)
{
	const char *value = record->item.environment;

	return value ? hash_add(HASH_START, value, strlen(value)) : 0;
}

/* Adds marks that are missing; copies to the arena, or borrows without one. One moment stands for
 * all near it in one environment; a message may hold several groups. */
static void marks_add(struct marks *marks, struct arena *arena, const struct change_record *record)
{
	const char *commit = record->item.commit_after;
	struct moment moment = {record->item.time, record->spacing, environment_of(record), 1};
	struct moment *known = find_moment(marks, &moment);

	if (commit && *commit && marks->commit_count < COMMITS_MOST &&
		!knows_commit(marks, commit, &moment))
		marks->commits[marks->commit_count++] =
			(struct commit){arena ? arena_strdup(arena, commit) : commit, moment};
	if (known)
		known->count++;
	else if (marks->moment_count < MOMENTS_MOST)
		marks->moments[marks->moment_count++] = moment;
}

/* Whether the moment is one of those, in the same environment. */
static bool is_of(const struct marks *event, const struct moment *moment)
{
	for (size_t i = 0; moment->environment != 0 && i < event->moment_count; i++)
		if (event->moments[i].environment == moment->environment &&
			is_near(&event->moments[i], moment))
			return true;
	return false;
}

/* A change in several environments at once is not announced early for one of them. */
static size_t count_early(const struct marks *marks, const struct marks *event)
{
	size_t count = 0;

	for (size_t i = 0; i < marks->moment_count; i++) {
		const struct moment *moment = &marks->moments[i];
		bool alone = is_of(event, moment);

		for (size_t j = 0; alone && j < marks->moment_count; j++)
			alone = marks->moments[j].environment == moment->environment ||
				!is_near(&marks->moments[j], moment);
		count += alone ? moment->count : 0;
	}
	return count;
}

/* Removes the marks that belong to an environment event, so that nothing else joins by them. */
static void marks_remove(struct marks *marks, const struct marks *event)
{
	size_t commits = 0, moments = 0;

	for (size_t i = 0; i < marks->commit_count; i++)
		if (!is_of(event, &marks->commits[i].moment))
			marks->commits[commits++] = marks->commits[i];
	for (size_t i = 0; i < marks->moment_count; i++)
		if (!is_of(event, &marks->moments[i]))
			marks->moments[moments++] = marks->moments[i];
	marks->commit_count = commits;
	marks->moment_count = moments;
}

static bool marks_meet(const struct marks *marks, const struct marks *others)
{
	for (size_t i = 0; i < others->commit_count; i++)
		if (has_commit(marks, others->commits[i].name))
			return true;
	for (size_t i = 0; i < others->moment_count; i++)
		if (has_moment(marks, &others->moments[i]))
			return true;
	return false;
}

/* Drops the thread that has been silent for longest, of two the older; never the newest. */
static void forget_oldest(struct threads *threads)
{
	struct entry **oldest = &threads->first->next, *entry;

	for (struct entry **link = oldest; *link; link = &(*link)->next)
		if ((*link)->updated <= (*oldest)->updated)
			oldest = link;
	entry = *oldest;
	*oldest = entry->next;
	arena_free(entry->arena);
	threads->count--;
}

static void drop_unsent(struct threads *threads, const char *key)
{
	struct entry **link = &threads->first, *entry;

	while (*link && strcmp((*link)->thread.key, key) != 0)
		link = &(*link)->next;
	entry = *link;
	if (!entry || entry->receipt)
		return;
	*link = entry->next;
	arena_free(entry->arena);
	threads->count--;
}

void threads_forget(struct threads *threads, const char *key)
{
	pthread_mutex_lock(&threads->mutex);
	drop_unsent(threads, key);
	pthread_mutex_unlock(&threads->mutex);
}

/* Copies what messages need to refer to the change by its range, and its grouping values. */
static struct announcement copy_bare(struct arena *arena, const struct announcement *item)
{
	struct announcement bare = *item;

	bare.commit_url = bare.compare_url = NULL;
	bare.dashboard = bare.runbook = bare.page = bare.owner = NULL;
	return announce_copy(arena, &bare);
}

static struct entry *thread_new(struct threads *threads, const struct delivery *delivery)
{
	struct arena *arena = arena_new();
	struct entry *entry = arena_alloc(arena, sizeof *entry);
	const struct change_record *first = &delivery->records[0];

	for (size_t i = 1; i < delivery->record_count; i++)
		if (delivery->records[i].item.time < first->item.time)
			first = &delivery->records[i];
	*entry = (struct entry){.arena = arena,
		.thread = {.key = arena_strdup(arena, delivery->key)},
		.first = {.item = copy_bare(arena, &first->item),
			.series = arena_strdup(arena, first->series ? first->series : ""),
			.branch = arena_strdup(arena, first->branch ? first->branch : ""),
			.sign = first->sign},
		.receiver = arena_strdup(arena, delivery->receiver),
		.destination = arena_strdup(arena, delivery->destination),
		.environment = first->environment_event,
		.next = threads->first};
	entry->thread.first = entry->first.item;
	entry->thread.first.attribute_count = 0;
	threads->first = entry;
	if (++threads->count > THREADS_MOST)
		forget_oldest(threads);
	return entry;
}

static bool is_at(const struct entry *entry, const char *receiver, const char *destination)
{
	return strcmp(entry->receiver, receiver) == 0 &&
	       strcmp(entry->destination, destination) == 0;
}

/* A change announced before the event it is part of gets no followers. */
static void close_early(struct threads *threads, const struct entry *event)
{
	for (struct entry *entry = threads->first; entry; entry = entry->next)
		if (entry->environment == 0 && is_at(entry, event->receiver, event->destination))
			marks_remove(&entry->marks, &event->marks);
}

static void add(struct threads *threads, const struct delivery *delivery, int64_t interval)
{
	struct entry *entry = find(threads, delivery->thread);

	if (!entry)
		entry = find(threads, delivery->key);
	if (!entry)
		entry = thread_new(threads, delivery);
	if (entry->updated < delivery->now)
		entry->updated = delivery->now;
	if (entry->interval < interval)
		entry->interval = interval;
	if (delivery->receipt && !entry->receipt)
		entry->receipt = arena_strdup(entry->arena, delivery->receipt);
	for (size_t i = 0; i < delivery->record_count; i++)
		marks_add(&entry->marks, entry->arena, &delivery->records[i]);
	if (entry->environment != 0)
		close_early(threads, entry);
}

void threads_add(struct threads *threads, const struct delivery *delivery, int64_t interval)
{
	if (delivery->record_count == 0)
		return;
	pthread_mutex_lock(&threads->mutex);
	add(threads, delivery, interval);
	pthread_mutex_unlock(&threads->mutex);
}

size_t threads_early(struct threads *threads, const char *receiver, const char *destination,
	const struct change_record *const *records, size_t count)
{
	struct marks event = {0};
	size_t early = 0;

	for (size_t i = 0; i < count; i++)
		marks_add(&event, NULL, records[i]);
	pthread_mutex_lock(&threads->mutex);
	for (const struct entry *entry = threads->first; entry; entry = entry->next)
		if (entry->environment == 0 && is_at(entry, receiver, destination))
			early += count_early(&entry->marks, &event);
	pthread_mutex_unlock(&threads->mutex);
	return early;
}

static const struct entry *find_open(const struct threads *threads, const char *receiver,
	const char *destination, const struct marks *marks, int64_t environment, int64_t interval,
	int64_t now, const struct thread_filter *filter)
{
	const struct entry *best = NULL;

	for (const struct entry *entry = threads->first; entry; entry = entry->next) {
		int64_t open = entry->interval > interval ? entry->interval : interval;

		if (!is_at(entry, receiver, destination) || entry->environment != environment)
			continue;
		if (environment == 0 &&
			(now - entry->updated > open || !marks_meet(&entry->marks, marks)))
			continue;
		if (filter && !filter->accepts(filter->context, &entry->first))
			continue;
		if (!best || entry->updated > best->updated)
			best = entry;
	}
	return best;
}

bool threads_find(struct threads *threads, struct arena *arena, const char *receiver,
	const char *destination, const struct change_record *const *records, size_t count,
	int64_t interval, int64_t now, const struct thread_filter *filter, struct thread *out)
{
	int64_t environment = count > 0 ? records[0]->environment_event : 0;
	const struct entry *found;
	struct marks marks = {0};

	for (size_t i = 0; i < count; i++)
		marks_add(&marks, NULL, records[i]);
	pthread_mutex_lock(&threads->mutex);
	found = find_open(
		threads, receiver, destination, &marks, environment, interval, now, filter);
	if (found)
		*out = (struct thread){arena_strdup(arena, found->thread.key),
			announce_copy(arena, &found->thread.first)};
	pthread_mutex_unlock(&threads->mutex);
	return found != NULL;
}

const char *threads_of_environment(const struct threads *threads, const char *receiver,
	const char *destination, int64_t environment)
{
	for (const struct entry *entry = threads->first; entry; entry = entry->next)
		if (entry->environment == environment && is_at(entry, receiver, destination))
			return entry->thread.key;
	return NULL;
}

void threads_sent(struct threads *threads, const char *key, const char *receipt)
{
	struct entry *entry;

	pthread_mutex_lock(&threads->mutex);
	entry = find(threads, key);
	if (entry && receipt && !entry->receipt)
		entry->receipt = arena_strdup(entry->arena, receipt);
	pthread_mutex_unlock(&threads->mutex);
}

void threads_lose(struct threads *threads, const char *key)
{
	struct entry *entry;

	pthread_mutex_lock(&threads->mutex);
	entry = find(threads, key);
	if (entry)
		entry->receipt = NULL;
	pthread_mutex_unlock(&threads->mutex);
}

const char *threads_receipt(const struct threads *threads, const char *key)
{
	const struct entry *entry = find(threads, key);

	return entry ? entry->receipt : NULL;
}

bool threads_has_receipt(struct threads *threads, const char *key)
{
	bool has;

	pthread_mutex_lock(&threads->mutex);
	has = threads_receipt(threads, key) != NULL;
	pthread_mutex_unlock(&threads->mutex);
	return has;
}

/*
 * The store's threads. The writer waits for calls, takes all of them, performs them in one
 * transaction and posts the replies. If the transaction fails, each call gets its own, so that a
 * bad one does not fail the others; but if the file cannot be written, all writing calls fail at
 * once, as each would otherwise wait for its own timeout.
 *
 * The reader serves STORE_LIST and STORE_AUDIT on a read-only connection: they may scan all rows,
 * and must not delay the agent's work.
 */
#include "agent/store/store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/backend.h"

enum { QUEUE_WORK, QUEUE_LISTS, QUEUES };

/* Requests queued for a thread. */
struct call_queue {
	struct store *store;
	void (*perform)(struct store *store, struct store_call *first);
	pthread_t thread;
	pthread_cond_t filled;
	struct store_call *first, **last;
};

/* The storage backend. */
static const struct store_backend *const backend = &sqlite_backend;

struct store {
	struct store_file *file;
	store_post *post;
	void *loop;
	pthread_mutex_t mutex; /* guards the members below */
	struct call_queue queues[QUEUES];
	size_t started; /* of the queues */
	bool closing;
};

const char *const change_state_names[CHANGE_STATES] = {
	[CHANGE_CONFIRMED] = "confirmed",
	[CHANGE_MOVED] = "moved",
	[CHANGE_WITHDRAWN] = "withdrawn",
	[CHANGE_CANDIDATE] = "candidate",
	[CHANGE_RECOVERED] = "recovered",
};

const char *const notify_state_names[NOTIFY_COUNT] = {
	[NOTIFY_SILENT] = "silent",
	[NOTIFY_PENDING] = "pending",
	[NOTIFY_QUEUED] = "queued",
	[NOTIFY_HELD] = "held",
	[NOTIFY_RECOVERY] = "recovery",
};

const char *const event_names[EVENT_KINDS] = {
	[EVENT_FOUND] = "found",
	[EVENT_CONFIRMED] = "confirmed",
	[EVENT_MOVED] = "moved",
	[EVENT_WITHDRAWN] = "withdrawn",
	[EVENT_RETURNED] = "returned",
	[EVENT_ANNOUNCED] = "announced",
	[EVENT_RECOVERED] = "recovered",
	[EVENT_TRIAGED] = "triaged",
	[EVENT_REOPENED] = "reopened",
};

void record_by_clock(struct change_record *record, int64_t now)
{
	struct triage *triage = &record->triage;

	if (triage->until == 0 || triage->until > now)
		return;
	triage->state = TRIAGE_OPEN;
	triage->until = 0;
}

static void reply(void *argument)
{
	struct store_call *call = argument;

	call->reply(call);
}

static void drop(void *argument)
{
	store_call_free(argument);
}

static void *call_new(
	size_t size, enum store_kind kind, void (*client)(struct store_call *call), void *context)
{
	struct arena *arena = arena_new();
	struct store_call *call = arena_alloc(arena, size);

	*call = (struct store_call){
		.kind = kind, .arena = arena, .reply = client, .context = context};
	return call;
}

/* The constructor of struct store_NAME, which begins with a struct store_call. */
#define CALL(name, kind)                                                                           \
	static void reply_##name(struct store_call *call)                                          \
	{                                                                                          \
		struct store_##name *typed = (struct store_##name *)call;                          \
                                                                                                   \
		if (typed->reply)                                                                  \
			typed->reply(typed);                                                       \
		else                                                                               \
			store_call_free(call);                                                     \
	}                                                                                          \
                                                                                                   \
	struct store_##name *store_##name##_new(                                                   \
		void (*client)(struct store_##name * name), void *context)                         \
	{                                                                                          \
		struct store_##name *typed = call_new(sizeof *typed, kind, reply_##name, context); \
                                                                                                   \
		typed->reply = client;                                                             \
		return typed;                                                                      \
	}

CALL(restore, STORE_RESTORE)
CALL(known, STORE_KNOWN)
CALL(checkpoints, STORE_CHECKPOINTS)
CALL(record, STORE_RECORD)
CALL(queue, STORE_QUEUE)
CALL(pending, STORE_PENDING)
CALL(reminders, STORE_REMINDERS)
CALL(settle, STORE_SETTLE)
CALL(attempt, STORE_ATTEMPT)
CALL(reopen, STORE_REOPEN)
CALL(list, STORE_LIST)
CALL(prune, STORE_PRUNE)
CALL(renames, STORE_RENAMES)
CALL(triage, STORE_TRIAGE)
CALL(reopen_due, STORE_REOPEN_DUE)
CALL(silence, STORE_SILENCE)
CALL(silences, STORE_SILENCES)
CALL(audit, STORE_AUDIT)
CALL(audit_add, STORE_AUDIT_ADD)
CALL(follow_ups, STORE_FOLLOW_UPS)
CALL(amended, STORE_AMENDED)
CALL(send_anew, STORE_SEND_ANEW)

struct store_call *store_probe_new(void)
{
	return call_new(sizeof(struct store_call), STORE_PROBE, store_call_free, NULL);
}

bool delivery_is_of(const struct delivery *delivery, const char *kind)
{
	return !delivery->kind || strcmp(delivery->kind, kind) == 0;
}

const struct store_counts *store_call_counts(const struct store_call *call)
{
	if (call->kind == STORE_RESTORE)
		return &((const struct store_restore *)call)->counts;
	if (call->kind == STORE_RECORD)
		return &((const struct store_record *)call)->counts;
	if (call->kind == STORE_PRUNE)
		return &((const struct store_prune *)call)->counts;
	return NULL;
}

bool store_writes(enum store_kind kind)
{
	switch (kind) {
	case STORE_RESTORE:
	case STORE_KNOWN:
	case STORE_CHECKPOINTS:
	case STORE_PENDING:
	case STORE_REMINDERS:
	case STORE_LIST:
	case STORE_SILENCES:
	case STORE_AUDIT:
	case STORE_FOLLOW_UPS: return false;
	case STORE_RECORD:
	case STORE_QUEUE:
	case STORE_SETTLE:
	case STORE_ATTEMPT:
	case STORE_REOPEN:
	case STORE_PRUNE:
	case STORE_RENAMES:
	case STORE_TRIAGE:
	case STORE_REOPEN_DUE:
	case STORE_SILENCE:
	case STORE_AUDIT_ADD:
	case STORE_AMENDED:
	case STORE_SEND_ANEW:
	case STORE_PROBE: return true;
	}
	return true;
}

static bool perform_alone(struct store_file *file, struct store_call *call, struct error *error)
{
	if (!backend->begin(file, store_writes(call->kind), error))
		return false;
	if (backend->perform(file, call, error) && backend->commit(file, error))
		return true;
	backend->rollback(file);
	return false;
}

static bool perform_together(struct store_file *file, struct store_call *first, struct error *error)
{
	bool writes = false, done;

	for (struct store_call *at = first; at; at = at->next)
		writes |= store_writes(at->kind);
	done = backend->begin(file, writes, error);
	for (struct store_call *at = first; at && done; at = at->next)
		done = backend->perform(file, at, error);
	done = done && backend->commit(file, error);
	if (!done)
		backend->rollback(file);
	return done;
}

/* `failure` is NULL if the call was performed. */
static void answer(struct store *store, struct store_call *call, const struct error *failure)
{
	call->next = NULL;
	call->failed = failure != NULL;
	if (failure && !call->error) /* a call that is tried again has one */
		call->error = arena_alloc(call->arena, sizeof *call->error);
	if (failure)
		*call->error = *failure;
	store->post(store->loop, reply, drop, call);
}

static void perform(struct store *store, struct store_call *first)
{
	struct error all, own;
	bool together = first->next && perform_together(store->file, first, &all);
	bool stuck = first->next && !together && backend->is_stuck(store->file);

	for (struct store_call *next; first; first = next) {
		const struct error *failure = NULL;

		next = first->next;
		if (stuck && store_writes(first->kind))
			failure = &all;
		else if (!together && !perform_alone(store->file, first, &own))
			failure = &own;
		answer(store, first, failure);
	}
}

static void make_lists(struct store *store, struct store_call *first)
{
	const char *path = backend->path(store->file);
	struct error error;

	for (struct store_call *next; first; first = next) {
		next = first->next;
		answer(store, first, backend->read(path, first, &error) ? NULL : &error);
	}
}

/* Takes all queued calls, waiting for the first; NULL when the store closes and none is left. */
static struct store_call *take(struct call_queue *queue)
{
	struct store *store = queue->store;
	struct store_call *first;

	pthread_mutex_lock(&store->mutex);
	while (!queue->first && !store->closing)
		pthread_cond_wait(&queue->filled, &store->mutex);
	first = queue->first;
	queue->first = NULL;
	queue->last = &queue->first;
	pthread_mutex_unlock(&store->mutex);
	return first;
}

static void *run(void *argument)
{
	struct call_queue *queue = argument;
	struct store_call *first;

	while ((first = take(queue)))
		queue->perform(queue->store, first);
	return NULL;
}

static bool start_queues(struct store *store)
{
	for (size_t i = 0; i < QUEUES; i++) {
		struct call_queue *queue = &store->queues[i];

		queue->store = store;
		queue->perform = i == QUEUE_LISTS ? make_lists : perform;
		queue->last = &queue->first;
		pthread_cond_init(&queue->filled, NULL);
		if (pthread_create(&queue->thread, NULL, run, queue) != 0) {
			pthread_cond_destroy(&queue->filled);
			return false;
		}
		store->started++;
	}
	return true;
}

struct store *store_open(const char *path, store_post *post, void *loop, struct error *error)
{
	struct store_file *file = backend->open(path, error);
	struct store *store;

	if (!file)
		return NULL;
	store = memory_new(1, sizeof *store);
	*store = (struct store){.file = file, .post = post, .loop = loop};
	pthread_mutex_init(&store->mutex, NULL);
	if (start_queues(store))
		return store;
	error_set(error, ERROR_STATE, "cannot start the state file's threads");
	store_close(store);
	return NULL;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	pthread_mutex_lock(&store->mutex);
	store->closing = true;
	for (size_t i = 0; i < store->started; i++)
		pthread_cond_signal(&store->queues[i].filled);
	pthread_mutex_unlock(&store->mutex);
	for (size_t i = 0; i < store->started; i++) {
		pthread_join(store->queues[i].thread, NULL);
		pthread_cond_destroy(&store->queues[i].filled);
	}
	pthread_mutex_destroy(&store->mutex);
	backend->close(store->file);
	free(store);
}

int64_t store_size(const struct store *store)
{
	return backend->size(backend->path(store->file));
}

void record_told(struct arena *arena, struct change_record *record, const char *receiver)
{
	size_t count = record->told.count;
	const char **items = arena_array(arena, count + 1, sizeof *items);

	if (count > 0)
		memcpy(items, record->told.items, count * sizeof *items);
	items[count] = receiver;
	record->told = (struct strings){items, count + 1};
}

void store_call_free(struct store_call *call)
{
	arena_free(call->arena);
}

void store_submit(struct store *store, struct store_call *call)
{
	bool lists = call->kind == STORE_LIST || call->kind == STORE_AUDIT;
	struct call_queue *queue = &store->queues[lists ? QUEUE_LISTS : QUEUE_WORK];

	call->next = NULL;
	call->failed = false;
	pthread_mutex_lock(&store->mutex);
	*queue->last = call;
	queue->last = &call->next;
	pthread_cond_signal(&queue->filled);
	pthread_mutex_unlock(&store->mutex);
}

bool store_read(const char *path, struct store_call *call, struct error *error)
{
	return backend->read(path, call, error);
}

bool store_perform(const char *path, struct store_call *call, bool dry_run, struct error *error)
{
	struct store_file *file = dry_run ? backend->copy(path, error) : backend->open(path, error);
	bool done = file && perform_alone(file, call, error);

	if (file)
		backend->close(file);
	return done;
}

bool store_is_held(const char *path)
{
	return backend->is_held(path);
}

int64_t store_size_of(const char *path)
{
	return backend->size(path);
}

bool store_check(
	const char *path, struct arena *arena, struct store_report *report, struct error *error)
{
	return backend->check(path, arena, report, error);
}

bool store_backup(const char *path, const char *target, bool force, struct error *error)
{
	return backend->backup(path, target, force, error);
}

/*
 * The store's threads. The writer waits for calls, takes all of them, performs them in one
 * transaction and posts the replies. If the transaction fails, each call gets its own, so that a
 * bad one does not fail the others; but if the file cannot be written, all writing calls fail at
 * once, as each would otherwise wait for its own timeout.
 *
 * The reader serves what may read many rows (STORE_LISTS) on a read-only connection: it, and must
 * not delay the agent's work. Where the state can be shared, the turns of a fleet have a thread, as
 * a lease must be renewed in time, and its other calls, which may be large, another.
 */
#include "agent/store/store.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/base/database.h"
#include "agent/store/backend.h"

/* Requests queued for a thread. */
struct call_queue {
	struct store *store;
	void (*perform)(struct store *store, struct store_call *first);
	pthread_t thread;
	pthread_cond_t filled;
	struct store_call *first, **last;
};

struct store {
	const struct store_backend *backend;
	struct store_file *file;
	store_post *post;
	void *loop;
	pthread_mutex_t mutex; /* guards the members below */
	struct call_queue queues[STORE_LANES];
	size_t started, ended; /* of the queues */
	bool closing;
	pthread_cond_t end;      /* a queue has ended */
	struct store_call *last; /* NULL: none */
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

const char *const bisection_state_names[BISECTION_STATES] = {
	[BISECTION_WAITING] = "waiting",
	[BISECTION_RUNNING] = "running",
	[BISECTION_OVER] = "over",
};

const char *const relation_names[RELATIONS] = {"commit", "message", "cluster", "environment"};

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

static void *call_new(size_t size, const struct store_work *work,
	void (*client)(struct store_call *call), void *context)
{
	struct arena *arena = arena_new();
	struct store_call *call = arena_alloc(arena, size);

	*call = (struct store_call){
		.work = work, .arena = arena, .reply = client, .context = context};
	return call;
}

/* The constructor of struct store_NAME, which begins with a struct store_call. */
#define CALL(name)                                                                                 \
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
		struct store_##name *typed =                                                       \
			call_new(sizeof *typed, &store_##name##_work, reply_##name, context);      \
                                                                                                   \
		typed->reply = client;                                                             \
		return typed;                                                                      \
	}

STORE_CALLS(CALL)

struct store_call *store_probe_new(void)
{
	return call_new(sizeof(struct store_call), &store_probe_work, store_call_free, NULL);
}

bool delivery_is_of(const struct delivery *delivery, const char *kind)
{
	return !delivery->kind || strcmp(delivery->kind, kind) == 0;
}

bool store_record_counts(const struct store_record *record)
{
	return record->records.count + record->update_count > 0;
}

struct store_counts *store_call_counts(const struct store_call *call)
{
	bool none = call->work->counts == 0 ||
		    (call->work == &store_record_work &&
			    !store_record_counts((const struct store_record *)call));

	return none ? NULL : (struct store_counts *)((uintptr_t)call + call->work->counts);
}

static const struct store_backend *backend_of(const char *path)
{
	return database_is(path) ? &postgresql_backend : &sqlite_backend;
}

/* One transaction with all calls of the list, or with the first. */
static bool perform_once(const struct store_backend *backend, struct store_file *file,
	struct store_call *first, bool all, struct error *error)
{
	struct store_call *end = all ? NULL : first->next;
	bool writes = false, done;

	for (struct store_call *at = first; at != end; at = at->next)
		writes |= at->work->writes;
	done = backend->begin(file, writes, error);
	for (struct store_call *at = first; at != end && done; at = at->next)
		done = backend->perform(file, at, error);
	done = done && backend->commit(file, error);
	if (!done)
		backend->rollback(file);
	return done;
}

static bool perform_some(const struct store_backend *backend, struct store_file *file,
	struct store_call *first, bool all, struct error *error)
{
	for (int tries = 0; !perform_once(backend, file, first, all, error); tries++)
		if (!backend->again || !backend->again(file, tries))
			return false;
	return true;
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
	const struct store_backend *backend = store->backend;
	bool together = first->next && perform_some(backend, store->file, first, true, &all);
	bool stuck = first->next && !together && backend->is_stuck(store->file);

	for (struct store_call *next; first; first = next) {
		const struct error *failure = NULL;

		next = first->next;
		if (stuck && first->work->writes)
			failure = &all;
		else if (!together && !perform_some(backend, store->file, first, false, &own))
			failure = &own;
		answer(store, first, failure);
	}
}

static bool make_list(struct store *store, struct store_call *call, struct error *error)
{
	const struct store_backend *backend = store->backend;

	if (backend->list)
		return backend->list(store->file, call, error);
	return backend->read(backend->path(store->file), call, error);
}

static void make_lists(struct store *store, struct store_call *first)
{
	struct error error;

	for (struct store_call *next; first; first = next) {
		next = first->next;
		answer(store, first, make_list(store, first, &error) ? NULL : &error);
	}
}

static void take_turns(struct store *store, struct store_call *first)
{
	struct error error;

	for (struct store_call *next; first; first = next) {
		next = first->next;
		answer(store, first,
			store->backend->turn(store->file, first, &error) ? NULL : &error);
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
	pthread_mutex_lock(&queue->store->mutex);
	queue->store->ended++;
	pthread_cond_signal(&queue->store->end);
	pthread_mutex_unlock(&queue->store->mutex);
	return NULL;
}

static bool start_queues(struct store *store)
{
	static void (*const performs[STORE_LANES])(
		struct store * store, struct store_call * first) = {
		[STORE_WORK] = perform,
		[STORE_LISTS] = make_lists,
		[STORE_TURNS] = take_turns,
		[STORE_FLEET] = take_turns,
	};
	size_t count = store_is_shared(store) ? STORE_LANES : STORE_TURNS;

	for (size_t i = 0; i < count; i++) {
		struct call_queue *queue = &store->queues[i];

		queue->store = store;
		queue->perform = performs[i];
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

static void make_end(struct store *store)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&store->end, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

struct store *store_open(const char *path, store_post *post, void *loop, struct error *error)
{
	const struct store_backend *backend = backend_of(path);
	struct store_file *file = backend->open(path, error);
	struct store *store;

	if (!file)
		return NULL;
	store = memory_new(1, sizeof *store);
	*store = (struct store){.backend = backend, .file = file, .post = post, .loop = loop};
	pthread_mutex_init(&store->mutex, NULL);
	make_end(store);
	if (start_queues(store))
		return store;
	error_set(error, ERROR_STATE, "cannot start the state file's threads");
	(void)store_close(store);
	return NULL;
}

/* Until all queues have ended; for a database not longer than STORE_CLOSING. */
static bool wait_for_queues(struct store *store)
{
	int64_t until = clock_monotonic() + STORE_CLOSING;
	const struct timespec limit = {until / 1000, until % 1000 * 1000000};
	bool waits = true;

	pthread_mutex_lock(&store->mutex);
	store->closing = true;
	for (size_t i = 0; i < store->started; i++)
		pthread_cond_signal(&store->queues[i].filled);
	while (waits && store->ended < store->started)
		if (store_is_shared(store))
			waits = pthread_cond_timedwait(&store->end, &store->mutex, &limit) == 0;
		else
			pthread_cond_wait(&store->end, &store->mutex);
	waits = store->ended == store->started;
	pthread_mutex_unlock(&store->mutex);
	return waits;
}

bool store_close(struct store *store)
{
	struct error error;

	if (!store)
		return true;
	if (!wait_for_queues(store))
		return false;
	for (size_t i = 0; i < store->started; i++) {
		pthread_join(store->queues[i].thread, NULL);
		pthread_cond_destroy(&store->queues[i].filled);
	}
	if (store->last) {
		(void)store->backend->turn(store->file, store->last, &error);
		store_call_free(store->last);
	}
	pthread_cond_destroy(&store->end);
	pthread_mutex_destroy(&store->mutex);
	store->backend->close(store->file);
	free(store);
	return true;
}

void store_last(struct store *store, struct store_call *call)
{
	store->last = call;
}

bool store_traffic(const struct store *store, struct store_traffic *traffic)
{
	*traffic = (struct store_traffic){0};
	if (store->backend->traffic)
		store->backend->traffic(store->file, traffic);
	return store->backend->traffic != NULL;
}

int64_t store_size(const struct store *store)
{
	const struct store_backend *backend = store->backend;

	if (backend->size_now)
		return backend->size_now(store->file);
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

bool store_is_shared(const struct store *store)
{
	return store->backend->turn != NULL;
}

bool store_turn_now(struct store *store, struct store_turn *turn, struct error *error)
{
	return store->backend->turn(store->file, &turn->call, error);
}

void store_submit(struct store *store, struct store_call *call)
{
	enum store_lane lane = call->work->lane;
	bool there = lane < STORE_TURNS || store_is_shared(store);
	struct call_queue *queue = &store->queues[there ? lane : STORE_WORK];

	call->next = NULL;
	call->failed = call->fenced = false;
	pthread_mutex_lock(&store->mutex);
	*queue->last = call;
	queue->last = &call->next;
	pthread_cond_signal(&queue->filled);
	pthread_mutex_unlock(&store->mutex);
}

bool store_read(const char *path, struct store_call *call, struct error *error)
{
	return store_expect(path, error) && backend_of(path)->read(path, call, error);
}

bool store_perform(const char *path, struct store_call *call, bool dry_run, struct error *error)
{
	const struct store_backend *backend = backend_of(path);
	struct store_file *file = !dry_run                    ? backend->open(path, error)
				  : store_expect(path, error) ? backend->copy(path, error)
							      : NULL;
	bool done = file && perform_some(backend, file, call, false, error);

	if (file)
		backend->close(file);
	return done;
}

bool store_is_held(const char *path)
{
	return backend_of(path)->is_held(path);
}

bool store_is_there(const char *path)
{
	return backend_of(path)->is_there(path);
}

bool store_expect(const char *path, struct error *error)
{
	if (database_is(path) || store_is_there(path))
		return true;
	if (errno != ENOENT)
		return error_set(error, ERROR_STATE, "state file %s: %s", path, strerror(errno));
	return error_set(error, ERROR_STATE,
		"there is no state file %s yet: the first run of the agent makes it", path);
}

int64_t store_size_of(const char *path)
{
	return backend_of(path)->size(path);
}

bool store_check(
	const char *path, struct arena *arena, struct store_report *report, struct error *error)
{
	return store_expect(path, error) && backend_of(path)->check(path, arena, report, error);
}

bool store_backup(const char *path, const char *target, bool force, struct error *error)
{
	return store_expect(path, error) && backend_of(path)->backup(path, target, force, error);
}

static bool check_free(const char *state, struct error *error)
{
	struct arena *arena = arena_new();
	bool is_free = !store_is_held(state) ||
		       error_set(error, ERROR_STATE, "an agent has %s: stop it first",
			       database_shown(arena, state));

	arena_free(arena);
	return is_free;
}

static bool reserve(
	const struct store_backend *backend, struct store_file *file, struct error *error)
{
	return !backend->reserve || backend->reserve(file, error);
}

/* `from` is within a transaction. */
static bool take_over(const struct store_backend *backend, struct store_file *file,
	struct store_file *from, struct store_copied *copied, struct error *error)
{
	bool done = backend->begin(file, true, error) && reserve(backend, file, error) &&
		    backend->take_over(file, from, copied, error) && backend->commit(file, error) &&
		    backend->begin(file, false, error) && backend->compare(file, from, error);

	backend->rollback(file);
	return done;
}

/* What agents are kept off. */
static bool copy_held(
	const char *from, const char *to, struct store_copied *copied, struct error *error)
{
	const struct store_backend *reading = backend_of(from), *writing = backend_of(to);
	struct store_file *source = reading->copy(from, error), *target = NULL;
	bool done = false;

	if (source && reading->begin(source, false, error) && reserve(reading, source, error))
		target = writing->open(to, error);
	if (target)
		done = take_over(writing, target, source, copied, error);
	if (source)
		reading->rollback(source);
	if (source)
		reading->close(source);
	if (target)
		writing->close(target);
	return done;
}

bool store_copy(const char *from, const char *to, struct store_copied *copied, struct error *error)
{
	const struct store_backend *reading = backend_of(from);
	int lock = -1;
	bool done =
		store_expect(from, error) && check_free(from, error) && check_free(to, error) &&
		(!reading->hold || strcmp(from, to) == 0 || reading->hold(from, &lock, error)) &&
		copy_held(from, to, copied, error);

	if (lock >= 0)
		close(lock);
	return done;
}

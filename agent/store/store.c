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

static const int64_t FOREVER = INT64_C(1) << 40; /* ms */

/* Requests queued for a thread. */
struct call_queue {
	struct store *store;
	struct tx *tx; /* the thread's; NULL: not open */
	pthread_t thread;
	pthread_cond_t filled;
	struct store_call *first, **last;
};

struct store {
	struct tx *tx;
	store_post *post;
	void *loop;
	pthread_mutex_t mutex; /* guards the members below */
	struct call_queue queues[STORE_LANES];
	size_t started, ended; /* of the queues */
	bool closing;
	pthread_cond_t end;      /* a queue has ended */
	struct store_call *last; /* NULL: none */
};

static void reply(void *argument)
{
	struct store_call *call = argument;

	(call->first ? call->first : call->reply)(call);
}

static void drop(void *argument)
{
	store_call_free(argument);
}

void *store_call_new(size_t size, const struct store_work *work,
	void (*client)(struct store_call *call), void *context)
{
	struct arena *arena = arena_new();
	struct store_call *call = arena_alloc(arena, size);

	*call = (struct store_call){
		.work = work, .arena = arena, .reply = client, .context = context, .size = size};
	return call;
}

struct store_call *store_probe_new(void)
{
	return store_call_new(sizeof(struct store_call), &store_probe_work, store_call_free, NULL);
}

static const struct store_backend *backend_of(const char *path)
{
	return database_is(path) ? &postgresql_backend : &sqlite_backend;
}

/* Its results are its own. A repeated call may have been committed before, with these results. */
static void keep(struct store_call *call)
{
	if (call->read)
		arena_join(call->arena, call->read);
	call->read = NULL;
}

/* Whether each of its statements is a transaction. */
static bool is_alone(const struct tx *tx, const struct store_call *call)
{
	return tx->backend->is_shared && call->work->lane >= STORE_TURNS;
}

/* For those of the calls, which are committed, that have asked for it. */
static void count(struct tx *tx, struct store_call *first, const struct store_call *end)
{
	int64_t states[CHANGE_STATES] = {0};
	bool counted = false;

	for (struct store_call *at = first; at != end; at = at->next) {
		if (!at->counts)
			continue;
		if (!counted)
			tx->backend->count(tx, states);
		counted = true;
		memcpy(at->counts->states, states, sizeof states);
	}
	tx->failed = false;
}

/* One transaction with all calls of the list, or with the first. */
static bool perform_once(struct tx *tx, struct store_call *first, bool all, struct error *error)
{
	const struct store_backend *backend = tx->backend;
	struct store_call *end = all ? NULL : first->next;
	bool alone = is_alone(tx, first), writes = false;
	size_t size;

	for (struct store_call *at = first; at != end; at = at->next)
		writes |= at->work->writes;
	tx->error = error;
	tx->failed = false;
	if (!alone)
		backend->begin(tx, writes);
	for (struct store_call *at = first; at != end && !tx->failed; at = at->next) {
		tx->call = at;
		tx->arena = at->arena;
		if (!backend->enter(tx, at))
			continue;
		/* It is as it was submitted, without the results of another try. */
		size = at->size - sizeof *at;
		if (!at->submitted)
			at->submitted = memcpy(arena_alloc(at->arena, size), at + 1, size);
		memcpy(at + 1, at->submitted, size);
		at->counts = NULL;
		arena_free(at->read);
		tx->arena = at->read = arena_new();
		at->work->run(tx, at);
	}
	if (!alone && !tx->failed)
		backend->commit(tx);
	if (!alone && tx->failed)
		backend->rollback(tx);
	if (tx->failed)
		return false;
	for (struct store_call *at = first; at != end; at = at->next)
		keep(at);
	count(tx, first, end);
	return true;
}

static bool perform_some(struct tx *tx, struct store_call *first, bool all, struct error *error)
{
	for (int tries = 0; !perform_once(tx, first, all, error); tries++)
		if (is_alone(tx, first) || !tx->backend->again(tx, tries))
			return false;
	return true;
}

static struct tx *tx_of(struct call_queue *queue, struct error *error)
{
	struct store *store = queue->store;

	if (!queue->tx)
		queue->tx = store->tx->backend->open(store->tx->path, STORE_READ, error);
	return queue->tx;
}

/* Calls taken by the store's thread are committed together; a list would wait for all of them. */
static void perform(struct call_queue *queue, struct store_call *first)
{
	struct error all, own;
	struct store *store = queue->store;
	struct tx *tx = tx_of(queue, &all);
	bool many = tx && first->next && queue == &store->queues[STORE_WORK];
	bool together = many && perform_some(tx, first, true, &all);
	bool stuck = many && !together && tx->backend->is_stuck(tx);

	for (struct store_call *next; first; first = next) {
		const struct error *failure = NULL;

		next = first->next;
		if (!tx || (stuck && first->work->writes))
			failure = &all;
		else if (!together && !perform_some(tx, first, false, &own))
			failure = &own;
		first->next = NULL;
		first->failed = failure != NULL;
		if (failure && !first->error) /* a call that is tried again has one */
			first->error = arena_alloc(first->arena, sizeof *first->error);
		if (failure)
			*first->error = *failure;
		store->post(store->loop, reply, drop, first);
	}
	if (tx && tx != store->tx && !tx->backend->is_shared) {
		tx->backend->close(tx);
		queue->tx = NULL;
	}
}

/* Takes all queued calls, waiting for the first, until the store closes and none is left. */
static void *run(void *argument)
{
	struct call_queue *queue = argument;
	struct store *store = queue->store;
	struct store_call *first;

	pthread_mutex_lock(&store->mutex);
	for (;;) {
		while (!queue->first && !store->closing)
			pthread_cond_wait(&queue->filled, &store->mutex);
		first = queue->first;
		if (!first)
			break;
		queue->first = NULL;
		queue->last = &queue->first;
		pthread_mutex_unlock(&store->mutex);
		perform(queue, first);
		pthread_mutex_lock(&store->mutex);
	}
	store->ended++;
	pthread_cond_signal(&store->end);
	pthread_mutex_unlock(&store->mutex);
	return NULL;
}

struct store *store_open(const char *path, store_post *post, void *loop, struct error *error)
{
	struct tx *tx = backend_of(path)->open(path, STORE_OWN, error);
	pthread_condattr_t monotonic;
	struct store *store;

	if (!tx)
		return NULL;
	store = memory_new(1, sizeof *store);
	*store = (struct store){.tx = tx, .queues[STORE_WORK].tx = tx, .post = post, .loop = loop};
	pthread_mutex_init(&store->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&store->end, &monotonic);
	pthread_condattr_destroy(&monotonic);
	for (size_t count = tx->backend->is_shared ? STORE_LANES : STORE_TURNS;
		store->started < count; store->started++) {
		struct call_queue *queue = &store->queues[store->started];

		queue->store = store;
		queue->last = &queue->first;
		pthread_cond_init(&queue->filled, NULL);
		if (pthread_create(&queue->thread, NULL, run, queue) == 0)
			continue;
		pthread_cond_destroy(&queue->filled);
		error_set(error, ERROR_STATE, "cannot start the state file's threads");
		(void)store_close(store);
		return NULL;
	}
	return store;
}

/* Until all queues have ended; for a database not longer than STORE_CLOSING. */
static bool wait_for_queues(struct store *store)
{
	int64_t until = clock_monotonic() + (store_is_shared(store) ? STORE_CLOSING : FOREVER);
	const struct timespec limit = {until / 1000, until % 1000 * 1000000};
	bool waits = true;

	pthread_mutex_lock(&store->mutex);
	store->closing = true;
	for (size_t i = 0; i < store->started; i++)
		pthread_cond_signal(&store->queues[i].filled);
	while (waits && store->ended < store->started)
		waits = pthread_cond_timedwait(&store->end, &store->mutex, &limit) == 0;
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
		(void)!store_turn_now(store, (struct store_turn *)store->last, &error);
		store_call_free(store->last);
	}
	pthread_cond_destroy(&store->end);
	pthread_mutex_destroy(&store->mutex);
	for (size_t i = STORE_LANES; i-- > 0;) /* the first has the path of all */
		if (store->queues[i].tx)
			store->tx->backend->close(store->queues[i].tx);
	free(store);
	return true;
}

void store_last(struct store *store, struct store_call *call)
{
	store->last = call;
}

bool store_traffic(const struct store *store, struct store_traffic *traffic)
{
	void (*read)(struct store_traffic * out) = store->tx->backend->traffic;

	*traffic = (struct store_traffic){0};
	if (read)
		read(traffic);
	return read != NULL;
}

int64_t store_size(const struct store *store)
{
	return store->tx->backend->size(store->tx);
}

void store_call_free(struct store_call *call)
{
	arena_free(call->read);
	arena_free(call->arena);
}

bool store_is_shared(const struct store *store)
{
	return store->tx->backend->is_shared;
}

bool store_turn_now(struct store *store, struct store_turn *turn, struct error *error)
{
	struct tx *tx = tx_of(&store->queues[STORE_TURNS], error);

	return tx && perform_once(tx, &turn->call, false, error);
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

/* The configuration names a variable instead of a state: struct agent_settings. */
static bool is_set(const char *path, struct error *error)
{
	return strncmp(path, "${", 2) != 0 ||
	       error_set(error, ERROR_USAGE, "agent.state: %s is not set", path);
}

bool store_tx(const char *path, enum store_use use, struct store_call *call, struct error *error)
{
	bool there = use == STORE_OWN ? is_set(path, error) : store_expect(path, error);
	struct tx *tx = there ? backend_of(path)->open(path, use, error) : NULL;
	bool done = tx && perform_some(tx, call, false, error);

	keep(call);
	if (tx)
		tx->backend->close(tx);
	return done;
}

bool store_is_there(const char *path)
{
	return backend_of(path)->is_there(path);
}

bool store_expect(const char *path, struct error *error)
{
	if (!is_set(path, error))
		return false;
	if (database_is(path) || store_is_there(path))
		return true;
	if (errno != ENOENT)
		return error_set(error, ERROR_STATE, "state file %s: %s", path, strerror(errno));
	return error_set(error, ERROR_STATE,
		"state file %s does not exist yet: the agent creates it on its first run", path);
}

bool store_check(
	const char *path, struct arena *arena, struct store_report *report, struct error *error)
{
	return store_expect(path, error) && backend_of(path)->check(path, arena, report, error);
}

bool store_backup(
	const char *path, const char *target, bool force, int64_t *size, struct error *error)
{
	return store_expect(path, error) &&
	       backend_of(path)->backup(path, target, force, size, error);
}

static struct tx *begin_copy(const char *state, enum store_use use, struct error *error)
{
	struct tx *tx = backend_of(state)->open(state, use, error);

	if (!tx)
		return NULL;
	tx->error = error;
	tx->backend->begin(tx, use == STORE_OWN);
	if (!tx->failed && tx->backend->reserve)
		tx->backend->reserve(tx);
	return tx;
}

static void end_copy(struct tx *tx)
{
	if (!tx)
		return;
	tx->backend->rollback(tx);
	tx->backend->close(tx);
}

/* Calls that exclude agents. */
static bool copy_held(
	const char *from, const char *to, struct store_copied *copied, struct error *error)
{
	struct arena *arena = arena_new();
	struct tx *source = begin_copy(from, STORE_TRY, error), *target = NULL;
	bool done = false;

	if (source && !source->failed)
		target = begin_copy(to, STORE_OWN, error);
	if (target) {
		source->arena = target->arena = arena;
		if (!target->failed)
			sql_copy(target, source, copied);
		if (!target->failed && !source->failed)
			target->backend->commit(target);
		if (!target->failed && !source->failed) {
			target->backend->begin(target, false);
			sql_compare(target, source);
		}
		done = !target->failed && !source->failed;
	}
	end_copy(target);
	end_copy(source);
	arena_free(arena);
	return done;
}

bool store_copy(const char *from, const char *to, struct store_copied *copied, struct error *error)
{
	const struct store_backend *reading = backend_of(from);
	int lock = -1;
	bool done =
		store_expect(from, error) &&
		(!reading->hold || strcmp(from, to) == 0 || reading->hold(from, &lock, error)) &&
		copy_held(from, to, copied, error);

	if (lock >= 0)
		close(lock);
	return done;
}

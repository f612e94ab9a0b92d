/*
 * Recent messages, and which of them a new change continues.
 *
 * A change that is found an hour after related ones, because its test runs later, joins the thread
 * of their message if it shares a commit with one of them, or a time (within the tolerance of the
 * finer of the two series), and if it comes soon enough after the thread's last message. Changes of
 * an environment event always belong to the event's thread, and no others do. A message that
 * reported one of its changes early, on its own, is not a parent of later changes.
 *
 * No I/O and no clock. The number of threads is bounded; the oldest is dropped first. They are
 * changed on the loop's thread; a worker may look at them meanwhile.
 */
#ifndef AGENT_NOTIFY_THREADS_H
#define AGENT_NOTIFY_THREADS_H

#include "agent/store/store.h"

struct threads;

/* A message that later ones may continue. */
struct thread {
	const char *key;
	struct announcement first; /* the first change that it announced */
};

/* Whether a thread that began with this change may be continued. */
struct thread_filter {
	bool (*accepts)(void *context, const struct change_record *first);
	void *context;
};

struct threads *threads_new(void);
void threads_free(struct threads *threads);

/* Forgets all. */
void threads_clear(struct threads *threads);

/*
 * Adds a delivery with its `records`, announced at `delivery->now`: begins a thread, or continues
 * the thread with key `delivery->thread`. The thread stays open to other changes for `interval`
 * (ms) from then on. Copies everything.
 */
void threads_add(struct threads *threads, const struct delivery *delivery, int64_t interval);

/*
 * Finds the thread of this receiver and destination that the records belong to, if it is still open
 * by its own interval or by `interval`, whichever is longer; the latest of several. `filter`,
 * unless it is NULL, is asked about the first change of a thread. Copies it to the arena. For any
 * thread.
 */
bool threads_find(struct threads *threads, struct arena *arena, const char *receiver,
	const char *destination, const struct change_record *const *records, size_t count,
	int64_t interval, int64_t now, const struct thread_filter *filter, struct thread *out);

/* How many changes near those of an event, in its environment, were reported at the destination
 * before the event was. For any thread. */
size_t threads_early(struct threads *threads, const char *receiver, const char *destination,
	const struct change_record *const *records, size_t count);

/* The key of the thread of that environment event, or NULL; valid until the next threads_add. */
const char *threads_of_environment(const struct threads *threads, const char *receiver,
	const char *destination, int64_t environment);

/* Sets the receipt of the thread with that key. */
void threads_sent(struct threads *threads, const char *key, const char *receipt);

/* The message with that key was deleted at its destination: its thread loses its receipt. */
void threads_lose(struct threads *threads, const char *key);

/* The delivery with that key is not sent after all; drops the thread that it would have begun. */
void threads_forget(struct threads *threads, const char *key);

/* The receipt of the thread with that key; NULL while there is none. Valid until the next
 * threads_add.
 */
const char *threads_receipt(const struct threads *threads, const char *key);

/* Whether there is a receipt. For any thread. */
bool threads_has_receipt(struct threads *threads, const char *key);

#endif

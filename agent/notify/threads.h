/*
 * What was told lately, and what of it a later change belongs to.
 *
 * A change that shows an hour after its siblings, since its test runs later, should not look like
 * another one: it goes into the thread of the message that told them. It belongs there if it has
 * the commit of one of them, or the time of one (within the tolerance of the finer of the two
 * series), and comes soon enough after the last that was told there. What is told as part of an
 * environment's event belongs to the thread about that, whenever it comes, and nothing else does.
 *
 * No I/O and no clock. What is remembered is bounded; the oldest is forgotten first.
 */
#ifndef AGENT_NOTIFY_THREADS_H
#define AGENT_NOTIFY_THREADS_H

#include "agent/store/store.h"

struct threads;

/* The message that a later one continues. */
struct thread {
	const char *key;
	struct announcement first; /* the first of what it told */
};

struct threads *threads_new(void);
void threads_free(struct threads *threads);

/*
 * Remembers a parcel with its `records`, which told them at `parcel->now`: it begins a thread, or
 * goes on with that of the key `parcel->thread`. `interval` (ms) is how long it is open to others,
 * from then on. All is copied.
 */
void threads_add(struct threads *threads, const struct delivery *delivery, int64_t interval);

/*
 * The thread at the parcel's receiver and destination that the records belong to, told within its
 * interval or `interval`, whichever is longer; the latest, if there are several; NULL if none is.
 * Valid until the next call of another function.
 */
const struct thread *threads_find(const struct threads *threads, const char *receiver,
	const char *destination, const struct change_record *const *records, size_t count,
	int64_t interval, int64_t now);

/* The thread about that event of an environment, or NULL; as above. */
const struct thread *threads_of_environment(const struct threads *threads, const char *receiver,
	const char *destination, int64_t environment);

/* The delivery with that key, or of its thread, has this receipt. */
void threads_sent(struct threads *threads, const char *key, const char *receipt);

/* The delivery with that key is not sent after all: if it began a thread that nobody can see, there
 * is none. */
void threads_forget(struct threads *threads, const char *key);

/* The receipt of the thread with that key; NULL while there is none. Valid until the next
 * threads_add.
 */
const char *threads_receipt(const struct threads *threads, const char *key);

#endif

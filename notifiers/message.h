/*
 * Counts what a message holds, and ranks its changes.
 */
#ifndef NOTIFIERS_MESSAGE_H
#define NOTIFIERS_MESSAGE_H

#include "notifiers/notifier.h"

/* Counts for the first line of a message. */
struct tally {
	size_t changes, tests, regressions, improvements;
};

struct tally message_tally(const struct message *message);

/* Writes all items to `out`, most important first: regressions, then by relative difference of the
 * levels. */
void message_by_weight(const struct message *message, const struct announcement **out);

/* Sorts items into reading order: blocks of the same time, in them blocks of the same test; blocks
 * and items are ordered by importance. */
void message_arrange(const struct announcement **items, size_t count);

/* Writes the `count` most important items to `out`, in the message's order; `out` has room for
 * all. */
void message_select(const struct message *message, size_t count, const struct announcement **out);

/* The time of the earliest change. */
int64_t message_since(const struct message *message);

#endif

/*
 * What a message holds, in numbers, and which of its changes matter most.
 */
#ifndef NOTIFIERS_MESSAGE_H
#define NOTIFIERS_MESSAGE_H

#include "notifiers/notifier.h"

/* What a message holds, for its first line. */
struct tally {
	size_t changes, tests, regressions, improvements;
};

struct tally message_tally(const struct message *message);

/* The most telling item: regressions before others, then by how far apart the levels are; NULL for
 * an empty message. */
const struct announcement *message_worst(const struct message *message);

/* All items, those that matter most first, into `out`. */
void message_by_weight(const struct message *message, const struct announcement **out);

/* Brings items into the order they are read in: what has the same time stands together, in that
 * what is of the same test, and of all three what matters most comes first. */
void message_arrange(const struct announcement **items, size_t count);

/* The `count` items that matter most, in the order of the message, into `out`, which has room for
 * all. */
void message_select(const struct message *message, size_t count, const struct announcement **out);

/* Less than 0 if `a` matters more than `b`: the order of message_worst. */
int announcement_compare_weight(const struct announcement *a, const struct announcement *b);

/* When the first of the changes was. */
int64_t message_since(const struct message *message);

#endif

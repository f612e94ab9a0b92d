/*
 * Sorts pointers; the items themselves stay in place, as others point to them.
 */
#include "agent/model/message.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/order.h"

const char *const message_kind_names[MESSAGE_KINDS] = {[MESSAGE_NEW] = "new",
	[MESSAGE_UPDATED] = "updated",
	[MESSAGE_RECOVERED] = "recovered",
	[MESSAGE_WITHDRAWN] = "withdrawn",
	[MESSAGE_TRIAGED] = "triaged",
	[MESSAGE_REMINDER] = "reminder",
	[MESSAGE_DIGEST] = "digest",
	[MESSAGE_NOTICE] = "notice",
	[MESSAGE_HEARTBEAT] = "heartbeat",
	[MESSAGE_TEST] = "test"};

static int compare_weight(const void *a, const void *b)
{
	const struct announcement *left = *(const struct announcement *const *)a;
	const struct announcement *right = *(const struct announcement *const *)b;
	int weight = announcement_compare_weight(left, right);

	return weight != 0 ? weight : (left > right) - (left < right);
}

static int compare_place(const void *a, const void *b)
{
	const struct announcement *left = *(const struct announcement *const *)a;
	const struct announcement *right = *(const struct announcement *const *)b;

	return (left > right) - (left < right);
}

void message_rank(const struct announcement **items, size_t count)
{
	qsort(items, count, sizeof *items, compare_weight);
}

const struct announcement **message_by_weight(const struct message *message)
{
	const struct announcement **items = memory_new(message->count, sizeof *items);

	for (size_t i = 0; i < message->count; i++)
		items[i] = &message->items[i];
	message_rank(items, message->count);
	return items;
}

const struct announcement **message_select(
	const struct message *message, size_t most, size_t *count)
{
	const struct announcement **items = message_by_weight(message);

	*count = message->count < most ? message->count : most;
	qsort(items, *count, sizeof *items, compare_place);
	return items;
}

/* An item with the best ranks by weight of its time and of its test at that time, and its own. */
enum { RANKS = 3 };

struct ranked {
	const struct announcement *item;
	size_t ranks[RANKS];
};

static int compare_blocks(const void *a, const void *b)
{
	const struct ranked *left = a, *right = b;

	for (size_t i = 0; i < RANKS; i++)
		if (left->ranks[i] != right->ranks[i])
			return left->ranks[i] < right->ranks[i] ? -1 : 1;
	return 0;
}

/* A block has the rank of its first item; messages show few enough to look for that one by one. */
void message_arrange(const struct announcement **items, size_t count, bool first_look)
{
	struct ranked *ranked = memory_new(count, sizeof *ranked);

	message_rank(items, count);
	for (size_t i = 0; i < count; i++) {
		size_t time = 0, test;

		while (!first_look && items[time]->time != items[i]->time)
			time++;
		for (test = time; (!first_look && items[test]->time != items[i]->time) ||
				  strcmp(items[test]->test, items[i]->test) != 0;)
			test++;
		ranked[i] = (struct ranked){items[i], {time, test, i}};
	}
	qsort(ranked, count, sizeof *ranked, compare_blocks);
	for (size_t i = 0; i < count; i++)
		items[i] = ranked[i].item;
	free(ranked);
}

int64_t message_incident(const struct message *message)
{
	int64_t incident = message->items[0].incident;

	for (size_t i = 1; i < message->count; i++)
		if (message->items[i].incident != incident)
			return 0;
	return incident;
}

int64_t message_since(const struct message *message)
{
	int64_t since = message->items[0].time;

	for (size_t i = 1; i < message->count; i++)
		since = message->items[i].time < since ? message->items[i].time : since;
	return since;
}

static size_t count_tests(const struct message *message)
{
	const char **names = memory_new(message->count, sizeof *names);
	size_t count = 0;

	for (size_t i = 0; i < message->count; i++)
		names[i] = message->items[i].test;
	qsort(names, message->count, sizeof *names, order_texts);
	for (size_t i = 0; i < message->count; i++)
		count += i == 0 || strcmp(names[i], names[i - 1]) != 0;
	free(names);
	return count;
}

struct tally message_tally(const struct message *message)
{
	struct tally tally = {.changes = message->count, .tests = count_tests(message)};

	for (size_t i = 0; i < message->count; i++) {
		int verdict = announcement_verdict(&message->items[i]);

		tally.regressions += verdict > 0;
		tally.improvements += verdict < 0;
	}
	return tally;
}

bool announced_is_over(const struct announced_change *change)
{
	return change->state != ANNOUNCED_STANDS || triage_is_accepted(change->triage.state) ||
	       change->triage.state == TRIAGE_FIXED;
}

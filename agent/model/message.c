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

void message_by_weight(const struct message *message, const struct announcement **out)
{
	for (size_t i = 0; i < message->count; i++)
		out[i] = &message->items[i];
	qsort(out, message->count, sizeof *out, compare_weight);
}

void message_select(const struct message *message, size_t count, const struct announcement **out)
{
	message_by_weight(message, out);
	qsort(out, count < message->count ? count : message->count, sizeof *out, compare_place);
}

/* An item with its rank by weight, and the best ranks of its time and of its test at that time. */
struct ranked {
	const struct announcement *item;
	int64_t time; /* of its block */
	size_t rank, of_time, of_test;
};

static int compare_size(size_t a, size_t b)
{
	return (a > b) - (a < b);
}

/* Compares by rank of time, rank of test, and rank. */
static int compare_blocks(const void *a, const void *b)
{
	const struct ranked *left = a, *right = b;
	int order;

	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	order = strcmp(left->item->test, right->item->test);
	return order != 0 ? order : compare_size(left->rank, right->rank);
}

static int compare_ranks(const void *a, const void *b)
{
	const struct ranked *left = a, *right = b;
	int order = compare_size(left->of_time, right->of_time);

	if (order == 0)
		order = compare_size(left->of_test, right->of_test);
	return order != 0 ? order : compare_size(left->rank, right->rank);
}

/* Sets the ranks of times and tests; the items are sorted by time and test. */
static void rank_blocks(struct ranked *items, size_t count)
{
	for (size_t first = 0, next; first < count; first = next) {
		size_t best = items[first].rank;

		for (next = first; next < count && items[next].time == items[first].time; next++) {
			bool same_test = next > first && strcmp(items[next].item->test,
								 items[next - 1].item->test) == 0;

			items[next].of_test =
				same_test ? items[next - 1].of_test : items[next].rank;
			best = items[next].rank < best ? items[next].rank : best;
		}
		for (size_t i = first; i < next; i++)
			items[i].of_time = best;
	}
}

void message_arrange(const struct announcement **items, size_t count, bool first_look)
{
	struct ranked *ranked = memory_new(count, sizeof *ranked);

	qsort(items, count, sizeof *items, compare_weight);
	for (size_t i = 0; i < count; i++)
		ranked[i] = (struct ranked){
			.item = items[i], .time = first_look ? 0 : items[i]->time, .rank = i};
	qsort(ranked, count, sizeof *ranked, compare_blocks);
	rank_blocks(ranked, count);
	qsort(ranked, count, sizeof *ranked, compare_ranks);
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

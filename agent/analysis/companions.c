/*
 * A companion is one metric of one test; several tasks may share it, and it counts its users.
 * Tasks that wait for one are in its queue.
 */
#include "agent/analysis/companions.h"

#include <stdlib.h>
#include <string.h>

#include "agent/analysis/select.h"
#include "agent/base/order.h"

/* A task that waits; in its arena. */
struct waiter {
	struct task *task;
	void (*ready)(struct task *task);
	size_t pending;
};

struct place {
	struct waiter *waiter;
	struct place *next;
};

struct companion {
	size_t users;
	const struct test *test;
	const char *metric, *branch;
	int64_t since, until;
	struct task *task; /* owned by the waiter once it is done; until then by the engine */
	bool done;
	struct place *line;
	struct companion *next; /* in the pool */
};

struct companions {
	struct companion **items;
	size_t count;
};

struct pool_of_companions {
	struct companion *first;
};

static void leave(struct companion *companion)
{
	if (--companion->users > 0)
		return;
	if (companion->done)
		task_free(companion->task);
	free(companion);
}

struct pool_of_companions *companions_pool_new(void)
{
	return memory_new(1, sizeof(struct pool_of_companions));
}

void companions_pool_free(struct pool_of_companions *pool)
{
	for (struct companion *at = pool ? pool->first : NULL, *next; at; at = next) {
		next = at->next;
		leave(at);
	}
	free(pool);
}

static void forget(struct companions *companions)
{
	for (size_t i = 0; i < companions->count; i++)
		leave(companions->items[i]);
}

/* One of the companions that the waiter waits for has arrived. */
static void arrive(struct waiter *waiter, const struct companion *companion)
{
	struct task *task = waiter->task;

	if (companion->task->failed && !task->failed) {
		task->failed = true;
		task->error = companion->task->error;
		task->trouble = companion->task->trouble;
		(void)error_prefix(&task->error,
			"test \"%s\", referenced by other tests: ", companion->test->name);
	}
	if (--waiter->pending == 0)
		waiter->ready(task);
}

static void fetched(struct task *task)
{
	struct companion *companion = task->context;

	companion->done = true;
	for (struct place *at = companion->line, *next; at; at = next) {
		next = at->next;
		arrive(at->waiter, companion);
	}
}

static bool is_for(const struct companion *companion, const struct control_rule *rule)
{
	return companion->test == rule->test && order_same(companion->metric, rule->metric);
}

static struct companion *add_companion(const struct companions_way *way, const struct query *query,
	const struct control_rule *rule)
{
	struct companion *companion = memory_new(1, sizeof *companion);
	struct selection selection = {.since = query->since,
		.until = query->until,
		.branch = query->branch,
		.metrics = {(const char *const *)&rule->metric, 1}};

	*companion = (struct companion){.test = rule->test,
		.metric = rule->metric,
		.branch = query->branch,
		.since = query->since,
		.until = query->until};
	companion->task = task_new(rule->test, query->now);
	selection_query(&selection, rule->test, &companion->task->query);
	companion->task->context = companion;
	companion->task->done = fetched;
	if (!way->pool)
		return companion;
	companion->users = 1;
	companion->next = way->pool->first;
	way->pool->first = companion;
	return companion;
}

static struct companion *find(const struct companions *companions, const struct control_rule *rule)
{
	for (size_t i = 0; companions && i < companions->count; i++)
		if (is_for(companions->items[i], rule))
			return companions->items[i];
	return NULL;
}

static const struct control_rule *rule_at(const struct test *test, size_t i)
{
	return i < test->metric_count
		       ? control_of(test, &test->detections[i], test->metrics[i].name)
		       : test->detection.control;
}

static bool is_read(const struct task *task, size_t metric)
{
	const struct test *test = task->test;

	if (metric == test->metric_count) /* metrics that only the source knows */
		return true;
	for (size_t i = 0; i < task->query.metric_count; i++)
		if (strcmp(task->query.metrics[i].name, test->metrics[metric].name) == 0)
			return true;
	return false;
}

size_t companions_bytes(const struct companions *companions)
{
	size_t bytes = 0;

	for (size_t i = 0; companions && i < companions->count; i++)
		bytes += arena_size(companions->items[i]->task->query.arena);
	return bytes;
}

size_t companions_tests(const struct test *test, const struct test **out)
{
	size_t count = 0;

	for (size_t i = 0; i <= test->metric_count; i++) {
		const struct control_rule *rule = rule_at(test, i);

		if (rule && rule->test && rule->test != test)
			out[count++] = rule->test;
	}
	return count;
}

void companions_fetch(
	const struct companions_way *way, struct task *task, void (*ready)(struct task *task))
{
	const struct test *test = task->test;
	const struct query *query = &task->query;
	struct arena *arena = query->arena;
	struct companions *companions = arena_alloc(arena, sizeof *companions);
	struct waiter *waiter = arena_alloc(arena, sizeof *waiter);

	*waiter = (struct waiter){.task = task, .ready = ready, .pending = 1};
	companions->items = arena_array(arena, test->metric_count + 1, sizeof(struct companion *));
	for (size_t i = 0; i <= test->metric_count; i++) {
		const struct control_rule *rule = rule_at(test, i);

		/* Only a series of another test, or of a metric that is not read, is fetched. */
		if (!rule || !rule->test || !is_read(task, i) || find(companions, rule) ||
			(rule->test == test && query->metric_count >= test->metric_count))
			continue;
		struct companion *companion = way->pool ? way->pool->first : NULL;

		while (companion &&
			!(is_for(companion, rule) && order_same(companion->branch, query->branch) &&
				companion->since == query->since &&
				companion->until == query->until))
			companion = companion->next;
		bool fresh = !companion;

		if (fresh)
			companion = add_companion(way, &task->query, rule);
		companion->users++;
		companions->items[companions->count++] = companion;
		waiter->pending++;
		if (companion->done) {
			arrive(waiter, companion);
			continue;
		}
		struct place *place = arena_alloc(arena, sizeof *place);

		*place = (struct place){waiter, companion->line};
		companion->line = place;
		struct task *other = companion->task;
		if (fresh && !rule->test->unsupported) {
			way->submit(way->context, other);
		} else if (fresh) {
			other->failed = !error_set(
				&other->error, ERROR_DATA, "%s", rule->test->unsupported);
			other->trouble = "configuration";
			fetched(other);
		}
	}
	task->companions = companions;
	task->forget = forget;
	if (--waiter->pending == 0)
		ready(task);
}

bool companions_same_labels(const struct pairs *a, const struct pairs *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->items[i].key, b->items[i].key) != 0 ||
			strcmp(a->items[i].value, b->items[i].value) != 0)
			return false;
	return true;
}

static const struct series *pick(
	const struct dataset *data, const char *metric, const struct series *series, size_t *count)
{
	const struct series *found = NULL, *alike = NULL;

	*count = 0;
	for (size_t i = 0; i < data->count; i++) {
		const struct series *at = &data->series[i];

		if (strcmp(at->name, metric) != 0 &&
			!(at->metric && strcmp(at->metric->name, metric) == 0))
			continue;
		found = at;
		++*count;
		if (companions_same_labels(&at->labels, &series->labels))
			alike = at;
	}
	return alike ? alike : *count == 1 ? found : NULL;
}

const struct series *companions_find(const struct companions *companions, const struct test *test,
	const struct control_rule *rule, const struct dataset *own, const struct series *series,
	struct error *error)
{
	const struct companion *other = find(companions, rule);
	const struct dataset *data = rule->test == test ? own : NULL;
	const struct series *found;
	size_t count = 0;

	if (other)
		data = &other->task->query.data;
	found = data ? pick(data, rule->metric, series, &count) : NULL;
	if (found)
		return found;
	if (!data)
		error_set(error, ERROR_DATA, "%s: the data of %s were not read",
			control_keys[rule->mode], rule->name);
	else if (count == 0)
		error_set(error, ERROR_DATA, "%s: %s has no data in this range",
			control_keys[rule->mode], rule->name);
	else
		error_set(error, ERROR_DATA,
			"%s: %s has %zu series, none of them with the labels of \"%.200s\"",
			control_keys[rule->mode], rule->name, count, series->name);
	return NULL;
}

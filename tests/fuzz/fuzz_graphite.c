/*
 * The readers of Graphite's answers: the raw form against a plain reader that splits lines at
 * commas, the JSON form against jansson (aside from numbers too big for a double, which jansson
 * rejects, and strings that are no Unicode text, without which it must read the rest), and lists
 * that are read item by item against jansson, too. Those of events, of /metrics/find and of
 * expressions must only survive.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/number.h"
#include "agent/base/when.h"
#include "sources/graphite/answer.h"
#include "sources/graphite/events.h"
#include "sources/graphite/find.h"
#include "sources/graphite/graphite.h"
#include "sources/graphite/list.h"
#include "tests/fuzz/spoilt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "the readers differ: %s\n", what);
	abort();
}

/* A series as the plain readers see it. */
struct plain {
	char *target;
	int64_t step;
	int64_t *times;
	double *values;
	size_t n, broken;
	bool unusable;
};

struct plains {
	struct plain *items;
	size_t count, at;
	bool check; /* else only read */
	bool left_out;
};

static struct plain *plain_add(struct plains *all, const char *target, size_t length, size_t room)
{
	all->items = memory_resize(all->items, all->count + 1, sizeof *all->items);
	struct plain *plain = &all->items[all->count++];
	*plain = (struct plain){.target = memory_new(length + 1, 1),
		.times = memory_new(room + 1, sizeof *plain->times),
		.values = memory_new(room + 1, sizeof *plain->values)};
	memcpy(plain->target, target, length);
	return plain;
}

static void plain_point(struct plain *plain, int64_t seconds, double value)
{
	plain->times[plain->n] = seconds * 1000;
	plain->values[plain->n++] = value;
}

static void plain_free(struct plains *all)
{
	for (size_t i = 0; i < all->count; i++) {
		free(all->items[i].target);
		free(all->items[i].times);
		free(all->items[i].values);
	}
	free(all->items);
	*all = (struct plains){0};
}

/* An integer between the commas, of at most twelve digits. */
static bool field(const char *from, const char *to, long long *out)
{
	char text[16];
	size_t length = (size_t)(to - from), sign = length > 0 && *from == '-';
	if (length == sign || length - sign > 12)
		return false;
	memcpy(text, from, length);
	text[length] = '\0';
	if (strspn(text + sign, "0123456789") != length - sign)
		return false;
	*out = strtoll(text, NULL, 10);
	return true;
}

struct header {
	size_t target;
	long long start, end, step;
};

static bool header_of(const char *begin, const char *bar, struct header *out)
{
	const char *c3 = memrchr(begin, ',', (size_t)(bar - begin));
	const char *c2 = c3 ? memrchr(begin, ',', (size_t)(c3 - begin)) : NULL;
	const char *c1 = c2 ? memrchr(begin, ',', (size_t)(c2 - begin)) : NULL;
	if (!c1 || !field(c1 + 1, c2, &out->start) || !field(c2 + 1, c3, &out->end) ||
		!field(c3 + 1, bar, &out->step))
		return false;
	out->target = (size_t)(c1 - begin);
	return out->step > 0 && out->start >= 0 && out->end >= out->start &&
	       out->end <= 100000000000;
}

static bool plain_line(struct plains *all, const char **at, const char *end)
{
	const char *begin = *at, *bar = begin;
	struct header header;
	while ((bar = memchr(bar, '|', (size_t)(end - bar))) && !header_of(begin, bar, &header))
		bar++;
	const char *line_end = bar ? memchr(bar, '\n', (size_t)(end - bar)) : NULL;
	if (!line_end)
		return false;
	struct plain *plain = plain_add(all, begin, header.target, (size_t)(line_end - bar));
	plain->step = header.step;
	plain->unusable = memchr(begin, 0, header.target) != NULL;
	long long time = header.start, expected = 0;
	for (const char *from = bar + 1; from <= line_end && bar + 1 < line_end;) {
		const char *to = memchr(from, ',', (size_t)(line_end - from));
		double value;
		if (time > 100000000000)
			return false;
		if (!to)
			to = line_end;
		size_t length = (size_t)(to - from);
		bool none = length == 4 && memcmp(from, "None", 4) == 0;
		if (!none && number_parse(from, length, &value))
			plain_point(plain, time, value);
		else if (!none && !(length > 0 && number_missing(from, length)))
			plain->broken++;
		time += header.step;
		expected++;
		from = to + 1;
	}
	*at = line_end + 1;
	return expected >= (header.end - header.start + header.step - 1) / header.step;
}

static bool plain_raw(struct plains *all, const char *text, size_t length)
{
	const char *at = text;
	while (at < text + length)
		if (!plain_line(all, &at, text + length))
			return false;
	return true;
}

static bool plain_json_series(struct plains *all, const json_t *item)
{
	const json_t *target = json_object_get(item, "target");
	const json_t *points = json_object_get(item, "datapoints");
	double before = 0;
	if (!json_is_object(item) || !json_is_string(target) || !json_is_array(points))
		return false;
	struct plain *plain = plain_add(all, json_string_value(target), json_string_length(target),
		json_array_size(points));
	for (size_t i = 0; i < json_array_size(points); i++) {
		const json_t *point = json_array_get(points, i);
		const json_t *value = json_array_get(point, 0), *time = json_array_get(point, 1);
		double seconds = trunc(json_number_value(time));
		if (!json_is_array(point) || json_array_size(point) != 2 || !json_is_number(time) ||
			!(json_number_value(time) >= 0) || !(json_number_value(time) <= 1e11) ||
			seconds < before)
			return false;
		before = seconds;
		if (json_is_number(value))
			plain_point(plain, (int64_t)seconds, json_number_value(value));
		else
			plain->broken += !json_is_null(value);
	}
	return true;
}

static bool plain_json(struct plains *all, const json_t *root)
{
	if (!json_is_array(root))
		return false;
	for (size_t i = 0; i < json_array_size(root); i++)
		if (!plain_json_series(all, json_array_get(root, i)))
			return false;
	return true;
}

static void take(void *context, const struct graphite_series *series)
{
	struct plains *all = context;
	all->left_out |= series->unusable != NULL;
	if (!all->check)
		return;
	require(all->at < all->count, "how many series there are");
	const struct plain *plain = &all->items[all->at++];
	require(plain->unusable == (series->unusable != NULL), "what cannot be used");
	if (plain->unusable)
		return;
	require(strcmp(plain->target, series->target) == 0, "a target");
	require(plain->step == series->step, "a step");
	require(plain->n == series->n, "how many points there are");
	require(plain->broken == series->malformed, "how many values are broken");
	for (size_t i = 0; i < plain->n; i++) {
		require(plain->times[i] == series->times[i], "a time");
		require(memcmp(&plain->values[i], &series->values[i], 8) == 0, "a value");
	}
}

static void fuzz_raw(const char *text, size_t size)
{
	struct plains plains = {.check = true};
	struct error error;
	bool theirs = plain_raw(&plains, text, size);
	plains.check = theirs;
	bool ours = graphite_read_raw(text, size, 1000000, take, &plains, &error);
	require(ours == theirs, "what is a raw answer");
	require(!ours || plains.at == plains.count, "how many series there are");
	plain_free(&plains);
}

static bool is_mendable(const char *text, size_t size)
{
	json_error_t problem;
	char *mended = spoilt_mend(text, size);
	json_t *root = json_loadb(mended, size, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &problem);
	bool good = root || json_error_code(&problem) == json_error_numeric_overflow ||
		    json_error_code(&problem) == json_error_stack_overflow;
	json_decref(root);
	free(mended);
	return good;
}

static void fuzz_json(const char *text, size_t size)
{
	struct plains plains = {0};
	struct error error;
	json_error_t problem, ignored;
	if (memchr(text, 0, size)) /* jansson takes some zero bytes for blanks */
		return;
	json_t *root = json_loadb(text, size, JSON_DECODE_INT_AS_REAL, &problem);
	json_t *unique =
		json_loadb(text, size, JSON_DECODE_INT_AS_REAL | JSON_REJECT_DUPLICATES, &ignored);
	bool theirs = unique && plain_json(&plains, unique);
	plains.check = theirs;
	bool ours = graphite_read_json(text, size, 1000000, take, &plains, &error);
	if (unique)
		require(ours == theirs, "what is a JSON answer");
	else if (ours && !root && plains.left_out)
		require(is_mendable(text, size), "what is valid but for its strings");
	else if (ours && !root)
		require(json_error_code(&problem) == json_error_numeric_overflow,
			"what is valid JSON");
	json_decref(root);
	json_decref(unique);
	plain_free(&plains);
}

static bool take_item(void *context, const json_t *item)
{
	(void)context;
	(void)item;
	return true;
}

/* What is a list item by item is one as a whole, one that is nested too deeply as a whole aside. */
static void fuzz_list(const char *text, size_t size)
{
	json_error_t problem = {0};
	struct error error;
	if (memchr(text, 0, size))
		return;
	json_t *root = json_loadb(text, size, JSON_ALLOW_NUL, &problem);
	size_t unusable = 0;
	bool ours =
		graphite_list_read(text, size, "list", "item", take_item, NULL, &unusable, &error);
	require(ours == json_is_array(root) ||
			(!root && json_error_code(&problem) == json_error_stack_overflow) ||
			(ours && unusable > 0 && is_mendable(text, size)),
		"what is a list");
	json_decref(root);
}

/* The way from an answer to the dataset: axes are shared, names and identities differ. */
static void fuzz_step(const char *text, size_t size, bool metric)
{
	static const struct metric one = {.name = "m", .scale = 2, .query = "*"};
	struct graphite_options options = {.target = "*", .range = INT64_C(100) * 365 * 86400000};
	struct endpoint endpoint = {.url = "http://localhost/"};
	char *body = memory_new(size + 1, 1);
	memcpy(body, text, size);
	struct reply reply = {.kind = REPLY_ANSWER, .status = 200, .body = body, .length = size};
	struct query query = {.arena = arena_new(),
		.options = &options,
		.server = &endpoint,
		.metrics = &one,
		.metric_count = metric,
		.since = WHEN_ALWAYS,
		.until = WHEN_NEVER,
		.now = 4000000000000};
	struct transfer next;
	struct error error;
	require(graphite_source.step(&query, NULL, &next, &error) == STEP_TRANSFER, "the start");
	if (graphite_source.step(&query, &reply, &next, &error) == STEP_DONE) {
		for (size_t s = 0; s < query.data.count; s++) {
			const struct series *series = &query.data.series[s];
			const struct axis *axis = series->axis;
			require(*series->identity || !metric, "an identity");
			for (size_t i = 1; i < axis->n; i++)
				require(axis->times[i - 1] <= axis->times[i], "an order");
			for (size_t other = 0; other < s && s < 100; other++)
				require(strcmp(series->identity,
						query.data.series[other].identity) != 0,
					"two series of one identity");
		}
	}
	arena_free(query.arena);
	free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct arena *arena = arena_new();
	struct graphite_events events;
	struct graphite_nodes nodes;
	struct error error;
	fuzz_raw(text, size);
	fuzz_json(text, size);
	fuzz_list(text, size);
	fuzz_step(text, size, size % 2);
	if (graphite_events_read(arena, text, size, &events, &error)) {
		int64_t times[] = {1795182900000, 1795182960000, 1795183500000};
		struct axis axis = {.n = 3, .times = times};
		events.per_run = size % 2;
		graphite_events_match(&events, &axis, 60000, arena);
	}
	if (!graphite_find_read(arena, text, size, &nodes, &error))
		nodes.count = 0;
	struct expression expression = target_read(arena, arena_strndup(arena, text, size));
	require(!expression.problem == !expression.at, "a problem without a place");
	require(expression.reach.ms >= 0 && expression.reach.steps >= 0 &&
			expression.reach.bucket >= 0,
		"it looks ahead");
	arena_free(arena);
	return 0;
}

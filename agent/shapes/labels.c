#include "agent/shapes/labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/buf.h"
#include "agent/core/dict.h"
#include "agent/core/label.h"
#include "agent/core/utf8.h"

enum { MOST_LABELS = 32, MOST_PARTS = 8, LONGEST = 300 };

/* A label is told if so many of the members have it, and so many more than of all series. */
#define LEAST_SHARE 0.5
#define LEAST_LIFT 0.05

struct label {
	const char *text;
	size_t number, overall;
};

/* The labels of one series: numbers[first .. first + count). */
struct span {
	size_t first, count;
};

struct labels {
	struct arena *arena;
	struct dict dict; /* text -> struct label */
	struct label **all;
	size_t label_count, label_capacity;
	size_t *numbers;
	size_t number_count, number_capacity;
	struct span *series;
	size_t series_count, series_capacity;
	struct buf text;
};

struct labels *labels_new(struct arena *arena)
{
	struct labels *labels = memory_new(1, sizeof *labels);

	*labels = (struct labels){.arena = arena, .dict = {.arena = arena}};
	return labels;
}

void labels_free(struct labels *labels)
{
	if (!labels)
		return;
	free(labels->all);
	free(labels->numbers);
	free(labels->series);
	buf_free(&labels->text);
	free(labels);
}

static size_t number_of(struct labels *labels, const char *text)
{
	const struct label *known = dict_get(&labels->dict, text);
	struct label *label;

	if (known)
		return known->number;
	label = arena_alloc(labels->arena, sizeof *label);
	*label = (struct label){
		.text = arena_strdup(labels->arena, text), .number = labels->label_count};
	labels->all = memory_grow(
		labels->all, &labels->label_capacity, labels->label_count + 1, sizeof *labels->all);
	labels->all[labels->label_count++] = label;
	*dict_place(&labels->dict, label->text) = label;
	return label->number;
}

/* Gives the series that is being added the label key=value; a second time it is ignored. */
static void put(struct labels *labels, const char *key, const char *value, size_t length)
{
	struct span *span = &labels->series[labels->series_count - 1];
	size_t number;

	if (span->count == MOST_LABELS || length == 0)
		return;
	buf_clear(&labels->text);
	buf_printf(&labels->text, "%.*s=", (int)utf8_cut(key, LONGEST), key);
	buf_append(&labels->text, value, length < LONGEST ? length : utf8_cut(value, LONGEST));
	number = number_of(labels, labels->text.data);
	for (size_t i = 0; i < span->count; i++)
		if (labels->numbers[span->first + i] == number)
			return;
	labels->numbers = memory_grow(labels->numbers, &labels->number_capacity,
		labels->number_count + 1, sizeof *labels->numbers);
	labels->numbers[labels->number_count++] = number;
	labels->all[number]->overall++;
	span->count++;
}

/* "test[1]=checkout": the parts of a path, if it has more than one. */
static void put_parts(struct labels *labels, const char *kind, const char *path, size_t length)
{
	size_t part = 1, begin = 0;
	char key[32];

	for (size_t i = 0; i <= length && part <= MOST_PARTS; i++) {
		if (i < length && path[i] != '.' && path[i] != '/')
			continue;
		if (begin == 0 && i == length)
			return;
		snprintf(key, sizeof key, "%s[%zu]", kind, part++);
		put(labels, key, path + begin, i - begin);
		begin = i + 1;
	}
}

static void put_label_set(struct labels *labels, const char *at)
{
	struct label_text label;
	char key[LONGEST];

	while (at && label_next(&at, &label)) {
		size_t length = label.key_length;

		snprintf(key, sizeof key, "%.*s", (int)(length < LONGEST ? length : LONGEST),
			label.key);
		put(labels, key, label.value, label.value_length);
	}
}

void labels_add(struct labels *labels, const char *test, const char *identity)
{
	size_t length = strcspn(identity, "{");

	labels->series = memory_grow(labels->series, &labels->series_capacity,
		labels->series_count + 1, sizeof *labels->series);
	labels->series[labels->series_count++] = (struct span){labels->number_count, 0};
	put(labels, "test", test, strlen(test));
	put_parts(labels, "test", test, strlen(test));
	put(labels, "metric", identity, length);
	put_parts(labels, "path", identity, length);
	put_label_set(labels, label_set(identity));
}

static int compare_telling(const void *a, const void *b)
{
	const struct shape_label *left = a, *right = b;
	double left_lift = left->share - left->overall, right_lift = right->share - right->overall;

	if (left_lift != right_lift)
		return left_lift > right_lift ? -1 : 1;
	return strcmp(left->text, right->text);
}

const struct shape_label *labels_shared(const struct labels *labels, struct arena *arena,
	const size_t *members, size_t count, size_t most, size_t *found)
{
	size_t *counts = memory_new(labels->label_count, sizeof *counts);
	struct shape_label *shared = arena_array(arena, labels->label_count, sizeof *shared);

	*found = 0;
	memset(counts, 0, labels->label_count * sizeof *counts);
	for (size_t i = 0; i < count; i++) {
		const struct span *span = &labels->series[members[i]];

		for (size_t j = 0; j < span->count; j++)
			counts[labels->numbers[span->first + j]]++;
	}
	for (size_t i = 0; i < labels->label_count; i++) {
		double share = (double)counts[i] / (double)count;
		double overall = (double)labels->all[i]->overall / (double)labels->series_count;

		if (share >= LEAST_SHARE && share - overall >= LEAST_LIFT)
			shared[(*found)++] =
				(struct shape_label){labels->all[i]->text, share, overall};
	}
	free(counts);
	qsort(shared, *found, sizeof *shared, compare_telling);
	*found = *found < most ? *found : most;
	return shared;
}

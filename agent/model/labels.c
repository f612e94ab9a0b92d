#include "agent/model/labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/dict.h"
#include "agent/base/label.h"
#include "agent/base/number.h"
#include "agent/base/utf8.h"

enum { MOST_LABELS = 32, MOST_PARTS = 8, LONGEST = 300 };

/* A label is reported if a large enough share of the members have it, and one large enough above
 * that of all series. */
#define LEAST_SHARE 0.5
#define LEAST_LIFT 0.05

/* The labels of one series: numbers[first .. first + count). */
struct span {
	size_t first, count;
};

struct labels {
	struct name_index names; /* the labels, by number */
	size_t *overall;         /* how many series have each */
	size_t overall_capacity;
	size_t *numbers;
	size_t number_count, number_capacity;
	struct span *series;
	size_t series_count, series_capacity;
	struct buf text;
	bool where; /* the series that is being added: see labels_add */
};

struct labels *labels_new(struct arena *arena)
{
	struct labels *labels = memory_new(1, sizeof *labels);

	*labels = (struct labels){.names.dict.arena = arena};
	return labels;
}

void labels_free(struct labels *labels)
{
	if (!labels)
		return;
	free(labels->overall);
	free(labels->numbers);
	free(labels->series);
	buf_free(&labels->text);
	free(labels);
}

static void add_series(struct labels *labels)
{
	labels->series = memory_grow(labels->series, &labels->series_capacity,
		labels->series_count + 1, sizeof *labels->series);
	labels->series[labels->series_count++] = (struct span){labels->number_count, 0};
}

/* Gives the label in labels->text to the series that is being added; ignored if it has it
 * already. */
static void put_text(struct labels *labels)
{
	struct span *span = &labels->series[labels->series_count - 1];
	size_t known = labels->names.count, number;

	if (span->count == MOST_LABELS)
		return;
	number = name_index_add(&labels->names, labels->text.data, labels->text.length);
	if (number == known) {
		labels->overall = memory_grow(labels->overall, &labels->overall_capacity, known + 1,
			sizeof *labels->overall);
		labels->overall[number] = 0;
	}
	for (size_t i = 0; i < span->count; i++)
		if (labels->numbers[span->first + i] == number)
			return;
	labels->numbers = memory_grow(labels->numbers, &labels->number_capacity,
		labels->number_count + 1, sizeof *labels->numbers);
	labels->numbers[labels->number_count++] = number;
	labels->overall[number]++;
	span->count++;
}

static void put(struct labels *labels, const char *key, const char *value, size_t length)
{
	double number;

	if (length == 0 || (labels->where && number_parse(value, length, &number)))
		return;
	buf_clear(&labels->text);
	buf_printf(&labels->text, "%.*s=", (int)utf8_cut(key, LONGEST), key);
	buf_append(&labels->text, value, length < LONGEST ? length : utf8_cut(value, LONGEST));
	put_text(labels);
}

/* "test[1]=checkout": the parts of a path, if it has more than one; the last may say what it is. */
static void put_parts(struct labels *labels, const char *kind, const char *path, size_t length)
{
	size_t part = 1, begin = 0;
	char key[32];

	for (size_t i = 0; i <= length && part <= MOST_PARTS; i++) {
		if (i < length && path[i] != '.' && path[i] != '/')
			continue;
		if ((begin == 0 || labels->where) && i == length)
			return;
		snprintf(key, sizeof key, "%s[%zu]", kind, part++);
		put(labels, key, path + begin, i - begin);
		begin = i + 1;
	}
}

void labels_add(struct labels *labels, const char *test, const char *identity, bool where)
{
	size_t length = strcspn(identity, "{");
	const char *at = label_set(identity);
	struct label_text label;
	char key[LONGEST];

	labels->where = where;
	add_series(labels);
	put(labels, "test", test, strlen(test));
	put_parts(labels, "test", test, strlen(test));
	put(labels, "metric", identity, length);
	put_parts(labels, "path", identity, length);
	while (at && label_next(&at, &label)) {
		length = label.key_length < LONGEST ? label.key_length : LONGEST;
		snprintf(key, sizeof key, "%.*s", (int)length, label.key);
		put(labels, key, label.value, label.value_length);
	}
}

/* The name of a metric is a common label only if all of its series changed. */
struct strings labels_rare(struct labels *labels, struct arena *arena, const char *test,
	const char *identity, double share)
{
	double most = share * (double)labels->series_count;
	const struct span *span;
	struct strings rare = {0};
	const char **items;

	labels_add(labels, test, identity, true);
	span = &labels->series[--labels->series_count];
	items = arena_array(arena, span->count, sizeof *items);
	for (size_t i = 0; i < span->count; i++) {
		size_t number = labels->numbers[span->first + i];
		const char *text = labels->names.items[number];
		bool metric = strncmp(text, "metric=", strlen("metric=")) == 0;

		if ((double)--labels->overall[number] <= (metric ? 0 : most))
			items[rare.count++] = text;
	}
	labels->number_count = span->first;
	rare.items = items;
	return rare;
}

/*
 * Iterates over the pieces between the braces of a name. `raw` is the piece without its
 * separators; `separator` is what splits them. Pieces of unknown form, as the name in
 * disk{used,host="a"}, have no text.
 */
struct pieces {
	const char *at, *end; /* the rest, and the closing brace */
	bool path;
	size_t number, count; /* of a path: parts so far, and in total */
	const char *raw;
	size_t length;
};

/* False if there are no braces, or they hold neither labels nor a path, as in cpu{sum(a,b)}. */
static bool pieces_begin(const char *name, struct pieces *pieces)
{
	const char *brace = strchr(name, '{'), *end = brace ? strrchr(brace, '}') : NULL;

	if (!end || end == brace + 1)
		return false;
	*pieces = (struct pieces){.at = brace + 1, .end = end};
	pieces->path = strcspn(brace + 1, "=\",()[]{}; '|*") == (size_t)(end - brace - 1);
	for (const char *dot = brace; pieces->path && dot < end; dot++)
		pieces->count += dot == brace || *dot == '.';
	return pieces->path || memchr(brace, '=', (size_t)(end - brace));
}

/* In a path with too many parts to keep a text for, they have none. */
static bool path_next(struct pieces *pieces, struct buf *text)
{
	if (pieces->number == pieces->count)
		return false;
	pieces->raw = pieces->at;
	pieces->length = strcspn(pieces->at, ".}");
	pieces->at += pieces->length + (pieces->at[pieces->length] == '.');
	for (size_t i = 0; i < pieces->count && pieces->count <= LONGEST / 2; i++) {
		buf_text(text, i > 0 ? "." : "");
		if (i == pieces->number)
			buf_append(text, pieces->raw, pieces->length);
		else
			buf_char(text, '*');
	}
	pieces->number++;
	return true;
}

/* Writes the piece's text, nothing if it has none. A malformed label ends the iteration. */
static bool piece_next(struct pieces *pieces, struct buf *text)
{
	struct label_text label;
	size_t word;

	buf_clear(text);
	if (pieces->path)
		return path_next(pieces, text);
	if (pieces->at >= pieces->end)
		return false;
	pieces->raw = pieces->at;
	word = strcspn(pieces->at, "=,}");
	if (pieces->at[word] == ',') {
		pieces->length = word;
		pieces->at += word + 1;
		return true;
	}
	if (!label_next(&pieces->at, &label) ||
		(pieces->at != pieces->end &&
			(pieces->at > pieces->end || pieces->at[-1] != ','))) {
		pieces->length = (size_t)(pieces->end - pieces->raw);
		pieces->at = pieces->end;
		return true;
	}
	pieces->length = (size_t)(label.value + label.value_length + 1 - pieces->raw);
	buf_append(text, label.key, label.key_length);
	buf_char(text, '=');
	buf_append(text, label.value, label.value_length);
	return true;
}

/* Texts too long to be kept whole are not shared by series. */
void labels_add_name(struct labels *labels, const char *name)
{
	struct pieces pieces;

	add_series(labels);
	if (pieces_begin(name, &pieces))
		while (piece_next(&pieces, &labels->text))
			if (labels->text.length > 0 && labels->text.length <= LONGEST)
				put_text(labels);
}

/* Whether a label is the pattern of a path. */
static bool is_path(const struct label_share *label)
{
	return !strchr(label->text, '=');
}

/* The part of a path or pattern with that number, from 0 on. */
static const char *part_of(const char *path, size_t number, size_t *length)
{
	for (; number > 0; number--)
		path += strcspn(path, ".") + 1;
	*length = strcspn(path, ".");
	return path;
}

static bool is_common(const struct pieces *piece, const struct buf *text,
	const struct label_share *common, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *other = common[i].text;
		size_t length = strlen(other);

		if (common[i].share < 1 || is_path(&common[i]) != piece->path)
			continue;
		if (piece->path)
			other = part_of(other, piece->number - 1, &length);
		if (length == (piece->path ? piece->length : text->length) &&
			memcmp(other, piece->path ? piece->raw : text->data, length) == 0)
			return true;
	}
	return false;
}

void labels_cut(struct buf *out, const char *name, const struct label_share *common, size_t count)
{
	struct pieces pieces;
	struct buf text = {0};
	const char *between = "{";

	if (count == 0 || !pieces_begin(name, &pieces)) {
		buf_text(out, name);
		return;
	}
	buf_append(out, name, strcspn(name, "{"));
	while (piece_next(&pieces, &text)) {
		if (text.length > 0 && is_common(&pieces, &text, common, count))
			continue;
		buf_text(out, between);
		buf_append(out, pieces.raw, pieces.length);
		between = pieces.path ? "." : ",";
	}
	if (*between != '{')
		buf_char(out, '}');
	buf_text(out, pieces.end + 1);
	buf_free(&text);
}

static int compare_telling(const void *a, const void *b)
{
	const struct label_share *left = a, *right = b;
	double left_lift = left->share - left->overall, right_lift = right->share - right->overall;

	if (left_lift != right_lift)
		return left_lift > right_lift ? -1 : 1;
	return strcmp(left->text, right->text);
}

const struct label_share *labels_shared(const struct labels *labels, struct arena *arena,
	const size_t *members, size_t count, size_t most, size_t *found)
{
	size_t *counts = memory_new(labels->names.count, sizeof *counts);
	struct label_share *shared = memory_new(labels->names.count, sizeof *shared), *kept;

	*found = 0;
	for (size_t i = 0; i < count; i++) {
		const struct span *span = &labels->series[members[i]];

		for (size_t j = 0; j < span->count; j++)
			counts[labels->numbers[span->first + j]]++;
	}
	for (size_t i = 0; i < labels->names.count; i++) {
		double share = (double)counts[i] / (double)count;
		double overall = (double)labels->overall[i] / (double)labels->series_count;

		if (share >= LEAST_SHARE && share - overall >= LEAST_LIFT)
			shared[(*found)++] =
				(struct label_share){labels->names.items[i], share, overall};
	}
	free(counts);
	qsort(shared, *found, sizeof *shared, compare_telling);
	*found = *found < most ? *found : most;
	kept = arena_array(arena, *found, sizeof *kept);
	memcpy(kept, shared, *found * sizeof *kept);
	free(shared);
	return kept;
}

/* Combines two patterns: "*.eu.*" and "*.*.x" give "*.eu.x". */
static const char *overlay(struct arena *arena, const char *a, const char *b)
{
	struct buf out = {0};

	for (size_t i = 0, length_a, length_b;; i++) {
		const char *left = part_of(a, i, &length_a), *right = part_of(b, i, &length_b);
		bool first = length_a != 1 || *left != '*';

		buf_append(&out, first ? left : right, first ? length_a : length_b);
		if (!left[length_a] || !right[length_b])
			return buf_keep(&out, arena);
		buf_char(&out, '.');
	}
}

/* Merges the path parts that all series have into one pattern. */
static size_t join_paths(struct arena *arena, struct label_share *common, size_t count)
{
	struct label_share *path = NULL;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (common[i].share >= 1 && is_path(&common[i]) && path) {
			path->text = overlay(arena, path->text, common[i].text);
			continue;
		}
		common[kept] = common[i];
		if (common[kept].share >= 1 && is_path(&common[kept]))
			path = &common[kept];
		kept++;
	}
	return kept;
}

const struct label_share *labels_common(
	const struct labels *labels, struct arena *arena, double least, size_t *found)
{
	struct label_share *common = arena_array(arena, labels->names.count, sizeof *common);

	*found = 0;
	for (size_t i = 0; i < labels->names.count; i++) {
		double share = (double)labels->overall[i] / (double)labels->series_count;

		if (share >= least)
			common[(*found)++] = (struct label_share){labels->names.items[i], share, 0};
	}
	qsort(common, *found, sizeof *common, compare_telling);
	*found = join_paths(arena, common, *found);
	return common;
}

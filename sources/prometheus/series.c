/*
 * A series is found again by its metric and its labels, written as one text, in a hash table.
 * Pieces of one series, in time or in what is said about its points, are joined at the end. Most
 * answers have the same time stamps in all series; a piece whose stamps are those of the piece
 * before borrows them, so such an answer costs eight bytes a point.
 */
#include "sources/prometheus/collection.h"

#include <inttypes.h>
#include <string.h>

#include "agent/core/buf.h"
#include "sources/prometheus/json.h"

enum { SERIES_MAX = 100000, POINTS_MAX = 20000000 };

struct collection *collection_new(
	struct arena *arena, struct pairs said, bool grid, int64_t max_points)
{
	struct collection *collection = arena_alloc(arena, sizeof *collection);
	collection->arena = arena;
	collection->said = said;
	collection->grid = grid;
	collection->max_points = max_points > 0 ? (size_t)max_points : SIZE_MAX;
	collection->was_said = arena_array(arena, said.count, sizeof(bool));
	collection->last = &collection->found;
	collection->by_identity.arena = collection->families.arena = arena;
	return collection;
}

void collection_expect(
	struct collection *collection, const struct metric *metric, int64_t from, int64_t to)
{
	collection->metric = metric;
	collection->from = from;
	collection->to = to;
}

size_t collection_histograms(const struct collection *collection)
{
	return collection->histograms;
}

bool collection_said(const struct collection *collection, size_t label)
{
	return collection->was_said[label];
}

bool collection_check(const struct collection *collection, struct error *error)
{
	if (collection->too_long)
		return error_set(error, ERROR_DATA,
			"%.300s has more points than max_points, %zu: shorten range, or ask with a "
			"step, or a longer one",
			collection->too_long->identity, collection->max_points);
	if (collection->too_many)
		return error_set(error, ERROR_DATA,
			"the query gives more than %d series or %d points: narrow it, shorten "
			"range, or raise step",
			SERIES_MAX, POINTS_MAX);
	return true;
}

static const char *label_value(const struct pair *labels, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(labels[i].key, name) == 0)
			return labels[i].value;
	return "";
}

static struct family *family_add(
	struct collection *collection, const struct metric *metric, const char *name)
{
	if (!metric) {
		struct metric *named = arena_alloc(collection->arena, sizeof *named);
		*named = (struct metric){.name = arena_strdup(collection->arena, name), .scale = 1};
		metric = named;
	}
	struct family *family = arena_alloc(collection->arena, sizeof *family);
	*family = (struct family){
		.metric = metric, .rank = collection->metric ? collection->families.count : 0};
	*dict_place(&collection->families, metric->name) = family;
	return family;
}

/* The family of the expected metric, or that of the series' own name. */
static struct family *family_of(struct collection *collection, const struct answer_series *series)
{
	const struct metric *metric = collection->metric;
	const char *name = label_value(series->labels, series->label_count, "__name__");
	if (!*name)
		name = "value";
	if (metric)
		name = metric->name;
	const struct family *family = dict_get(&collection->families, name);
	return family ? (struct family *)(uintptr_t)family : family_add(collection, metric, name);
}

static void family_join(
	struct arena *arena, struct family *family, const struct collected_series *found)
{
	bool first = !family->first;
	if (first) {
		family->first = found;
		family->common = arena_array(arena, found->label_count, sizeof *family->common);
	}
	for (size_t i = 0; i < family->first->label_count; i++) {
		const struct pair *label = &family->first->labels[i];
		const char *other = label_value(found->labels, found->label_count, label->key);
		family->common[i] =
			(first || family->common[i]) && strcmp(other, label->value) == 0;
	}
}

/* The labels that name the series: neither said ones nor empty ones. */
static size_t naming_labels(
	const struct collection *collection, const struct answer_series *series, struct pair *out)
{
	size_t count = 0;
	for (size_t i = 0; i < series->label_count; i++) {
		const struct pair *label = &series->labels[i];
		bool said = false;
		for (size_t k = 0; k < collection->said.count && !said; k++)
			said = strcmp(collection->said.items[k].key, label->key) == 0;
		if (!said && *label->value)
			out[count++] = *label;
	}
	return count;
}

/* `key`: the family's address, a blank, the identity. */
static struct collected_series *found_add(struct collection *collection, struct family *family,
	const struct buf *key, const struct pair *labels, size_t count)
{
	struct arena *arena = collection->arena;
	struct collected_series *found = arena_alloc(arena, sizeof *found);
	const char *copy = arena_strndup(arena, key->data, key->length);
	*found = (struct collected_series){.family = family,
		.identity = strchr(copy, ' ') + 1,
		.labels = arena_array(arena, count, sizeof *labels),
		.label_count = count,
		.last = &found->pieces};
	memcpy(found->labels, labels, count * sizeof *labels);
	family_join(arena, family, found);
	*dict_place(&collection->by_identity, copy) = found;
	*collection->last = found;
	collection->last = &found->next;
	collection->count++;
	return found;
}

/* What is met again costs nothing: the results of each build come as a series of their own. */
static struct collected_series *find(
	struct collection *collection, const struct answer_series *series)
{
	struct family *family = family_of(collection, series);
	struct pair labels[PARSE_LABELS_MAX];
	struct buf key = {0};
	size_t count = naming_labels(collection, series, labels);
	buf_printf(&key, "%" PRIxPTR " ", (uintptr_t)family);
	collection_name(&key, family, labels, count, true);
	const void *known = dict_get(&collection->by_identity, key.data);
	struct collected_series *found = known ? (struct collected_series *)(uintptr_t)known
					       : found_add(collection, family, &key, labels, count);
	buf_free(&key);
	return found;
}

/* What the series' labels say about its points; NULL if nothing. */
static const char **find_said(struct collection *collection, const struct answer_series *series)
{
	const char **said = NULL;
	for (size_t i = 0; i < collection->said.count; i++) {
		const char *value = label_value(
			series->labels, series->label_count, collection->said.items[i].key);
		if (!*value)
			continue;
		if (!said)
			said = arena_array(collection->arena, collection->said.count, sizeof *said);
		said[i] = value;
		collection->was_said[i] = true;
	}
	return said;
}

/* Room for n more points of the series. */
static bool has_room(struct collection *collection, const struct collected_series *found, size_t n)
{
	if (n > collection->max_points - found->n)
		collection->too_long = found;
	else if (n > POINTS_MAX - collection->points || collection->count > SERIES_MAX)
		collection->too_many = true;
	else
		return true;
	return false;
}

void collection_take(void *context, const struct answer_series *series)
{
	struct collection *collection = context;
	size_t begin = 0, end = series->n;
	collection->histograms += series->histograms;
	while (begin < end && series->times[begin] < collection->from)
		begin++;
	while (end > begin && series->times[end - 1] >= collection->to)
		end--;
	size_t n = end - begin;
	if (n == 0 || collection->too_long || collection->too_many)
		return;
	struct collected_series *found = find(collection, series);
	if (!has_room(collection, found, n))
		return;

	struct piece *piece = arena_alloc(collection->arena, sizeof *piece);
	const struct piece *before = collection->before;
	const int64_t *times = series->times + begin;
	piece->n = n;
	if (before && before->n == n && memcmp(before->times, times, n * sizeof *times) == 0) {
		piece->times = before->times;
	} else {
		piece->times = arena_array(collection->arena, n, sizeof *times);
		memcpy(piece->times, times, n * sizeof *times);
	}
	piece->values = arena_array(collection->arena, n, sizeof *piece->values);
	for (size_t i = 0; i < n; i++)
		piece->values[i] = series->values[begin + i] * found->family->metric->scale;
	piece->said = find_said(collection, series);
	*found->last = piece;
	found->last = &piece->next;
	found->n += n;
	collection->points += n;
	collection->before = piece;
}

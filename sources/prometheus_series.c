/*
 * A series is found again by its metric and its labels, written as one text, in a hash table.
 * Pieces of one series, in time or in what is said about its points, are joined at the end. Most
 * answers have the same time stamps in all series; a piece whose stamps are those of the piece
 * before borrows them, so such an answer costs eight bytes a point.
 */
#include "sources/prometheus_collection.h"

#include <string.h>

#include "agent/core/buf.h"
#include "sources/prometheus_json.h"

enum { SERIES_MAX = 100000, POINTS_MAX = 20000000 };

struct collection *collection_new(
	struct arena *arena, struct pairs said, bool grid, int64_t max_points)
{
	struct collection *collection = arena_alloc(arena, sizeof *collection);
	collection->arena = arena;
	collection->key = hash_key_new();
	collection->said = said;
	collection->grid = grid;
	collection->max_points = max_points > 0 ? (size_t)max_points : SIZE_MAX;
	collection->was_said = arena_array(arena, said.count, sizeof(bool));
	collection->last = &collection->found;
	collection->table_size = 64;
	collection->table = arena_array(arena, collection->table_size, sizeof(struct found *));
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

static size_t hash_text(const struct collection *collection, const char *text)
{
	return (size_t)hash_keyed(collection->key, text, strlen(text));
}

static void families_grow(struct collection *collection)
{
	size_t slots = collection->family_slots ? 2 * collection->family_slots : 8;
	struct family **table = arena_array(collection->arena, slots, sizeof *table);
	for (size_t i = 0; i < collection->family_slots; i++)
		for (struct family *family = collection->families[i], *next; family;
			family = next) {
			next = family->same_hash;
			struct family **place =
				&table[hash_text(collection, family->metric->name) & (slots - 1)];
			family->same_hash = *place;
			*place = family;
		}
	collection->families = table;
	collection->family_slots = slots;
}

static struct family *family_add(
	struct collection *collection, const struct metric *metric, const char *name)
{
	if (collection->family_count == collection->family_slots)
		families_grow(collection);
	if (!metric) {
		struct metric *named = arena_alloc(collection->arena, sizeof *named);
		*named = (struct metric){.name = arena_strdup(collection->arena, name), .scale = 1};
		metric = named;
	}
	struct family *family = arena_alloc(collection->arena, sizeof *family);
	struct family **place = &collection->families[hash_text(collection, metric->name) &
						      (collection->family_slots - 1)];
	*family = (struct family){.metric = metric,
		.rank = collection->metric ? collection->family_count : 0,
		.same_hash = *place};
	*place = family;
	collection->family_count++;
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
	struct family *family = NULL;
	if (collection->family_slots > 0)
		family = collection->families[hash_text(collection, name) &
					      (collection->family_slots - 1)];
	while (family &&
		(metric ? family->metric != metric : strcmp(family->metric->name, name) != 0))
		family = family->same_hash;
	return family ? family : family_add(collection, metric, name);
}

static void family_join(struct arena *arena, struct family *family, const struct found *found)
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

static void table_grow(struct collection *collection)
{
	size_t size = 2 * collection->table_size;
	struct found **table = arena_array(collection->arena, size, sizeof *table);
	for (struct found *found = collection->found; found; found = found->next) {
		struct found **place = &table[hash_text(collection, found->identity) & (size - 1)];
		found->same_hash = *place;
		*place = found;
	}
	collection->table = table;
	collection->table_size = size;
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

/* What is met again costs nothing: the results of each build come as a series of their own. */
static struct found *find(struct collection *collection, const struct answer_series *series)
{
	struct arena *arena = collection->arena;
	struct family *family = family_of(collection, series);
	struct pair labels[PARSE_LABELS_MAX];
	struct buf identity = {0};
	size_t count = naming_labels(collection, series, labels);
	collection_name(&identity, family, labels, count, true);
	size_t place = hash_text(collection, identity.data) & (collection->table_size - 1);
	struct found *found = collection->table[place];
	while (found && (found->family != family || strcmp(found->identity, identity.data) != 0))
		found = found->same_hash;
	if (!found) {
		found = arena_alloc(arena, sizeof *found);
		found->family = family;
		found->identity = arena_strndup(arena, identity.data, identity.length);
		found->labels = arena_array(arena, count, sizeof *labels);
		memcpy(found->labels, labels, count * sizeof *labels);
		found->label_count = count;
		found->last = &found->pieces;
		family_join(arena, family, found);
		found->same_hash = collection->table[place];
		collection->table[place] = found;
		*collection->last = found;
		collection->last = &found->next;
		if (++collection->count > collection->table_size)
			table_grow(collection);
	}
	buf_free(&identity);
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
static bool has_room(struct collection *collection, const struct found *found, size_t n)
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
	struct found *found = find(collection, series);
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

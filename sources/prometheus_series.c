/*
 * A series is found again by its metric and its labels, written as one text, in a hash table.
 * Pieces of one series come in order of time and are joined at the end. Most answers have the same
 * time stamps in all series; a piece whose stamps are those of the piece before borrows them, so
 * such an answer costs eight bytes a point.
 */
#include "sources/prometheus_series.h"

#include <string.h>

#include "agent/core/buf.h"

enum { RECENT_AXES = 8 };

struct piece {
	struct piece *next;
	size_t n;
	int64_t *times;
	double *values;
};

/* The series of one metric, and which labels of the first one all others have too. */
struct family {
	const struct metric *metric;
	const struct found *first;
	bool *common;
};

struct found {
	struct found *next, *same_hash;
	struct family *family;
	const char *identity;
	const struct pair *labels;
	size_t label_count;
	size_t n;
	struct piece *pieces, **last;
};

struct collection {
	struct arena *arena;
	int64_t from, to;
	const struct metric *metric; /* NULL: by name */
	struct found *found, **last;
	size_t count;
	struct found **table; /* a power of two */
	size_t table_size;
	const struct piece *before; /* the piece taken last */
	struct family **families;
	size_t family_count, family_capacity;
	size_t histograms;
};

struct collection *collection_new(struct arena *arena)
{
	struct collection *collection = arena_alloc(arena, sizeof *collection);
	collection->arena = arena;
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

static const char *label_value(const struct pair *labels, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(labels[i].key, name) == 0)
			return labels[i].value;
	return "";
}

static struct family *family_add(struct collection *collection, const struct metric *metric)
{
	if (collection->family_count == collection->family_capacity) {
		size_t capacity = 2 * collection->family_capacity + 8;
		struct family **more = arena_array(collection->arena, capacity, sizeof *more);
		if (collection->family_count > 0)
			memcpy(more, collection->families, collection->family_count * sizeof *more);
		collection->families = more;
		collection->family_capacity = capacity;
	}
	struct family *family = arena_alloc(collection->arena, sizeof *family);
	family->metric = metric;
	collection->families[collection->family_count++] = family;
	return family;
}

/* The family of the expected metric, or that of the series' own name. */
static struct family *family_of(struct collection *collection, const struct answer_series *series)
{
	const struct metric *metric = collection->metric;
	const char *name = label_value(series->labels, series->label_count, "__name__");
	if (!*name)
		name = "value";
	for (size_t i = collection->family_count; i-- > 0;) {
		struct family *family = collection->families[i];
		if (metric ? family->metric == metric : strcmp(family->metric->name, name) == 0)
			return family;
	}
	if (!metric) {
		struct metric *named = arena_alloc(collection->arena, sizeof *named);
		*named = (struct metric){.name = name, .scale = 1};
		metric = named;
	}
	return family_add(collection, metric);
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

static bool is_common(const struct family *family, const char *name)
{
	for (size_t i = 0; i < family->first->label_count; i++)
		if (strcmp(family->first->labels[i].key, name) == 0)
			return family->common[i];
	return false;
}

static void write_label(struct buf *out, const struct pair *label, bool first)
{
	buf_printf(out, "%s%s=\"", first ? "{" : ",", label->key);
	for (const char *at = label->value; *at; at++) {
		if (*at == '\\' || *at == '"')
			buf_char(out, '\\');
		if (*at == '\n')
			buf_text(out, "\\n");
		else
			buf_char(out, *at);
	}
	buf_char(out, '"');
}

/* The metric's name with its labels, all or those that are not `common`; an empty one is none. */
static const char *write_name(struct arena *arena, const struct family *family,
	const struct pair *labels, size_t count, bool all)
{
	struct buf text = {0};
	bool first = true;
	buf_text(&text, family->metric->name);
	for (size_t i = 0; i < count; i++) {
		if (!*labels[i].value || (!all && is_common(family, labels[i].key)))
			continue;
		write_label(&text, &labels[i], first);
		first = false;
	}
	if (!first)
		buf_char(&text, '}');
	const char *name = arena_strndup(arena, text.data, text.length);
	buf_free(&text);
	return name;
}

static size_t hash_text(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325;
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return (size_t)(hash ^ hash >> 32);
}

static void table_grow(struct collection *collection)
{
	size_t size = 2 * collection->table_size;
	struct found **table = arena_array(collection->arena, size, sizeof *table);
	for (struct found *found = collection->found; found; found = found->next) {
		struct found **place = &table[hash_text(found->identity) & (size - 1)];
		found->same_hash = *place;
		*place = found;
	}
	collection->table = table;
	collection->table_size = size;
}

static struct found *find(struct collection *collection, const struct answer_series *series)
{
	struct arena *arena = collection->arena;
	struct family *family = family_of(collection, series);
	const char *identity = write_name(arena, family, series->labels, series->label_count, true);
	size_t place = hash_text(identity) & (collection->table_size - 1);
	for (struct found *at = collection->table[place]; at; at = at->same_hash)
		if (at->family == family && strcmp(at->identity, identity) == 0)
			return at;

	struct found *found = arena_alloc(arena, sizeof *found);
	struct pair *labels = arena_array(arena, series->label_count, sizeof *labels);
	if (series->label_count > 0)
		memcpy(labels, series->labels, series->label_count * sizeof *labels);
	found->family = family;
	found->identity = identity;
	found->labels = labels;
	found->label_count = series->label_count;
	found->last = &found->pieces;
	family_join(arena, family, found);
	found->same_hash = collection->table[place];
	collection->table[place] = found;
	*collection->last = found;
	collection->last = &found->next;
	if (++collection->count > collection->table_size)
		table_grow(collection);
	return found;
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
	if (n == 0)
		return;

	struct found *found = find(collection, series);
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
	*found->last = piece;
	found->last = &piece->next;
	found->n += n;
	collection->before = piece;
}

/* The points of all pieces as one. */
static struct piece *join(struct arena *arena, const struct found *found)
{
	if (!found->pieces->next)
		return found->pieces;
	struct piece *all = arena_alloc(arena, sizeof *all);
	all->times = arena_array(arena, found->n, sizeof *all->times);
	all->values = arena_array(arena, found->n, sizeof *all->values);
	for (const struct piece *piece = found->pieces; piece; piece = piece->next) {
		memcpy(all->times + all->n, piece->times, piece->n * sizeof *all->times);
		memcpy(all->values + all->n, piece->values, piece->n * sizeof *all->values);
		all->n += piece->n;
	}
	return all;
}

/* One of the axes used lately, if it has these stamps, or a new one. */
static struct axis *axis_for(struct arena *arena, struct axis *recent[RECENT_AXES], size_t *used,
	const struct piece *points)
{
	for (size_t i = 0; i < RECENT_AXES && recent[i]; i++)
		if (recent[i]->n == points->n &&
			(recent[i]->times == points->times ||
				memcmp(recent[i]->times, points->times,
					points->n * sizeof *points->times) == 0))
			return recent[i];
	struct axis *axis = arena_alloc(arena, sizeof *axis);
	axis->n = points->n;
	axis->times = points->times;
	recent[(*used)++ % RECENT_AXES] = axis;
	return axis;
}

struct dataset collection_dataset(struct collection *collection)
{
	struct arena *arena = collection->arena;
	struct dataset data = {.count = collection->count};
	struct axis *recent[RECENT_AXES] = {0};
	size_t used = 0, at = 0;
	data.series = arena_array(arena, data.count, sizeof *data.series);
	for (const struct found *found = collection->found; found; found = found->next) {
		struct piece *points = join(arena, found);
		data.series[at++] = (struct series){
			.metric = found->family->metric,
			.name = write_name(
				arena, found->family, found->labels, found->label_count, false),
			.identity = found->identity,
			.axis = axis_for(arena, recent, &used, points),
			.values = points->values,
		};
	}
	return data;
}

/*
 * A series is found again by its metric and its labels, written as one text, in a hash table.
 * Pieces of one series, in time or in what is said about its points, are joined at the end. Most
 * answers have the same time stamps in all series; a piece whose stamps are those of the piece
 * before borrows them, so such an answer costs eight bytes a point.
 */
#include "sources/prometheus_series.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/buf.h"

enum { RECENT_AXES = 8, SERIES_MAX = 100000, POINTS_MAX = 20000000 };

struct piece {
	struct piece *next;
	size_t n;
	int64_t *times;
	double *values;
	const char **said; /* the piece's attributes, one for each said label, or NULL */
};

/* The series of one metric, and which labels of the first one all others have too. */
struct family {
	const struct metric *metric;
	size_t rank; /* its metric's place where that is configured */
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
	struct pairs said;
	bool *was_said; /* one for each: a series had the label */
	int64_t from, to;
	const struct metric *metric; /* NULL: by name */
	struct found *found, **last;
	size_t count;
	struct found **table; /* a power of two */
	size_t table_size;
	const struct piece *before; /* the piece taken last */
	struct family **families;
	size_t family_count, family_capacity;
	size_t histograms, points;
	const struct found *too_long;
	bool too_many;
};

struct collection *collection_new(struct arena *arena, struct pairs said)
{
	struct collection *collection = arena_alloc(arena, sizeof *collection);
	collection->arena = arena;
	collection->said = said;
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
			"%.300s has more than %d points: shorten range, or raise step",
			collection->too_long->identity, COLLECTION_POINTS_MAX);
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
	family->rank = collection->metric ? collection->family_count : 0;
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

static struct found *find(struct collection *collection, const struct answer_series *series)
{
	struct arena *arena = collection->arena;
	struct family *family = family_of(collection, series);
	struct pair *labels = arena_array(arena, series->label_count, sizeof *labels);
	size_t count = naming_labels(collection, series, labels);
	const char *identity = write_name(arena, family, labels, count, true);
	size_t place = hash_text(identity) & (collection->table_size - 1);
	for (struct found *at = collection->table[place]; at; at = at->same_hash)
		if (at->family == family && strcmp(at->identity, identity) == 0)
			return at;

	struct found *found = arena_alloc(arena, sizeof *found);
	found->family = family;
	found->identity = identity;
	found->labels = labels;
	found->label_count = count;
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
	if (n > COLLECTION_POINTS_MAX - found->n)
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

static struct column *add_columns(
	const struct collection *collection, const struct found *found, struct axis *axis)
{
	size_t count = collection->said.count;
	struct column *columns = arena_array(collection->arena, count, sizeof *columns);
	for (size_t k = 0; k < count; k++) {
		const char **values = NULL;
		size_t at = 0;
		for (const struct piece *piece = found->pieces; piece; piece = piece->next) {
			if (piece->said && piece->said[k] && !values)
				values = arena_array(collection->arena, found->n, sizeof *values);
			for (size_t i = 0; i < piece->n; i++, at++)
				if (piece->said && piece->said[k])
					values[at] = piece->said[k];
		}
		if (values)
			columns[axis->column_count++] =
				(struct column){collection->said.items[k].value, values};
	}
	return columns;
}

/* Its points, in order of time, on an axis of its own, which has what is said about them. */
static struct series join(const struct collection *collection, const struct found *found)
{
	struct arena *arena = collection->arena;
	struct axis *axis = arena_alloc(arena, sizeof *axis);
	struct series series = {.axis = axis};
	axis->columns = add_columns(collection, found, axis);
	axis->n = found->n;
	if (!found->pieces->next) {
		axis->times = found->pieces->times;
		series.values = found->pieces->values;
		return series;
	}
	size_t at = 0;
	axis->times = arena_array(arena, found->n, sizeof *axis->times);
	series.values = arena_array(arena, found->n, sizeof *series.values);
	for (const struct piece *piece = found->pieces; piece; piece = piece->next) {
		memcpy(axis->times + at, piece->times, piece->n * sizeof *axis->times);
		memcpy(series.values + at, piece->values, piece->n * sizeof *series.values);
		at += piece->n;
	}
	struct dataset one = {&series, 1};
	struct arena *scratch = arena_new();
	dataset_sort(&one, scratch);
	arena_free(scratch);
	return series;
}

static bool same_column(const struct column *a, const struct column *b, size_t n)
{
	if (strcmp(a->name, b->name) != 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (a->values[i] != b->values[i] &&
			(!a->values[i] || !b->values[i] || strcmp(a->values[i], b->values[i]) != 0))
			return false;
	return true;
}

static bool same_axis(const struct axis *a, const struct axis *b)
{
	if (a->n != b->n || a->column_count != b->column_count ||
		(a->times != b->times && memcmp(a->times, b->times, a->n * sizeof *a->times) != 0))
		return false;
	for (size_t i = 0; i < a->column_count; i++)
		if (!same_column(&a->columns[i], &b->columns[i], a->n))
			return false;
	return true;
}

/* Axes that were made lately, with the builds that have yet to be applied to them. */
struct axes {
	struct axis *axis[RECENT_AXES];
	const struct timeline *timeline[RECENT_AXES];
	size_t used;
};

/* One of the recent axes, if it says the same, or this one. */
static struct axis *share_axis(struct axes *recent, struct axis *axis, struct builds *builds,
	const struct timeline *timeline)
{
	for (size_t i = 0; i < RECENT_AXES && recent->axis[i]; i++)
		if (recent->timeline[i] == timeline && recent->axis[i]->n == axis->n &&
			(builds ? recent->axis[i]->times == axis->times ||
						memcmp(recent->axis[i]->times, axis->times,
							axis->n * sizeof *axis->times) == 0
				: same_axis(recent->axis[i], axis)))
			return recent->axis[i];
	size_t place = recent->used++ % RECENT_AXES;
	recent->axis[place] = axis;
	recent->timeline[place] = timeline;
	if (builds)
		builds_apply(builds, timeline, axis);
	return axis;
}

static int compare_found(const void *a, const void *b)
{
	const struct found *x = *(const struct found *const *)a;
	const struct found *y = *(const struct found *const *)b;
	if (x->family->rank != y->family->rank)
		return x->family->rank < y->family->rank ? -1 : 1;
	return strcmp(x->identity, y->identity);
}

struct dataset collection_dataset(struct collection *collection, struct builds *builds)
{
	struct arena *arena = collection->arena;
	struct dataset data = {.count = collection->count};
	struct axes recent = {0};
	size_t at = 0;
	const struct found **all = arena_array(arena, data.count, sizeof *all);
	data.series = arena_array(arena, data.count, sizeof *data.series);
	for (const struct found *found = collection->found; found; found = found->next)
		all[at++] = found;
	if (data.count > 0)
		qsort(all, data.count, sizeof *all, compare_found);
	for (at = 0; at < data.count; at++) {
		const struct found *found = all[at];
		struct series *series = &data.series[at];
		*series = join(collection, found);
		series->metric = found->family->metric;
		series->name =
			write_name(arena, found->family, found->labels, found->label_count, false);
		series->identity = found->identity;
		const struct timeline *timeline =
			builds ? builds_timeline(builds, found->labels, found->label_count) : NULL;
		series->axis = share_axis(&recent, series->axis, builds, timeline);
	}
	return data;
}

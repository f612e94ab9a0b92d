/*
 * Series are looked up by metric and labels, written as one text, in a hash table. Pieces of a
 * series, which differ in time or in the attributes of their points, are joined at the end. In most
 * answers all series have the same time stamps; a piece with the same stamps as the piece before
 * shares them, so such an answer needs eight bytes per point.
 */
#include "sources/prometheus/series_set.h"

#include <inttypes.h>
#include <string.h>

#include "agent/base/buf.h"
#include "sources/prometheus/json.h"

enum { SERIES_MAX = 100000, POINTS_MAX = 20000000 };

struct prometheus_set *prometheus_set_new(
	struct arena *arena, struct pairs point_labels, bool grid, int64_t max_points)
{
	struct prometheus_set *set = arena_alloc(arena, sizeof *set);
	set->arena = arena;
	set->point_labels = point_labels;
	set->grid = grid;
	set->max_points = max_points > 0 ? (size_t)max_points : SIZE_MAX;
	set->label_seen = arena_array(arena, point_labels.count, sizeof(bool));
	set->last = &set->found;
	set->by_identity.arena = set->families.arena = arena;
	return set;
}

void prometheus_set_expect(
	struct prometheus_set *set, const struct metric *metric, int64_t from, int64_t to)
{
	set->metric = metric;
	set->from = from;
	set->to = to;
}

size_t prometheus_set_histograms(const struct prometheus_set *set)
{
	return set->histograms;
}

bool prometheus_set_has_label(const struct prometheus_set *set, size_t label)
{
	return set->label_seen[label];
}

bool prometheus_set_check(const struct prometheus_set *set, struct error *error)
{
	if (set->too_long)
		return error_set(error, ERROR_DATA,
			"%.300s has more points than max_points, %zu: shorten range, or set a "
			"step or a longer one",
			set->too_long->identity, set->max_points);
	if (set->too_many)
		return error_set(error, ERROR_DATA,
			"the query returns more than %d series or %d points: narrow it, shorten "
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
	struct prometheus_set *set, const struct metric *metric, const char *name)
{
	if (!metric) {
		struct metric *named = arena_alloc(set->arena, sizeof *named);
		*named = (struct metric){.name = arena_strdup(set->arena, name), .scale = 1};
		metric = named;
	}
	struct family *family = arena_alloc(set->arena, sizeof *family);
	*family = (struct family){.metric = metric, .rank = set->metric ? set->families.count : 0};
	*dict_place(&set->families, metric->name) = family;
	return family;
}

/* The family of the expected metric, or of the series' own name. */
static struct family *family_of(struct prometheus_set *set, const struct answer_series *series)
{
	const struct metric *metric = set->metric;
	const char *name = label_value(series->labels, series->label_count, "__name__");
	if (!*name)
		name = "value";
	if (metric)
		name = metric->name;
	const struct family *family = dict_get(&set->families, name);
	return family ? (struct family *)(uintptr_t)family : family_add(set, metric, name);
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

/* The labels that name the series: not empty, and no point labels. */
static size_t naming_labels(
	const struct prometheus_set *set, const struct answer_series *series, struct pair *out)
{
	size_t count = 0;
	for (size_t i = 0; i < series->label_count; i++) {
		const struct pair *label = &series->labels[i];
		bool of_points = false;
		for (size_t k = 0; k < set->point_labels.count && !of_points; k++)
			of_points = strcmp(set->point_labels.items[k].key, label->key) == 0;
		if (!of_points && *label->value)
			out[count++] = *label;
	}
	return count;
}

/* `key`: the family's address, a space, the identity. */
static struct collected_series *found_add(struct prometheus_set *set, struct family *family,
	const struct buf *key, const struct pair *labels, size_t count)
{
	struct arena *arena = set->arena;
	struct collected_series *found = arena_alloc(arena, sizeof *found);
	const char *copy = arena_strndup(arena, key->data, key->length);
	*found = (struct collected_series){.family = family,
		.identity = strchr(copy, ' ') + 1,
		.labels = arena_array(arena, count, sizeof *labels),
		.label_count = count,
		.last = &found->pieces};
	memcpy(found->labels, labels, count * sizeof *labels);
	family_join(arena, family, found);
	*dict_place(&set->by_identity, copy) = found;
	*set->last = found;
	set->last = &found->next;
	set->count++;
	return found;
}

/* Known series need no memory: the results of each build come as a series of their own. */
static struct collected_series *find(struct prometheus_set *set, const struct answer_series *series)
{
	struct family *family = family_of(set, series);
	struct pair labels[PARSE_LABELS_MAX];
	struct buf key = {0};
	size_t count = naming_labels(set, series, labels);
	buf_printf(&key, "%" PRIxPTR " ", (uintptr_t)family);
	prometheus_set_name(&key, family, labels, count, true);
	const void *known = dict_get(&set->by_identity, key.data);
	struct collected_series *found = known ? (struct collected_series *)(uintptr_t)known
					       : found_add(set, family, &key, labels, count);
	buf_free(&key);
	return found;
}

/* The attributes of the series' points; NULL if it has none. */
static const char **find_attributes(struct prometheus_set *set, const struct answer_series *series)
{
	const char **attributes = NULL;
	for (size_t i = 0; i < set->point_labels.count; i++) {
		const char *value = label_value(
			series->labels, series->label_count, set->point_labels.items[i].key);
		if (!*value)
			continue;
		if (!attributes)
			attributes = arena_array(
				set->arena, set->point_labels.count, sizeof *attributes);
		attributes[i] = value;
		set->label_seen[i] = true;
	}
	return attributes;
}

/* Whether there is room for n more points of the series. */
static bool has_room(struct prometheus_set *set, const struct collected_series *found, size_t n)
{
	if (n > set->max_points - found->n)
		set->too_long = found;
	else if (n > POINTS_MAX - set->points || set->count > SERIES_MAX)
		set->too_many = true;
	else
		return true;
	return false;
}

void prometheus_set_take(void *context, const struct answer_series *series)
{
	struct prometheus_set *set = context;
	size_t begin = 0, end = series->n;
	set->histograms += series->histograms;
	while (begin < end && series->times[begin] < set->from)
		begin++;
	while (end > begin && series->times[end - 1] >= set->to)
		end--;
	size_t n = end - begin;
	if (n == 0 || set->too_long || set->too_many)
		return;
	struct collected_series *found = find(set, series);
	if (!has_room(set, found, n))
		return;

	struct piece *piece = arena_alloc(set->arena, sizeof *piece);
	const struct piece *before = set->before;
	const int64_t *times = series->times + begin;
	piece->n = n;
	if (before && before->n == n && memcmp(before->times, times, n * sizeof *times) == 0) {
		piece->times = before->times;
	} else {
		piece->times = arena_array(set->arena, n, sizeof *times);
		memcpy(piece->times, times, n * sizeof *times);
	}
	piece->values = arena_array(set->arena, n, sizeof *piece->values);
	for (size_t i = 0; i < n; i++)
		piece->values[i] = series->values[begin + i] * found->family->metric->scale;
	piece->attributes = find_attributes(set, series);
	*found->last = piece;
	found->last = &piece->next;
	found->n += n;
	set->points += n;
	set->before = piece;
}

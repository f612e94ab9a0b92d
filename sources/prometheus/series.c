/*
 * Series are looked up by metric and labels, written as one text, in a hash table. Pieces of a
 * series, which differ in time or in the attributes of their points, are joined at the end. In most
 * answers all series have the same time stamps; a piece with the same stamps as the piece before
 * shares them, so such an answer needs eight bytes per point. At the end the pieces of each series
 * are joined, their points sorted, and the series named and put on common axes.
 */
#include "sources/prometheus/series.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/order.h"

enum { SERIES_MAX = 100000, POINTS_MAX = 20000000, RECENT_AXES = 8 };

struct piece {
	struct piece *next;
	size_t n;
	int64_t *times;
	double *values;
	const char *
		*attributes; /* the attributes of its points, one for each point label, or NULL */
};

/* The series of one metric, and those labels of the first one that all share. */
struct family {
	const struct metric *metric;
	size_t rank; /* order of configured metrics */
	const struct collected_series *first;
	bool *common;
};

struct collected_series {
	struct collected_series *next;
	struct family *family;
	const char *identity;
	struct pairs labels;
	size_t n;
	struct piece *pieces, **last;
};

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

static const char *label_value(const struct answer_series *series, const char *name)
{
	const struct pair *label = answer_label(series->labels, name);
	return label ? label->value : "";
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

/* Appends the metric's name with its labels, all or those in which the metric's series differ. */
static void put_name(struct buf *out, const struct family *family, struct pairs labels, bool all)
{
	bool first = true;
	buf_text(out, family->metric->name);
	for (size_t i = 0; i < labels.count; i++) {
		const struct pair *label = &labels.items[i];
		const struct pair *shared =
			all ? NULL : answer_label(family->first->labels, label->key);
		if (shared && family->common[shared - family->first->labels.items])
			continue;
		write_label(out, label, first);
		first = false;
	}
	if (!first)
		buf_char(out, '}');
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
	const char *name = label_value(series, "__name__");
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
		family->common = arena_array(arena, found->labels.count, sizeof *family->common);
	}
	for (size_t i = 0; i < family->first->labels.count; i++) {
		const struct pair *label = &family->first->labels.items[i];
		const struct pair *other = answer_label(found->labels, label->key);
		family->common[i] = (first || family->common[i]) &&
				    strcmp(other ? other->value : "", label->value) == 0;
	}
}

/* The labels that name the series: no point labels, and not empty, which counts as absent. */
static struct pairs naming_labels(
	const struct prometheus_set *set, const struct answer_series *series, struct pair *out)
{
	size_t count = 0;
	for (size_t i = 0; i < series->labels.count; i++) {
		const struct pair *label = &series->labels.items[i];
		if (*label->value && !answer_label(set->point_labels, label->key))
			out[count++] = *label;
	}
	return (struct pairs){out, count};
}

/* `key`: the family's address, a space, the identity. */
static struct collected_series *found_add(struct prometheus_set *set, struct family *family,
	const struct buf *key, struct pairs labels)
{
	struct arena *arena = set->arena;
	struct collected_series *found = arena_alloc(arena, sizeof *found);
	const char *copy = arena_strndup(arena, key->data, key->length);
	*found = (struct collected_series){.next = set->found,
		.family = family,
		.identity = strchr(copy, ' ') + 1,
		.labels = {arena_copy(arena, labels.items, labels.count, sizeof *labels.items),
			labels.count},
		.last = &found->pieces};
	family_join(arena, family, found);
	*dict_place(&set->by_identity, copy) = found;
	set->found = found;
	set->count++;
	return found;
}

/* Known series need no memory: the results of each build come as a series of their own. */
static struct collected_series *find(struct prometheus_set *set, const struct answer_series *series)
{
	struct family *family = family_of(set, series);
	struct pair room[ANSWER_LABELS_MAX];
	struct buf key = {0};
	struct pairs labels = naming_labels(set, series, room);
	buf_printf(&key, "%" PRIxPTR " ", (uintptr_t)family);
	put_name(&key, family, labels, true);
	const void *known = dict_get(&set->by_identity, key.data);
	struct collected_series *found = known ? (struct collected_series *)(uintptr_t)known
					       : found_add(set, family, &key, labels);
	buf_free(&key);
	return found;
}

/* The attributes of the series' points; NULL if it has none. */
static const char **find_attributes(struct prometheus_set *set, const struct answer_series *series)
{
	const char **attributes = NULL;
	for (size_t i = 0; i < set->point_labels.count; i++) {
		const char *value = label_value(series, set->point_labels.items[i].key);
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

/* The labels shown to users: without the name. */
static struct pairs labels_of(struct arena *arena, const struct collected_series *found)
{
	struct pair *labels = arena_array(arena, found->labels.count, sizeof *labels);
	size_t count = 0;
	for (size_t i = 0; i < found->labels.count; i++)
		if (strcmp(found->labels.items[i].key, "__name__") != 0)
			labels[count++] = found->labels.items[i];
	return (struct pairs){labels, count};
}

static struct column *add_columns(
	const struct prometheus_set *set, const struct collected_series *found, struct axis *axis)
{
	size_t count = set->point_labels.count;
	struct column *columns = arena_array(set->arena, count, sizeof *columns);
	for (size_t k = 0; k < count; k++) {
		const char **values = NULL;
		size_t at = 0;
		for (const struct piece *piece = found->pieces; piece; piece = piece->next) {
			if (piece->attributes && piece->attributes[k] && !values)
				values = arena_array(set->arena, found->n, sizeof *values);
			for (size_t i = 0; i < piece->n; i++, at++)
				if (piece->attributes && piece->attributes[k])
					values[at] = piece->attributes[k];
		}
		if (values)
			columns[axis->column_count++] =
				(struct column){set->point_labels.items[k].value, values};
	}
	return columns;
}

/* By the start, then by the end. */
static int by_age(const void *a, const void *b)
{
	const struct piece *x = *(const struct piece *const *)a;
	const struct piece *y = *(const struct piece *const *)b;
	int order = order_times(&x->times[0], &y->times[0]);
	return order ? order : order_times(&x->times[x->n - 1], &y->times[y->n - 1]);
}

static void order_by_age(struct collected_series *found, struct arena *scratch)
{
	size_t count = 0;
	for (const struct piece *piece = found->pieces; piece; piece = piece->next)
		count++;
	struct piece **pieces = arena_array(scratch, count, sizeof *pieces);
	size_t at = 0;
	for (struct piece *piece = found->pieces; piece; piece = piece->next)
		pieces[at++] = piece;
	qsort(pieces, count, sizeof *pieces, by_age);
	for (size_t k = 0; k < count; k++)
		pieces[k]->next = k + 1 < count ? pieces[k + 1] : NULL;
	found->pieces = pieces[0];
}

/* Keeps the last of several points with the same time. */
static void keep_last(struct series *series)
{
	struct axis *axis = series->axis;
	size_t kept = 0;
	for (size_t i = 0; i < axis->n; i++) {
		if (i + 1 < axis->n && axis->times[i + 1] == axis->times[i])
			continue;
		axis->times[kept] = axis->times[i];
		series->values[kept] = series->values[i];
		for (size_t k = 0; k < axis->column_count; k++)
			axis->columns[k].values[kept] = axis->columns[k].values[i];
		kept++;
	}
	axis->n = kept;
}

static struct series join(const struct prometheus_set *set, struct collected_series *found)
{
	struct arena *arena = set->arena, *scratch = arena_new();
	if (set->grid)
		order_by_age(found, scratch);
	struct axis *axis = arena_alloc(arena, sizeof *axis);
	struct series series = {.axis = axis};
	axis->columns = add_columns(set, found, axis);
	axis->n = found->n;
	if (!found->pieces->next) {
		axis->times = found->pieces->times;
		series.values = found->pieces->values;
		arena_free(scratch);
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
	dataset_sort(&one, scratch);
	arena_free(scratch);
	if (set->grid)
		keep_last(&series);
	return series;
}

static bool same_column(const struct column *a, const struct column *b, size_t n)
{
	if (strcmp(a->name, b->name) != 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!order_same(a->values[i], b->values[i]))
			return false;
	return true;
}

/* Whether they have the same times and, unless builds make them, columns. */
static bool same_axis(const struct axis *a, const struct axis *b, bool built)
{
	if (a->n != b->n ||
		(a->times != b->times && memcmp(a->times, b->times, a->n * sizeof *a->times) != 0))
		return false;
	if (built || a->column_count != b->column_count)
		return built;
	for (size_t i = 0; i < a->column_count; i++)
		if (!same_column(&a->columns[i], &b->columns[i], a->n))
			return false;
	return true;
}

/* Recent axes, with the builds that are applied to them. */
struct axes {
	struct axis *axis[RECENT_AXES];
	const struct timeline *timeline[RECENT_AXES];
	size_t used;
};

/* A recent axis if it is equal, otherwise this one. */
static struct axis *share_axis(struct axes *recent, struct axis *axis, struct builds *builds,
	const struct timeline *timeline)
{
	for (size_t i = 0; i < RECENT_AXES && recent->axis[i]; i++)
		if (recent->timeline[i] == timeline && same_axis(recent->axis[i], axis, builds))
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
	const struct collected_series *x = *(const struct collected_series *const *)a;
	const struct collected_series *y = *(const struct collected_series *const *)b;
	int order = order_sizes(&x->family->rank, &y->family->rank);
	return order ? order : strcmp(x->identity, y->identity);
}

void prometheus_set_expect_builds(const struct prometheus_set *set, struct builds *builds)
{
	for (const struct collected_series *found = set->found; found; found = found->next)
		builds_expect(builds, found->labels);
}

struct dataset prometheus_set_dataset(struct prometheus_set *set, struct builds *builds)
{
	struct arena *arena = set->arena;
	struct dataset data = {.count = set->count};
	struct axes recent = {0};
	size_t at = 0;
	struct collected_series **all = arena_array(arena, data.count, sizeof *all);
	data.series = arena_array(arena, data.count, sizeof *data.series);
	for (struct collected_series *found = set->found; found; found = found->next)
		all[at++] = found;
	if (data.count > 0)
		qsort(all, data.count, sizeof *all, compare_found);
	for (at = 0; at < data.count; at++) {
		struct collected_series *found = all[at];
		struct series *series = &data.series[at];
		struct buf name = {0};
		*series = join(set, found);
		series->metric = found->family->metric;
		put_name(&name, found->family, found->labels, false);
		series->name = buf_keep(&name, arena);
		series->identity = found->identity;
		series->labels = labels_of(arena, found);
		const struct timeline *timeline =
			builds ? builds_timeline(builds, found->labels) : NULL;
		series->axis = share_axis(&recent, series->axis, builds, timeline);
	}
	return data;
}

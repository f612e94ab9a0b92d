/*
 * Joins the pieces of each series, sorts their points, names the series and puts them on common
 * axes.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "sources/prometheus/series_set.h"

enum { RECENT_AXES = 8 };

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

/* An empty label counts as absent. */
void prometheus_set_name(struct buf *out, const struct family *family, const struct pair *labels,
	size_t count, bool all)
{
	bool first = true;
	buf_text(out, family->metric->name);
	for (size_t i = 0; i < count; i++) {
		if (!*labels[i].value || (!all && is_common(family, labels[i].key)))
			continue;
		write_label(out, &labels[i], first);
		first = false;
	}
	if (!first)
		buf_char(out, '}');
}

static const char *name_of(struct arena *arena, const struct collected_series *found)
{
	struct buf text = {0};
	prometheus_set_name(&text, found->family, found->labels, found->label_count, false);
	return buf_keep(&text, arena);
}

/* The labels shown to users: without empty ones, which count as absent, and without the name. */
static struct pairs labels_of(struct arena *arena, const struct collected_series *found)
{
	struct pair *labels = arena_array(arena, found->label_count, sizeof *labels);
	size_t count = 0;
	for (size_t i = 0; i < found->label_count; i++)
		if (*found->labels[i].value && strcmp(found->labels[i].key, "__name__") != 0)
			labels[count++] = found->labels[i];
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
	int64_t begin = x->times[0], other = y->times[0];
	if (begin == other) {
		begin = x->times[x->n - 1];
		other = y->times[y->n - 1];
	}
	return begin < other ? -1 : begin > other;
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
	const struct collected_series *x = *(const struct collected_series *const *)a;
	const struct collected_series *y = *(const struct collected_series *const *)b;
	if (x->family->rank != y->family->rank)
		return x->family->rank < y->family->rank ? -1 : 1;
	return strcmp(x->identity, y->identity);
}

void prometheus_set_expect_builds(const struct prometheus_set *set, struct builds *builds)
{
	for (const struct collected_series *found = set->found; found; found = found->next)
		builds_expect(builds, found->labels, found->label_count);
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
		*series = join(set, found);
		series->metric = found->family->metric;
		series->name = name_of(arena, found);
		series->identity = found->identity;
		series->labels = labels_of(arena, found);
		const struct timeline *timeline =
			builds ? builds_timeline(builds, found->labels, found->label_count) : NULL;
		series->axis = share_axis(&recent, series->axis, builds, timeline);
	}
	return data;
}

/*
 * Whether one series explains another is measured as the agent would use it: by the fit of
 * detectors/control.h.
 */
#include "agent/analysis/explain.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/model/json_put.h"

/* Share of the variance that is worth a line, and the slope of regions that move alike. */
static const double LEAST = 0.2, LEAST_RATIO = 0.5, SLOPE_LEAST = 0.8, SLOPE_MOST = 1.25;

enum { FITS_MOST = 20000 };

struct kept_series {
	const char *test, *metric, *identity;
	struct pairs labels;
	int direction;
	bool has_rule;
	struct points points;
};

struct explain {
	struct arena *arena;
	struct kept_series *items;
	size_t count, room;
};

struct explain *explain_new(void)
{
	struct explain *explain = memory_new(1, sizeof *explain);

	explain->arena = arena_new();
	return explain;
}

void explain_free(struct explain *explain)
{
	if (!explain)
		return;
	arena_free(explain->arena);
	free(explain->items);
	free(explain);
}

void explain_keep(struct explain *explain, const struct test *test, const struct series *series,
	const double *values, bool has_rule)
{
	struct arena *arena = explain->arena;
	size_t n = series->axis->n;
	struct kept_series *kept;
	struct pair *labels = arena_array(arena, series->labels.count, sizeof *labels);

	if (!series->metric)
		return;
	for (size_t i = 0; i < series->labels.count; i++)
		labels[i] = (struct pair){arena_strdup(arena, series->labels.items[i].key),
			arena_strdup(arena, series->labels.items[i].value)};
	explain->items = memory_grow(
		explain->items, &explain->room, explain->count + 1, sizeof *explain->items);
	kept = &explain->items[explain->count++];
	*kept = (struct kept_series){.test = arena_strdup(arena, test->name),
		.metric = arena_strdup(arena, series->metric->name),
		.identity = arena_strdup(arena, series->identity),
		.labels = {labels, series->labels.count},
		.direction = series_direction(series),
		.has_rule = has_rule,
		.points = {arena_copy(arena, values, n, sizeof *values),
			arena_copy(arena, series->axis->times, n, sizeof *series->axis->times), n}};
}

/* How `other` may explain the series. */
static enum control_mode mode_of(const struct kept_series *kept, const struct kept_series *other)
{
	int order = strcmp(other->test, kept->test);

	if (kept->has_rule || kept->direction == 0 ||
		!companions_same_labels(&kept->labels, &other->labels) ||
		(order == 0 && strcmp(kept->metric, other->metric) == 0))
		return CONTROL_NONE;
	if (other->direction == 0)
		return CONTROL_LOAD;
	return order < 0 && kept->direction == other->direction &&
			       strcmp(kept->metric, other->metric) == 0
		       ? CONTROL_RATIO
		       : CONTROL_NONE;
}

/* The share of the variance that the other one explains in these points; 0: not worth a line. */
static double share_in(struct points points, const struct kept_series *other,
	enum control_mode mode, struct scratch *scratch)
{
	struct control control = control_fit(CONTROL_LOAD, points, other->points, false, scratch);
	bool alike = control.log_values && control.log_load && control.slope >= SLOPE_LEAST &&
		     control.slope <= SLOPE_MOST;
	double least = mode == CONTROL_RATIO ? LEAST_RATIO : LEAST;

	if (!control.used || (mode == CONTROL_RATIO && !alike) || control.explained < least)
		return 0;
	return control.explained;
}

/* Of all points; 0 unless either half shows it, too: two series that are independent may have a
 * step at one place. */
static double share_of(const struct kept_series *kept, const struct kept_series *other,
	enum control_mode mode, struct scratch *scratch)
{
	struct points all = kept->points;
	size_t half = all.n / 2;
	struct points first = {all.values, all.times, half};
	struct points second = {all.values + half, all.times + half, all.n - half};
	double share = share_in(all, other, mode, scratch);

	return share > 0 && share_in(first, other, mode, scratch) > 0 &&
			       share_in(second, other, mode, scratch) > 0
		       ? share
		       : 0;
}

/* The series that explains another best; a load is preferred to another region. */
struct best {
	const struct kept_series *other; /* NULL: nothing does */
	enum control_mode mode;
	double share;
};

static struct best best_of(
	const struct explain *explain, size_t which, size_t *fits, struct scratch *scratch)
{
	const struct kept_series *kept = &explain->items[which];
	struct best best = {0};

	for (size_t i = 0; i < explain->count && *fits < FITS_MOST; i++) {
		const struct kept_series *other = &explain->items[i];
		enum control_mode mode = i == which ? CONTROL_NONE : mode_of(kept, other);
		double share;

		if (mode == CONTROL_NONE)
			continue;
		++*fits;
		share = share_of(kept, other, mode, scratch);
		if (share > 0 && mode == CONTROL_LOAD && best.mode == CONTROL_RATIO)
			best.share = 0;
		if (share > best.share && !(mode == CONTROL_RATIO && best.mode == CONTROL_LOAD))
			best = (struct best){other, mode, share};
	}
	return best;
}

static bool is_same(const struct kept_series *a, const struct kept_series *b)
{
	return strcmp(a->test, b->test) == 0 && strcmp(a->metric, b->metric) == 0;
}

/* The suggestion for one metric of a test. */
struct proposal {
	const struct kept_series *of;
	struct best best;    /* the share is the mean */
	size_t count, total; /* series that it explains, of so many */
};

/* The rule that explains most series of the metric, at least a quarter of them. */
static bool choose(const struct best *bests, size_t total, struct proposal *out)
{
	for (size_t i = 0; i < total; i++) {
		size_t count = 0;
		double sum = 0;

		for (size_t j = 0; bests[i].other && j < total; j++)
			if (bests[j].other && bests[j].mode == bests[i].mode &&
				is_same(bests[j].other, bests[i].other)) {
				count++;
				sum += bests[j].share;
			}
		if (count <= out->count)
			continue;
		out->best = bests[i];
		out->best.share = sum / (double)count;
		out->count = count;
	}
	out->total = total;
	return 4 * out->count >= total && out->count > 0;
}

static void put_json(struct buf *out, const struct proposal *proposal, const char *value)
{
	struct buf line = {0};

	buf_printf(&line, "%s: ", control_keys[proposal->best.mode]);
	buf_json_text(&line, value);
	buf_text(out, out->length > 0 ? ",\n    {\"test\": " : "\n    {\"test\": ");
	buf_json_text(out, proposal->of->test);
	json_put(out,
		"metric: %s, key: %s, value: %s, line: %s, explained: %g, series: %zu, of: %zu}",
		proposal->of->metric, control_keys[proposal->best.mode], value, line.data,
		proposal->best.share, proposal->count, proposal->total);
	buf_free(&line);
}

/* By test and metric, independent of the order of input. */
static int compare_kept(const void *a, const void *b)
{
	const struct kept_series *left = a, *right = b;
	int order = strcmp(left->test, right->test);

	if (order == 0)
		order = strcmp(left->metric, right->metric);
	return order != 0 ? order : strcmp(left->identity, right->identity);
}

void explain_put(struct explain *explain, struct scratch *scratch, struct buf *out)
{
	struct best *bests = arena_array(explain->arena, explain->count, sizeof *bests);
	size_t fits = 0;

	if (explain->count > 0)
		qsort(explain->items, explain->count, sizeof *explain->items, compare_kept);
	for (size_t i = 0; i < explain->count; i++) {
		struct proposal proposal = {.of = &explain->items[i]};
		struct buf value = {0};
		size_t total = 0;
		bool first = true;

		for (size_t j = 0; j < i; j++)
			first &= !is_same(&explain->items[j], proposal.of);
		for (size_t j = i; first && j < explain->count; j++)
			if (is_same(&explain->items[j], proposal.of))
				bests[total++] = best_of(explain, j, &fits, scratch);
		if (!first || !choose(bests, total, &proposal))
			continue;
		buf_printf(&value, "%s/%s", proposal.best.other->test, proposal.best.other->metric);
		put_json(out, &proposal, value.data);
		buf_free(&value);
	}
}

/*
 * Steps 5 to 8 of the default profile: from candidates to change points.
 *
 * Candidates are tested over the segments between them. The least important failing candidate is
 * removed and its two neighbours are tested again, until all pass. Then changes that do not last
 * are removed: excursions, which end within a few points; and the steps into which a ramp was cut
 * become one point.
 */
#include <math.h>
#include <string.h>

#include "detectors/edivisive/chunk.h"
#include "detectors/scratch.h"

enum { SHORTEST = 5 };

/* How many spreads high a longer excursion is at least, and the share of its height that may
 * remain. */
static const double FAR_OUT = 4, RETURNED = 0.5;

/* The points in work, first to last. */
struct list {
	const struct chunk *chunk;
	const struct chunk_workspace *room;
	struct chunk_step *steps;
	size_t count;
};

static size_t segment_start(const struct list *list, size_t k)
{
	return k > 0 ? list->steps[k - 1].tau : 0;
}

static size_t segment_end(const struct list *list, size_t k)
{
	return k + 1 < list->count ? list->steps[k + 1].tau : list->chunk->n;
}

/* The ranks of up to a window's points on each side are compared in pairs. */
static bool spend_test(const struct list *list, size_t k)
{
	size_t window = (size_t)list->chunk->options.window, tau = list->steps[k].tau;
	size_t n1 = tau - segment_start(list, k), n2 = segment_end(list, k) - tau;
	size_t pairs = (n1 < window ? n1 : window) * (n2 < window ? n2 : window);
	return scratch_spend(list->room->scratch, n1 + n2 + pairs);
}

static void test_at(struct list *list, size_t k)
{
	struct chunk_step before = list->steps[k], *step = &list->steps[k];
	if (!spend_test(list, k))
		return;
	*step = chunk_test(list->chunk, segment_start(list, k), before.tau, segment_end(list, k));
	if (before.ramp)
		step->p = before.p;
	step->ramp = before.ramp;
	step->slope = before.slope;
}

/* For a trace: more detail than that the point failed. */
static void note(const struct list *list, size_t k, enum tried_fate fate)
{
	struct tried_list *tried = scratch_tried(list->room->scratch);
	const struct chunk *chunk = list->chunk;
	size_t tau = list->steps[k].tau;
	if (!tried)
		return;
	struct opinion opinion =
		chunk_opinion(chunk, segment_start(list, k), tau, segment_end(list, k));
	struct tried one = {.index = tried->places[tau],
		.fate = fate,
		.pvalue = opinion.p,
		.mean_before = opinion.before,
		.mean_after = opinion.after};
	if (fate == TRIED_TEST && opinion.p < chunk->options.p_value)
		one.fate = opinion.agrees ? TRIED_MAGNITUDE : TRIED_RANKS;
	if (tau - segment_start(list, k) < LEAST_SIDE || segment_end(list, k) - tau < LEAST_SIDE)
		one.fate = TRIED_ENDS;
	if (one.fate == TRIED_TEST)
		tried_limit(&one, "p", opinion.p, chunk->options.p_value);
	if (one.fate == TRIED_MAGNITUDE)
		tried_limit(&one, "magnitude", list->steps[k].magnitude, chunk->options.magnitude);
	tried_note(tried, &one);
}

/* Removes point k and judges its neighbours anew. */
static void drop(struct list *list, size_t k)
{
	list->count--;
	memmove(list->steps + k, list->steps + k + 1, (list->count - k) * sizeof(*list->steps));
	if (k > 0)
		test_at(list, k - 1);
	if (k < list->count)
		test_at(list, k);
}

static bool is_bad(const struct list *list, size_t k)
{
	const struct edivisive_options *options = &list->chunk->options;
	const struct chunk_step *step = &list->steps[k];
	return step->p >= options->p_value || step->magnitude <= options->magnitude ||
	       step->tau - segment_start(list, k) < LEAST_SIDE ||
	       segment_end(list, k) - step->tau < LEAST_SIDE;
}

/* The weakest of the points of a kind, or the count if there is none. */
static size_t weakest_of(const struct list *list, bool (*is_one)(const struct list *, size_t))
{
	size_t weakest = list->count;
	for (size_t k = 0; k < list->count; k++)
		if (is_one(list, k) &&
			(weakest == list->count ||
				list->steps[k].strength < list->steps[weakest].strength))
			weakest = k;
	return weakest;
}

static void merge(struct list *list)
{
	size_t k;
	while (scratch_spend(list->room->scratch, 4 * list->count) &&
		(k = weakest_of(list, is_bad)) < list->count) {
		note(list, k, TRIED_TEST);
		drop(list, k);
	}
}

/* Whether the level behind the second edge is nearer to that before the first than to the one
 * between: a dip beside a larger step is no excursion, but where the step begins. */
static bool comes_back(const struct chunk_step edges[2])
{
	double there = edges[0].delta, back = edges[1].delta;
	return there * back < 0 && fabs(there + back) < fmin(fabs(there), fabs(back));
}

/* From point k to the next. */
static void note_excursion(const struct list *list, size_t k)
{
	struct excursions *excursions = list->room->excursions;
	excursions->items[excursions->count++] =
		(struct excursion){list->steps[k].tau, list->steps[k + 1].tau};
	note(list, k, TRIED_EXCURSION);
	note(list, k + 1, TRIED_EXCURSION);
}

static void drop_excursions(struct list *list)
{
	while (scratch_spend(list->room->scratch, list->count)) {
		size_t shortest = SHORTEST, at = 0;
		for (size_t k = 0; k + 1 < list->count; k++) {
			size_t length = list->steps[k + 1].tau - list->steps[k].tau;
			if (length < shortest) {
				shortest = length;
				at = k;
			}
		}
		if (shortest == SHORTEST)
			return;
		const struct chunk_step *edges = list->steps + at;
		size_t weaker = edges[1].strength < edges[0].strength ? at + 1 : at;
		if (comes_back(edges))
			note_excursion(list, at);
		else
			note(list, weaker, TRIED_SHORT);
		drop(list, weaker);
		merge(list);
	}
}

/* Whether the points from step k on to the next one leave their level far behind and come back. */
static bool is_excursion(const struct list *list, size_t k)
{
	const struct chunk_step *out = list->steps + k, *back = out + 1;
	double height = fmin(fabs(out->delta), fabs(back->delta));
	if (out->delta * back->delta >= 0)
		return false;
	if (back->tau - out->tau < SHORTEST)
		return true;
	if (back->tau - out->tau > list->chunk->excursion)
		return false;
	double spread = list->chunk->spread[out->tau / CLIP_BLOCK];
	return fabs(out->delta + back->delta) <= RETURNED * height && height >= FAR_OUT * spread;
}

/* Drops what is longer than the excursions of any series, and one of this series all the same; and
 * what has become short as its ends have moved. */
static void drop_refined_excursions(struct list *list)
{
	for (size_t k = 0; k + 1 < list->count;) {
		if (!scratch_spend(list->room->scratch, list->count))
			return;
		if (!is_excursion(list, k)) {
			k++;
			continue;
		}
		const struct chunk_step *edges = list->steps + k;
		note_excursion(list, k);
		drop(list, edges[1].strength < edges[0].strength ? k + 1 : k);
		merge(list);
		k = 0;
	}
}

/* Moves each point to where the two sides it was judged by are most even within themselves. */
static void refine(struct list *list)
{
	for (size_t k = 0; k < list->count; k++) {
		size_t start = segment_start(list, k), end = segment_end(list, k);
		if (!scratch_spend(list->room->scratch, end - start))
			return;
		list->steps[k].tau = chunk_best_place(list->chunk, start, list->steps[k].tau, end);
	}
	for (size_t k = 0; k < list->count; k++)
		test_at(list, k);
	merge(list);
}

/* How many points from k on go the same way. */
static size_t run_length(const struct list *list, size_t k)
{
	size_t last = k + 1;
	while (last < list->count && (list->steps[last].delta > 0) == (list->steps[k].delta > 0))
		last++;
	return last - k;
}

static size_t ramp_place(const struct list *list, size_t k, size_t count, struct slope *slope)
{
	return chunk_ramp(list->chunk, list->room, segment_start(list, k), list->steps + k, count,
		segment_end(list, k + count - 1), slope);
}

/* Several steps that are a ramp become one point, as sure as the surest of them. */
static bool join_ramp(struct list *list, size_t k, size_t count)
{
	struct slope slope;
	size_t place = ramp_place(list, k, count, &slope);
	if (place == 0)
		return false;
	struct chunk_step *steps = list->steps + k;
	double p = 1;
	for (size_t i = 0; i < count; i++) {
		p = fmin(p, steps[i].p);
		note(list, k + i, TRIED_RAMP);
	}
	steps[0] = (struct chunk_step){.tau = place, .p = p, .ramp = true, .slope = slope};
	list->count -= count - 1;
	memmove(steps + 1, steps + count, (list->count - k - 1) * sizeof(*steps));
	for (size_t i = k > 0 ? k - 1 : 0; i <= k + 1 && i < list->count; i++)
		test_at(list, i);
	return true;
}

static void join_ramps(struct list *list)
{
	for (size_t k = 0; k + 1 < list->count;) {
		if (!scratch_spend(list->room->scratch, list->count))
			return;
		size_t count = run_length(list, k);
		while (count > 1 && !scratch_is_spent(list->room->scratch) &&
			!join_ramp(list, k, count))
			count--;
		k = count > 1 ? 0 : k + 1;
	}
	merge(list);
}

/* A point of a ramp stands where the ramp has become visible. */
static void place_ramps(struct list *list)
{
	for (size_t k = 0; k < list->count; k++) {
		struct chunk_step *step = list->steps + k;
		size_t place = ramp_place(list, k, 1, &step->slope);
		if (place != 0) {
			note(list, k, TRIED_RAMP);
			step->tau = place;
			step->ramp = true;
		}
	}
}

static bool is_ramp(const struct list *list, size_t k)
{
	return k < list->count && list->steps[k].ramp;
}

/* A ramp was looked for near its step; where it is longer than that, all of it is described. */
static void extend_ramps(struct list *list)
{
	size_t cap = 2 * (size_t)list->chunk->options.window;
	for (size_t k = 0; k < list->count; k++) {
		struct chunk_step *step = list->steps + k;
		size_t start = segment_start(list, k), end = segment_end(list, k);
		if (!step->ramp || (step->tau - start <= cap && end - step->tau <= cap))
			continue;
		if (!scratch_spend(list->room->scratch, 16 * (end - start) + 20000))
			return;
		step->slope = chunk_slope(list->chunk, list->room, start, end);
	}
}

/* Trends in segments that no step bounds as the trend's own. */
static void add_trends(struct list *list)
{
	for (size_t k = 0; k <= list->count; k++) {
		size_t start = segment_start(list, k);
		size_t end = k < list->count ? list->steps[k].tau : list->chunk->n;
		struct chunk_step trend;
		if ((k > 0 && is_ramp(list, k - 1)) || is_ramp(list, k) ||
			!chunk_trend(list->chunk, list->room, start, end, &trend) ||
			trend.tau < list->chunk->decided)
			continue;
		memmove(list->steps + k + 1, list->steps + k,
			(list->count - k) * sizeof(*list->steps));
		list->steps[k] = trend;
		list->count++;
		k++;
	}
}

/* Ramps of one direction that share most of their points are one, told where it begins. */
static void join_same_ramps(struct list *list)
{
	for (size_t k = 0; k + 1 < list->count;) {
		struct chunk_step *one = list->steps + k, *next = one + 1;
		bool same =
			one->ramp && next->ramp &&
			(one->slope.to > one->slope.from) == (next->slope.to > next->slope.from);
		size_t shared =
			next->slope.start < one->slope.end ? one->slope.end - next->slope.start : 0;
		if (!same || 2 * shared < next->slope.end - next->slope.start) {
			k++;
			continue;
		}
		if (next->slope.end > one->slope.end) {
			one->slope.end = next->slope.end;
			one->slope.to = next->slope.to;
		}
		note(list, k + 1, TRIED_RAMP);
		list->count--;
		memmove(next, next + 1, (list->count - k - 1) * sizeof(*next));
	}
}

/* Drops steps that are one more stay on one of two levels, and movements of a wandering level. */
static void drop_restless(struct list *list)
{
	const struct chunk *chunk = list->chunk;
	size_t n = chunk->n, k;
	while (list->count > 0 && scratch_spend(list->room->scratch, 8 * list->count * n) &&
		(k = chunk_stays(chunk, list->steps, list->count)) < list->count) {
		note(list, k, TRIED_MODE);
		drop(list, k);
		merge(list);
	}
	while (list->count > 0 && scratch_spend(list->room->scratch, 10 * n) &&
		(k = chunk_wanders(chunk, list->steps, list->count)) < list->count) {
		note(list, k, TRIED_WANDER);
		drop(list, k);
		merge(list);
	}
}

/* Drops steps within what a slow drift explains better. */
static void drop_drifts(struct list *list)
{
	for (size_t k = 0; k < list->count;) {
		size_t start = segment_start(list, k), end = segment_end(list, k);
		if (!scratch_spend(list->room->scratch, 16 * (end - start) + 20000))
			return;
		if (!chunk_drifts(list->chunk, list->room, start, list->steps + k, end)) {
			k++;
			continue;
		}
		note(list, k, TRIED_DRIFT);
		drop(list, k);
		merge(list);
		k = 0;
	}
}

size_t chunk_passes(const struct chunk *chunk, size_t count, const struct chunk_workspace *room)
{
	struct list list = {.chunk = chunk, .room = room, .steps = room->steps};
	room->excursions->count = 0;
	for (size_t k = 0; k < count; k++)
		if (chunk->candidates[k] >= chunk->decided)
			room->steps[list.count++] =
				(struct chunk_step){.tau = chunk->candidates[k]};
	for (size_t k = 0; k < list.count; k++)
		test_at(&list, k);
	merge(&list);
	drop_excursions(&list);
	refine(&list);
	drop_refined_excursions(&list);
	join_ramps(&list);
	place_ramps(&list);
	drop_restless(&list);
	drop_drifts(&list);
	extend_ramps(&list);
	add_trends(&list);
	join_same_ramps(&list);
	return list.count;
}

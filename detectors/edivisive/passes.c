/*
 * From candidates to change points: docs/design/algorithms.md section 2.5, whose steps are cited
 * here.
 *
 * Candidates are tested over the segments between them. The weakest failing one is removed and its
 * two neighbours are tested again, until all pass. Then the steps into which a ramp was cut become
 * one, and steps of restless levels are removed.
 */
#include <math.h>
#include <string.h>

#include "detectors/edivisive/chunk.h"
#include "detectors/scratch.h"

/* The current points, in order. */
struct list {
	const struct chunk *chunk;
	struct chunk_step *steps;
	size_t count;
	double usual; /* of the step that is dropped: chunk_wanders */
};

static bool spend(const struct list *list, uint64_t steps)
{
	return scratch_spend(list->chunk->workspace->scratch, steps);
}

static size_t segment_start(const struct list *list, size_t k)
{
	return k > 0 ? list->steps[k - 1].tau : 0;
}

static size_t segment_end(const struct list *list, size_t k)
{
	return k + 1 < list->count ? list->steps[k + 1].tau : list->chunk->n;
}

/* Tests point k between its current neighbours, unless it was. A ramp keeps its p. */
static void test_at(struct list *list, size_t k)
{
	struct chunk_step before = list->steps[k], *step = &list->steps[k];
	size_t start = segment_start(list, k), end = segment_end(list, k);
	/* The ranks of up to W points on each side are compared in pairs. */
	size_t window = (size_t)list->chunk->options.window;
	size_t n1 = before.tau - start, n2 = end - before.tau;
	size_t pairs = (n1 < window ? n1 : window) * (n2 < window ? n2 : window);
	if ((before.start == start && before.end == end) || !spend(list, n1 + n2 + pairs))
		return;
	*step = chunk_test(list->chunk, start, before.tau, end);
	if (before.ramp)
		step->p = before.p;
	step->ramp = before.ramp;
	step->slope = before.slope;
	step->start = start;
	step->end = end;
}

/* Notes in the trace why point k is removed. */
static void note(const struct list *list, size_t k, enum tried_fate fate)
{
	struct tried_list *tried = scratch_tried(list->chunk->workspace->scratch);
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
		one.fate = TRIED_RANKS;
	if (tau - segment_start(list, k) < LEAST_SIDE || segment_end(list, k) - tau < LEAST_SIDE)
		one.fate = TRIED_ENDS;
	if (one.fate == TRIED_TEST)
		tried_limit(&one, "p", opinion.p, chunk->options.p_value);
	double percent = 100 * fabs(opinion.after / opinion.before - 1);
	if (fate == TRIED_WANDER && isfinite(percent))
		tried_limit(&one, "wandering", percent, list->usual * percent);
	tried_note(tried, &one);
}

/* Removes point k and tests its neighbours again. */
static void drop(struct list *list, size_t k)
{
	list->count--;
	memmove(list->steps + k, list->steps + k + 1, (list->count - k) * sizeof(*list->steps));
	if (k > 0)
		test_at(list, k - 1);
	if (k < list->count)
		test_at(list, k);
}

/* The weakest bad point; the count if there is none. */
static size_t weakest_bad(const struct list *list)
{
	size_t weakest = list->count;
	for (size_t k = 0; k < list->count; k++) {
		const struct chunk_step *step = &list->steps[k];
		bool bad = step->p >= list->chunk->options.p_value ||
			   step->tau - segment_start(list, k) < LEAST_SIDE ||
			   segment_end(list, k) - step->tau < LEAST_SIDE;
		if (bad &&
			(weakest == list->count || step->strength < list->steps[weakest].strength))
			weakest = k;
	}
	return weakest;
}

/* Step 1. */
static void merge(struct list *list)
{
	size_t k;
	while (spend(list, 4 * list->count) && (k = weakest_bad(list)) < list->count) {
		note(list, k, TRIED_TEST);
		drop(list, k);
	}
}

/* Step 2: moves each point to the place that leaves the least squares. */
static void refine(struct list *list)
{
	for (size_t k = 0; k < list->count; k++) {
		size_t start = segment_start(list, k), end = segment_end(list, k);
		if (!spend(list, end - start))
			return;
		size_t place = chunk_best_place(list->chunk, start, list->steps[k].tau, end);
		if (place != list->steps[k].tau)
			list->steps[k].end = 0;
		list->steps[k].tau = place;
	}
	for (size_t k = 0; k < list->count; k++)
		test_at(list, k);
	merge(list);
}

/* If the `count` steps from k on are a ramp, makes them one point with the smallest p of them. */
static bool join_ramp(struct list *list, size_t k, size_t count)
{
	struct slope slope;
	size_t sharp = 0, place = 0;
	for (size_t i = k; i < k + count; i++)
		sharp += chunk_is_sharp(list->chunk, segment_start(list, i), list->steps[i].tau,
			segment_end(list, i));
	if (2 * sharp < count)
		place = chunk_ramp(list->chunk, segment_start(list, k), list->steps + k, count,
			segment_end(list, k + count - 1), &slope);
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

/* Step 3. */
static void join_ramps(struct list *list)
{
	for (size_t k = 0; k + 1 < list->count;) {
		if (!spend(list, list->count))
			return;
		size_t count = 1; /* successive points that have one direction */
		while (k + count < list->count &&
			(list->steps[k + count].delta > 0) == (list->steps[k].delta > 0))
			count++;
		while (count > 1 && !scratch_is_spent(list->chunk->workspace->scratch) &&
			!join_ramp(list, k, count))
			count--;
		k = count > 1 ? 0 : k + 1;
	}
	merge(list);
}

static bool is_ramp(const struct list *list, size_t k)
{
	return k < list->count && list->steps[k].ramp;
}

/* Step 5: adds the trends of segments that no ramp bounds. */
static void add_trends(struct list *list)
{
	for (size_t k = 0; k <= list->count; k++) {
		size_t start = segment_start(list, k);
		size_t end = k < list->count ? list->steps[k].tau : list->chunk->n;
		struct chunk_step trend;
		if ((k > 0 && is_ramp(list, k - 1)) || is_ramp(list, k) ||
			!chunk_trend(list->chunk, start, end, &trend) ||
			trend.tau < list->chunk->decided)
			continue;
		memmove(list->steps + k + 1, list->steps + k,
			(list->count - k) * sizeof(*list->steps));
		list->steps[k] = trend;
		list->count++;
		k++;
	}
}

/* Step 4, stays and wandering. */
static void drop_restless(struct list *list)
{
	const struct chunk *chunk = list->chunk;
	size_t n = chunk->n, k;
	while (list->count > 0 && spend(list, 8 * list->count * n) &&
		(k = chunk_stays(chunk, list->steps, list->count)) < list->count) {
		note(list, k, TRIED_MODE);
		drop(list, k);
		merge(list);
	}
	while (list->count > 0 && spend(list, 10 * n) &&
		(k = chunk_wanders(chunk, list->steps, list->count, &list->usual)) < list->count) {
		note(list, k, TRIED_WANDER);
		drop(list, k);
		merge(list);
	}
}

/* Step 4, drift. */
static void drop_drifts(struct list *list)
{
	for (size_t k = 0; k < list->count;) {
		size_t start = segment_start(list, k), end = segment_end(list, k);
		if (!spend(list, 16 * (end - start) + 20000))
			return;
		if (!chunk_drifts(list->chunk, start, list->steps + k, end)) {
			k++;
			continue;
		}
		note(list, k, TRIED_DRIFT);
		drop(list, k);
		merge(list);
		k = 0;
	}
}

size_t chunk_passes(const struct chunk *chunk, size_t count)
{
	const struct chunk_workspace *workspace = chunk->workspace;
	struct list list = {.chunk = chunk, .steps = workspace->steps};
	for (size_t k = 0; k < count; k++)
		if (workspace->places[k] >= chunk->decided)
			workspace->steps[list.count++] =
				(struct chunk_step){.tau = workspace->places[k]};
	for (size_t k = 0; k < list.count; k++)
		test_at(&list, k);
	merge(&list);
	refine(&list);
	join_ramps(&list);
	drop_restless(&list);
	drop_drifts(&list);
	add_trends(&list);
	return list.count;
}

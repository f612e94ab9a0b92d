/*
 * The matching works on positions: a found change stands at its index, a known one where its time
 * falls among the points (a span, where several points carry that time; beyond the ends, as far out
 * as the spacing of the nearest points says).
 *
 * A pair within the tolerance is worth the more the nearer it is, and the matching of the greatest
 * worth is wanted. Both sides lie on a line and worth falls with distance, so crossing pairs can
 * always be uncrossed without loss; it is enough to look at matchings in order, which dynamic
 * programming does. Where a gap is wider than the tolerance the problem falls apart, so the tables
 * stay small however long the series is.
 */
#include "agent/reconcile.h"

#include <math.h>
#include <stdlib.h>

#include "agent/core/arena.h"

/* A change of either side on the line of points. */
struct place {
	double low, high;
	size_t index; /* in the caller's array */
	int64_t tie;  /* what decides between equal places */
	bool withdrawn;
};

struct side {
	struct place *places;
	size_t count;
};

/* Milliseconds a point, by the `count` steps from `first` on. */
static double spacing(const int64_t *times, size_t first, size_t count)
{
	return count == 0 ? 0
			  : ((double)times[first + count] - (double)times[first]) / (double)count;
}

static double outside(double distance, double step)
{
	return step > 0 ? distance / step : HUGE_VAL;
}

/* First index whose time is not before `time`, or, with `after`, whose time is after it. */
static size_t bound(const int64_t *times, size_t n, int64_t time, bool after)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (times[middle] < time || (after && times[middle] == time))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void locate(const int64_t *times, size_t n, int64_t time, struct place *place)
{
	size_t steps = n - 1 < RECONCILE_TOLERANCE ? n - 1 : RECONCILE_TOLERANCE;
	size_t first = bound(times, n, time, false), after = bound(times, n, time, true);

	if (first < after) {
		place->low = (double)first;
		place->high = (double)(after - 1);
		return;
	}
	if (first == 0)
		place->low = -outside((double)times[0] - (double)time, spacing(times, 0, steps));
	else if (first == n)
		place->low = (double)(n - 1) + outside((double)time - (double)times[n - 1],
						       spacing(times, n - 1 - steps, steps));
	else
		place->low =
			(double)(first - 1) + (double)(time - times[first - 1]) /
						      (double)(times[first] - times[first - 1]);
	place->high = place->low;
}

static int compare_places(const void *a, const void *b)
{
	const struct place *left = a, *right = b;

	if (left->low != right->low)
		return left->low < right->low ? -1 : 1;
	return (left->tie > right->tie) - (left->tie < right->tie);
}

static struct side known_side(struct arena *arena, const int64_t *times, size_t n,
	const struct known *known, size_t count, int sign)
{
	struct side side = {.places = arena_array(arena, count, sizeof *side.places)};

	for (size_t i = 0; i < count; i++) {
		struct place *place = &side.places[side.count];

		if (known[i].sign != sign)
			continue;
		*place = (struct place){
			.index = i, .tie = known[i].id, .withdrawn = known[i].withdrawn};
		locate(times, n, known[i].time, place);
		side.count++;
	}
	qsort(side.places, side.count, sizeof *side.places, compare_places);
	return side;
}

static struct side found_side(
	struct arena *arena, const struct found *found, size_t count, int sign)
{
	struct side side = {.places = arena_array(arena, count, sizeof *side.places)};

	for (size_t i = 0; i < count; i++)
		if (found[i].sign == sign)
			side.places[side.count++] = (struct place){.low = (double)found[i].index,
				.high = (double)found[i].index,
				.index = i};
	qsort(side.places, side.count, sizeof *side.places, compare_places);
	return side;
}

/*
 * What the pair is worth; 0 beyond the tolerance. One point more than the tolerance, so that a pair
 * at the edge is better than none; a hair less for a withdrawn change, so that of two equally near
 * the live one is taken.
 */
static double worth(const struct place *known, const struct place *found)
{
	double distance = found->low < known->low    ? known->low - found->low
			  : found->low > known->high ? found->low - known->high
						     : 0;

	if (distance > RECONCILE_TOLERANCE)
		return 0;
	return RECONCILE_TOLERANCE + 1 - distance - (known->withdrawn ? 1e-6 : 0);
}

/* The best matching of a run of known and found changes. best[i][j]: of the first i known and the
 * first j found. */
static void match_run(struct arena *scratch, const struct place *known, size_t known_count,
	const struct place *found, size_t found_count, struct reconciliation *out)
{
	size_t width = found_count + 1;
	double *best = arena_array(scratch, (known_count + 1) * width, sizeof *best);

	for (size_t i = 1; i <= known_count; i++)
		for (size_t j = 1; j <= found_count; j++) {
			double pair = worth(&known[i - 1], &found[j - 1]);
			double skip = fmax(best[(i - 1) * width + j], best[i * width + j - 1]);

			best[i * width + j] =
				fmax(skip, pair > 0 ? best[(i - 1) * width + j - 1] + pair : 0);
		}
	for (size_t i = known_count, j = found_count; i > 0 && j > 0;) {
		if (best[i * width + j] == best[(i - 1) * width + j]) {
			i--;
		} else if (best[i * width + j] == best[i * width + j - 1]) {
			j--;
		} else {
			i--, j--;
			out->found_of[known[i].index] = found[j].index;
			out->known_of[found[j].index] = known[i].index;
		}
	}
}

static void match(
	struct arena *arena, struct side known, struct side found, struct reconciliation *out)
{
	size_t i = 0, j = 0;

	while (i < known.count && j < found.count) {
		size_t first_known = i, first_found = j;
		double reach = fmin(known.places[i].low, found.places[j].low);

		while (true) {
			const struct place *next = NULL;

			if (i < known.count && known.places[i].low <= reach + RECONCILE_TOLERANCE)
				next = &known.places[i++];
			else if (j < found.count &&
				 found.places[j].low <= reach + RECONCILE_TOLERANCE)
				next = &found.places[j++];
			else
				break;
			reach = fmax(reach, next->high);
		}
		if (i > first_known && j > first_found)
			match_run(arena, known.places + first_known, i - first_known,
				found.places + first_found, j - first_found, out);
	}
}

/* Near the first point a change may still be there, only too few points are left before it to show
 * it. */
static bool covered(const struct place *place, size_t n)
{
	return place->low >= RECONCILE_TOLERANCE && place->high <= (double)(n - 1);
}

static void judge(struct side side, const int64_t *times, size_t n, const struct known *known,
	const struct found *found, struct reconciliation *out)
{
	for (size_t i = 0; i < side.count; i++) {
		size_t index = side.places[i].index, partner = out->found_of[index];

		if (partner == RECONCILE_NONE)
			out->fates[index] = covered(&side.places[i], n) ? FATE_GONE : FATE_OUTSIDE;
		else if (times[found[partner].index] == known[index].time)
			out->fates[index] = FATE_SAME;
		else
			out->fates[index] = FATE_MOVED;
	}
}

void reconcile(struct arena *arena, const int64_t *times, size_t n, const struct known *known,
	size_t known_count, const struct found *found, size_t found_count,
	struct reconciliation *out)
{
	out->known_of = arena_array(arena, found_count, sizeof *out->known_of);
	out->found_of = arena_array(arena, known_count, sizeof *out->found_of);
	out->fates = arena_array(arena, known_count, sizeof *out->fates);
	for (size_t i = 0; i < found_count; i++)
		out->known_of[i] = RECONCILE_NONE;
	for (size_t i = 0; i < known_count; i++) {
		out->found_of[i] = RECONCILE_NONE;
		out->fates[i] = FATE_OUTSIDE;
	}
	if (n == 0)
		return;
	for (int sign = -1; sign <= 1; sign++) {
		struct side mine = known_side(arena, times, n, known, known_count, sign);

		match(arena, mine, found_side(arena, found, found_count, sign), out);
		judge(mine, times, n, known, found, out);
	}
}

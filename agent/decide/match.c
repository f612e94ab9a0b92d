/*
 * Matching works on positions: a found change is at its index, a known one where its time falls
 * among the points (a span, if several points carry that time; beyond the ends, extrapolated with
 * the spacing of the nearest points).
 *
 * A pair within the tolerance is worth more the nearer its two changes are, and the matching of
 * maximum total worth is wanted. Both sides lie on a line and worth falls with distance, so
 * crossing pairs can always be uncrossed without loss; it is enough to consider matchings in
 * order, by dynamic programming over the pairs. A change has few pairs, since only changes within
 * the tolerance make one. So time and memory grow with the number of changes and not with the
 * product of the two sides, however many withdrawn changes have accumulated.
 */
#include "agent/decide/match.h"

#include <math.h>
#include <stdlib.h>

#include "agent/base/arena.h"
#include "agent/base/order.h"
#include "agent/model/series.h"
#include "detectors/retraction.h"

enum { REACH_MOST = 64 }; /* maximum number of pairs for one known change */
#define NO_PAIR SIZE_MAX

/* A change of either side on the line of points. */
struct place {
	double low, high; /* low: first, for searching */
	size_t index;     /* in the caller's array */
	int64_t tie;      /* decides between equal places */
	bool withdrawn;
};

struct side {
	struct place *places;
	size_t count;
};

/* Milliseconds per point, over `count` steps from `first` on. */
static double spacing(const int64_t *times, size_t first, size_t count)
{
	return count == 0 ? 0
			  : ((double)times[first + count] - (double)times[first]) / (double)count;
}

static double outside(double distance, double step)
{
	return step > 0 ? distance / step : HUGE_VAL;
}

static void locate(const int64_t *times, size_t n, int64_t time, struct place *place)
{
	size_t steps = n - 1 < CHANGE_TOLERANCE ? n - 1 : CHANGE_TOLERANCE;
	size_t first = times_lower_bound(times, n, time);
	size_t after = time < INT64_MAX ? times_lower_bound(times, n, time + 1) : n;

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
 * The worth of a pair; 0 beyond the tolerance. One point more than the tolerance, so that a pair
 * at the edge is better than none; slightly less for a withdrawn change, so that of two equally
 * near ones the live one is matched.
 */
static double worth(const struct place *known, const struct place *found)
{
	double distance = found->low < known->low    ? known->low - found->low
			  : found->low > known->high ? found->low - known->high
						     : 0;

	if (distance > CHANGE_TOLERANCE)
		return 0;
	return CHANGE_TOLERANCE + 1 - distance - (known->withdrawn ? 1e-6 : 0);
}

/* A known and a found change that may be the same, and the best chain of pairs ending with this
 * one. */
struct couple {
	size_t known, found; /* places */
	double total;
	size_t before; /* the previous pair of the chain; NO_PAIR: none */
};

/* The chains so far. `best` is a Fenwick tree: the best pair among those whose found place lies
 * below a bound. */
struct chains {
	struct couple *pairs;
	size_t count;
	size_t *best;
	size_t places;
};

static size_t chains_best_below(const struct chains *chains, size_t found)
{
	size_t best = NO_PAIR;

	for (size_t at = found; at > 0; at &= at - 1) {
		size_t pair = chains->best[at];

		if (pair != NO_PAIR &&
			(best == NO_PAIR || chains->pairs[pair].total > chains->pairs[best].total))
			best = pair;
	}
	return best;
}

static void chains_enter(struct chains *chains, size_t pair)
{
	for (size_t at = chains->pairs[pair].found + 1; at <= chains->places; at += at & -at) {
		size_t *best = &chains->best[at];

		if (*best == NO_PAIR || chains->pairs[pair].total > chains->pairs[*best].total)
			*best = pair;
	}
}

static size_t first_from(const struct side *side, double low)
{
	return order_lower_bound(
		&low, side->places, side->count, sizeof *side->places, order_numbers);
}

/*
 * The found changes that a known one can be: those within the tolerance, [*first, *last). If many
 * points have the same time there may be many, all equally near; then the k-th known change of
 * that time considers only those around the k-th found one, since matching in order pairs these
 * anyway.
 */
static void reach(const struct side *known, size_t at, size_t rank, const struct side *found,
	size_t *first, size_t *last)
{
	const struct place *place = &known->places[at];
	size_t most;

	*first = first_from(found, place->low - CHANGE_TOLERANCE);
	*last = first_from(found, place->high + CHANGE_TOLERANCE + 1);
	if (*last - *first <= REACH_MOST)
		return;
	most = *last - REACH_MOST;
	*first += rank > REACH_MOST / 2 ? rank - REACH_MOST / 2 : 0;
	if (*first > most)
		*first = most;
	*last = *first + REACH_MOST;
}

static void match(struct arena *arena, struct side known, struct side found, struct matching *out)
{
	struct chains chains = {.places = found.count};

	chains.best = arena_array(arena, found.count + 1, sizeof *chains.best);
	for (size_t i = 0; i <= found.count; i++)
		chains.best[i] = NO_PAIR;
	for (size_t i = 0, rank = 0; i < known.count; i++) {
		size_t first, last, before = chains.count;

		rank = i > 0 && known.places[i].low == known.places[i - 1].low ? rank + 1 : 0;
		reach(&known, i, rank, &found, &first, &last);
		for (size_t j = first; j < last; j++) {
			double value = worth(&known.places[i], &found.places[j]);
			size_t best = chains_best_below(&chains, j);

			if (value <= 0)
				continue;
			if (best != NO_PAIR)
				value += chains.pairs[best].total;
			chains.pairs =
				arena_grow(arena, chains.pairs, chains.count, sizeof *chains.pairs);
			chains.pairs[chains.count++] = (struct couple){i, j, value, best};
		}
		for (size_t pair = before; pair < chains.count; pair++)
			chains_enter(&chains, pair);
	}
	for (size_t at = chains_best_below(&chains, found.count); at != NO_PAIR;
		at = chains.pairs[at].before) {
		size_t mine = known.places[chains.pairs[at].known].index;
		size_t other = found.places[chains.pairs[at].found].index;

		out->found_of[mine] = other;
		out->known_of[other] = mine;
	}
}

/* Near the first point a change may still exist, but too few points are left before it to show
 * it. */
static bool covered(const struct place *place, size_t n)
{
	return place->low >= CHANGE_TOLERANCE && place->high <= (double)(n - 1);
}

static void judge(struct side side, const int64_t *times, size_t n, const struct known *known,
	const struct found *found, struct matching *out)
{
	for (size_t i = 0; i < side.count; i++) {
		size_t index = side.places[i].index, partner = out->found_of[index];

		if (partner == MATCH_NONE)
			out->fates[index] = covered(&side.places[i], n) ? FATE_GONE : FATE_OUTSIDE;
		else if (times[found[partner].index] == known[index].time)
			out->fates[index] = FATE_SAME;
		else
			out->fates[index] = FATE_MOVED;
	}
}

/* The found changes, and known ones that were not found within the tolerance and may have moved
 * further: also to where one was withdrawn. */
static size_t mark_changes(const struct side sides[static 3], size_t n, const struct known *known,
	const struct found *found, size_t found_count, const struct matching *out,
	struct mark *marks)
{
	size_t count = 0;

	for (size_t i = 0; i < found_count; i++) {
		size_t same = out->known_of[i];

		marks[count++] = (struct mark){.place = (double)found[i].index,
			.before = found[i].before,
			.after = found[i].after,
			.sign = found[i].sign,
			.index = i,
			.tie = found[i].sign,
			.found = true,
			.known = same != MATCH_NONE && !known[same].withdrawn};
	}
	for (size_t k = 0; k < 3; k++)
		for (size_t i = 0; i < sides[k].count; i++) {
			const struct place *place = &sides[k].places[i];
			const struct known *one = &known[place->index];

			if ((one->followed == 0 && one->before == one->after) || one->withdrawn ||
				!covered(place, n) || out->found_of[place->index] != MATCH_NONE)
				continue;
			marks[count++] = (struct mark){.place = place->low,
				.followed = (double)one->followed,
				.before = one->before,
				.after = one->after,
				.sign = one->sign,
				.index = place->index,
				.tie = one->id};
		}
	return count;
}

static void match_moved(struct arena *arena, const struct side sides[static 3], size_t n,
	const struct known *known, size_t known_count, const struct found *found,
	size_t found_count, struct matching *out)
{
	size_t most = known_count + found_count;
	struct mark *marks = arena_array(arena, most, sizeof *marks);
	struct move *moves = arena_array(arena, most / 2, sizeof *moves);
	size_t count = mark_changes(sides, n, known, found, found_count, out, marks);

	count = retraction_moves(marks, count, moves);
	for (size_t i = 0; i < count; i++) {
		size_t withdrawn = out->known_of[moves[i].found];

		if (withdrawn != MATCH_NONE)
			out->found_of[withdrawn] = MATCH_NONE;
		out->found_of[moves[i].known] = moves[i].found;
		out->known_of[moves[i].found] = moves[i].known;
	}
}

static void match_all(struct arena *arena, const int64_t *times, size_t n,
	const struct known *known, size_t known_count, const struct found *found,
	size_t found_count, struct matching *out)
{
	struct side sides[3];

	for (size_t i = 0; i < found_count; i++)
		out->known_of[i] = MATCH_NONE;
	for (size_t i = 0; i < known_count; i++) {
		out->found_of[i] = MATCH_NONE;
		out->fates[i] = FATE_OUTSIDE;
	}
	if (n == 0)
		return;
	for (int sign = -1; sign <= 1; sign++) {
		sides[sign + 1] = known_side(arena, times, n, known, known_count, sign);
		match(arena, sides[sign + 1], found_side(arena, found, found_count, sign), out);
	}
	match_moved(arena, sides, n, known, known_count, found, found_count, out);
	for (size_t k = 0; k < 3; k++)
		judge(sides[k], times, n, known, found, out);
}

void match_changes(struct arena *arena, const int64_t *times, size_t n, const struct known *known,
	size_t known_count, const struct found *found, size_t found_count, struct matching *out)
{
	enum { NO_SIGN = 2 }; /* matches no change */
	struct known *may = arena_array(arena, known_count, sizeof *may);
	bool again = true;

	out->known_of = arena_array(arena, found_count, sizeof *out->known_of);
	out->found_of = arena_array(arena, known_count, sizeof *out->found_of);
	out->fates = arena_array(arena, known_count, sizeof *out->fates);
	for (size_t i = 0; i < known_count; i++)
		may[i] = known[i];
	while (again) {
		again = false;
		match_all(arena, times, n, may, known_count, found, found_count, out);
		for (size_t i = 0; i < known_count; i++) {
			size_t partner = out->found_of[i];

			if (known[i].over == 0 || partner == MATCH_NONE ||
				times[found[partner].index] < known[i].over)
				continue;
			may[i].sign = NO_SIGN;
			again = true;
		}
	}
}

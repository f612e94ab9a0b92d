/*
 * The level of 0.1 is that of e-divisive's first pass. It was chosen from the measured trade-off
 * between correct alarms that are retracted and wrong ones that stand (docs/design/accuracy.md).
 */
#include "detectors/retraction.h"

#include <math.h>
#include <stdlib.h>

#include "detectors/finite.h"
#include "detectors/stats.h"

static const double EVIDENCE = 0.1;

bool retraction_holds(const double *values, size_t n, const struct change *changes, size_t count,
	size_t place, int sign)
{
	double sides[2 * RETRACTION_REACH], scaled[2 * RETRACTION_REACH];
	size_t start = 0, end = n, n1 = 0, n2 = 0;
	if (place >= n)
		return false;
	for (size_t i = 0; i < count && changes[i].index <= place; i++)
		start = changes[i].index;
	for (size_t i = count; i > 0 && changes[i - 1].index > place; i--)
		end = changes[i - 1].index;
	for (size_t i = place; i > start && n1 < RETRACTION_REACH; i--)
		if (isfinite(values[i - 1]))
			sides[n1++] = values[i - 1];
	for (size_t i = place; i < end && n2 < RETRACTION_REACH; i++)
		if (isfinite(values[i]))
			sides[n1 + n2++] = values[i];
	if (n1 < 2 || n2 < 2)
		return false;
	finite_scale(sides, n1 + n2, scaled);
	struct moments before = moments_of(scaled, n1), after = moments_of(scaled + n1, n2);
	double delta = after.mean - before.mean;
	return delta * sign > 0 && ttest_welch(before, after).p <= EVIDENCE;
}

static int compare_marks(const void *a, const void *b)
{
	const struct mark *left = a, *right = b;
	if (left->place != right->place)
		return left->place < right->place ? -1 : 1;
	if (left->found != right->found)
		return left->found - right->found;
	return (left->tie > right->tie) - (left->tie < right->tie);
}

/*
 * The distance between two neighbouring marks, one known and one found; HUGE_VAL if they cannot be
 * the same change.
 */
static double distance_between(const struct mark *left, const struct mark *right)
{
	const struct mark *known = left->found ? right : left, *found = left->found ? left : right;
	double distance = right->place - left->place, step = fabs(known->after - known->before);
	/* One step: from the same level, to less than twice as far */
	bool alike = fabs(found->before - known->before) < step / 2 &&
		     fabs(found->after - known->after) < step;
	if (left->found == right->found || found->known || left->sign != right->sign)
		return HUGE_VAL;
	if (distance > RETRACTION_MOVE)
		return HUGE_VAL;
	if ((found == right ? distance >= known->followed : known->followed == 0) && !alike)
		return HUGE_VAL;
	return distance;
}

size_t retraction_moves(struct mark *marks, size_t count, struct move *moves)
{
	size_t moved = 0;
	qsort(marks, count, sizeof(*marks), compare_marks);
	for (size_t i = 0; i + 1 < count; i++) {
		const struct mark *left = &marks[i], *right = &marks[i + 1];
		double distance = distance_between(left, right);
		if (distance == HUGE_VAL ||
			(i + 2 < count && distance_between(right, right + 1) < distance))
			continue;
		moves[moved++] = left->found ? (struct move){right->index, left->index}
					     : (struct move){left->index, right->index};
		i++;
	}
	return moved;
}

#include "agent/model/announcement.h"

#include <math.h>

int announcement_verdict(const struct announcement *item)
{
	return change_verdict(&item->change, item->direction);
}

/* Like the magnitude of struct change, of the levels. */
static double weight(const struct change *change)
{
	double before = change->level_before, after = change->level_after;
	double up = before != 0 ? fabs(after / before - 1) : 0;
	double down = after != 0 ? fabs(before / after - 1) : 0;

	return fmax(up, down);
}

int announcement_compare_weight(const struct announcement *a, const struct announcement *b)
{
	int verdict_a = announcement_verdict(a) > 0, verdict_b = announcement_verdict(b) > 0;
	double weight_a = weight(&a->change), weight_b = weight(&b->change);

	if (verdict_a != verdict_b)
		return verdict_b - verdict_a;
	return (weight_b > weight_a) - (weight_a > weight_b);
}

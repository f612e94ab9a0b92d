#include "agent/model/announcement.h"

#include <math.h>

#include "agent/base/order.h"

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

static bool is_wide(const struct announcement *item)
{
	return item->place_from < item->place_to;
}

/* By the attributes of the points that differ between two builds. */
static void range_of_points(
	const struct announcement *item, const char **before, const char **after)
{
	bool wide = is_wide(item);
	const char *commit_before = wide ? item->place_commit_before : item->commit_before;
	const char *commit_after = wide ? item->place_commit_after : item->commit_after;
	bool commits = commit_before || commit_after;

	*before = commits ? commit_before
		  : wide  ? item->place_version_before
			  : item->version_before;
	*after = commits ? commit_after : wide ? item->place_version_after : item->version_after;
	if (order_same(*before, *after))
		*before = *after = NULL;
}

void announcement_range(const struct announcement *item, const char **before, const char **after)
{
	if (!item->suspects.known) {
		range_of_points(item, before, after);
		return;
	}
	*before = attribution_from(&item->suspects);
	*after = attribution_to(&item->suspects);
}

/* Where points are windows, the window with the beginning of the new level does not tell the first
 * bad commit. */
static const char *likely_suspect(const struct announcement *item)
{
	const struct attribution *suspects = &item->suspects;
	const char *likely = item->commit_after ? item->commit_after : item->version_after;

	if (suspects->timed || suspects->count < 2 || order_same(likely, attribution_to(suspects)))
		return NULL;
	for (size_t i = 0; i < suspects->listed; i++)
		if (order_same(deployment_name(&suspects->list[i]), likely))
			return likely;
	return NULL;
}

const char *announcement_likely(const struct announcement *item)
{
	const char *before, *after, *likely;

	if (item->change.kind == CHANGE_TREND)
		return NULL;
	if (item->suspects.known)
		return likely_suspect(item);
	if (!is_wide(item))
		return NULL;
	announcement_range(item, &before, &after);
	likely = item->place_commit_before || item->place_commit_after ? item->commit_after
								       : item->version_after;
	return order_same(likely, after) ? NULL : likely;
}

const char *announcement_commit(const struct announcement *item)
{
	const struct attribution *suspects = &item->suspects;
	const char *likely = announcement_likely(item);

	if (!suspects->known)
		return item->commit_after;
	if (suspects->listed == 0 || !suspects->list[suspects->listed - 1].commit)
		return NULL;
	return likely ? likely : attribution_to(suspects);
}

const char *announcement_bad(const struct announcement *item)
{
	const char *commit = announcement_commit(item), *before, *after;

	if (item->change.kind == CHANGE_TREND)
		return NULL;
	announcement_range(item, &before, &after);
	return after && commit ? commit : after;
}

static bool same_place(const struct announcement *a, const struct announcement *b)
{
	if (!is_wide(a) && !is_wide(b))
		return true;
	return a->change.kind == b->change.kind && a->place_from == b->place_from &&
	       a->place_to == b->place_to &&
	       order_same(a->place_commit_before, b->place_commit_before) &&
	       order_same(a->place_commit_after, b->place_commit_after) &&
	       order_same(a->place_version_before, b->place_version_before) &&
	       order_same(a->place_version_after, b->place_version_after);
}

bool announcement_same_range(const struct announcement *a, const struct announcement *b)
{
	bool same = a->attribute_count == b->attribute_count;

	for (size_t i = 0; same && i < a->attribute_count; i++) {
		const struct attribute *left = &a->attributes[i], *right = &b->attributes[i];

		same = order_same(left->name, right->name) &&
		       order_same(left->before, right->before) &&
		       order_same(left->after, right->after);
	}
	return same && order_same(a->commit_before, b->commit_before) &&
	       order_same(a->commit_after, b->commit_after) &&
	       order_same(a->version_before, b->version_before) &&
	       order_same(a->version_after, b->version_after) && same_place(a, b) &&
	       attribution_same(&a->suspects, &b->suspects);
}

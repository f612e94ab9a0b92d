/*
 * A segmentation that knew the least magnitude would join levels separated by a step below it, and
 * so move, dilute or lose the steps beside it.
 */
#include "detectors/magnitude.h"

#include <math.h>

#include "detectors/describe.h"

size_t magnitude_filter(
	struct change *changes, size_t count, double least, struct tried_list *tried)
{
	if (count == 0 || least <= 0)
		return count;
	double last = changes[0].level_before;
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		const struct change *change = &changes[i];
		double own = describe_magnitude(change->level_before, change->level_after);
		double magnitude = fmax(own, describe_magnitude(last, change->level_after));
		if (magnitude > least) {
			last = change->level_after;
			changes[kept++] = *change;
		} else if (tried) {
			struct tried one = {.index = change->index,
				.fate = TRIED_MAGNITUDE,
				.pvalue = change->pvalue,
				.mean_before = change->level_before,
				.mean_after = change->level_after};
			tried_limit(&one, "magnitude", magnitude, least);
			tried_note(tried, &one);
		}
	}
	return kept;
}

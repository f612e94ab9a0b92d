/*
 * Derives how long a series may be without a new point. Points with the same time count once. A
 * limit that would overflow is not a limit.
 */
#include "agent/monitor/rhythm.h"

#include <math.h>

#include "agent/base/when.h"

enum { GAPS = 3, INTERVALS = 10, STEPS = 3 };

struct rhythm rhythm_of(const struct series *series)
{
	struct rhythm rhythm = {.last = WHEN_ALWAYS};
	int64_t later = WHEN_ALWAYS;

	for (size_t i = series->axis->n; i > 0 && rhythm.points <= RHYTHM_GAPS; i--) {
		int64_t time = series->axis->times[i - 1];

		if (isnan(series->values[i - 1]) || (rhythm.points > 0 && time >= later))
			continue;
		if (rhythm.points++ == 0)
			rhythm.last = time;
		else if (later - time > rhythm.gap)
			rhythm.gap = later - time;
		later = time;
	}
	return rhythm;
}

static void raise(int64_t *limit, int64_t times, int64_t span)
{
	if (span > WHEN_NEVER / 100)
		*limit = WHEN_NEVER;
	else if (times * span > *limit)
		*limit = times * span;
}

int64_t rhythm_limit(const struct rhythm *rhythm, const struct rhythm_bounds *bounds)
{
	int64_t limit = 0;

	if (rhythm->points < RHYTHM_POINTS)
		return 0;
	raise(&limit, GAPS, rhythm->gap);
	raise(&limit, INTERVALS, bounds->interval);
	raise(&limit, STEPS, bounds->step);
	return limit == WHEN_NEVER ? 0 : limit + bounds->delay;
}

int64_t rhythm_newest(const struct dataset *data)
{
	int64_t newest = WHEN_ALWAYS;

	for (size_t i = 0; i < data->count; i++) {
		int64_t last = rhythm_of(&data->series[i]).last;

		if (last > newest)
			newest = last;
	}
	return newest;
}

int64_t rhythm_of_all(
	const struct dataset *data, const struct rhythm_bounds *bounds, int64_t *newest)
{
	int64_t shortest = 0;

	*newest = rhythm_newest(data);
	for (size_t i = 0; i < data->count; i++) {
		struct rhythm rhythm = rhythm_of(&data->series[i]);
		int64_t limit = rhythm_limit(&rhythm, bounds);

		if (limit > 0 && *newest - rhythm.last <= limit &&
			(shortest == 0 || limit < shortest))
			shortest = limit;
	}
	return shortest;
}

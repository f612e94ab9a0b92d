#include "detectors/refit.h"

/* Whether the season need not be fitted again. */
static bool is_current(
	const struct refit *refit, const double *values, const int64_t *times, size_t n)
{
	if (!refit->fitted || times[n - 1] >= refit->at + REFIT_EVERY ||
		(refit->few && n >= SEASON_LEAST))
		return false;
	size_t first = n; /* of the points since the last fit, with that fit's last point */
	while (first > 0 && times[first - 1] >= refit->at)
		first--;

	return season_takes(&refit->season, values + first, n - first);
}

bool refit_season(struct refit *refit, enum season_mode mode, struct season_clock clock,
	const double *values, const int64_t *times, size_t n, struct scratch *scratch)
{
	struct season season;
	bool other;

	if (is_current(refit, values, times, n))
		return false;
	season = season_fit(mode, clock, refit->season.cycles, values, times, n, scratch);
	other = season.cycles || refit->season.cycles ||
		season.excursion != refit->season.excursion;
	season_free(&refit->season);
	*refit = (struct refit){
		.season = season, .fitted = true, .few = n < SEASON_LEAST, .at = times[n - 1]};
	return other;
}

void refit_free(struct refit *refit)
{
	season_free(&refit->season);
	*refit = (struct refit){0};
}

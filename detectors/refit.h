/*
 * Keeps the season of a growing series up to date: of the agent's series, and of the labelled ones
 * that `evaluate` processes point by point.
 *
 * A season is frozen between fits, since a new fit changes all values of the series. It is fitted
 * again once a day, by the times of the points, and when values arrive that its scale cannot
 * represent.
 */
#ifndef DETECTORS_REFIT_H
#define DETECTORS_REFIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detectors/season.h"

#define REFIT_EVERY INT64_C(86400000) /* ms between fits, by the points' times */

struct refit {
	struct season season;
	bool fitted;
	bool few;   /* the last fit had too few points to find anything */
	int64_t at; /* ms: the last point of that fit */
};

/* Calls season_fit if a fit is due; n > 0. True if the season has changed, and with it all adjusted
 * values. */
bool refit_season(struct refit *refit, enum season_mode mode, struct season_clock clock,
	const double *values, const int64_t *times, size_t n, struct scratch *scratch);
void refit_free(struct refit *refit);

#endif

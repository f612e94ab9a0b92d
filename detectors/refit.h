/*
 * The cycles that a growing series is without: those of the agent's series, and of the labelled
 * ones that `evaluate` feeds point by point.
 *
 * They are frozen from fit to fit, as all values of the series change with them. They are fitted
 * anew once a day, by the points' times, and where values have come that their scale cannot take.
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
	bool fitted, few; /* few: in too few points to find anything */
	int64_t at;       /* ms: the last point by then */
};

/* Fits what `mode` asks for if it is time for that; as season_fit, n > 0. True if others are to be
 * removed now than before, from all points. */
bool refit_season(struct refit *refit, enum season_mode mode, struct season_clock clock,
	const double *values, const int64_t *times, size_t n, struct scratch *scratch);
void refit_free(struct refit *refit);

#endif

/*
 * e-divisive in windows, as Hunter introduced it (Fleming et al. 2023): the default detector.
 *
 * Two profiles share the idea. `default` is our own: mended, calibrated, incremental. `otava`
 * reproduces Apache Otava's change points index for index, for people who migrate.
 */
#ifndef DETECTORS_EDIVISIVE_EDIVISIVE_H
#define DETECTORS_EDIVISIVE_EDIVISIVE_H

#include "detectors/detector.h"

enum edivisive_profile { EDIVISIVE_DEFAULT, EDIVISIVE_OTAVA };

struct edivisive_options {
	int64_t window;   /* points a window holds, at least 2 */
	double p_value;   /* a change point needs a p below it */
	double magnitude; /* and a relative change above it */
	int profile;      /* enum edivisive_profile */
};

extern const struct detector edivisive_detector;

#endif

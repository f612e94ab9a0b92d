/*
 * e-divisive in windows, as introduced by Hunter (Fleming et al. 2023): the default detector.
 *
 * There are two profiles. `default` is corrected, calibrated and incremental
 * (docs/design/algorithms.md section 2). `otava` gives the change points of Apache Otava, index for
 * index, for migration (section 1).
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

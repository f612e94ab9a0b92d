/*
 * The registry. A new detector is one file and one line here.
 */
#include "detectors/detector.h"

#include <string.h>

#include "detectors/combine.h"
#include "detectors/edivisive.h"
#include "detectors/edivisive_permutation.h"
#include "detectors/kernel.h"
#include "detectors/lookback.h"
#include "detectors/modes.h"
#include "detectors/stepfit.h"

const struct detector *const detectors[] = {
	&edivisive_detector,
	&edivisive_permutation_detector,
	&kernel_detector,
	&stepfit_detector,
	&modes_detector,
	&lookback_detector,
	&combine_detector,
	NULL,
};

const struct detector *detector_find(const char *name)
{
	for (const struct detector *const *detector = detectors; *detector; detector++)
		if (strcmp((*detector)->name, name) == 0)
			return *detector;
	return NULL;
}

/*
 * The least magnitude as a filter of the report: detection does not depend on it.
 */
#ifndef DETECTORS_MAGNITUDE_H
#define DETECTORS_MAGNITUDE_H

#include <stddef.h>

#include "agent/model/change.h"
#include "detectors/tried.h"

/*
 * Keeps those of the changes, in order, that are large: whose level behind them differs by more
 * than `least` (a share) from the level before them, or from the level of the last large one, so
 * that several small steps are reported once they add up. Notes the rest in the list, if there is
 * one. Returns the number of those kept; 0 for `least` keeps all.
 */
size_t magnitude_filter(
	struct change *changes, size_t count, double least, struct tried_list *tried);

#endif

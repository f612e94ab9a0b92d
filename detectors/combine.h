/*
 * Changes on which several detectors agree.
 */
#ifndef DETECTORS_COMBINE_H
#define DETECTORS_COMBINE_H

#include "detectors/detector.h"

enum { COMBINE_MOST = 16 };

struct combine_member {
	const char *detector; /* a name of the registry, not this detector's */
	const void *options;
};

struct combine_options {
	int64_t tolerance; /* points */
	size_t need;       /* members that must agree, 1..count */
	const struct combine_member *members;
	size_t count; /* at most COMBINE_MOST */
};

extern const struct detector combine_detector;

#endif

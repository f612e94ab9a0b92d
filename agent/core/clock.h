/*
 * The two clocks. Time is passed in wherever something is decided by it; these are for those who
 * hand it out (main, engine) and for waiting on descriptors.
 */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

#include <stdint.h>

int64_t clock_monotonic(void); /* ms, of no date; never set back */
int64_t clock_wall(void);      /* ms since 1970 */

/* For measuring what takes microseconds: ns of the monotonic clock. */
int64_t clock_monotonic_ns(void);

#endif

/*
 * The clocks. Code that decides by time takes it as an argument; these are for the code that
 * provides it (main, engine) and for waiting on descriptors.
 */
#ifndef AGENT_BASE_CLOCK_H
#define AGENT_BASE_CLOCK_H

#include <stdint.h>

int64_t clock_monotonic(void); /* ms, unrelated to the date; never goes back */
int64_t clock_wall(void);      /* ms since 1970 */
int64_t clock_boot(void); /* ms; as the monotonic one, but continues while the machine sleeps */

/* For measuring microseconds: ns of the monotonic clock. */
int64_t clock_monotonic_ns(void);

#endif

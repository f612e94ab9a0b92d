#include "agent/base/clock.h"

#include <time.h>

static int64_t read_ns(clockid_t id)
{
	struct timespec now;
	clock_gettime(id, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t clock_monotonic(void)
{
	return read_ns(CLOCK_MONOTONIC) / 1000000;
}

int64_t clock_boot(void)
{
	return read_ns(CLOCK_BOOTTIME) / 1000000;
}

int64_t clock_wall(void)
{
	return read_ns(CLOCK_REALTIME) / 1000000;
}

int64_t clock_monotonic_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

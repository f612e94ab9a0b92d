/*
 * Preloaded into a program, sets its date off by the milliseconds (int64_t) that the file
 * $TEST_CLOCK holds at the time; its monotonic clock is left alone. See test_storm.py.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;

__attribute__((constructor)) static void find_offset(void)
{
	const char *path = getenv("TEST_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		abort();
	offset = map;
	close(fd);
}

int clock_gettime(clockid_t id, struct timespec *out)
{
	long result = syscall(SYS_clock_gettime, id, out);

	if (result == 0 && offset && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
		int64_t ns = out->tv_nsec + *offset % 1000 * 1000000;

		out->tv_sec += *offset / 1000 + (ns >= 1000000000) - (ns < 0);
		out->tv_nsec = (ns + 1000000000) % 1000000000;
	}
	return (int)result;
}

time_t time(time_t *out)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (out)
		*out = now.tv_sec;
	return now.tv_sec;
}

int gettimeofday(struct timeval *out, void *zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	*out = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
	return 0;
}

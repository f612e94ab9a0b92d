/*
 * The quota is the smallest of the process's control group and those above it: cpu.max in
 * version 2, cpu.cfs_quota_us and cpu.cfs_period_us in version 1. Inside a container the path
 * that the kernel reports may be the host's, of which only the top is mounted; missing files are
 * skipped.
 */
#include "agent/base/cpus.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 4096, LINE = PATH + 256, SETS = 8 /* each holds 1,024 processors */ };

/* The first line of a file; false if it has none. */
static bool read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool read = file && fgets(line, (int)size, file);

	if (file)
		fclose(file);
	return read;
}

/* Rounded up; 0: no limit. */
static size_t processors(double quota, double period)
{
	double count = quota / period;
	size_t whole = count > 0 && count < 1e6 ? (size_t)count : 0;

	return count > 0 && count < 1e6 ? whole + ((double)whole < count) : 0;
}

/* "150000 100000" or "max 100000". */
static size_t quota_of_v2(const char *folder)
{
	char path[2 * LINE + 32], line[128], *end;
	double quota, period;

	snprintf(path, sizeof path, "%s/cpu.max", folder);
	if (!read_line(path, line, sizeof line))
		return 0;
	quota = strtod(line, &end);
	period = end == line ? 0 : strtod(end, NULL);
	return period > 0 ? processors(quota, period) : 0;
}

/* A quota of -1 means no limit. */
static size_t quota_of_v1(const char *folder)
{
	char path[2 * LINE + 32], quota[64], period[64];

	snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
	if (!read_line(path, quota, sizeof quota))
		return 0;
	snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
	if (!read_line(path, period, sizeof period) || strtod(period, NULL) <= 0)
		return 0;
	return processors(strtod(quota, NULL), strtod(period, NULL));
}

/* The smallest quota of a group and those above it; the path begins with a slash. */
static size_t quota_above(const char *mount, const char *path, size_t (*quota_of)(const char *))
{
	char folder[2 * LINE];
	size_t least = 0, length = strlen(mount);

	/* Two dots refer to a group outside of the mount. */
	snprintf(folder, sizeof folder, "%s%s", mount, strstr(path, "/..") ? "" : path);
	for (;;) {
		size_t quota = quota_of(folder);
		char *slash = strrchr(folder + length, '/');

		if (quota > 0 && (least == 0 || quota < least))
			least = quota;
		if (!slash)
			return least;
		*slash = '\0';
	}
}

static bool has_controller(const char *controllers, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = controllers; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, name, length) == 0 && strchr(",", at[length]))
			return true;
	}
	return false;
}

/* A line of /proc/self/cgroup: "0::/path" in version 2, "4:cpu,cpuacct:/path" in version 1. */
static size_t quota_of_line(const char *root, char *line)
{
	char mount[LINE];
	char *controllers = strchr(line, ':'),
	     *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!path || path[1] != '/' || strlen(root) > PATH)
		return 0;
	*path++ = '\0';
	path[strcspn(path, "\n")] = '\0';
	controllers++;
	snprintf(mount, sizeof mount, "%s/sys/fs/cgroup", root);
	if (!*controllers)
		return quota_above(mount, path, quota_of_v2);
	if (!has_controller(controllers, "cpu"))
		return 0;
	snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/cpu", root);
	return quota_above(mount, path, quota_of_v1);
}

size_t cpus_count_in(const char *root, size_t allowed)
{
	char line[LINE];
	FILE *file;

	snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
	file = fopen(line, "re");
	while (file && fgets(line, sizeof line, file)) {
		size_t quota = quota_of_line(root, line);

		if (quota > 0 && quota < allowed)
			allowed = quota;
	}
	if (file)
		fclose(file);
	return allowed > 0 ? allowed : 1;
}

size_t cpus_count(void)
{
	cpu_set_t sets[SETS];
	bool known = sched_getaffinity(0, sizeof sets, sets) == 0;
	int count = known ? CPU_COUNT_S(sizeof sets, sets) : 0;

	return cpus_count_in("", count > 0 ? (size_t)count : 1);
}

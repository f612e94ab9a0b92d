/* The standard process metrics of Prometheus clients, from /proc. */
#include <dirent.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "agent/runtime/metrics.h"

/* Fields of /proc/self/stat. */
struct process {
	unsigned long long started; /* clock ticks from boot to the process' start */
	unsigned long long bytes, pages;
};

static double seconds_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool read_stat(struct process *process)
{
	char text[1024] = "";
	FILE *file = fopen("/proc/self/stat", "re");
	const char *at = file && fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;

	if (file)
		fclose(file);
	/* The name, in parentheses, is the second field; fields 22 to 24 are needed. */
	return at && sscanf(at,
			     ") %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			     "%*s %*s %*s %llu %llu %llu",
			     &process->started, &process->bytes, &process->pages) == 3;
}

static bool count_descriptors(double *count)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;

	if (!folder)
		return false;
	*count = -1; /* opendir's own */
	while ((entry = readdir(folder)))
		*count += entry->d_name[0] != '.';
	closedir(folder);
	return true;
}

void metrics_collect_process(struct metrics *metrics)
{
	struct process process;
	struct rlimit limit;
	double count;

	metrics_set(metrics, METRIC_PROCESS_CPU, seconds_of(CLOCK_PROCESS_CPUTIME_ID), NULL);
	if (read_stat(&process)) {
		double age = seconds_of(CLOCK_BOOTTIME) -
			     (double)process.started / (double)sysconf(_SC_CLK_TCK);

		/* Rounded to the ticks' precision, so that it stays constant. */
		metrics_set(metrics, METRIC_PROCESS_START_TIME,
			round((seconds_of(CLOCK_REALTIME) - age) * 10) / 10, NULL);
		metrics_set(metrics, METRIC_PROCESS_VIRTUAL, (double)process.bytes, NULL);
		metrics_set(metrics, METRIC_PROCESS_RESIDENT,
			(double)process.pages * (double)sysconf(_SC_PAGESIZE), NULL);
	}
	if (count_descriptors(&count))
		metrics_set(metrics, METRIC_PROCESS_OPEN_FDS, count, NULL);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		metrics_set(metrics, METRIC_PROCESS_MAX_FDS, (double)limit.rlim_cur, NULL);
}

/* How many processors the program may use. */
#ifndef AGENT_BASE_CPUS_H
#define AGENT_BASE_CPUS_H

#include <stddef.h>

/* The smaller of the affinity mask (taskset, cpusets) and the CPU quota (containers, systemd's
 * CPUQuota); a fraction of a processor counts as one. At least 1. */
size_t cpus_count(void);

/* The same with `allowed` processors in the affinity mask and the system's files in the folder
 * `root`, which is "" for the real ones. For tests. */
size_t cpus_count_in(const char *root, size_t allowed);

#endif

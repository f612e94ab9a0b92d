/* The number of processors, from control groups that are written down here. */
#include "unit.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/cpus.h"

enum { PATH = 256, FILES = 4 };

/* Writes a file of the system, and the folders that lead to it. */
static void write_file(const char *root, const char *path, const char *text)
{
	char full[2 * PATH];
	FILE *file;

	snprintf(full, sizeof full, "%s%s", root, path);
	for (char *slash = strchr(full + strlen(root) + 1, '/'); slash;
		slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(full, 0700);
		*slash = '/';
	}
	file = fopen(full, "w");
	assert_non_null(file);
	assert_int_equal(fputs(text, file) < 0, 0);
	assert_int_equal(fclose(file), 0);
}

static void remove_all(const char *root)
{
	char command[PATH];

	snprintf(command, sizeof command, "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

#define V1 "9:memory:/m\n4:cpu,cpuacct:/a/b\n1:name=systemd:/\n"

static const struct {
	const char *name;
	size_t allowed, expected;
	struct {
		const char *path, *text;
	} files[FILES];
} cases[] = {
	{"nothing", 8, 8, {{0}}},
	{"none allowed", 0, 1, {{0}}},
	{"no limit", 8, 8,
		{{"/proc/self/cgroup", "0::/a\n"}, {"/sys/fs/cgroup/a/cpu.max", "max 100000\n"}}},
	{"two", 8, 2,
		{{"/proc/self/cgroup", "0::/a\n"},
			{"/sys/fs/cgroup/a/cpu.max", "200000 100000\n"}}},
	{"one and a half", 8, 2,
		{{"/proc/self/cgroup", "0::/a\n"},
			{"/sys/fs/cgroup/a/cpu.max", "150000 100000\n"}}},
	{"a tenth", 8, 1,
		{{"/proc/self/cgroup", "0::/a\n"}, {"/sys/fs/cgroup/a/cpu.max", "10000 100000\n"}}},
	{"more than allowed", 2, 2,
		{{"/proc/self/cgroup", "0::/a\n"},
			{"/sys/fs/cgroup/a/cpu.max", "800000 100000\n"}}},
	{"of a group above", 8, 3,
		{{"/proc/self/cgroup", "0::/a/b/c\n"},
			{"/sys/fs/cgroup/a/cpu.max", "300000 100000\n"},
			{"/sys/fs/cgroup/a/b/c/cpu.max", "500000 100000\n"}}},
	{"container", 8, 2,
		{{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "200000 100000\n"}}},
	{"the host's path", 8, 2,
		{{"/proc/self/cgroup", "0::/docker/0123\n"},
			{"/sys/fs/cgroup/cpu.max", "200000 100000\n"}}},
	{"outside", 8, 2,
		{{"/proc/self/cgroup", "0::/../../x\n"},
			{"/sys/fs/cgroup/cpu.max", "200000 100000\n"}}},
	{"version 1", 8, 3,
		{{"/proc/self/cgroup", V1}, {"/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "250000\n"},
			{"/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n"}}},
	{"version 1, no limit", 8, 8,
		{{"/proc/self/cgroup", V1}, {"/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n"},
			{"/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n"}}},
	{"version 1, container", 8, 1,
		{{"/proc/self/cgroup", V1}, {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n"},
			{"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}}},
	{"another controller", 8, 8,
		{{"/proc/self/cgroup", "4:cpuset:/a/b\n"},
			{"/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "50000\n"},
			{"/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n"}}},
	{"no numbers", 8, 8,
		{{"/proc/self/cgroup", "0::/a\nx\n:\n::\n"},
			{"/sys/fs/cgroup/a/cpu.max", "what 0\n"}}},
	{"no period", 8, 8,
		{{"/proc/self/cgroup", "0::/a\n"}, {"/sys/fs/cgroup/a/cpu.max", "100000 0\n"}}},
};

static void test_quotas(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char root[] = "/tmp/test_cpus.XXXXXX";
		size_t count;

		assert_non_null(mkdtemp(root));
		for (size_t k = 0; k < FILES && cases[i].files[k].path; k++)
			write_file(root, cases[i].files[k].path, cases[i].files[k].text);
		count = cpus_count_in(root, cases[i].allowed);
		remove_all(root);
		if (count != cases[i].expected)
			fail_msg("%s: %zu", cases[i].name, count);
	}
}

static void test_affinity(void **state)
{
	cpu_set_t before, one;
	size_t cpu = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
	assert_in_range(cpus_count(), 1, (size_t)CPU_COUNT(&before));
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
	assert_int_equal(cpus_count(), 1);
	assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quotas),
		cmocka_unit_test(test_affinity),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

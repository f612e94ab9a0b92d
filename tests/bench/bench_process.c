/*
 * bench_process: how long a program takes as a whole, and how much memory.
 *
 * Written in C because a process's peak memory counts from its fork: a child of a larger program
 * would be charged with its parent's size. The program's output is thrown away.
 *
 *     bench_process RUNS INPUT PROGRAM [ARGUMENT...]     INPUT: a file for standard input, or "-"
 * for none
 *
 * Prints: seconds of the fastest run, seconds of the median run, CPU seconds of the median run,
 * peak KiB of all runs, the exit status.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct run {
	double wall, cpu;
	long peak; /* KiB */
	int status;
};

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void become(const char *input, char **program)
{
	int in = open(strcmp(input, "-") == 0 ? "/dev/null" : input, O_RDONLY);
	int out = open("/dev/null", O_WRONLY);
	if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0) {
		perror(input);
		_exit(127);
	}
	execvp(program[0], program);
	perror(program[0]);
	_exit(127);
}

static struct run run_once(const char *input, char **program)
{
	struct rusage usage;
	struct run run;
	double start = now();
	pid_t child = fork();
	if (child == 0)
		become(input, program);
	if (child < 0 || wait4(child, &run.status, 0, &usage) != child) {
		perror("bench_process");
		exit(1);
	}
	run.wall = now() - start;
	run.cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime);
	run.peak = usage.ru_maxrss;
	return run;
}

static int by_wall(const void *a, const void *b)
{
	double x = ((const struct run *)a)->wall, y = ((const struct run *)b)->wall;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int runs = argc > 3 ? atoi(argv[1]) : 0;
	if (runs < 1 || runs > 1000) {
		fprintf(stderr, "usage: bench_process RUNS INPUT PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	struct run *all = calloc((size_t)runs, sizeof *all);
	long peak = 0;
	for (int i = 0; all && i < runs; i++) {
		all[i] = run_once(argv[2], argv + 3);
		peak = all[i].peak > peak ? all[i].peak : peak;
	}
	if (!all)
		return 1;
	qsort(all, (size_t)runs, sizeof *all, by_wall);
	int status = all[runs / 2].status;
	printf("%.6f %.6f %.6f %ld %d\n", all[0].wall, all[runs / 2].wall, all[runs / 2].cpu, peak,
		WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	free(all);
	return 0;
}

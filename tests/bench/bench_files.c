/*
 * How fast files are read: a CSV file and a JSON file are made in $TMPDIR (rows as a nightly
 * benchmark has them, seeded), read once each in a process of its own, and deleted. One line a
 * case, tab-separated: name, work, time, rate, peak memory. Time is the processor's. The first
 * argument is the number of CSV rows (10,000,000), of which JSON gets a tenth.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/when.h"
#include "sources/files/files.h"

enum { ROWS = 10000000, STAMPS = 5000000, METRICS = 3 };

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* xorshift64* */
static double unit(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (double)((*state * 0x2545f4914f6cdd1d) >> 11) * 0x1p-53;
}

static void write_csv(FILE *file, long rows)
{
	uint64_t state = 42;

	fprintf(file, "time,commit,m1,m2,m3\n");
	for (long i = 0; i < rows; i++)
		fprintf(file, "%ld,c%lx,%.4f,%.3f,%d\n", 1500000000 + 30 * i, i / 10,
			90 + 20 * unit(&state), 1900 + 200 * unit(&state),
			(int)(1e7 * unit(&state)));
}

static void write_json(FILE *file, long results)
{
	uint64_t state = 42;

	for (long i = 0; i < results; i++)
		fprintf(file,
			"%s{\"timestamp\": %ld, \"metrics\": [{\"name\": \"m1\", \"value\": "
			"%.17g}, {\"name\": \"m2\", "
			"\"value\": %.3f}, {\"name\": \"m3\", \"value\": %d}], \"attributes\": "
			"{\"commit\": \"c%lx\"}}",
			i ? ",\n" : "[", 1500000000 + 30 * i, 90 + 20 * unit(&state),
			1900 + 200 * unit(&state), (int)(1e7 * unit(&state)), i / 10);
	fprintf(file, "]\n");
}

static void read_file(const struct source *source, const char *name, const char *path, long rows,
	double megabytes)
{
	static const char *const attributes[] = {"commit"};
	static const struct metric metrics[METRICS] = {
		{.name = "m1", .scale = 1}, {.name = "m2", .scale = 1}, {.name = "m3", .scale = 1}};
	struct csv_options csv = {
		.file = path, .time_column = "time", .attributes = {attributes, 1}};
	struct json_options json = {.file = path};
	struct query query = {.arena = arena_new(),
		.options = source == &csv_source ? (const void *)&csv : &json,
		.metrics = metrics,
		.metric_count = METRICS,
		.since = WHEN_ALWAYS,
		.until = WHEN_NEVER};
	struct error error;
	struct rusage usage;
	double start = now();

	if (!source->read(&query, &error) || query.data.series[0].axis->n != (size_t)rows) {
		fprintf(stderr, "%s\n", error.text);
		exit(1);
	}
	double seconds = now() - start;
	getrusage(RUSAGE_SELF, &usage);
	printf("%s\t%ld rows x %d, a commit each, %.0f MB\t%.2f s\t%.0f MB/s\t%.0f MB\n", name,
		rows, METRICS, megabytes, seconds, megabytes / seconds,
		(double)usage.ru_maxrss / 1024);
	fflush(stdout);
	arena_free(query.arena);
}

static bool measure(
	const struct source *source, const char *name, void (*write)(FILE *, long), long rows)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];
	struct stat status;
	int code = 1;

	snprintf(path, sizeof path, "%s/bench_files-XXXXXX", folder ? folder : "/tmp");
	int fd = mkstemp(path);
	FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!file) {
		perror(path);
		return false;
	}
	write(file, rows);
	fclose(file);
	stat(path, &status);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		read_file(source, name, path, rows, (double)status.st_size / 1e6);
		_exit(0);
	}
	waitpid(child, &code, 0);
	unlink(path);
	return code == 0;
}

static void measure_stamps(const char *name, const char *text)
{
	size_t length = strlen(text);
	double start = now();
	int64_t ms, good = 0;

	for (int i = 0; i < STAMPS; i++) {
		good += when_parse_stamp(text, length, &ms);
		__asm__ volatile("" ::"r"(text) : "memory"); /* or the loop is read once */
	}
	double seconds = now() - start;
	printf("%s\t%s%s\t%.1f ns\t%.0f /s\t-\n", name, text, good == STAMPS ? "" : " (refused)",
		seconds / STAMPS * 1e9, STAMPS / seconds);
}

int main(int argc, char **argv)
{
	long rows = argc > 1 ? strtol(argv[1], NULL, 10) : ROWS;

	measure_stamps("stamp", "2026-01-02T03:04:05+00:00");
	measure_stamps("stamp", "1700000000");
	bool good = measure(&csv_source, "csv", write_csv, rows);
	return measure(&json_source, "json", write_json, rows / 10) && good ? 0 : 1;
}

/*
 * How fast Graphite's answers are read: 1,000 series of a year of hours, from the body to the
 * dataset, in the form that is asked for (raw), as JSON with our reader, and as JSON with jansson's
 * tree. Each is read in a process of its own. One line a case, tab-separated: name, work, time,
 * rate, peak memory, the body in it. Time is the processor's. The first argument is the number of
 * series.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/buf.h"
#include "agent/base/when.h"
#include "sources/graphite/graphite.h"

enum { SERIES = 1000, POINTS = 8760, START = 1704067200, HOUR = 3600, LONGEST_POINT = 40 };

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* xorshift64*: about 1,000 with three decimals, as benchmarks print them. */
static double next_value(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	uint64_t random = *state * 0x2545f4914f6cdd1d;
	return 900 + (double)(random % 200000) / 1000;
}

static void write_value(struct buf *out, uint64_t *state)
{
	double value = next_value(state);
	buf_printf(out, "%.10g%s", value, value == floor(value) ? ".0" : "");
}

static struct buf write_raw(int series)
{
	struct buf out = {0};
	uint64_t state = 42;
	buf_reserve(&out, (size_t)series * POINTS * LONGEST_POINT);
	for (int s = 0; s < series; s++) {
		buf_printf(&out, "bench.m%d,%d,%d,%d|", s, START, START + POINTS * HOUR, HOUR);
		for (int i = 0; i < POINTS; i++) {
			if (i > 0)
				buf_char(&out, ',');
			write_value(&out, &state);
		}
		buf_char(&out, '\n');
	}
	return out;
}

static struct buf write_json(int series)
{
	struct buf out = {0};
	uint64_t state = 42;
	buf_reserve(&out, (size_t)series * POINTS * LONGEST_POINT);
	for (int s = 0; s < series; s++) {
		buf_printf(&out,
			"%s{\"target\": \"bench.m%d\", \"tags\": {\"name\": \"bench.m%d\"}, "
			"\"datapoints\": [",
			s ? ", " : "[", s, s);
		for (int i = 0; i < POINTS; i++) {
			buf_text(&out, i ? ", [" : "[");
			write_value(&out, &state);
			buf_printf(&out, ", %d]", START + i * HOUR);
		}
		buf_text(&out, "]}");
	}
	buf_char(&out, ']');
	return out;
}

/* The number of points, to see that all is there. */
static size_t read_source(const struct buf *body)
{
	struct endpoint endpoint = {.url = "http://localhost/"};
	struct graphite_options options = {.target = "bench.*"};
	struct reply reply = {
		.kind = REPLY_ANSWER, .status = 200, .body = body->data, .length = body->length};
	struct query query = {.arena = arena_new(),
		.options = &options,
		.server = &endpoint,
		.since = (int64_t)START * 1000,
		.until = WHEN_NEVER,
		.now = (int64_t)(START + POINTS * HOUR) * 1000};
	struct transfer next;
	struct error error;
	size_t points = 0;
	if (graphite_source.step(&query, NULL, &next, &error) != STEP_TRANSFER ||
		graphite_source.step(&query, &reply, &next, &error) != STEP_DONE) {
		fprintf(stderr, "%s\n", error.text);
		exit(1);
	}
	for (size_t i = 0; i < query.data.count; i++)
		points += query.data.series[i].axis->n;
	arena_free(query.arena);
	return points;
}

static size_t read_tree(const struct buf *body)
{
	json_error_t problem;
	json_t *root = json_loadb(body->data, body->length, 0, &problem), *item, *point;
	struct arena *arena = arena_new();
	size_t points = 0, s, i;
	json_array_foreach(root, s, item)
	{
		const json_t *all = json_object_get(item, "datapoints");
		int64_t *times = arena_array(arena, json_array_size(all), sizeof *times);
		double *values = arena_array(arena, json_array_size(all), sizeof *values);
		json_array_foreach(all, i, point)
		{
			values[i] = json_number_value(json_array_get(point, 0));
			times[i] = json_integer_value(json_array_get(point, 1)) * 1000;
			points++;
		}
	}
	json_decref(root);
	arena_free(arena);
	return points;
}

struct way {
	const char *form;
	struct buf (*write)(int series);
	size_t (*read)(const struct buf *body);
};

static void measure(const struct way *way, int series)
{
	struct buf body = way->write(series);
	struct rusage usage;
	double start = now();
	if (way->read(&body) != (size_t)series * POINTS)
		exit(1);
	double seconds = now() - start, megabytes = (double)body.length / 1e6;
	getrusage(RUSAGE_SELF, &usage);
	printf("graphite\tread %d series x %d points, %.0f MB of %s\t%.2f s\t%.1f M points/s\t%.0f "
	       "MB\n",
		series, POINTS, megabytes, way->form, seconds,
		(double)series * POINTS / seconds / 1e6, (double)usage.ru_maxrss / 1024);
	fflush(stdout);
	buf_free(&body);
}

int main(int argc, char **argv)
{
	static const struct way ways[] = {
		{"raw", write_raw, read_source},
		{"JSON", write_json, read_source},
		{"JSON, jansson's tree", write_json, read_tree},
	};
	int series = argc > 1 ? (int)strtol(argv[1], NULL, 10) : SERIES, failures = 0;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		int status = 1;
		fflush(stdout);
		pid_t child = fork();
		if (child == 0) {
			measure(&ways[i], series);
			_exit(0);
		}
		waitpid(child, &status, 0);
		failures += status != 0;
	}
	return failures > 0;
}

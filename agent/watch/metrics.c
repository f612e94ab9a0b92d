/*
 * Names follow Prometheus' conventions (`promtool check metrics` is among the tests). Sets of label
 * values are few, a source or a receiver each, so they are found by looking through them.
 */
#include "agent/watch/metrics.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/core/arena.h"
#include "agent/core/number.h"

enum { LABELS = 2, MOST_CHILDREN = 200, BUCKETS = 12 };

enum metric_type { TYPE_COUNTER, TYPE_GAUGE, TYPE_HISTOGRAM };

static const char *const type_names[] = {"counter", "gauge", "histogram"};

static const double bounds[BUCKETS] = {0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300};

struct description {
	const char *name;
	enum metric_type type;
	const char *labels[LABELS];
	const char *help;
};

static const struct description descriptions[METRIC_COUNT] = {
	[METRIC_BUILD_INFO] = {"hunter_build_info", TYPE_GAUGE, {"version"},
		"Always 1, with the version of the running agent."},
	[METRIC_TESTS] = {"hunter_tests", TYPE_GAUGE, {0}, "Tests in the configuration."},
	[METRIC_RUNS] = {"hunter_runs_total", TYPE_COUNTER, {"source"},
		"Runs of tests that ended, well or not."},
	[METRIC_RUN_FAILURES] = {"hunter_run_failures_total", TYPE_COUNTER, {"source", "reason"},
		"Runs of tests that failed: nothing was concluded from them."},
	[METRIC_MISSED_RUNS] = {"hunter_missed_runs_total", TYPE_COUNTER, {0},
		"Runs left out because the one before had not ended or the agent was held up."},
	[METRIC_RUN_DURATION] = {"hunter_run_duration_seconds", TYPE_HISTOGRAM, {"source"},
		"Time from a run's start to its end: reading, parsing and detection."},
	[METRIC_SCHEDULE_LAG] = {"hunter_schedule_lag_seconds", TYPE_HISTOGRAM, {0},
		"Time from when a run was due to its start."},
	[METRIC_LAST_PASS] = {"hunter_last_run_timestamp_seconds", TYPE_GAUGE, {0},
		"When a run last ended well, in seconds since 1970."},
	[METRIC_POINTS_READ] = {"hunter_points_read_total", TYPE_COUNTER, {"source"},
		"Points read from sources."},
	[METRIC_DETECTION_SECONDS] = {"hunter_detection_seconds_total", TYPE_COUNTER, {0},
		"Processor time spent on detection."},
	[METRIC_CHANGES] = {"hunter_changes", TYPE_GAUGE, {"state"}, "Changes that are known."},
	[METRIC_CHANGES_FOUND] = {"hunter_changes_found_total", TYPE_COUNTER, {0},
		"Changes found that were not known before."},
	[METRIC_DELIVERIES] = {"hunter_deliveries_total", TYPE_COUNTER, {"receiver", "result"},
		"Attempts to deliver a message."},
	[METRIC_DELIVERY_QUEUE_LENGTH] = {"hunter_delivery_queue_length", TYPE_GAUGE, {"receiver"},
		"Messages that wait to be delivered."},
};

/* The value for one set of label values. */
struct child {
	char *values[LABELS];
	double value; /* a histogram's sum */
	uint64_t
		*buckets; /* a histogram's, not cumulated; the last is what lies above all bounds */
};

struct metrics {
	struct family {
		struct child *children;
		size_t count;
	} families[METRIC_COUNT];
};

void metrics_free(struct metrics *metrics)
{
	for (size_t id = 0; metrics && id < METRIC_COUNT; id++) {
		struct family *family = &metrics->families[id];
		for (size_t i = 0; i < family->count; i++) {
			free(family->children[i].values[0]);
			free(family->children[i].values[1]);
			free(family->children[i].buckets);
		}
		free(family->children);
	}
	free(metrics);
}

static bool has_values(const struct child *child, const char *const values[LABELS])
{
	for (size_t i = 0; i < LABELS; i++)
		if (values[i] && strcmp(child->values[i], values[i]) != 0)
			return false;
	return true;
}

static struct child *find(
	struct metrics *metrics, enum metric_id id, const char *first, const char *second)
{
	const struct description *description = &descriptions[id];
	struct family *family = &metrics->families[id];
	const char *values[LABELS] = {first, second};
	if (family->count >= MOST_CHILDREN) /* the last one is "other" */
		for (size_t i = 0; i < LABELS; i++)
			values[i] = description->labels[i] ? "other" : NULL;
	for (size_t i = 0; i < LABELS; i++)
		assert(!values[i] == !description->labels[i]);
	for (size_t i = 0; i < family->count; i++) {
		const char *asked[LABELS] = {first, second};
		if (has_values(&family->children[i], asked) ||
			has_values(&family->children[i], values))
			return &family->children[i];
	}
	family->children =
		memory_resize(family->children, family->count + 1, sizeof *family->children);
	struct child *child = &family->children[family->count++];
	*child = (struct child){0};
	for (size_t i = 0; i < LABELS; i++)
		child->values[i] = values[i] ? strdup(values[i]) : NULL;
	if (description->type == TYPE_HISTOGRAM)
		child->buckets = memory_new(BUCKETS + 1, sizeof *child->buckets);
	return child;
}

/* What has no labels is there from the start, as 0. */
struct metrics *metrics_new(void)
{
	struct metrics *metrics = memory_new(1, sizeof *metrics);
	for (size_t id = 0; id < METRIC_COUNT; id++)
		if (!descriptions[id].labels[0])
			find(metrics, (enum metric_id)id, NULL, NULL);
	metrics_set(metrics, METRIC_BUILD_INFO, 1, HUNTER_VERSION, NULL);
	return metrics;
}

void metrics_add(struct metrics *metrics, enum metric_id id, double value, const char *first,
	const char *second)
{
	assert(descriptions[id].type != TYPE_HISTOGRAM);
	assert(descriptions[id].type == TYPE_GAUGE || value >= 0);
	find(metrics, id, first, second)->value += value;
}

void metrics_set(struct metrics *metrics, enum metric_id id, double value, const char *first,
	const char *second)
{
	assert(descriptions[id].type == TYPE_GAUGE);
	find(metrics, id, first, second)->value = value;
}

void metrics_observe(struct metrics *metrics, enum metric_id id, double value, const char *first,
	const char *second)
{
	assert(descriptions[id].type == TYPE_HISTOGRAM);
	struct child *child = find(metrics, id, first, second);
	size_t bucket = 0;
	while (bucket < BUCKETS && value > bounds[bucket])
		bucket++;
	child->buckets[bucket]++;
	child->value += value;
}

static void print_number(struct buf *out, double value)
{
	char text[NUMBER_TEXT];
	number_format(value, text);
	buf_text(out, isnan(value) ? "NaN" : isinf(value) ? (value > 0 ? "+Inf" : "-Inf") : text);
}

static void print_label(struct buf *out, const char *name, const char *value, bool *first)
{
	buf_printf(out, "%s%s=\"", *first ? "{" : ",", name);
	for (; *value; value++) {
		if (*value == '\n')
			buf_text(out, "\\n");
		else if (*value == '\\' || *value == '"')
			buf_printf(out, "\\%c", *value);
		else
			buf_char(out, *value);
	}
	buf_char(out, '"');
	*first = false;
}

/* One line: name and suffix, labels with `le` behind them, value. */
static void print_sample(struct buf *out, const struct description *description,
	const struct child *child, const char *suffix, const char *le, double value)
{
	bool first = true;
	buf_printf(out, "%s%s", description->name, suffix);
	for (size_t i = 0; i < LABELS && description->labels[i]; i++)
		print_label(out, description->labels[i], child->values[i], &first);
	if (le)
		print_label(out, "le", le, &first);
	buf_text(out, first ? " " : "} ");
	print_number(out, value);
	buf_char(out, '\n');
}

static void print_histogram(
	struct buf *out, const struct description *description, const struct child *child)
{
	uint64_t count = 0;
	for (size_t i = 0; i <= BUCKETS; i++) {
		char le[NUMBER_TEXT] = "+Inf";
		count += child->buckets[i];
		if (i < BUCKETS)
			number_format(bounds[i], le);
		print_sample(out, description, child, "_bucket", le, (double)count);
	}
	print_sample(out, description, child, "_sum", NULL, child->value);
	print_sample(out, description, child, "_count", NULL, (double)count);
}

static void print_head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static double seconds_of(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* When the process began and how much memory it holds; 0 where /proc does not say. */
static void read_process(double *started, double *resident)
{
	char text[1024] = "";
	unsigned long long ticks = 0, pages = 0;
	FILE *file = fopen("/proc/self/stat", "re");
	if (file && fgets(text, sizeof text, file)) {
		const char *at = strrchr(text, ')');
		if (at)
			sscanf(at,
				") %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
				"%*s %*s %*s %*s %llu %*s %llu",
				&ticks, &pages);
	}
	if (file)
		fclose(file);
	double age = seconds_of(CLOCK_BOOTTIME) - (double)ticks / (double)sysconf(_SC_CLK_TCK);
	*started = ticks ? seconds_of(CLOCK_REALTIME) - age : 0;
	*resident = (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void print_process(struct buf *out)
{
	double started, resident;
	read_process(&started, &resident);
	print_head(out, "process_cpu_seconds_total", "counter", "Processor time of the process.");
	buf_printf(out, "process_cpu_seconds_total %.6f\n", seconds_of(CLOCK_PROCESS_CPUTIME_ID));
	print_head(
		out, "process_resident_memory_bytes", "gauge", "Resident memory of the process.");
	buf_printf(out, "process_resident_memory_bytes %.0f\n", resident);
	print_head(out, "process_start_time_seconds", "gauge",
		"When the process began, in seconds since 1970.");
	buf_printf(out, "process_start_time_seconds %.2f\n", started);
}

void metrics_print(const struct metrics *metrics, struct buf *out)
{
	for (size_t id = 0; id < METRIC_COUNT; id++) {
		const struct description *description = &descriptions[id];
		const struct family *family = &metrics->families[id];
		if (family->count == 0)
			continue;
		print_head(
			out, description->name, type_names[description->type], description->help);
		for (size_t i = 0; i < family->count; i++) {
			const struct child *child = &family->children[i];
			if (description->type == TYPE_HISTOGRAM)
				print_histogram(out, description, child);
			else
				print_sample(out, description, child, "", NULL, child->value);
		}
	}
	print_process(out);
}

/*
 * A schema for tests of conf/: plugins like the real ones, of which the tests know every option.
 */
#ifndef TESTS_UNIT_CONF_SCHEMA_H
#define TESTS_UNIT_CONF_SCHEMA_H

#include <string.h>

#include "agent/base/transfer.h"
#include "conf/config.h"
#include "detectors/combine.h"

struct csv_test {
	const char *file, *time_column;
	struct strings attributes;
	struct pairs csv_options;
};

static const struct field csv_test_fields[] = {{.name = "file",
						       .type = FIELD_STRING,
						       .offset = offsetof(struct csv_test, file),
						       .flags = FIELD_REQUIRED},
	{.name = "time_column",
		.type = FIELD_STRING,
		.offset = offsetof(struct csv_test, time_column),
		.initial = "time"},
	{.name = "attributes", .type = FIELD_LIST, .offset = offsetof(struct csv_test, attributes)},
	{.name = "csv_options",
		.type = FIELD_MAP,
		.offset = offsetof(struct csv_test, csv_options)},
	{0}};

struct json_test {
	const char *file, *base_branch;
};

static const struct field json_test_fields[] = {{.name = "file",
							.type = FIELD_STRING,
							.offset = offsetof(struct json_test, file),
							.flags = FIELD_REQUIRED},
	{.name = "base_branch",
		.type = FIELD_STRING,
		.offset = offsetof(struct json_test, base_branch)},
	{0}};

struct prometheus_test {
	const char *query;
	int64_t range, step;
};

static const struct field prometheus_test_fields[] = {
	{.name = "query",
		.type = FIELD_STRING,
		.offset = offsetof(struct prometheus_test, query),
		.flags = FIELD_REQUIRED},
	{.name = "range",
		.type = FIELD_DURATION,
		.offset = offsetof(struct prometheus_test, range),
		.initial = "30d",
		.min = 1000,
		.max = 1e15},
	{.name = "step", .type = FIELD_DURATION, .offset = offsetof(struct prometheus_test, step)},
	{0}};

struct edivisive_test {
	int64_t window;
	double p_value, magnitude;
	int profile;
};

static const char *const profile_test_names[] = {"default", "otava", NULL};

static const struct field edivisive_test_fields[] = {
	{.name = "window",
		.type = FIELD_INT,
		.offset = offsetof(struct edivisive_test, window),
		.initial = "50",
		.min = 2,
		.max = 1e6},
	{.name = "p_value",
		.type = FIELD_DOUBLE,
		.offset = offsetof(struct edivisive_test, p_value),
		.initial = "0.001",
		.max = 1,
		.flags = FIELD_MIN_OPEN | FIELD_MAX_OPEN},
	{.name = "magnitude",
		.type = FIELD_DOUBLE,
		.offset = offsetof(struct edivisive_test, magnitude),
		.initial = "0",
		.max = 1e9},
	{.name = "profile",
		.type = FIELD_CHOICE,
		.offset = offsetof(struct edivisive_test, profile),
		.initial = "default",
		.choices = profile_test_names},
	{0}};

struct stepfit_test {
	double threshold;
};

static const struct field stepfit_test_fields[] = {
	{.name = "threshold",
		.type = FIELD_DOUBLE,
		.offset = offsetof(struct stepfit_test, threshold),
		.initial = "2",
		.max = 100},
	{0}};

/* The real struct, which conf/ knows; this room has no detectors. */
static const struct field combine_test_fields[] = {
	{.name = "tolerance",
		.type = FIELD_INT,
		.offset = offsetof(struct combine_options, tolerance),
		.initial = "5",
		.max = 100},
	{0}};

static bool combine_test_check(const void *options, struct error *error)
{
	const struct combine_options *given = options;
	return given->count > 0 || error_set(error, ERROR_USAGE, "combine: of what?");
}

struct slack_test {
	struct endpoint endpoint;
	const char *bot_token, *bot_token_file;
	struct strings channels;
};

static const struct field slack_test_fields[] = {
	{.name = "bot_token",
		.alias = "token",
		.type = FIELD_SECRET,
		.offset = offsetof(struct slack_test, bot_token)},
	{.name = "bot_token_file",
		.type = FIELD_STRING,
		.offset = offsetof(struct slack_test, bot_token_file)},
	{.name = "channels",
		.alias = "channel",
		.type = FIELD_LIST,
		.offset = offsetof(struct slack_test, channels)},
	{0}};

struct stdout_test {
	bool color;
};

static const struct field stdout_test_fields[] = {
	{.name = "color", .type = FIELD_BOOL, .offset = offsetof(struct stdout_test, color)}, {0}};

struct nothing_test {
	char unused;
};

static const struct field nothing_test_fields[] = {{0}};

static bool csv_test_check(const void *options, struct error *error)
{
	const struct csv_test *csv = options;
	if (csv->time_column && strcmp(csv->time_column, "never") == 0)
		return error_set(error, ERROR_USAGE, "time_column: it may not be that");
	return true;
}

static bool csv_test_check_metrics(
	const void *options, const struct metric *metrics, size_t count, struct error *error)
{
	const struct csv_test *csv = options;
	for (size_t i = 0; i < count; i++)
		if (strcmp(metrics[i].column, csv->time_column) == 0)
			return error_set(error, ERROR_DATA, "metric and time are the same");
	return true;
}

static bool slack_test_check(const void *options, struct error *error)
{
	const struct slack_test *slack = options;
	if (slack->channels.count > 0 && strcmp(slack->channels.items[0], "#nobody") == 0)
		return error_set(error, ERROR_DATA, "channels: nobody is there");
	return true;
}

static const struct plugin test_sources[] = {{.name = "csv",
						     .fields = csv_test_fields,
						     .options_size = sizeof(struct csv_test),
						     .check = csv_test_check,
						     .check_metrics = csv_test_check_metrics},
	{.name = "json", .fields = json_test_fields, .options_size = sizeof(struct json_test)},
	{.name = "prometheus",
		.fields = prometheus_test_fields,
		.options_size = sizeof(struct prometheus_test),
		.server_fields = nothing_test_fields,
		.server_size = sizeof(struct endpoint),
		.endpoint = true}};

static const struct plugin test_notifiers[] = {{.name = "slack",
						       .fields = slack_test_fields,
						       .options_size = sizeof(struct slack_test),
						       .check = slack_test_check,
						       .endpoint = true},
	{.name = "stdout",
		.fields = stdout_test_fields,
		.options_size = sizeof(struct stdout_test)}};

static const struct plugin test_detectors[] = {
	{.name = "edivisive",
		.fields = edivisive_test_fields,
		.options_size = sizeof(struct edivisive_test)},
	{.name = "stepfit",
		.fields = stepfit_test_fields,
		.options_size = sizeof(struct stepfit_test)},
	{.name = "combine",
		.fields = combine_test_fields,
		.options_size = sizeof(struct combine_options),
		.check = combine_test_check}};

struct cluster_test {
	int64_t k;
};

static const struct field cluster_test_fields[] = {
	{.name = "k",
		.type = FIELD_INT,
		.offset = offsetof(struct cluster_test, k),
		.max = 100,
		.help = "clusters"},
	{0}};

static const struct plugin test_cluster = {.name = "cluster",
	.fields = cluster_test_fields,
	.options_size = sizeof(struct cluster_test)};

static const struct plugin *const test_source_list[] = {
	&test_sources[0], &test_sources[1], &test_sources[2], NULL};
static const struct plugin *const test_notifier_list[] = {
	&test_notifiers[0], &test_notifiers[1], NULL};
static const struct plugin *const test_detector_list[] = {
	&test_detectors[0], &test_detectors[1], &test_detectors[2], NULL};

static const char *const test_events[] = {"new", "updated", "recovered", "withdrawn", "triaged",
	"reminder", "digest", "notice", "heartbeat"};

/* Slack can be told everything but digests, and stdout everything. */
static void test_notifier_events(const struct plugin *notifier, unsigned *able, unsigned *defaults)
{
	*able = strcmp(notifier->name, "slack") == 0 ? 0x1ff & ~(1u << 6) : 0x1ff;
	*defaults = 1 | 2 | 4 | 8 | 128;
}

static const struct schema test_schema = {
	.sources = test_source_list,
	.notifiers = test_notifier_list,
	.detectors = test_detector_list,
	.endpoint_fields = endpoint_fields,
	.events = test_events,
	.event_count = sizeof test_events / sizeof *test_events,
	.notifier_events = test_notifier_events,
	.cluster = &test_cluster,
};

/* The environment of the tests: fixed. */
static inline const char *test_environment(void *context, const char *name)
{
	static const struct pair variables[] = {
		{"HOST", "prom.example:9090"},
		{"TOKEN", "xoxb-secret"},
		{"DATA", "/data/results"},
		{"EMPTY", ""},
		{"COLON", "a: b # c"},
		{"NUMBER", "30"},
		{"HOME", "/home/ann"},
	};
	(void)context;
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
		if (strcmp(variables[i].key, name) == 0)
			return variables[i].value;
	return NULL;
}

#endif

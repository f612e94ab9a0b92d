/*
 * Names follow Prometheus' conventions (the tests run `promtool check metrics`). Sets of label
 * values are few, one per source or receiver, so a linear search does.
 */
#include "agent/runtime/metrics.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/runtime/metrics_table.h"

enum { MOST_CHILDREN = 200 };

/* A run takes from a millisecond (a small file) to minutes (a slow server, queried in pieces). */
const double metric_bounds[METRIC_BUCKETS] = {
	0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 10, 30, 60, 300};

const struct metric_row metric_rows[METRIC_COUNT] = {
	[METRIC_BUILD_INFO] = {"hunter_build_info", TYPE_INFO, {"version", "revision", "compiler"},
		NULL, "Build information; always 1."},
	[METRIC_READY] = {"hunter_ready", TYPE_GAUGE, {0}, NULL,
		"Whether changes are recorded and announced; same as /-/ready."},
	[METRIC_CONFIG_HASH] = {"hunter_config_hash", TYPE_GAUGE, {0}, NULL,
		"Hash of the configuration in use; equal on agents with the same configuration."},
	[METRIC_RELOAD_SUCCESSFUL] = {"hunter_config_last_reload_successful", TYPE_GAUGE, {0}, NULL,
		"Whether the last configuration reload succeeded."},
	[METRIC_RELOAD_TIME] = {"hunter_config_last_reload_success_timestamp_seconds", TYPE_GAUGE,
		{0}, "seconds",
		"Time at which the configuration in use was loaded, in seconds since 1970."},
	[METRIC_TESTS] = {"hunter_tests", TYPE_GAUGE, {0}, NULL, "Monitored tests."},
	[METRIC_RUNS_SKIPPED] = {"hunter_runs_skipped_total", TYPE_COUNTER, {"source"}, NULL,
		"Runs without a request because no new point was possible."},
	[METRIC_RUNS] = {"hunter_runs_total", TYPE_COUNTER, {"source"}, NULL,
		"Finished test runs, successful or not."},
	[METRIC_RUN_FAILURES] = {"hunter_run_failures_total", TYPE_COUNTER, {"source", "reason"},
		NULL, "Failed test runs."},
	[METRIC_FETCH_ERRORS] = {"hunter_fetch_errors_total", TYPE_COUNTER, {"source", "reason"},
		NULL, "Runs whose data was unavailable, by server."},
	[METRIC_SOURCE_UP] = {"hunter_source_up", TYPE_GAUGE, {"source"}, NULL,
		"Whether the server responds; 0 from outage report until recovery."},
	[METRIC_VANISHED_SERIES] = {"hunter_vanished_series", TYPE_GAUGE, {0}, NULL,
		"Series reported as ended that have not returned."},
	[METRIC_STALE_TESTS] = {"hunter_stale_tests", TYPE_GAUGE, {0}, NULL,
		"Tests without a new point for longer than stale_after."},
	[METRIC_MISSED_RUNS] = {"hunter_missed_runs_total", TYPE_COUNTER, {0}, NULL,
		"Runs skipped because the previous one had not ended or the agent was delayed."},
	[METRIC_ARRIVED] = {"hunter_arrived_names_total", TYPE_COUNTER, {"read"}, NULL,
		"Data names reported as written, by whether a test reads them."},
	[METRIC_RUN_DURATION] = {"hunter_run_duration_seconds", TYPE_HISTOGRAM, {"source"},
		"seconds", "Duration of runs: reading, parsing and detection."},
	[METRIC_SCHEDULE_LAG] = {"hunter_schedule_lag_seconds", TYPE_HISTOGRAM, {0}, "seconds",
		"Delay of runs: from due to started."},
	[METRIC_LAST_PASS] = {"hunter_last_run_timestamp_seconds", TYPE_GAUGE, {0}, "seconds",
		"Time of the last successful run, in seconds since 1970."},
	[METRIC_POINTS_READ] = {"hunter_points_read_total", TYPE_COUNTER, {"source"}, NULL,
		"Points read from sources."},
	[METRIC_DETECTION_SECONDS] = {"hunter_detection_seconds_total", TYPE_COUNTER, {0},
		"seconds", "CPU time spent on detection."},
	[METRIC_CHANGES] = {"hunter_changes", TYPE_GAUGE, {"state"}, NULL, "Recorded changes."},
	[METRIC_CHANGES_FOUND] = {"hunter_changes_found_total", TYPE_COUNTER, {0}, NULL,
		"New changes found, including candidates."},
	[METRIC_CHANGES_WITHDRAWN] = {"hunter_changes_withdrawn_total", TYPE_COUNTER, {0}, NULL,
		"Confirmed changes withdrawn because they are no longer found."},
	[METRIC_CHANGES_RECOVERED] = {"hunter_changes_recovered_total", TYPE_COUNTER, {0}, NULL,
		"Confirmed changes that recovered: the previous level is back."},
	[METRIC_DELIVERIES] = {"hunter_deliveries_total", TYPE_COUNTER, {"receiver", "result"},
		NULL, "Attempts to deliver a message."},
	[METRIC_DELIVERY_QUEUE_LENGTH] = {"hunter_delivery_queue_length", TYPE_GAUGE, {"receiver"},
		NULL, "Messages waiting for delivery."},
	[METRIC_CLOCK_AHEAD] = {"hunter_clock_ahead_seconds", TYPE_GAUGE, {0}, "seconds",
		"Clock offset to the last server that responded; positive if the clock is ahead."},
	[METRIC_STORE_SIZE] = {"hunter_store_size_bytes", TYPE_GAUGE, {0}, "bytes",
		"Size of the state file and its write-ahead log."},
	[METRIC_MEMORY_IN_FLIGHT] = {"hunter_memory_in_flight_bytes", TYPE_GAUGE, {0}, "bytes",
		"Memory used by server responses in flight."},
	[METRIC_MEMORY_WAITS] = {"hunter_memory_waits_total", TYPE_COUNTER, {0}, NULL,
		"Reads throttled by agent.max_memory_in_flight."},
	[METRIC_SILENCES] = {"hunter_silences", TYPE_GAUGE, {"state"}, NULL,
		"Silences that are active or pending."},
	[METRIC_SILENCED] = {"hunter_silenced_changes", TYPE_GAUGE, {0}, NULL,
		"Changes held back by silences and mute times."},
	[METRIC_SILENCED_AGE] = {"hunter_silenced_regression_age_seconds", TYPE_GAUGE, {0},
		"seconds", "Age of the oldest regression held back; 0: none."},
	[METRIC_AUTHENTICATION_FAILURES] = {"hunter_http_authentication_failures_total",
		TYPE_COUNTER, {"reason"}, NULL,
		"Requests rejected for wrong credentials, or by the rate limit after failures."},
	[METRIC_BISECTIONS] = {"hunter_bisections", TYPE_GAUGE, {"state"}, NULL,
		"Running and waiting bisections of this agent's tests."},
	[METRIC_BISECTIONS_ENDED] = {"hunter_bisections_ended_total", TYPE_COUNTER, {"end"}, NULL,
		"Finished bisections, by result."},
	[METRIC_BISECTION_RUNS] = {"hunter_bisection_runs_total", TYPE_COUNTER, {"outcome"}, NULL,
		"Finished bisection runs, by outcome."},
	[METRIC_FLEET_AGENTS] = {"hunter_fleet_agents", TYPE_GAUGE, {0}, NULL,
		"Live agents that share this state, as seen by this one."},
	[METRIC_SHARDS_HELD] = {"hunter_shards_held", TYPE_GAUGE, {0}, NULL,
		"Shards, of 256, held by this agent."},
	[METRIC_LEASE_RENEWALS] = {"hunter_lease_renewals_total", TYPE_COUNTER, {"result"}, NULL,
		"Lease renewals: in time, late, failed, or lost to other agents."},
	[METRIC_DIFFERING_TESTS] = {"hunter_fleet_differing_tests", TYPE_GAUGE, {0}, NULL,
		"Tests whose configuration differs from that of most agents."},
	[METRIC_TAKE_OVERS] = {"hunter_take_overs_total", TYPE_COUNTER, {0}, NULL,
		"Shards taken over from agents with an expired lease."},
	[METRIC_FENCED_WRITES] = {"hunter_fenced_writes_total", TYPE_COUNTER, {0}, NULL,
		"Writes rejected because another agent had taken over."},
	[METRIC_CLAIMS_EXPIRED] = {"hunter_claims_expired_total", TYPE_COUNTER, {0}, NULL,
		"Messages in flight on another agent at takeover."},
	[METRIC_STATE_ROUND_TRIPS] = {"hunter_state_round_trips_total", TYPE_COUNTER, {0}, NULL,
		"Round trips to the state database."},
	[METRIC_STATE_SECONDS] = {"hunter_state_round_trip_seconds_total", TYPE_COUNTER, {0},
		"seconds", "Time spent waiting for the state database."},
	[METRIC_STATE_CONNECTIONS] = {"hunter_state_connections_total", TYPE_COUNTER, {0}, NULL,
		"Connections opened to the state database."},
	[METRIC_STATE_RETRIES] = {"hunter_state_retries_total", TYPE_COUNTER, {0}, NULL,
		"Transactions retried after a conflict with other agents."},
	[METRIC_PROCESS_CPU] = {"process_cpu_seconds_total", TYPE_COUNTER, {0}, "seconds",
		"CPU time of the process."},
	[METRIC_PROCESS_RESIDENT] = {"process_resident_memory_bytes", TYPE_GAUGE, {0}, "bytes",
		"Resident memory of the process."},
	[METRIC_PROCESS_VIRTUAL] = {"process_virtual_memory_bytes", TYPE_GAUGE, {0}, "bytes",
		"Virtual memory of the process."},
	[METRIC_PROCESS_OPEN_FDS] = {"process_open_fds", TYPE_GAUGE, {0}, NULL,
		"Number of open file descriptors."},
	[METRIC_PROCESS_MAX_FDS] = {"process_max_fds", TYPE_GAUGE, {0}, NULL,
		"Maximum number of open file descriptors."},
	[METRIC_PROCESS_START_TIME] = {"process_start_time_seconds", TYPE_GAUGE, {0}, "seconds",
		"Start time of the process, in seconds since 1970."},
};

static void clear_child(struct metric_child *child)
{
	for (size_t label = 0; label < METRIC_LABELS; label++)
		free(child->values[label]);
	free(child->buckets);
}

void metrics_free(struct metrics *metrics)
{
	for (size_t id = 0; metrics && id < METRIC_COUNT; id++) {
		struct metric_family *family = &metrics->families[id];

		for (size_t i = 0; i < family->count; i++)
			clear_child(&family->children[i]);
		free(family->children);
	}
	free(metrics);
}

static bool has_values(const struct metric_child *child, const char *const values[METRIC_LABELS])
{
	for (size_t i = 0; i < METRIC_LABELS; i++)
		if (values[i] && strcmp(child->values[i], values[i]) != 0)
			return false;
	return true;
}

static struct metric_child *look_up(
	struct metric_family *family, const char *const values[METRIC_LABELS])
{
	for (size_t i = 0; i < family->count; i++)
		if (has_values(&family->children[i], values))
			return &family->children[i];
	return NULL;
}

static struct metric_child *find(
	struct metrics *metrics, enum metric_id id, const char *const asked[METRIC_LABELS])
{
	const struct metric_row *row = &metric_rows[id];
	struct metric_family *family = &metrics->families[id];
	const char *values[METRIC_LABELS];
	struct metric_child *child = look_up(family, asked);
	bool full = family->count >= MOST_CHILDREN && row->type != TYPE_GAUGE;

	for (size_t i = 0; i < METRIC_LABELS; i++) {
		assert(!asked[i] == !row->labels[i]);
		values[i] = asked[i] && full ? "other" : asked[i];
	}
	if (!child)
		child = look_up(family, values);
	if (child)
		return child;
	family->children =
		memory_resize(family->children, family->count + 1, sizeof *family->children);
	child = &family->children[family->count++];
	*child = (struct metric_child){0};
	for (size_t i = 0; i < METRIC_LABELS; i++)
		child->values[i] = values[i] ? memory_strdup(values[i]) : NULL;
	if (row->type == TYPE_HISTOGRAM)
		child->buckets = memory_new(METRIC_BUCKETS + 1, sizeof *child->buckets);
	return child;
}

static struct metric_child *find_by_two(
	struct metrics *metrics, enum metric_id id, const char *first, const char *second)
{
	return find(metrics, id, (const char *[METRIC_LABELS]){first, second});
}

double metrics_value(
	struct metrics *metrics, enum metric_id id, const char *first, const char *second)
{
	const struct metric_child *child =
		look_up(&metrics->families[id], (const char *[METRIC_LABELS]){first, second});

	return child ? child->value : 0;
}

/* Metrics without labels exist from the start, as 0, except those that only the kernel knows. */
struct metrics *metrics_new(void)
{
	struct metrics *metrics = memory_new(1, sizeof *metrics);

	for (size_t id = 0; id < METRIC_PROCESS_CPU; id++)
		if (!metric_rows[id].labels[0])
			find_by_two(metrics, (enum metric_id)id, NULL, NULL);
	find(metrics, METRIC_BUILD_INFO,
		(const char *[]){HUNTER_VERSION, HUNTER_REVISION, __VERSION__})
		->value = 1;
	return metrics;
}

void metrics_add(struct metrics *metrics, enum metric_id id, double value, const char *first,
	const char *second)
{
	assert(metric_rows[id].type != TYPE_HISTOGRAM);
	assert(metric_rows[id].type == TYPE_GAUGE || value >= 0);
	find_by_two(metrics, id, first, second)->value += value;
}

void metrics_set(struct metrics *metrics, enum metric_id id, double value, const char *first,
	const char *second)
{
	assert(metric_rows[id].type == TYPE_GAUGE || metric_rows[id].type == TYPE_COUNTER);
	struct metric_child *child = find_by_two(metrics, id, first, second);

	assert(metric_rows[id].type == TYPE_GAUGE || value >= child->value);
	child->value = value;
}

void metrics_retain(struct metrics *metrics, enum metric_id id, metrics_keep *keep, void *context)
{
	struct metric_family *family = &metrics->families[id];
	size_t kept = 0;

	for (size_t i = 0; i < family->count; i++)
		if (keep(context, family->children[i].values[0]))
			family->children[kept++] = family->children[i];
		else
			clear_child(&family->children[i]);
	family->count = kept;
}

void metrics_observe(struct metrics *metrics, enum metric_id id, double value, const char *first,
	const char *second)
{
	assert(metric_rows[id].type == TYPE_HISTOGRAM);
	struct metric_child *child = find_by_two(metrics, id, first, second);
	size_t bucket = 0;

	while (bucket < METRIC_BUCKETS && value > metric_bounds[bucket])
		bucket++;
	child->buckets[bucket]++;
	child->value += value;
}

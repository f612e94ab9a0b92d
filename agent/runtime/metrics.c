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
	[METRIC_BUILD_INFO] = {"hunter_build_info", TYPE_INFO,
		.help = "Build information; always 1.",
		.labels = {"version", "revision", "compiler"}},
	[METRIC_READY] = {"hunter_ready", TYPE_GAUGE,
		.help = "Whether changes are recorded and announced; same as /-/ready."},
	[METRIC_CONFIG_HASH] = {"hunter_config_hash", TYPE_GAUGE,
		.help = "Hash of the configuration in use; equal on agents with the same "
			"configuration."},
	[METRIC_RELOAD_SUCCESSFUL] = {"hunter_config_last_reload_successful", TYPE_GAUGE,
		.help = "Whether the last configuration reload succeeded."},
	[METRIC_RELOAD_TIME] = {"hunter_config_last_reload_success_timestamp_seconds", TYPE_GAUGE,
		.help = "Time at which the configuration in use was loaded, in seconds since 1970.",
		.unit = "seconds"},
	[METRIC_TESTS] = {"hunter_tests", TYPE_GAUGE, .help = "Monitored tests."},
	[METRIC_RUNS_SKIPPED] = {"hunter_runs_skipped_total", TYPE_COUNTER,
		.help = "Runs without a request because no new point was possible.",
		.labels = {"source"}},
	[METRIC_RUNS] = {"hunter_runs_total", TYPE_COUNTER,
		.help = "Finished test runs, successful or not.", .labels = {"source"}},
	[METRIC_RUN_FAILURES] = {"hunter_run_failures_total", TYPE_COUNTER,
		.help = "Failed test runs.", .labels = {"source", "reason"}},
	[METRIC_FETCH_ERRORS] = {"hunter_fetch_errors_total", TYPE_COUNTER,
		.help = "Runs whose data was unavailable, by server.",
		.labels = {"source", "reason"}},
	[METRIC_SOURCE_UP] = {"hunter_source_up", TYPE_GAUGE,
		.help = "Whether the server responds; 0 from outage report until recovery.",
		.labels = {"source"}},
	[METRIC_VANISHED_SERIES] = {"hunter_vanished_series", TYPE_GAUGE,
		.help = "Series reported as ended that have not returned."},
	[METRIC_STALE_TESTS] = {"hunter_stale_tests", TYPE_GAUGE,
		.help = "Tests without a new point for longer than stale_after."},
	[METRIC_MISSED_RUNS] = {"hunter_missed_runs_total", TYPE_COUNTER,
		.help = "Runs skipped because the previous one had not ended or the agent was "
			"delayed."},
	[METRIC_ARRIVED] = {"hunter_arrived_names_total", TYPE_COUNTER,
		.help = "Data names reported as written, by whether a test reads them.",
		.labels = {"read"}},
	[METRIC_RUN_DURATION] = {"hunter_run_duration_seconds", TYPE_HISTOGRAM,
		.help = "Duration of runs: reading, parsing and detection.", .labels = {"source"},
		.unit = "seconds"},
	[METRIC_SCHEDULE_LAG] = {"hunter_schedule_lag_seconds", TYPE_HISTOGRAM,
		.help = "Delay of runs: from due to started.", .unit = "seconds"},
	[METRIC_LAST_PASS] = {"hunter_last_run_timestamp_seconds", TYPE_GAUGE,
		.help = "Time of the last successful run, in seconds since 1970.",
		.unit = "seconds"},
	[METRIC_POINTS_READ] = {"hunter_points_read_total", TYPE_COUNTER,
		.help = "Points read from sources.", .labels = {"source"}},
	[METRIC_DETECTION_SECONDS] = {"hunter_detection_seconds_total", TYPE_COUNTER,
		.help = "CPU time spent on detection.", .unit = "seconds"},
	[METRIC_CHANGES] = {"hunter_changes", TYPE_GAUGE, .help = "Recorded changes.",
		.labels = {"state"}},
	[METRIC_CHANGES_FOUND] = {"hunter_changes_found_total", TYPE_COUNTER,
		.help = "New changes found, including candidates."},
	[METRIC_CHANGES_WITHDRAWN] = {"hunter_changes_withdrawn_total", TYPE_COUNTER,
		.help = "Confirmed changes withdrawn because they are no longer found."},
	[METRIC_CHANGES_RECOVERED] = {"hunter_changes_recovered_total", TYPE_COUNTER,
		.help = "Confirmed changes that recovered: the previous level is back."},
	[METRIC_DELIVERIES] = {"hunter_deliveries_total", TYPE_COUNTER,
		.help = "Attempts to deliver a message.", .labels = {"receiver", "result"}},
	[METRIC_DELIVERY_QUEUE_LENGTH] = {"hunter_delivery_queue_length", TYPE_GAUGE,
		.help = "Messages waiting for delivery.", .labels = {"receiver"}},
	[METRIC_CLOCK_AHEAD] = {"hunter_clock_ahead_seconds", TYPE_GAUGE,
		.help = "Clock offset to the last server that responded; positive if the clock is "
			"ahead.",
		.unit = "seconds"},
	[METRIC_STORE_SIZE] = {"hunter_store_size_bytes", TYPE_GAUGE,
		.help = "Size of the state file and its write-ahead log.", .unit = "bytes"},
	[METRIC_MEMORY_IN_FLIGHT] = {"hunter_memory_in_flight_bytes", TYPE_GAUGE,
		.help = "Memory used by server responses in flight.", .unit = "bytes"},
	[METRIC_MEMORY_WAITS] = {"hunter_memory_waits_total", TYPE_COUNTER,
		.help = "Reads throttled by agent.max_memory_in_flight."},
	[METRIC_SILENCES] = {"hunter_silences", TYPE_GAUGE,
		.help = "Silences that are active or pending.", .labels = {"state"}},
	[METRIC_SILENCED] = {"hunter_silenced_changes", TYPE_GAUGE,
		.help = "Changes held back by silences and mute times."},
	[METRIC_SILENCED_AGE] = {"hunter_silenced_regression_age_seconds", TYPE_GAUGE,
		.help = "Age of the oldest regression held back; 0: none.", .unit = "seconds"},
	[METRIC_AUTHENTICATION_FAILURES] = {"hunter_http_authentication_failures_total",
		TYPE_COUNTER,
		"Requests rejected for wrong credentials, or by the rate limit after failures.",
		.labels = {"reason"}},
	[METRIC_BISECTIONS] = {"hunter_bisections", TYPE_GAUGE,
		.help = "Running and waiting bisections of this agent's tests.",
		.labels = {"state"}},
	[METRIC_BISECTIONS_ENDED] = {"hunter_bisections_ended_total", TYPE_COUNTER,
		.help = "Finished bisections, by result.", .labels = {"end"}},
	[METRIC_BISECTION_RUNS] = {"hunter_bisection_runs_total", TYPE_COUNTER,
		.help = "Finished bisection runs, by outcome.", .labels = {"outcome"}},
	[METRIC_FLEET_AGENTS] = {"hunter_fleet_agents", TYPE_GAUGE,
		.help = "Live agents that share this state, as seen by this one."},
	[METRIC_SHARDS_HELD] = {"hunter_shards_held", TYPE_GAUGE,
		.help = "Shards, of 256, held by this agent."},
	[METRIC_LEASE_RENEWALS] = {"hunter_lease_renewals_total", TYPE_COUNTER,
		.help = "Lease renewals: in time, late, failed, or lost to other agents.",
		.labels = {"result"}},
	[METRIC_DIFFERING_TESTS] = {"hunter_fleet_differing_tests", TYPE_GAUGE,
		.help = "Tests whose configuration differs from that of most agents."},
	[METRIC_TAKE_OVERS] = {"hunter_take_overs_total", TYPE_COUNTER,
		.help = "Shards taken over from agents with an expired lease."},
	[METRIC_FENCED_WRITES] = {"hunter_fenced_writes_total", TYPE_COUNTER,
		.help = "Writes rejected because another agent had taken over."},
	[METRIC_CLAIMS_EXPIRED] = {"hunter_claims_expired_total", TYPE_COUNTER,
		.help = "Messages in flight on another agent at takeover."},
	[METRIC_STATE_ROUND_TRIPS] = {"hunter_state_round_trips_total", TYPE_COUNTER,
		.help = "Round trips to the state database."},
	[METRIC_STATE_SECONDS] = {"hunter_state_round_trip_seconds_total", TYPE_COUNTER,
		.help = "Time spent waiting for the state database.", .unit = "seconds"},
	[METRIC_STATE_CONNECTIONS] = {"hunter_state_connections_total", TYPE_COUNTER,
		.help = "Connections opened to the state database."},
	[METRIC_STATE_RETRIES] = {"hunter_state_retries_total", TYPE_COUNTER,
		.help = "Transactions retried after a conflict with other agents."},
	[METRIC_PROCESS_CPU] = {"process_cpu_seconds_total", TYPE_COUNTER,
		.help = "CPU time of the process.", .unit = "seconds"},
	[METRIC_PROCESS_RESIDENT] = {"process_resident_memory_bytes", TYPE_GAUGE,
		.help = "Resident memory of the process.", .unit = "bytes"},
	[METRIC_PROCESS_VIRTUAL] = {"process_virtual_memory_bytes", TYPE_GAUGE,
		.help = "Virtual memory of the process.", .unit = "bytes"},
	[METRIC_PROCESS_OPEN_FDS] = {"process_open_fds", TYPE_GAUGE,
		.help = "Number of open file descriptors."},
	[METRIC_PROCESS_MAX_FDS] = {"process_max_fds", TYPE_GAUGE,
		.help = "Maximum number of open file descriptors."},
	[METRIC_PROCESS_START_TIME] = {"process_start_time_seconds", TYPE_GAUGE,
		.help = "Start time of the process, in seconds since 1970.", .unit = "seconds"},
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

static struct metric_child *look_up(
	struct metric_family *family, const char *const values[METRIC_LABELS])
{
	for (size_t i = 0; i < family->count; i++) {
		struct metric_child *child = &family->children[i];
		bool same = true;

		for (size_t k = 0; k < METRIC_LABELS && same; k++)
			same = !values[k] || strcmp(child->values[k], values[k]) == 0;
		if (same)
			return child;
	}
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

static struct metric_child *find_one(struct metrics *metrics, enum metric_id id, const char *label)
{
	return find(metrics, id, (const char *[METRIC_LABELS]){label});
}

double metrics_value(struct metrics *metrics, enum metric_id id, const char *label)
{
	const struct metric_child *child =
		look_up(&metrics->families[id], (const char *[METRIC_LABELS]){label});

	return child ? child->value : 0;
}

/* Metrics without labels exist from the start, as 0, except those that only the kernel knows. */
struct metrics *metrics_new(void)
{
	struct metrics *metrics = memory_new(1, sizeof *metrics);

	for (size_t id = 0; id < METRIC_PROCESS_CPU; id++)
		if (!metric_rows[id].labels[0])
			find_one(metrics, (enum metric_id)id, NULL);
	find(metrics, METRIC_BUILD_INFO,
		(const char *[]){HUNTER_VERSION, HUNTER_REVISION, __VERSION__})
		->value = 1;
	return metrics;
}

void metrics_count(
	struct metrics *metrics, enum metric_id id, const char *first, const char *second)
{
	find(metrics, id, (const char *[METRIC_LABELS]){first, second})->value++;
}

void metrics_add(struct metrics *metrics, enum metric_id id, double value, const char *label)
{
	assert(metric_rows[id].type != TYPE_HISTOGRAM);
	assert(metric_rows[id].type == TYPE_GAUGE || value >= 0);
	find_one(metrics, id, label)->value += value;
}

void metrics_set(struct metrics *metrics, enum metric_id id, double value, const char *label)
{
	assert(metric_rows[id].type == TYPE_GAUGE || metric_rows[id].type == TYPE_COUNTER);
	struct metric_child *child = find_one(metrics, id, label);

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

void metrics_observe(struct metrics *metrics, enum metric_id id, double value, const char *label)
{
	assert(metric_rows[id].type == TYPE_HISTOGRAM);
	struct metric_child *child = find_one(metrics, id, label);
	size_t bucket = 0;

	while (bucket < METRIC_BUCKETS && value > metric_bounds[bucket])
		bucket++;
	child->buckets[bucket]++;
	child->value += value;
}

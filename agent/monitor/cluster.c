/*
 * The jobs that run clusters, and what they decide as a filter.
 *
 * A run fetches the data of all its tests, a limited number at a time and independently of their
 * own runs. The worker that parses an answer copies the series out of it, and the copies are joined
 * in the order of the tests when all have arrived, so that the clusters do not depend on the order
 * of the answers. They are clustered on a worker and compared with the known clusters. Tests that
 * cannot be read are left out, since the shapes of the others do not depend on them; if more than
 * half cannot be read, the run fails and changes nothing.
 *
 * A cluster is recorded as a change of its group: the name and levels are those of the member
 * nearest to its centroid, the size is the median of its members. The record's series column lists
 * the best members, by which the cluster is recognised in later runs. Clusters that are not found
 * any more are left as they are: if a cluster falls apart later, its members have still changed
 * together.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/announce.h"
#include "agent/analysis/shapes.h"
#include "agent/base/buf.h"
#include "agent/base/clock.h"
#include "agent/base/hash.h"
#include "agent/base/order.h"
#include "agent/base/when.h"
#include "agent/decide/confirm.h"
#include "agent/decide/match.h"
#include "agent/fleet/fleet.h"
#include "agent/io/parallel.h"
#include "agent/monitor/cluster_round.h"
#include "agent/monitor/scheduled_job.h"
#include "agent/monitor/series_cache.h"

enum {
	WINDOW = 32,        /* tests that are fetched at a time */
	FIRST_AFTER = 1000, /* ms */
	PATIENCE = 6,       /* points after which a change no longer waits for its cluster */
	LABELS_TOLD = 3,
};

#define NEVER_BEGUN INT64_MIN

/* A cluster as it was last found. */
struct cluster_change_key {
	int64_t id, time; /* id of its record; time in ms */
	double regression;
};

/* A series that is part of a cluster. */
struct covered {
	uint64_t series; /* hash of test and identity */
	int64_t time, spacing;
	int sign;
};

/* What one run of a cluster keeps for the next. All zero: nothing. */
struct cluster_cache {
	struct cluster_change_key *keys;
	size_t key_count;
	struct covered *covered; /* by the last run, sorted by series */
	size_t covered_count;
	int64_t reach; /* ms: changes up to then can be reported */
};

struct cluster {
	struct scheduled_job job;
	struct arena *arena; /* its current configuration */
	const struct group *group;
	struct dict members;     /* its tests by name */
	struct cluster_run *run; /* in progress, or NULL */
	int64_t begun;           /* engine_now at the start of the last finished run */
	bool failing;
	struct cluster_rounds rounds; /* for people */
	struct cluster_cache cache;   /* the run's while one is in progress */
};

/* One test of the run. */
struct slot {
	struct cluster_run *run;
	struct shapes *piece; /* its series; NULL: reading failed */
};

/* Owns what it points to, and nothing of it while the engine or the store has it. */
struct cluster_run {
	struct recording recording; /* its first member */
	struct cluster *cluster;    /* whose cache is the run's until its end */
	struct agent *agent;
	struct config_ref *config_ref; /* that it began under */
	const struct group *group;     /* of that configuration */
	struct arena *arena;
	const struct test **tests;
	size_t test_count;
	struct slot *slots;
	size_t submitted, waiting, failed;
	struct error error;    /* of the first test that failed */
	bool unrecorded;       /* the state could not be used */
	struct shapes *shapes; /* all series */
	struct shape_report report;
	struct cluster_shapes *shown; /* to people */
	struct team team;
	double seconds; /* seconds spent clustering */
};

static void free_cache(struct cluster_cache *cache)
{
	free(cache->keys);
	free(cache->covered);
	*cache = (struct cluster_cache){0};
}

static struct cluster_change_key *find_key(const struct cluster_cache *cache, int64_t id)
{
	for (size_t i = 0; i < cache->key_count; i++)
		if (cache->keys[i].id == id)
			return &cache->keys[i];
	return NULL;
}

static uint64_t hash_series(const char *test, const char *identity)
{
	uint64_t hash = hash_add(HASH_START, test, strlen(test) + 1);

	return hash_add(hash, identity, strlen(identity) + 1);
}

static int compare_covered(const void *a, const void *b)
{
	const struct covered *left = a, *right = b;

	return (left->series > right->series) - (left->series < right->series);
}

static void set_covered(struct cluster_cache *cache, const struct shape_report *report)
{
	size_t count = 0;

	for (size_t i = 0; i < report->count; i++)
		count += report->shapes[i].count;
	free(cache->covered);
	cache->reach = report->reach;
	cache->covered = memory_new(count, sizeof *cache->covered);
	cache->covered_count = 0;
	for (size_t i = 0; i < report->count; i++) {
		const struct shape *shape = &report->shapes[i];

		for (size_t j = 0; j < shape->count; j++)
			cache->covered[cache->covered_count++] = (struct covered){
				hash_series(shape->members[j].test, shape->members[j].identity),
				shape->time, shape->spacing, shape->sign};
	}
	qsort(cache->covered, count, sizeof *cache->covered, compare_covered);
}

/* Whether the change belongs to a cluster that contained its series in the last run. */
static bool covers(const struct cluster_cache *cache, const struct change_record *record)
{
	uint64_t series = hash_series(record->item.test, record->series);
	size_t low = order_lower_bound(&(const struct covered){.series = series}, cache->covered,
		cache->covered_count, sizeof *cache->covered, compare_covered);

	for (; low < cache->covered_count && cache->covered[low].series == series; low++) {
		const struct covered *at = &cache->covered[low];
		int64_t spacing =
			at->spacing > record->item.spacing ? at->spacing : record->item.spacing;
		int64_t apart = at->time - record->item.time;

		if (at->sign == record->sign && llabs(apart) <= CHANGE_TOLERANCE * spacing)
			return true;
	}
	return false;
}

/* "96% renderer=gpu, 90% region=eu", or NULL. */
static const char *shared_text(const struct shape *shape, struct arena *arena)
{
	struct buf text = {0};
	const char *shared = NULL;

	for (size_t i = 0; i < shape->label_count && i < LABELS_TOLD; i++)
		buf_printf(&text, "%s%.0f%% %s", i ? ", " : "", 100 * shape->labels[i].share,
			shape->labels[i].text);
	if (text.length > 0)
		shared = arena_strndup(arena, text.data, text.length);
	buf_free(&text);
	return shared;
}

/* With the levels of the nearest member, and the size of all. */
static struct announcement announce(
	struct arena *arena, const char *group, const struct shape *shape)
{
	struct announcement item = {.test = group,
		.metric = arena_printf(
			arena, "%s: %s", shape->members[0].test, shape->members[0].series),
		.unit = shape->unit,
		.direction = shape->direction,
		.time = shape->time,
		.spacing = shape->spacing,
		.change = shape->change,
		.commit_before = shape->commit_before,
		.commit_after = shape->commit_after,
		.version_before = shape->version_before,
		.version_after = shape->version_after,
		.slope = (double)NAN,
		.place_from = shape->time,
		.place_to = shape->time,
		.place_commit_before = shape->commit_before,
		.place_commit_after = shape->commit_after,
		.place_version_before = shape->version_before,
		.place_version_after = shape->version_after,
		.members = shape->count,
		.suspects = shape->suspects,
		.shared = shared_text(shape, arena)};

	if (isfinite(shape->ratio)) {
		item.change.size = 100 * (shape->ratio - 1);
		item.change.size_low = item.change.size_high = (double)NAN;
	}
	return announce_copy(arena, &item);
}

/* Notes that a known cluster was found again: true if it is clearer than ever since the start. */
static bool note_seen(struct cluster_cache *cache, int64_t id, const struct shape *shape)
{
	struct cluster_change_key *last = find_key(cache, id);

	if (!last) {
		cache->keys = memory_resize(cache->keys, cache->key_count + 1, sizeof *cache->keys);
		cache->keys[cache->key_count++] =
			(struct cluster_change_key){id, shape->time, shape->regression};
		return false;
	}
	last->time = shape->time;
	if (fabs(shape->regression) <= fabs(last->regression))
		return false;
	last->regression = shape->regression;
	return true;
}

/*
 * Fills the request with records of new clusters and updates of known ones that show more clearly
 * than before. A change that is too old (see news_oldest) is recorded as NOTIFY_SILENT. Updates the
 * cache. changes[i] is the id of the record that shapes[i] of the report is, or, if it is a new
 * one, -1 - its index in the request. Runs on a worker.
 */
static void match_shapes(struct cluster_run *run, int64_t *changes)
{
	const struct shape_report *report = &run->report;
	const char *group = run->group->name;
	struct cluster_cache *cache = &run->cluster->cache;
	const struct change_record *known = run->recording.known->records.items;
	size_t known_count = run->recording.known->records.count;
	bool newer = cache->reach > 0 && report->reach > cache->reach;
	const struct news_clock *clock = &run->recording.clock;
	int64_t oldest = news_oldest(clock, report->times, report->points, newer);
	struct store_record *request = run->recording.news;
	struct arena *arena = request->call.arena;
	struct known_shape *list = arena_array(arena, known_count, sizeof *list);
	size_t *known_of = arena_array(arena, report->count, sizeof *known_of);
	bool *seen = arena_array(arena, known_count, sizeof *seen);

	for (size_t i = 0; i < known_count; i++) {
		const struct cluster_change_key *last = find_key(cache, known[i].item.id);

		list[i] = (struct known_shape){.time = last ? last->time : known[i].item.time,
			.spacing = known[i].item.spacing,
			.sign = known[i].sign,
			.best = known[i].series};
	}
	request->records.items = arena_array(arena, report->count, sizeof *request->records.items);
	request->updates = arena_array(arena, report->count, sizeof *request->updates);
	coalesce(report->shapes, report->count, list, known_count, known_of);
	for (size_t i = 0; i < report->count; i++) {
		const struct shape *shape = &report->shapes[i];
		size_t at = known_of[i];

		changes[i] = at == COALESCE_NONE ? -1 - (int64_t)request->records.count
						 : known[at].item.id;
		if (at == COALESCE_NONE) {
			bool old = shape->time < oldest;

			request->records.items[request->records.count++] =
				(struct change_record){.item = announce(arena, group, shape),
					.series = coalesce_best(shape, arena),
					.branch = "",
					.sign = shape->sign,
					.state = CHANGE_CONFIRMED,
					.news = old ? NOTIFY_SILENT : NOTIFY_PENDING,
					.reason = old ? confirm_reasons[CONFIRM_AGE] : NULL,
					.first_seen = clock->now};
		} else if (!seen[at] && note_seen(cache, known[at].item.id, shape)) {
			struct announcement *item = arena_alloc(arena, sizeof *item);

			*item = announce(arena, group, shape);
			request->updates[request->update_count++] = (struct change_record_update){
				.id = known[at].item.id,
				.time = shape->time,
				.now = clock->now,
				.state = shape->time != known[at].item.time ? CHANGE_MOVED
									    : known[at].state,
				.item = item};
		}
		if (at != COALESCE_NONE)
			seen[at] = true;
	}
	set_covered(cache, report);
}

static void free_run(struct cluster_run *run)
{
	if (!run)
		return;
	for (size_t i = 0; i < run->test_count; i++)
		shapes_free(run->slots[i].piece);
	shapes_free(run->shapes);
	cluster_shapes_free(run->shown);
	recording_free(&run->recording);
	config_ref_release(run->config_ref);
	arena_free(run->arena);
}

/* Notes whether it failed, and keeps the results to show. */
static void note_round(struct cluster_run *run, const char *problem, int64_t duration)
{
	struct cluster *cluster = run->cluster;
	struct cluster_round round = {0};

	if (problem && !cluster->failing)
		log_event(LEVEL_WARN, "cluster failed", LOG_TEXT("group", cluster->job.name),
			LOG_TEXT("problem", problem));
	if (!problem && cluster->failing)
		log_event(LEVEL_INFO, "cluster recovered", LOG_TEXT("group", cluster->job.name));
	cluster->failing = problem != NULL;
	if (run->shown)
		round = run->shown->round;
	round.ended = agent_now(run->agent);
	round.duration = duration;
	round.tests = run->test_count;
	round.failed = run->failed;
	snprintf(round.problem, sizeof round.problem, "%s", problem ? problem : "");
	if (run->shown)
		run->shown->round = round;
	cluster_rounds_add(&cluster->rounds, &round, problem ? NULL : run->shown);
	if (!problem)
		run->shown = NULL;
}

/* Frees the run. `problem` says why it failed; NULL: it succeeded. */
static void end(struct cluster_run *run, const char *problem)
{
	struct cluster *cluster = run->cluster;
	struct agent *agent = run->agent;
	struct run_report report = {.test = run->group->name,
		.failed = problem != NULL,
		.problem = problem,
		.unrecorded = run->unrecorded,
		.duration = engine_now(agent->engine) - cluster->job.started};

	metrics_add(agent->metrics, METRIC_RUNS, 1, "cluster");
	metrics_observe(
		agent->metrics, METRIC_RUN_DURATION, (double)report.duration / 1000, "cluster");
	cluster->run = NULL;
	if (!agent->stopping && !scheduled_job_dropped(&cluster->job)) {
		note_round(run, problem, report.duration);
		agent->incomplete |= problem != NULL;
		cluster->begun = cluster->job.started;
	}
	scheduled_job_ended(&cluster->job, &report);
	free_run(run);
	agent_hint(agent, HINT_CHANGES);
	agent_ended(agent);
}

/* Ends the run if its results are not wanted any more; true if it has ended. */
static bool end_unwanted(void *context)
{
	struct cluster_run *run = context;

	if (!run->agent->stopping && !scheduled_job_dropped(&run->cluster->job))
		return false;
	end(run, run->agent->stopping ? "the agent is stopping" : "the cluster was changed");
	return true;
}

static void fail(struct cluster_run *run, const char *problem, const char *reason)
{
	metrics_count(run->agent->metrics, METRIC_RUN_FAILURES, "cluster", reason);
	end(run, problem);
}

/* All that was found is recorded. */
static void recorded(struct recording *recording, const struct store_call *failed)
{
	struct cluster_run *run = (struct cluster_run *)recording;
	const struct store_record *request = recording->news;
	struct metrics *metrics = run->agent->metrics;

	if (failed) {
		run->unrecorded = true;
		fail(run, failed->error->text, "state");
		return;
	}
	cluster_shapes_recorded(run->shown, request);
	metrics_add(metrics, METRIC_DETECTION_SECONDS, run->seconds, NULL);
	metrics_add(metrics, METRIC_CHANGES_FOUND, (double)request->records.count, NULL);
	log_event(request->records.count > 0 ? LEVEL_INFO : LEVEL_DEBUG, "clusters",
		LOG_TEXT("group", run->group->name), LOG_INT("series", run->report.series),
		LOG_INT("left_out", run->report.left_out), LOG_INT("failed_tests", run->failed),
		LOG_INT("moved", run->report.count), LOG_INT("new", request->records.count));
	end(run, NULL);
}

/* Clusters the series. Runs on a worker. */
static void find(void *context)
{
	struct cluster_run *run = context;
	struct parallel parallel = team_parallel(&run->team);
	int64_t start = clock_monotonic_ns(), *changes;

	run->shapes = shapes_new();
	for (size_t i = 0; i < run->test_count; i++) {
		if (run->slots[i].piece)
			shapes_join(run->shapes, run->slots[i].piece);
		run->slots[i].piece = NULL;
	}
	shapes_find(run->shapes, run->group->cluster->options, &parallel, run->arena, &run->report);
	changes = arena_array(run->arena, run->report.count, sizeof *changes);
	match_shapes(run, changes);
	run->shown = cluster_shapes_new(&run->report, changes);
	run->seconds = 1e-9 * (double)(clock_monotonic_ns() - start);
}

/* Runs on a worker. */
static bool collect(struct task *task, struct scratch *scratch, struct error *error)
{
	struct slot *slot = task->context;

	(void)scratch, (void)error;
	slot->piece = shapes_new();
	shapes_add(slot->piece, task->test->name, &task->query.data);
	return true;
}

static void submit_next(struct cluster_run *run);

static void fetched(struct task *task)
{
	struct slot *slot = task->context;
	struct cluster_run *run = slot->run;

	if (task->failed && run->failed++ == 0)
		run->error = task->error;
	if (task->failed)
		log_event(LEVEL_DEBUG, "test failed", LOG_TEXT("group", run->group->name),
			LOG_TEXT("test", task->test->name), LOG_TEXT("problem", task->error.text));
	task_free(task);
	run->waiting--;
	if (!scheduled_job_dropped(&run->cluster->job) && !run->agent->stopping)
		submit_next(run);
	if (run->waiting > 0 || end_unwanted(run))
		return;
	if (2 * run->failed > run->test_count) {
		error_prefix(&run->error, "%zu of %zu tests failed; the first: ", run->failed,
			run->test_count);
		fail(run, run->error.text, "data");
		return;
	}
	run->team.threads = (size_t)run->agent->config->agent.jobs;
	recording_begin(&run->recording, run->cluster->begun == NEVER_BEGUN, false);
}

static void submit_next(struct cluster_run *run)
{
	struct agent *agent = run->agent;
	struct task *task;

	if (run->submitted == run->test_count)
		return;
	task = task_new(run->tests[run->submitted], agent_now(agent));
	(void)series_cache_query(&(struct checkpoint_rows){0}, task);
	task->work = collect;
	task->done = fetched;
	task->context = &run->slots[run->submitted++];
	config_ref_hold_for(run->config_ref, task);
	run->waiting++;
	if (agent->simulation)
		agent->simulation->look(agent, task);
	else
		engine_submit(agent->engine, task);
}

static void begin_run(struct scheduled_job *job)
{
	struct agent *agent = job->context->agent;
	struct arena *arena = arena_new();
	struct cluster_run *run = arena_alloc(arena, sizeof *run);

	*run = (struct cluster_run){.recording = {.job = job,
					    .name = ((struct cluster *)job)->group->name,
					    .unwanted = end_unwanted,
					    .match = find,
					    .done = recorded},
		.cluster = (struct cluster *)job,
		.agent = agent,
		.config_ref = config_ref_hold(agent->config_ref),
		.group = ((struct cluster *)job)->group,
		.arena = arena,
		.tests = arena_array(arena, job->test_count, sizeof *run->tests),
		.test_count = job->test_count,
		.slots = arena_array(arena, job->test_count, sizeof *run->slots)};
	for (size_t i = 0; i < run->test_count; i++) {
		run->tests[i] = job->tests[i];
		run->slots[i].run = run;
	}
	run->cluster->run = run;
	while (run->submitted < run->test_count && run->submitted < WINDOW)
		submit_next(run);
}

static void adopt(struct scheduled_job *job, struct scheduled_job *now)
{
	struct cluster *cluster = (struct cluster *)job;
	struct cluster *next = (struct cluster *)now;

	arena_free(cluster->arena);
	cluster->arena = next->arena;
	cluster->group = next->group;
	cluster->members = next->members;
	job->tests = now->tests;
	job->test_count = now->test_count;
	next->arena = NULL;
}

static void clear(struct scheduled_job *job)
{
	struct cluster *cluster = (struct cluster *)job;

	free_cache(&cluster->cache);
	cluster_rounds_clear(&cluster->rounds);
	cluster->begun = NEVER_BEGUN;
}

static void free_cluster(struct scheduled_job *job)
{
	struct cluster *cluster = (struct cluster *)job;

	free_run(cluster->run);
	clear(job);
	arena_free(cluster->arena);
	free(cluster);
}

static const struct job_kind cluster_job = {.first_after = FIRST_AFTER,
	.begin = begin_run,
	.adopt = adopt,
	.clear = clear,
	.free = free_cluster};

struct scheduled_job *cluster_job_new(
	const struct run_context *context, const struct group *group, const struct dict *monitored)
{
	struct arena *arena = arena_new();
	const struct test **tests = arena_array(arena, group->count, sizeof *tests);
	struct dict members = {.arena = arena};
	struct cluster *cluster;
	size_t count = 0;

	for (size_t i = 0; i < group->count; i++)
		if (dict_get(monitored, group->tests[i]->name)) {
			tests[count++] = group->tests[i];
			*dict_place(&members, group->tests[i]->name) = group->tests[i];
		}
	if (count == 0) {
		arena_free(arena);
		return NULL;
	}
	cluster = memory_new(1, sizeof *cluster);
	*cluster = (struct cluster){.job = {.context = context,
					    .kind = &cluster_job,
					    .name = group->name,
					    .interval = group->cluster->interval,
					    .shard = FLEET_LEADER,
					    .fingerprint = group->cluster->fingerprint,
					    .tests = tests,
					    .test_count = count},
		.arena = arena,
		.group = group,
		.members = members,
		.begun = NEVER_BEGUN};
	return &cluster->job;
}

struct decision cluster_judge(const struct scheduled_job *job, const struct change_record *record)
{
	const struct cluster *cluster = (const struct cluster *)job;
	/* A single pass looks once at tests and clusters. */
	int64_t since = job->context->agent->once ? NEVER_BEGUN + 1 : record->handed;
	/* Whether too few points follow the change for the cluster to report it, and more can be
	 * expected. During a run a worker has the cache. */
	bool early = !cluster->run && !cluster->failing &&
		     record->item.time > cluster->cache.reach &&
		     agent_now(job->context->agent) <
			     record->item.time + PATIENCE * record->item.spacing;

	if (!dict_get(&cluster->members, record->item.test))
		return (struct decision){0};
	if (cluster->run || cluster->begun < since || early)
		return (struct decision){HOLD, "waiting for the next run of its cluster", 0};
	if (covers(&cluster->cache, record))
		return (struct decision){DROP, "announced by its cluster", 0};
	return (struct decision){0};
}

void cluster_show(const struct scheduled_job *job, struct scheduler_cluster *out)
{
	const struct cluster *cluster = (const struct cluster *)job;

	out->group = cluster->group;
	out->failing = cluster->failing;
	out->rounds = &cluster->rounds;
}

/* The jobs that run clusters, and what they decide as a filter. */
#include <stdlib.h>
#include <string.h>

#include "agent/monitor/cluster_run.h"
#include "agent/monitor/scheduled_job.h"

enum { FIRST_AFTER = 1000 }; /* ms */
enum { PATIENCE = 6 };       /* points after which a change no longer waits for its cluster */

#define NEVER_BEGUN INT64_MIN

struct cluster {
	struct scheduled_job job;
	struct arena *arena; /* what the current configuration says of it */
	const struct group *group;
	struct dict members; /* its tests by name */
	struct cluster_run *run;
	int64_t begun; /* engine_now at the start of the last finished run */
	bool failing;
	struct cluster_cache cache; /* held by the run while one is in progress */
};

static void note_end(struct cluster *cluster, const char *problem)
{
	if (problem && !cluster->failing)
		log_event(LEVEL_WARN, "cluster failed", LOG_TEXT("group", cluster->job.name),
			LOG_TEXT("problem", problem));
	if (!problem && cluster->failing)
		log_event(LEVEL_INFO, "cluster recovered", LOG_TEXT("group", cluster->job.name));
	cluster->failing = problem != NULL;
}

static void run_done(void *context, const char *problem)
{
	struct cluster *cluster = context;
	const struct run_context *runs = cluster->job.context;
	struct agent *agent = runs->agent;

	cluster->run = NULL;
	if (!agent->stopping && !scheduled_job_dropped(&cluster->job)) {
		note_end(cluster, problem);
		agent->incomplete |= problem != NULL;
		cluster->begun = cluster->job.started;
	}
	scheduled_job_ended(&cluster->job,
		&(struct run_report){
			.test = cluster->job.name, .failed = problem != NULL, .problem = problem});
	dispatcher_look(runs->dispatcher);
}

static void begin(struct scheduled_job *job)
{
	struct cluster *cluster = (struct cluster *)job;
	struct agent *agent = job->context->agent;

	cluster->run = cluster_run_begin(&(struct cluster_begin){.agent = agent,
		.dispatcher = job->context->dispatcher,
		.job = job,
		.group = cluster->group,
		.silent = agent->simulation && cluster->begun == NEVER_BEGUN,
		.cache = &cluster->cache,
		.done = run_done,
		.context = cluster});
}

static void adopt(struct scheduled_job *job, struct scheduled_job *now)
{
	struct cluster *cluster = (struct cluster *)job, *next = (struct cluster *)now;

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

	cluster_cache_free(&cluster->cache);
	cluster->begun = NEVER_BEGUN;
}

static void free_cluster(struct scheduled_job *job)
{
	struct cluster *cluster = (struct cluster *)job;

	cluster_run_free(cluster->run);
	cluster_cache_free(&cluster->cache);
	arena_free(cluster->arena);
	free(cluster);
}

static const struct job_kind cluster_job = {.first_after = FIRST_AFTER,
	.begin = begin,
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
					    .fingerprint = group->cluster->fingerprint,
					    .tests = tests,
					    .test_count = count},
		.arena = arena,
		.group = group,
		.members = members,
		.begun = NEVER_BEGUN};
	return &cluster->job;
}

/* Whether too few points follow the change for the cluster to report it, and more can be
 * expected. */
static bool too_early(const struct cluster *cluster, const struct change_record *record)
{
	return !cluster->failing && record->item.time > cluster->cache.reach &&
	       agent_now(cluster->job.context->agent) <
		       record->item.time + PATIENCE * record->spacing;
}

enum filter_verdict cluster_judge(
	const struct scheduled_job *job, const struct change_record *record)
{
	const struct cluster *cluster = (const struct cluster *)job;
	/* A single pass looks once at tests and clusters. */
	int64_t since = job->context->agent->once ? NEVER_BEGUN + 1 : record->handed;

	if (!dict_get(&cluster->members, record->item.test))
		return FILTER_PASS;
	if (cluster->run || cluster->begun < since || too_early(cluster, record))
		return FILTER_HOLD;
	return cluster_covers(&cluster->cache, record) ? FILTER_SUPPRESS : FILTER_PASS;
}

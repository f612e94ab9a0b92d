/*
 * The list of clusters. One that is gone from the configuration stays in it without tests, since
 * its name may come back and its run may still be in progress.
 */
#include "agent/monitor/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/dict.h"
#include "agent/engine/timers.h"
#include "agent/monitor/cluster_run.h"
#include "agent/monitor/schedule.h"

enum {
	FIRST_SPREAD = 20,
	FIRST = 1000
};                     /* ms until the first run: for each test, and in any case */
enum { PATIENCE = 6 }; /* points after which a change no longer waits for its cluster */

#define NEVER_BEGUN INT64_MIN

struct cluster {
	struct clusters *all;
	char *name;
	struct arena *arena;       /* what the current configuration says of it; NULL: nothing */
	const struct group *group; /* NULL: removed from the configuration */
	const struct test **tests; /* of the group, as scheduled */
	size_t test_count;
	struct dict members; /* the same by name */
	struct cluster_run *run;
	bool changed;             /* changed during its run: the results are dropped */
	int64_t begun, beginning; /* engine_now at the start of the last finished run, and of the
				     current one */
	bool failing;
	size_t id;                    /* in the schedule, while it has a group */
	bool taken;                   /* the schedule slot is taken by the current run */
	struct cluster_memory memory; /* held by the run while one is in progress */
	struct cluster *next;
};

struct clusters {
	struct agent *agent;
	struct dispatcher *dispatcher;
	struct cluster *first;
	struct schedule *schedule;
	struct alarm alarm; /* for the next run that is due */
	bool started;
};

static void arm(struct clusters *clusters)
{
	int64_t due = schedule_next(clusters->schedule);

	if (!clusters->agent->stopping && due != INT64_MAX)
		engine_alarm(clusters->agent->engine, &clusters->alarm, due);
}

/* When the run counts as finished; in a simulation not before there is new data. */
static int64_t rest_of(const struct cluster *cluster)
{
	struct agent *agent = cluster->all->agent;
	int64_t least = INT64_MAX;

	for (size_t i = 0; agent->simulation && i < cluster->test_count; i++) {
		int64_t rest = agent->simulation->rest(agent, cluster->tests[i]);

		least = rest < least ? rest : least;
	}
	return least == INT64_MAX ? engine_now(agent->engine) : least;
}

static void note_end(struct cluster *cluster, const char *problem)
{
	if (problem && !cluster->failing)
		log_event(LEVEL_WARN, "cluster failed", LOG_TEXT("group", cluster->name),
			LOG_TEXT("problem", problem));
	if (!problem && cluster->failing)
		log_event(LEVEL_INFO, "cluster recovered", LOG_TEXT("group", cluster->name));
	cluster->failing = problem != NULL;
}

static void begin(struct cluster *cluster);

static void run_done(void *context, const char *problem)
{
	struct cluster *cluster = context;
	struct clusters *clusters = cluster->all;
	struct agent *agent = clusters->agent;

	cluster->run = NULL;
	if (cluster->changed) {
		cluster_memory_free(&cluster->memory);
		cluster->begun = NEVER_BEGUN;
	} else if (!agent->stopping) {
		note_end(cluster, problem);
		agent->incomplete |= problem != NULL;
		cluster->begun = cluster->beginning;
	}
	dispatcher_look(clusters->dispatcher);
	if (agent->once || !cluster->group)
		return;
	if (cluster->taken)
		schedule_done(clusters->schedule, cluster->id, rest_of(cluster));
	cluster->taken = false;
	if (cluster->changed && !agent->stopping) {
		schedule_pick(clusters->schedule, cluster->id);
		begin(cluster);
	}
	arm(clusters);
}

static void begin(struct cluster *cluster)
{
	struct agent *agent = cluster->all->agent;

	cluster->changed = false;
	cluster->taken = true;
	cluster->beginning = engine_now(agent->engine);
	cluster->run = cluster_run_begin(&(struct cluster_begin){.agent = agent,
		.dispatcher = cluster->all->dispatcher,
		.group = cluster->group,
		.tests = cluster->tests,
		.test_count = cluster->test_count,
		.silent = agent->simulation && cluster->begun == NEVER_BEGUN,
		.memory = &cluster->memory,
		.done = run_done,
		.context = cluster});
}

static struct cluster *scheduled(const struct clusters *clusters, size_t id)
{
	struct cluster *cluster = clusters->first;

	while (!cluster->group || cluster->id != id)
		cluster = cluster->next;
	return cluster;
}

static void tick(void *context)
{
	struct clusters *clusters = context;
	int64_t now = engine_now(clusters->agent->engine);
	size_t id;

	while (!clusters->agent->stopping && schedule_take(clusters->schedule, now, &id)) {
		struct cluster *cluster = scheduled(clusters, id);

		cluster->taken = true;
		if (!cluster->run) /* else the run began before the group was removed */
			begin(cluster);
	}
	arm(clusters);
}

static struct cluster *find_cluster(const struct clusters *clusters, const char *name)
{
	struct cluster *cluster = clusters->first;

	while (cluster && strcmp(cluster->name, name) != 0)
		cluster = cluster->next;
	return cluster;
}

static struct cluster *add_cluster(struct clusters *clusters, const char *name)
{
	struct cluster *cluster = memory_new(1, sizeof *cluster);

	*cluster = (struct cluster){.all = clusters,
		.name = memory_strdup(name),
		.begun = NEVER_BEGUN,
		.next = clusters->first};
	clusters->first = cluster;
	return cluster;
}

/* Drops what earlier runs found: results from now on are not comparable. */
static void forget(struct cluster *cluster)
{
	if (cluster->run) {
		cluster_run_drop(cluster->run);
		cluster->changed = true;
		return;
	}
	cluster_memory_free(&cluster->memory);
	cluster->begun = NEVER_BEGUN;
}

static void remove_cluster(struct cluster *cluster)
{
	if (!cluster->group)
		return;
	forget(cluster);
	if (cluster->all->started && !cluster->all->agent->once)
		schedule_remove(cluster->all->schedule, cluster->id);
	cluster->group = NULL;
	cluster->taken = false;
	cluster->test_count = 0;
	arena_free(cluster->arena);
	cluster->arena = NULL;
}

static void list_tests(
	struct cluster *cluster, const struct group *group, const struct dict *watched)
{
	arena_free(cluster->arena);
	cluster->arena = arena_new();
	cluster->members = (struct dict){.arena = cluster->arena};
	cluster->tests = arena_array(cluster->arena, group->count, sizeof *cluster->tests);
	cluster->test_count = 0;
	for (size_t i = 0; i < group->count; i++) {
		const struct test *test = group->tests[i];

		if (test->unsupported || !dict_get(watched, test->name))
			continue;
		cluster->tests[cluster->test_count++] = test;
		*dict_place(&cluster->members, arena_strdup(cluster->arena, test->name)) = test;
	}
}

static void enter(struct cluster *cluster)
{
	struct clusters *clusters = cluster->all;
	const struct agent *agent = clusters->agent;
	int64_t first = FIRST + FIRST_SPREAD * (int64_t)agent->config_ref->test_count;

	if (agent->once)
		begin(cluster);
	else
		cluster->id = schedule_add(clusters->schedule, cluster->name,
			cluster->group->cluster->interval, engine_now(agent->engine), first);
}

static void adopt(struct cluster *cluster, const struct group *group)
{
	const struct cluster_settings *before = cluster->group ? cluster->group->cluster : NULL;
	struct clusters *clusters = cluster->all;
	bool changed = before && before->fingerprint != group->cluster->fingerprint;
	int64_t interval = before ? before->interval : 0;

	cluster->group = group;
	if (changed)
		forget(cluster);
	if (!clusters->started)
		return;
	if (!before)
		enter(cluster);
	else if (interval != group->cluster->interval)
		schedule_change(clusters->schedule, cluster->id, group->cluster->interval,
			engine_now(clusters->agent->engine));
}

void clusters_adopt(struct clusters *clusters)
{
	const struct config_ref *config_ref = clusters->agent->config_ref;
	const struct config *config = config_ref->config;
	struct arena *arena = arena_new();
	struct dict watched = {.arena = arena};

	for (size_t i = 0; i < config_ref->test_count; i++)
		*dict_place(&watched, config_ref->tests[i]->name) = config_ref->tests[i];
	for (struct cluster *cluster = clusters->first; cluster; cluster = cluster->next) {
		const struct group *group = config_group(config, cluster->name);

		if (!group || !group->cluster)
			remove_cluster(cluster);
	}
	for (size_t i = 0; i < config->group_count; i++) {
		const struct group *group = &config->groups[i];
		struct cluster *cluster = find_cluster(clusters, group->name);

		if (!group->cluster)
			continue;
		if (!cluster)
			cluster = add_cluster(clusters, group->name);
		list_tests(cluster, group, &watched);
		if (cluster->test_count > 0)
			adopt(cluster, group);
		else
			remove_cluster(cluster);
	}
	arena_free(arena);
	if (clusters->started && !clusters->agent->once)
		arm(clusters);
}

/* Whether too few points follow the change for the cluster to report it, and more can be
 * expected. */
static bool too_early(const struct cluster *cluster, const struct change_record *record)
{
	return !cluster->failing && record->item.time > cluster->memory.reach &&
	       agent_now(cluster->all->agent) < record->item.time + PATIENCE * record->spacing;
}

/* Whether the cluster will report the change, or has done so. */
static enum filter_verdict judge_for(
	const struct cluster *cluster, const struct change_record *record)
{
	const struct agent *agent = cluster->all->agent;

	if (!cluster->group || !dict_get(&cluster->members, record->item.test))
		return FILTER_PASS;
	if (cluster->run || (!agent->once && cluster->begun < record->handed))
		return FILTER_HOLD;
	if (too_early(cluster, record))
		return FILTER_HOLD;
	return cluster_covers(&cluster->memory, record) ? FILTER_SUPPRESS : FILTER_PASS;
}

static enum filter_verdict judge(void *context, struct change_record *record, const char **reason)
{
	const struct clusters *clusters = context;
	enum filter_verdict verdict = FILTER_PASS;

	for (const struct cluster *at = clusters->first; at; at = at->next) {
		enum filter_verdict next = judge_for(at, record);

		if (next == FILTER_PASS)
			continue;
		verdict = next;
		*reason = next == FILTER_HOLD ? "waiting for the next run of its cluster"
					      : "announced by its cluster";
		if (next == FILTER_SUPPRESS)
			break;
	}
	return verdict;
}

void clusters_start(struct clusters *clusters)
{
	clusters->started = true;
	for (struct cluster *cluster = clusters->first; cluster; cluster = cluster->next)
		if (cluster->group)
			enter(cluster);
	if (!clusters->agent->once)
		arm(clusters);
}

struct clusters *clusters_new(struct agent *agent, struct dispatcher *dispatcher)
{
	struct clusters *clusters = memory_new(1, sizeof *clusters);

	*clusters = (struct clusters){.agent = agent,
		.dispatcher = dispatcher,
		.schedule = schedule_new(),
		.alarm = {.call = tick, .context = clusters}};
	dispatcher_filter(dispatcher, (struct filter){"cluster", NULL, judge, clusters});
	clusters_adopt(clusters);
	return clusters;
}

void clusters_free(struct clusters *clusters)
{
	if (!clusters)
		return;
	for (struct cluster *cluster = clusters->first, *next; cluster; cluster = next) {
		next = cluster->next;
		cluster_run_free(cluster->run);
		cluster_memory_free(&cluster->memory);
		arena_free(cluster->arena);
		free(cluster->name);
		free(cluster);
	}
	schedule_free(clusters->schedule);
	free(clusters);
}

/*
 * A turn is one call of the store, every few seconds: what the agent has decided about shards since
 * the turn before, the renewal of its lease, and the picture of the fleet after that. What it holds
 * is what the picture says, never what it has asked for: an answer that was lost does no harm.
 *
 * A shard goes through these states: gaining (the picture has it, what is stored is being read),
 * held, leaving (nothing new is begun; it is given back once nothing is under way), none.
 *
 * Shards are found by hash: agents need no list of who has what to agree on it.
 */
#include "agent/fleet/fleet.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/base/hash.h"
#include "agent/fleet/tests.h"

enum {
	TURN_EVERY = 5000,    /* ms */
	TURN_AGAIN = 1000,    /* ms; after a failure, and while shards are handed over */
	TRUST_MARGIN = 3000,  /* ms: trust ends so much before the lease */
	REAP_AFTER = 6000,    /* ms: all agents have had a turn since the database is back */
	LEAVING_MOST = 30000, /* ms: then it is given back even if work is in progress */
	LISTENERS = 24,
	INSTANCE_BITS = 53, /* exact in JSON */
};

enum shard_state { SHARD_NONE, SHARD_GAINING, SHARD_HELD, SHARD_LEAVING };

struct shard {
	enum shard_state state;
	bool restoring;  /* gaining, and its stored state has been requested */
	int64_t gained;  /* clock_boot: when it was */
	int64_t leaving; /* clock_boot: since when it is */
	int64_t term;    /* as in the last picture */
	size_t calls;    /* with a fence, in progress */
};

struct fleet {
	struct agent *agent;
	char *name;
	int64_t instance, configuration;
	bool started, joined, asking, restoring, hurried, scripted, left;
	struct shard shards[FLEET_SHARDS];
	struct fleet_listener listeners[LISTENERS];
	size_t listener_count;
	struct alarm alarm;
	struct arena *arena;     /* of the picture */
	struct store_turn *seen; /* the picture; NULL: none yet */
	struct fleet_news news;
	bool told;        /* `news` was */
	int64_t trusted;  /* clock_boot: until then; 0: not */
	int64_t renewing; /* clock_boot: the turn in progress began */
	int64_t steady;   /* clock_boot: since then renewals come in time; 0: they do not */
	int64_t ahead;    /* ms by which the database's clock is ahead of clock_boot */
	int64_t take;     /* decided in the last turn */
	bool reap;
	void (*ready)(void *context, const struct error *error); /* with agent->once */
	void *context;
};

static int shard_of(const char *kind, const char *name)
{
	uint64_t hash = hash_add(HASH_START, kind, strlen(kind));

	hash = hash_add(hash, name, strlen(name));
	hash ^= hash >> 32;
	hash *= UINT64_C(0x9e3779b97f4a7c15);
	return (int)(hash >> 56);
}

int fleet_shard_of_test(const char *name)
{
	return shard_of("test ", name);
}

int fleet_shard_of_receiver(const char *name)
{
	return shard_of("receiver ", name);
}

/* --- Shares. */

static size_t at_of(const struct store_turn *seen, int64_t instance)
{
	size_t at = 0;

	while (at < seen->agent_count &&
		(seen->agents[at].instance != instance || seen->agents[at].gone))
		at++;
	return at;
}

/* Each agent should have `low` shards or one more. Agents with fewer come first; further free
 * shards go to any agent. An agent with one more gives it back if another would have fewer than
 * `low`. */
static struct fleet_plan plan_of(
	const struct store_turn *seen, size_t self, const int *held, int unheld)
{
	struct fleet_plan plan = {0};
	int living = 0, low, high, short_of = 0, over = 0, before = 0;

	for (size_t i = 0; i < seen->agent_count; i++)
		living += seen->agents[i].gone == 0;
	low = FLEET_SHARDS / living;
	high = low + (FLEET_SHARDS % living > 0);
	for (size_t i = 0; i < seen->agent_count; i++) {
		if (seen->agents[i].gone)
			continue;
		short_of += held[i] < low ? low - held[i] : 0;
		over += held[i] > high ? held[i] - high : 0;
		before += held[i] == high && seen->agents[i].instance < seen->agents[self].instance;
	}
	if (held[self] > high)
		plan.release = held[self] - high;
	else if (high > low && held[self] == high && before < short_of - unheld - over)
		plan.release = 1;
	if (held[self] < low)
		plan.take = low - held[self] < unheld ? low - held[self] : unheld;
	if (held[self] + plan.take < high && unheld > short_of)
		plan.take++;
	return plan;
}

struct fleet_plan fleet_plan(const struct store_turn *seen, int64_t self, bool all)
{
	size_t at = at_of(seen, self), holder;
	struct fleet_plan plan = {0};
	int *held, unheld = 0;

	if (at == seen->agent_count)
		return plan;
	held = memory_new(seen->agent_count, sizeof *held);
	for (int i = 0; i < FLEET_SHARDS; i++) {
		holder = at_of(seen, seen->shards[i].holder);
		if (holder < seen->agent_count)
			held[holder]++;
		else
			unheld++;
	}
	plan = all ? (struct fleet_plan){.take = unheld} : plan_of(seen, at, held, unheld);
	free(held);
	return plan;
}

/* --- The shards held. */

static bool is_trusted(const struct fleet *fleet)
{
	return fleet->trusted > clock_boot();
}

bool fleet_holds(const struct agent *agent, int shard)
{
	const struct fleet *fleet = agent->fleet;

	return !fleet || (fleet->shards[shard].state == SHARD_HELD && is_trusted(fleet));
}

bool fleet_is_trusted(const struct agent *agent)
{
	return is_trusted(agent->fleet);
}

bool fleet_keeps(const struct agent *agent, int shard)
{
	return !fleet_is_shared(agent) || agent->fleet->shards[shard].state >= SHARD_HELD;
}

bool fleet_is_shared(const struct agent *agent)
{
	return agent->fleet && !agent->once;
}

void fleet_fence(const struct agent *agent, struct store_call *call, int shard)
{
	const struct fleet *fleet = agent->fleet;

	call->shard = shard;
	if (!fleet)
		return;
	call->holder = fleet->instance;
	call->term = fleet->shards[shard].state != SHARD_NONE ? fleet->shards[shard].term : -1;
}

void fleet_call_begins(struct agent *agent, struct store_call *call)
{
	if (call->holder == 0)
		call->holder = agent->fleet->instance;
	if (call->term != 0 && !call->single)
		agent->fleet->shards[call->shard].calls++;
}

void fleet_call_ends(struct agent *agent, const struct store_call *call)
{
	if (call->term == 0)
		return;
	if (!call->single)
		agent->fleet->shards[call->shard].calls--;
	if (call->fenced)
		fleet_hurry(agent);
}

size_t fleet_size(const struct agent *agent)
{
	const struct store_turn *seen = agent->fleet ? agent->fleet->seen : NULL;
	size_t living = 0;

	for (size_t i = 0; seen && i < seen->agent_count; i++)
		living += seen->agents[i].gone == 0;
	return living > 0 ? living : 1;
}

const char *fleet_name(const struct agent *agent)
{
	return agent->fleet ? agent->fleet->name : "";
}

int64_t fleet_instance(const struct agent *agent)
{
	return agent->fleet ? agent->fleet->instance : 0;
}

const char *fleet_agent_name(const struct agent *agent, int64_t instance)
{
	const struct store_turn *seen = agent->fleet ? agent->fleet->seen : NULL;
	size_t at = seen ? at_of(seen, instance) : 0;

	return seen && at < seen->agent_count ? seen->agents[at].name : NULL;
}

const char *fleet_holder(const struct agent *agent, int shard)
{
	const struct store_turn *seen = agent->fleet ? agent->fleet->seen : NULL;

	return seen ? fleet_agent_name(agent, seen->shards[shard].holder) : NULL;
}

const struct store_turn *fleet_picture(const struct agent *agent)
{
	return agent->fleet ? agent->fleet->seen : NULL;
}

/* ms since 1970, by the database's clock. */
static int64_t now_of(const struct fleet *fleet)
{
	return clock_boot() + fleet->ahead;
}

const char *fleet_trouble(const struct agent *agent)
{
	const struct fleet *fleet = agent->fleet;

	if (!fleet || is_trusted(fleet))
		return NULL;
	return fleet->seen ? "cannot renew the lease in time: the database does not respond"
			   : "joining the fleet";
}

/* --- Notifying the parts. */

void fleet_listen(struct agent *agent, const struct fleet_listener *listener)
{
	struct fleet *fleet = agent->fleet;

	if (!fleet)
		return;
	if (fleet->listener_count == LISTENERS)
		abort();
	fleet->listeners[fleet->listener_count++] = *listener;
}

static void count_held(struct fleet *fleet)
{
	size_t held = 0;

	for (int i = 0; i < FLEET_SHARDS; i++)
		held += fleet->shards[i].state == SHARD_HELD ||
			fleet->shards[i].state == SHARD_LEAVING;
	metrics_set(fleet->agent->metrics, METRIC_SHARDS_HELD, (double)held, NULL);
	metrics_set(
		fleet->agent->metrics, METRIC_FLEET_AGENTS, (double)fleet_size(fleet->agent), NULL);
}

static void tell_lost(struct fleet *fleet, const struct fleet_shards *lost)
{
	size_t count = 0;

	for (int i = 0; i < FLEET_SHARDS; i++)
		count += lost->has[i];
	if (count == 0)
		return;
	log_event(LEVEL_INFO, "released shards", LOG_INT("shards", count));
	for (size_t i = 0; i < fleet->listener_count; i++)
		if (fleet->listeners[i].lost)
			fleet->listeners[i].lost(fleet->listeners[i].context, lost);
}

static void tell_gained(struct fleet *fleet, const struct store_restore *restored)
{
	struct fleet_shards gained = {0};
	size_t count = 0;

	for (int i = 0; i < FLEET_SHARDS; i++) {
		struct shard *shard = &fleet->shards[i];

		gained.has[i] = shard->state == SHARD_GAINING && shard->restoring;
		if (gained.has[i])
			shard->state = SHARD_HELD;
		count += gained.has[i];
	}
	if (count == 0)
		return;
	log_event(LEVEL_INFO, "claimed shards", LOG_INT("shards", count));
	for (size_t i = 0; i < fleet->listener_count; i++)
		if (fleet->listeners[i].gained)
			fleet->listeners[i].gained(fleet->listeners[i].context, &gained, restored);
}

static void tell_ready(struct fleet *fleet, const struct error *error)
{
	void (*ready)(void *context, const struct error *error) = fleet->ready;

	if (!ready)
		return;
	fleet->ready = NULL;
	engine_release(fleet->agent->engine);
	ready(fleet->context, error);
}

static void tell_news(struct fleet *fleet)
{
	if (fleet->restoring || !fleet->told)
		return;
	fleet->told = false;
	for (size_t i = 0; i < fleet->listener_count; i++)
		if (fleet->listeners[i].news)
			fleet->listeners[i].news(fleet->listeners[i].context, &fleet->news);
}

static void restore(struct fleet *fleet);

static void restored(struct store_restore *request)
{
	struct fleet *fleet = request->call.context;

	fleet->restoring = false;
	if (!request->call.failed && !fleet->agent->stopping) {
		tell_gained(fleet, request);
		count_held(fleet);
		restore(fleet); /* of shards gained meanwhile */
		tell_news(fleet);
	}
	store_call_free(&request->call);
}

static void restore(struct fleet *fleet)
{
	struct store_restore *request;
	bool gaining = false;

	if (fleet->restoring || fleet->agent->stopping)
		return;
	for (int i = 0; i < FLEET_SHARDS; i++) {
		fleet->shards[i].restoring = fleet->shards[i].state == SHARD_GAINING;
		gaining |= fleet->shards[i].restoring;
	}
	if (!gaining)
		return;
	fleet->restoring = true;
	request = store_restore_new(restored, fleet);
	store_client_call(fleet->agent, &request->call);
}

/* --- A turn's answer. */

static void see_shards(struct fleet *fleet, const struct store_turn *turn)
{
	struct fleet_shards lost = {0};

	for (int i = 0; i < FLEET_SHARDS; i++) {
		const struct store_shard *is = &turn->shards[i];
		struct shard *was = &fleet->shards[i];
		bool mine = turn->renewed && is->holder == fleet->instance;

		if (was->state != SHARD_NONE && (!mine || was->term != is->term)) {
			lost.has[i] = was->state != SHARD_GAINING;
			was->state = SHARD_NONE;
			was->restoring = false;
		}
		if (mine && was->state == SHARD_NONE) {
			was->state = fleet->ready ? SHARD_HELD : SHARD_GAINING;
			was->gained = clock_boot();
		}
		was->term = is->term;
	}
	tell_lost(fleet, &lost);
}

/* The agents, the individually leased tests, and the leader. */
static uint64_t configurations(const struct store_turn *turn)
{
	const struct store_shard *leader = &turn->shards[FLEET_LEADER];
	uint64_t hash = hash_add(HASH_START, &turn->singles, sizeof turn->singles);

	hash = hash_add(hash, &leader->holder, sizeof leader->holder);

	for (size_t i = 0; i < turn->agent_count; i++) {
		const struct store_agent *agent = &turn->agents[i];

		if (agent->gone)
			continue;
		hash = hash_add(hash, &agent->instance, sizeof agent->instance);
		hash = hash_add(hash, &agent->configuration, sizeof agent->configuration);
	}
	return hash;
}

/* The one to be handed over next: the one that was gained first, so that none changes hands again
 * before its tests have run; the leader last. -1: none. */
static int oldest(const struct fleet *fleet)
{
	int found = -1;

	for (int i = FLEET_SHARDS - 1; i >= 0; i--) {
		const struct shard *shard = &fleet->shards[i];

		if (shard->state != SHARD_GAINING && shard->state != SHARD_HELD)
			continue;
		if (found < 0 || (i != FLEET_LEADER && shard->gained < fleet->shards[found].gained))
			found = i;
	}
	return found;
}

static void hand_over(struct fleet *fleet, int count)
{
	int shard;

	for (int i = 0; i < FLEET_SHARDS; i++)
		count -= fleet->shards[i].state == SHARD_LEAVING;
	for (; count > 0 && (shard = oldest(fleet)) >= 0; count--) {
		fleet->shards[shard].state = SHARD_LEAVING;
		fleet->shards[shard].leaving = clock_boot();
	}
}

static void decide(struct fleet *fleet, const struct store_turn *turn)
{
	bool all = fleet->agent->once;
	struct fleet_plan plan = fleet_plan(turn, fleet->instance, all);

	fleet->take = fleet->agent->stopping ? 0 : plan.take;
	hand_over(fleet, plan.release);
	fleet->reap = false;
	for (size_t i = 0; i < turn->agent_count; i++) {
		const struct store_agent *other = &turn->agents[i];

		fleet->reap |=
			other->gone == 0 && other->instance != fleet->instance &&
			(other->until <= turn->now || other->until > turn->now + 2 * STORE_LEASE);
	}
	fleet->reap &= clock_boot() >= fleet->steady + REAP_AFTER && !fleet->agent->stopping;
}

static void turn_at(struct fleet *fleet, int64_t delay);

static void look_ahead(struct fleet *fleet, bool acted)
{
	bool leaving = false;

	for (int i = 0; i < FLEET_SHARDS; i++)
		leaving |= fleet->shards[i].state == SHARD_LEAVING;
	if ((fleet->take > 0 || fleet->reap || fleet->hurried) && !acted)
		turn_at(fleet, 0);
	else
		turn_at(fleet, fleet->take > 0 || leaving ? TURN_AGAIN : TURN_EVERY);
	fleet->hurried = false;
}

static void renewed(struct fleet *fleet)
{
	int64_t now = clock_boot();
	bool late = fleet->trusted != 0 && fleet->trusted <= now;

	if (late)
		log_event(
			LEVEL_WARN, "lease renewed late", LOG_INT("late_ms", now - fleet->trusted));
	if (late || fleet->steady == 0)
		fleet->steady = now;
	fleet->trusted = fleet->renewing + STORE_LEASE - TRUST_MARGIN;
	metrics_add(fleet->agent->metrics, METRIC_LEASE_RENEWALS, 1, late ? "late" : "in time");
}

static int64_t new_instance(void)
{
	uint64_t random = 0;

	while (random == 0) {
		if (getrandom(&random, sizeof random, 0) != sizeof random)
			abort();
		random >>= 64 - INSTANCE_BITS;
	}
	return (int64_t)random;
}

static void gone(struct fleet *fleet)
{
	log_message(LEVEL_WARN, "lease expired and taken over by other agents: rejoining");
	metrics_add(fleet->agent->metrics, METRIC_LEASE_RENEWALS, 1, "lost");
	fleet->instance = new_instance();
	fleet->joined = false;
	fleet->trusted = fleet->steady = 0;
	fleet->take = 0;
	fleet->reap = false;
}

static bool nobody_else(const struct store_turn *turn, int64_t self, struct error *error)
{
	for (size_t i = 0; i < turn->agent_count; i++) {
		const struct store_agent *other = &turn->agents[i];

		if (other->gone || other->instance == self || other->until <= turn->now)
			continue;
		return error_set(error, ERROR_STATE, "the state is in use by another agent, \"%s\"",
			other->name);
	}
	return true;
}

/* Refused: another agent works on it, which may have taken half of the shards by now. */
static bool is_alone(struct fleet *fleet, const struct store_turn *turn)
{
	struct error error;

	if (!fleet->ready || nobody_else(turn, fleet->instance, &error))
		return true;
	tell_ready(fleet, &error);
	return false;
}

void fleet_take(struct agent *agent, struct store_turn *turn)
{
	struct fleet *fleet = agent->fleet;
	struct metrics *metrics = agent->metrics;
	struct fleet_news news = {.due = turn->due,
		.due_set = turn->due_set,
		.last_delivery = turn->queued,
		.last_audit = turn->said,
		.requests = turn->requests,
		.views = (uint64_t)turn->views,
		.configuration = configurations(turn)};

	fleet->ahead = turn->now - clock_boot();
	see_shards(fleet, turn);
	arena_free(fleet->arena);
	fleet->arena = turn->call.arena;
	fleet->seen = turn;
	metrics_add(metrics, METRIC_TAKE_OVERS, (double)turn->taken_over, NULL);
	count_held(fleet);
	if (turn->reaped > 0)
		log_event(LEVEL_WARN, "agent leases expired", LOG_INT("agents", turn->reaped));
	restore(fleet);
	/* Repeats requests that were not taken yet. */
	fleet->told |= news.requests > 0 || memcmp(&news, &fleet->news, sizeof news) != 0;
	fleet->news = news;
	tell_news(fleet);
}

static void answered(struct store_turn *turn)
{
	struct fleet *fleet = turn->call.context;
	bool acted = turn->take > 0 || turn->reap, all = turn->singles == 0;

	if (!fleet || fleet->left) {
		store_call_free(&turn->call);
		return;
	}
	fleet->asking = false;
	if (turn->call.failed) {
		fleet->steady = 0; /* other agents may have had no turn either */
		metrics_add(fleet->agent->metrics, METRIC_LEASE_RENEWALS, 1, "failed");
		store_call_free(&turn->call);
		turn_at(fleet, TURN_AGAIN);
		return;
	}
	if (turn->renewed) {
		fleet->joined = true;
		renewed(fleet);
	} else {
		gone(fleet);
	}
	fleet_take(fleet->agent, turn);
	if (turn->renewed && is_alone(fleet, turn))
		decide(fleet, turn);
	for (int i = 0; i < FLEET_SHARDS; i++)
		all &= fleet->shards[i].state == SHARD_HELD;
	if (all)
		tell_ready(fleet, NULL);
	if (turn->renewed)
		look_ahead(fleet, acted);
	else
		turn_at(fleet, 0);
}

/* --- Turns. */

static bool is_busy(const struct fleet *fleet, int shard)
{
	if (clock_boot() - fleet->shards[shard].leaving > LEAVING_MOST)
		return false;
	if (fleet->shards[shard].calls > 0)
		return true;
	for (size_t i = 0; i < fleet->listener_count; i++)
		if (fleet->listeners[i].is_busy &&
			fleet->listeners[i].is_busy(fleet->listeners[i].context, shard))
			return true;
	return false;
}

static struct store_turn *turn_new(struct fleet *fleet, void (*reply)(struct store_turn *turn))
{
	const struct agent *agent = fleet->agent;
	struct store_turn *turn = store_turn_new(reply, fleet);
	struct arena *arena = turn->call.arena;

	turn->self = (struct store_agent){.instance = fleet->instance,
		.name = arena_strdup(arena, fleet->name),
		.address = arena_strdup(arena,
			agent->config->agent.external_url ? agent->config->agent.external_url : ""),
		.version = HUNTER_VERSION,
		.configuration = fleet->configuration,
		.tests = (int64_t)agent->config_ref->test_count};
	return turn;
}

static void take_turn(void *context)
{
	struct fleet *fleet = context;
	struct store_turn *turn;

	if (fleet->asking || fleet->left)
		return;
	turn = turn_new(fleet, answered);
	turn->join = !fleet->joined;
	turn->take = fleet->agent->stopping ? 0 : fleet->take;
	turn->reap = fleet->reap && !fleet->agent->stopping;
	turn->alone = fleet->agent->once;
	if (fleet->agent->stopping)
		hand_over(fleet, FLEET_SHARDS);
	for (int i = 0; i < FLEET_SHARDS; i++) {
		struct shard *shard = &fleet->shards[i];

		turn->release[i] = shard->state == SHARD_LEAVING && !is_busy(fleet, i);
	}
	fleet->asking = true;
	fleet->renewing = clock_boot();
	store_client_call(fleet->agent, &turn->call);
}

static void turn_at(struct fleet *fleet, int64_t delay)
{
	if (delay >= TURN_EVERY)
		delay -= clock_boot() - fleet->renewing; /* from start to start */
	engine_alarm_aside(fleet->agent->engine, &fleet->alarm, clock_monotonic() + delay);
}

void fleet_hurry(struct agent *agent)
{
	struct fleet *fleet = agent->fleet;

	if (!fleet || !fleet->started || fleet->scripted)
		return;
	fleet->hurried = fleet->asking;
	if (!fleet->asking)
		turn_at(fleet, 0);
}

void fleet_announce(struct agent *agent, int64_t configuration)
{
	if (!agent->fleet || agent->fleet->configuration == configuration)
		return;
	agent->fleet->configuration = configuration;
	fleet_hurry(agent);
}

/* --- Its life. */

static int64_t database_now(const struct agent *agent)
{
	return now_of(agent->fleet);
}

static const struct shared_state shared_state = {database_now, fleet_call_begins, fleet_call_ends};

static struct fleet *fleet_make(struct agent *agent)
{
	struct fleet *fleet = memory_new(1, sizeof *fleet);
	const char *given = agent->config->agent.name;
	char name[256] = "";

	if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0')
		memcpy(name, "hunter-c", sizeof "hunter-c");
	*fleet = (struct fleet){.agent = agent,
		.name = memory_strdup(given ? given : name),
		.instance = new_instance(),
		.ahead = clock_wall() - clock_boot(),
		.alarm = {.call = take_turn, .context = fleet}};
	agent->fleet = fleet;
	agent->shared_state = &shared_state;
	fleet_tests_new(agent);
	return fleet;
}

bool fleet_new(struct agent *agent, struct error *error)
{
	struct fleet *fleet;
	struct store_turn *turn;
	bool done;

	if (!store_is_shared(agent->store))
		return true;
	fleet = fleet_make(agent);
	turn = turn_new(fleet, NULL);
	turn->self.instance = 0; /* it only looks */
	done = store_turn_now(agent->store, turn, error);
	if (done)
		fleet->ahead = turn->now - clock_boot();
	/* Other agents do not see a single run that is refused. */
	if (done && agent->once)
		done = nobody_else(turn, fleet->instance, error);
	store_call_free(&turn->call);
	return done;
}

void fleet_start(
	struct agent *agent, void (*ready)(void *context, const struct error *error), void *context)
{
	struct fleet *fleet = agent->fleet;

	if (!fleet)
		return;
	fleet->ready = ready;
	fleet->context = context;
	fleet->started = true;
	if (ready)
		engine_hold(agent->engine);
	take_turn(fleet);
}

void fleet_leave(struct agent *agent)
{
	struct fleet *fleet = agent->fleet;
	struct store_turn *turn;

	if (!fleet || !fleet->started || fleet->left || fleet->scripted)
		return;
	fleet->left = true;
	turn = turn_new(fleet, NULL);
	turn->leave = true;
	store_last(agent->store, &turn->call);
}

void fleet_free(struct agent *agent)
{
	struct fleet *fleet = agent->fleet;

	if (!fleet)
		return;
	fleet_tests_free(agent);
	arena_free(fleet->arena);
	free(fleet->name);
	free(fleet);
	agent->fleet = NULL;
	agent->shared_state = NULL;
}

/* --- For tests. */

void fleet_scripted(struct agent *agent)
{
	struct fleet *fleet = fleet_make(agent);

	fleet->scripted = fleet->started = true;
	fleet->trusted = INT64_MAX;
}

void fleet_script_trust(struct agent *agent, bool trusted)
{
	agent->fleet->trusted = trusted ? INT64_MAX : 0;
}

/* One call writes this agent's updates and reads all views; one call is in progress at a time. */
#include "agent/monitor/views.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/dict.h"
#include "agent/base/when.h"
#include "agent/fleet/fleet.h"
#include "agent/runtime/poll.h"

enum { MOMENT = 200, AGAIN = 5000, SETTLED = 60000 }; /* ms */

/* This agent's view of a source. */
struct own_view {
	const char *source;
	struct own_view *next;
	struct source_view view; /* as last seen */
	bool there;              /* it runs tests of it */
	bool written;            /* the state has it as it is */
};

struct views {
	struct agent *agent;
	struct conditions *conditions;
	void (*tell)(void *context, const struct condition *condition);
	void *context;
	struct arena *arena; /* of the names */
	struct dict names;
	struct own_view *own;
	size_t count;
	struct store_views *seen; /* the last answer, or NULL */
	bool leader;
	int64_t changed; /* engine_now, when anything was another than before */
	struct poll poll;
	struct alarm settle; /* when nothing has changed for a while */
};

static void ask(void *context);
static void judge(void *context);

struct views *views_new(struct agent *agent, struct conditions *conditions,
	void (*tell)(void *context, const struct condition *condition), void *context)
{
	struct views *views = memory_new(1, sizeof *views);

	*views = (struct views){.agent = agent,
		.conditions = conditions,
		.tell = tell,
		.context = context,
		.arena = arena_new()};
	views->names.arena = views->arena;
	views->poll = (struct poll){.agent = agent, .ask = ask, .context = views};
	views->settle = (struct alarm){.call = judge, .context = views};
	return views;
}

void views_free(struct views *views)
{
	if (!views)
		return;
	if (views->seen)
		store_call_free(&views->seen->call);
	arena_free(views->arena);
	free(views);
}

/* Notes what other agents have reported of a source, and how much more this one may. */
static void share(const struct views *views, const char *source)
{
	size_t size = fleet_size(views->agent);

	conditions_others(views->conditions, source, views->seen ? views->seen->views : NULL,
		views->seen ? views->seen->view_count : 0,
		size < CONDITION_TOLD_SINGLY ? CONDITION_TOLD_SINGLY / size : 1);
}

static void judge(void *context)
{
	struct views *views = context;
	struct engine *engine = views->agent->engine;
	int64_t rest = views->changed + SETTLED - engine_now(engine);
	bool settled = rest <= 0;

	/* No agent runs the tests of a shard without a holder. */
	for (int shard = 0; settled && shard < FLEET_SHARDS; shard++)
		settled = fleet_holds(views->agent, shard) || fleet_holder(views->agent, shard);
	if (!views->leader || !views->seen || !fleet_holds(views->agent, FLEET_LEADER))
		return;
	conditions_judge(views->conditions, views->seen->views, views->seen->view_count,
		agent_now(views->agent), settled, views->tell, views->context);
	if (conditions_wait(views->conditions) && !views->agent->once)
		engine_alarm(
			engine, &views->settle, engine_now(engine) + (rest > 0 ? rest : SETTLED));
}

static void answered(struct store_views *answer)
{
	struct views *views = answer->call.context;

	if (answer->call.failed) {
		for (struct own_view *own = views->own; own; own = own->next)
			own->written = false;
		poll_answered(&views->poll, AGAIN);
		store_call_free(&answer->call);
		return;
	}
	if (views->seen)
		store_call_free(&views->seen->call);
	views->seen = answer;
	views->changed = engine_now(views->agent->engine);
	for (const struct own_view *own = views->own; own; own = own->next)
		share(views, own->source);
	judge(views);
	poll_answered(&views->poll, WHEN_NEVER);
}

static void ask(void *context)
{
	struct views *views = context;
	struct store_views *request;
	struct source_view *write;
	struct arena *arena;
	const char **forget;

	request = store_views_new(answered, views);
	arena = request->call.arena;
	request->write = write = arena_array(arena, views->count, sizeof *write);
	request->forget.items = forget = arena_array(arena, views->count, sizeof *forget);
	for (struct own_view *own = views->own; own; own = own->next) {
		if (own->written)
			continue;
		own->written = true;
		if (!own->there) {
			forget[request->forget.count++] = arena_strdup(arena, own->source);
			continue;
		}
		write[request->write_count] = own->view;
		write[request->write_count].source = arena_strdup(arena, own->source);
		write[request->write_count++].text = arena_strdup(arena, own->view.text);
	}
	store_client_call(views->agent, &request->call);
}

void views_read(struct views *views)
{
	views->changed = engine_now(views->agent->engine);
	poll_after(&views->poll, 0);
}

void views_update(struct views *views, const char *source)
{
	struct own_view *own = (struct own_view *)(uintptr_t)dict_get(&views->names, source);
	struct source_view now;
	bool was;

	if (!own) {
		own = arena_alloc(views->arena, sizeof *own);
		*own = (struct own_view){.source = arena_strdup(views->arena, source),
			.next = views->own,
			.written = true};
		*dict_place(&views->names, own->source) = own;
		views->own = own;
		views->count++;
	}
	was = own->there;
	conditions_view(views->conditions, own->source, &now);
	own->there = true;
	if (!was)
		share(views, source);
	if (was && own->view.verdict == now.verdict && own->view.since == now.since &&
		own->view.awaited == now.awaited &&
		memcmp(own->view.told, now.told, sizeof now.told) == 0 &&
		memcmp(own->view.many, now.many, sizeof now.many) == 0)
		return;
	own->view = now;
	own->written = false;
	poll_after(&views->poll, MOMENT);
}

void views_retain(
	struct views *views, bool (*keeps)(void *context, const char *source), void *context)
{
	for (struct own_view *own = views->own; own; own = own->next) {
		if (!own->there || keeps(context, own->source))
			continue;
		own->there = own->written = false;
		poll_after(&views->poll, MOMENT);
	}
}

void views_renew(struct views *views)
{
	for (struct own_view *own = views->own; own; own = own->next)
		own->written = false;
	poll_after(&views->poll, MOMENT);
}

void views_lead(struct views *views, bool leads)
{
	views->leader = leads;
	if (leads)
		views_read(views);
}

/*
 * /api/v1/status: the agent's queues and problems: receivers with their pending messages, routes,
 * sources, the configuration, the state file and clock.
 */
#include <curl/curl.h>
#include <jansson.h>
#include <math.h>
#include <microhttpd.h>
#include <string.h>

#include "agent/base/database.h"
#include "agent/base/dict.h"
#include "agent/deliver/delivery_manager.h"
#include "agent/fleet/fleet.h"
#include "agent/web/api.h"
#include "conf/in_effect.h"

enum { MOST_SOURCES = 1000, MOST_RECEIVERS = 1000, MOST_DESTINATIONS = 200, MOST_ROUTES = 500 };

/* Receivers */

struct receiving {
	const char *receiver;
	struct buf items;
	size_t waiting, listed, left_out;
	int64_t since;
	const struct config *config; /* for those of receivers that are not configured; or NULL */
};

static void add_destination(void *context, const struct destination_state *state)
{
	struct receiving *receiving = context;
	struct buf *out = &receiving->items;
	const struct config *config = receiving->config;

	if (receiving->receiver && strcmp(receiving->receiver, state->receiver) != 0)
		return;
	for (size_t i = 0; !receiving->receiver && i < config->receiver_count; i++)
		if (strcmp(config->receivers[i].name, state->receiver) == 0)
			return;
	receiving->waiting += state->waiting;
	if (state->since != 0 && (receiving->since == 0 || state->since < receiving->since))
		receiving->since = state->since;
	if (receiving->listed == MOST_DESTINATIONS) {
		receiving->left_out++;
		return;
	}
	receiving->listed++;
	json_put(out,
		"\n{state: %s, receiver: %s, destination: %s, waiting: %zu, "
		"since: %jd moment, next_attempt: %jd moment, attempts: %jd, "
		"last_sent: %jd moment, last_failed: %jd moment, problem: %s}",
		state->state, state->receiver, state->destination, state->waiting, state->since,
		state->next, state->attempts, state->sent, state->failed, state->problem);
}

static void put_events(struct buf *out, const struct schema *schema, unsigned events)
{
	json_put(out, "events: [");
	for (size_t i = 0; i < schema->event_count; i++)
		if (events & 1u << i)
			json_put(out, "%s", schema->events[i]);
	buf_char(out, ']');
}

static void put_destinations(const struct api *api, struct buf *out, struct receiving *receiving)
{
	delivery_manager_each(api->options.delivery_manager, add_destination, receiving);
	json_put(out,
		"waiting: %zu, since: %jd moment, destinations: [%s json], "
		"destinations_left_out: %zu",
		receiving->waiting, receiving->since,
		receiving->items.data ? receiving->items.data : "", receiving->left_out);
	buf_free(&receiving->items);
}

static void put_receivers(const struct api *api, struct buf *out)
{
	const struct agent *agent = api->agent;
	const struct config *config = agent->config;
	struct receiving gone = {.config = config};

	json_put(out, "receivers: [");
	for (size_t i = 0; i < config->receiver_count && i < MOST_RECEIVERS; i++) {
		const struct receiver *receiver = &config->receivers[i];
		struct receiving receiving = {.receiver = receiver->name};
		int shard = fleet_shard_of_receiver(receiver->name);
		bool own = fleet_holds(agent, shard);

		json_put(out, "\n{name: %s, type: %s", receiver->name, receiver->notifier->name);
		put_events(out, agent->schema, receiver->events);
		/* In a fleet: who sends its messages; that agent alone knows of its destinations.
		 */
		json_put(out, "agent: %s optional, elsewhere: %d bool",
			!agent->fleet ? ""
			: own         ? fleet_name(agent)
				      : fleet_holder(agent, shard),
			!own);
		put_destinations(api, out, &receiving);
		buf_char(out, '}');
	}
	json_put(out, "], not_configured: {problem: null");
	put_destinations(api, out, &gone);
	buf_char(out, '}');
}

/* Routes */

struct route_list {
	const struct config *config;
	const struct schema *schema;
	struct buf *out;
	size_t left; /* that may still be shown */
	size_t left_out;
};

static void put_route(struct route_list *list, const struct notify_route *route)
{
	struct buf *out = list->out, text = {0};
	const char *verdict = route->verdict ? change_verdict_name(route->verdict) : "";
	double least = route->at_least > 0 ? route->at_least : (double)NAN;

	matchers_print(&route->match, &text);
	json_put(out, "{match: %s, at_least: %g, verdict: %s optional", text.data ? text.data : "",
		least, verdict);
	buf_free(&text);
	put_events(out, list->schema, route->events);
	json_put(out, "continue: %d bool, receivers: [", route->go_on);
	for (size_t i = 0; i < route->receiver_count; i++)
		json_put(out, "%s", list->config->receivers[route->receivers[i]].name);
	buf_char(out, ']');
	json_put(out, "group_by: %p, file: %s, line: %d, routes: [", &route->group_by, route->file,
		route->line);
	for (size_t i = 0; i < route->count; i++) {
		if (list->left == 0) {
			list->left_out += route->count - i;
			break;
		}
		list->left--;
		json_line(out);
		put_route(list, &route->routes[i]);
	}
	json_put(out, "]}");
}

static void put_routes(const struct api *api, struct buf *out)
{
	const struct config *config = api->agent->config;
	struct route_list list = {
		.config = config, .schema = api->agent->schema, .out = out, .left = MOST_ROUTES};

	json_put(out, "routes:");
	if (config->routes)
		put_route(&list, config->routes);
	else
		json_put(out, "null");
	json_put(out, "routes_left_out: %zu", list.left_out);
}

/* Sources */

struct source_state {
	const char *name;
	const struct plugin *plugin;
	const struct server *server; /* or NULL */
	size_t tests, failing, stale;
	int64_t down_since;
	const char *problem; /* of the first test that fails */
};

struct sources_states {
	struct arena *arena;
	struct dict dict;
	struct source_state *items[MOST_SOURCES];
	size_t count;
};

static void note_source(void *context, const struct scheduler_test *test)
{
	struct sources_states *states = context;
	const struct server *server = test->test->server;
	const char *name = server ? server->name : test->test->source->name;
	struct source_state *state =
		(struct source_state *)(uintptr_t)dict_get(&states->dict, name);

	if (!state && states->count == MOST_SOURCES)
		return;
	if (!state) {
		state = arena_alloc(states->arena, sizeof *state);
		*state = (struct source_state){
			.name = name, .plugin = test->test->source, .server = server};
		*dict_place(&states->dict, name) = state;
		states->items[states->count++] = state;
	}
	state->tests++;
	state->failing += test->failing;
	state->stale += test->stale;
	state->down_since = test->down_since;
	if (test->failing && !state->problem)
		state->problem = test->problem;
}

static void put_sources(const struct api *api, struct arena *arena, struct buf *out)
{
	struct sources_states *states = arena_alloc(arena, sizeof *states);

	*states = (struct sources_states){.arena = arena, .dict = {.arena = arena}};
	scheduler_each(api->scheduler, note_source, states);
	json_put(out, "sources: [");
	for (size_t i = 0; i < states->count; i++) {
		const struct source_state *state = states->items[i];

		json_put(out,
			"\n{name: %s, type: %s, address: %s optional, up: %d bool, "
			"down_since: %jd moment, tests: %zu, failing: %zu, stale: %zu, "
			"problem: %s}",
			state->name, state->plugin->name,
			state->server ? server_address(api->agent->config, api->agent->schema,
						state->server, arena)
				      : "",
			state->down_since == 0, state->down_since, state->tests, state->failing,
			state->stale, state->problem);
	}
	buf_char(out, ']');
}

/* The agent */

static double gauge(const struct agent *agent, enum metric_id id, const char *label)
{
	return metrics_value(agent->metrics, id, label);
}

/* Metrics have times in seconds. */
static int64_t moment(const struct agent *agent, enum metric_id id)
{
	return (int64_t)(1000 * gauge(agent, id, NULL));
}

static void put_agent(const struct api *api, struct buf *out)
{
	const struct agent *agent = api->agent;
	struct arena *scratch = arena_new();

	json_put(out,
		"{version: %s, unready: %s, now: %jd time, started: %jd moment, "
		"libraries: {libcurl: %s, libmicrohttpd: %s, jansson: %s}, "
		"configuration: {path: %s, loaded: %jd moment, "
		"last_reload_successful: %d bool, tests: %g, groups: %zu}, changes: {",
		HUNTER_VERSION, api->options.unready(api->options.context), agent_now(agent),
		moment(agent, METRIC_PROCESS_START_TIME),
		curl_version_info(CURLVERSION_NOW)->version, MHD_get_version(),
		jansson_version_str(), agent->config->path, moment(agent, METRIC_RELOAD_TIME),
		gauge(agent, METRIC_RELOAD_SUCCESSFUL, NULL) != 0, gauge(agent, METRIC_TESTS, NULL),
		agent->config->group_count);
	for (size_t state = 1; state < CHANGE_STATES; state++)
		if (change_state_names[state])
			json_put_number(out, change_state_names[state],
				gauge(agent, METRIC_CHANGES, change_state_names[state]));
	json_put(out,
		"silenced: %g, missed_runs: %g, last_run: %jd moment}, "
		"state: {path: %s, bytes: %jd, problem: %s optional}, "
		"clock: {ahead_seconds: %g, wrong: %d bool}",
		gauge(agent, METRIC_SILENCED, NULL), gauge(agent, METRIC_MISSED_RUNS, NULL),
		moment(agent, METRIC_LAST_PASS),
		database_shown(scratch, agent->config->agent.state), store_size(agent->store),
		agent->store_error.kind == ERROR_NONE ? "" : agent->store_error.text,
		gauge(agent, METRIC_CLOCK_AHEAD, NULL), agent->clock_ahead != 0);
	arena_free(scratch);
}

void api_get_status(struct http_request *request)
{
	const struct api *api = api_of(request);
	struct buf *out = &request->buffer;

	metrics_collect_process(api->agent->metrics);
	put_agent(api, out);
	put_sources(api, request->arena, out);
	put_receivers(api, out);
	put_routes(api, out);
	buf_char(out, '}');
	http_send(request, 200);
}

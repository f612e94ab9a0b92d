/*
 * /api/v1/status: the agent's queues and problems: receivers with their pending messages, routes,
 * sources, the configuration, the state file and clock.
 */
#include <curl/curl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <microhttpd.h>
#include <string.h>

#include "agent/base/database.h"
#include "agent/base/dict.h"
#include "agent/base/when.h"
#include "agent/deliver/delivery_manager.h"
#include "agent/fleet/fleet.h"
#include "agent/web/api.h"
#include "agent/web/pages.h"
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
	buf_printf(out, "%s\n    {\"state\": \"%s\"", receiving->listed++ ? "," : "", state->state);
	json_put_text(out, "receiver", state->receiver);
	json_put_text(out, "destination", state->destination);
	json_put_count(out, "waiting", state->waiting);
	json_put_moment(out, "since", state->since);
	json_put_moment(out, "next_attempt", state->next);
	buf_printf(out, ", \"attempts\": %" PRId64, state->attempts);
	json_put_moment(out, "last_sent", state->sent);
	json_put_moment(out, "last_failed", state->failed);
	json_put_text(out, "problem", state->problem);
	buf_char(out, '}');
}

static void put_events(struct buf *out, const struct schema *schema, unsigned events)
{
	buf_text(out, ", \"events\": [");
	for (size_t i = 0; i < schema->event_count; i++)
		if (events & 1u << i) {
			json_next(out);
			buf_json_text(out, schema->events[i]);
		}
	buf_char(out, ']');
}

static void put_destinations(const struct api *api, struct buf *out, struct receiving *receiving)
{
	delivery_manager_each(api->options.delivery_manager, add_destination, receiving);
	json_put_count(out, "waiting", receiving->waiting);
	json_put_moment(out, "since", receiving->since);
	buf_text(out, ", \"destinations\": [");
	buf_append(
		out, receiving->items.data ? receiving->items.data : "", receiving->items.length);
	buf_char(out, ']');
	json_put_count(out, "destinations_left_out", receiving->left_out);
	buf_free(&receiving->items);
}

static void put_receivers(const struct api *api, struct buf *out)
{
	const struct agent *agent = api->agent;
	const struct config *config = agent->config;
	struct receiving gone = {.config = config};

	buf_text(out, ",\n \"receivers\": [");
	for (size_t i = 0; i < config->receiver_count && i < MOST_RECEIVERS; i++) {
		const struct receiver *receiver = &config->receivers[i];
		struct receiving receiving = {.receiver = receiver->name};
		int shard = fleet_shard_of_receiver(receiver->name);
		bool own = fleet_holds(agent, shard);

		json_open(out, "name", receiver->name);
		json_put_text(out, "type", receiver->notifier->name);
		put_events(out, agent->schema, receiver->events);
		/* In a fleet: who sends its messages; that agent alone knows of its destinations.
		 */
		json_put_text(out, "agent",
			!agent->fleet ? NULL
			: own         ? fleet_name(agent)
				      : fleet_holder(agent, shard));
		json_put_bool(out, "elsewhere", !own);
		put_destinations(api, out, &receiving);
		buf_char(out, '}');
	}
	buf_text(out, "],\n \"not_configured\": {\"problem\": null");
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
	const char *verdict = route->verdict ? change_verdict_name(route->verdict) : NULL;

	matchers_print(&route->match, &text);
	json_open(out, "match", text.data ? text.data : "");
	buf_free(&text);
	json_put_number(out, "at_least", route->at_least > 0 ? route->at_least : (double)NAN);
	json_put_text(out, "verdict", verdict);
	put_events(out, list->schema, route->events);
	json_put_bool(out, "continue", route->go_on);
	buf_text(out, ", \"receivers\": [");
	for (size_t i = 0; i < route->receiver_count; i++) {
		json_next(out);
		buf_json_text(out, list->config->receivers[route->receivers[i]].name);
	}
	buf_char(out, ']');
	json_put_strings(out, "group_by", &route->group_by);
	json_put_text(out, "file", route->file);
	buf_printf(out, ", \"line\": %d, \"routes\": [", route->line);
	for (size_t i = 0; i < route->count; i++) {
		if (list->left == 0) {
			list->left_out += route->count - i;
			break;
		}
		list->left--;
		json_line(out);
		put_route(list, &route->routes[i]);
	}
	buf_text(out, "]}");
}

static void put_routes(const struct api *api, struct buf *out)
{
	const struct config *config = api->agent->config;
	struct route_list list = {
		.config = config, .schema = api->agent->schema, .out = out, .left = MOST_ROUTES};

	buf_text(out, ",\n \"routes\": ");
	if (config->routes)
		put_route(&list, config->routes);
	else
		buf_text(out, "null");
	json_put_count(out, "routes_left_out", list.left_out);
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
	buf_text(out, ",\n \"sources\": [");
	for (size_t i = 0; i < states->count; i++) {
		const struct source_state *state = states->items[i];

		json_open(out, "name", state->name);
		json_put_text(out, "type", state->plugin->name);
		json_put_text(out, "address",
			state->server ? server_address(api->agent->config, api->agent->schema,
						state->server, arena)
				      : NULL);
		json_put_bool(out, "up", state->down_since == 0);
		json_put_moment(out, "down_since", state->down_since);
		json_put_count(out, "tests", state->tests);
		json_put_count(out, "failing", state->failing);
		json_put_count(out, "stale", state->stale);
		json_put_text(out, "problem", state->problem);
		buf_char(out, '}');
	}
	buf_char(out, ']');
}

/* The agent */

static double gauge(const struct agent *agent, enum metric_id id, const char *label)
{
	return metrics_value(agent->metrics, id, label);
}

static void put_agent(const struct pages *pages, const struct agent *agent, struct buf *out)
{
	const char *unready = pages->unready(pages->context);

	json_open(out, "version", HUNTER_VERSION);
	json_put_text(out, "unready", unready);
	json_put_time(out, "now", agent_now(agent));
	json_put_moment(
		out, "started", (int64_t)(1000 * gauge(agent, METRIC_PROCESS_START_TIME, NULL)));
	buf_text(out, ", \"libraries\": {\"libcurl\": ");
	buf_json_text(out, curl_version_info(CURLVERSION_NOW)->version);
	json_put_text(out, "libmicrohttpd", MHD_get_version());
	json_put_text(out, "jansson", jansson_version_str());
	buf_text(out, "}");
}

static void put_configuration(const struct agent *agent, struct buf *out)
{
	buf_text(out, ",\n \"configuration\": {\"path\": ");
	buf_json_text(out, agent->config->path);
	json_put_moment(out, "loaded", (int64_t)(1000 * gauge(agent, METRIC_RELOAD_TIME, NULL)));
	json_put_bool(
		out, "last_reload_successful", gauge(agent, METRIC_RELOAD_SUCCESSFUL, NULL) != 0);
	json_put_count(out, "tests", (size_t)gauge(agent, METRIC_TESTS, NULL));
	json_put_count(out, "groups", agent->config->group_count);
	buf_char(out, '}');
}

static void put_changes(const struct agent *agent, struct buf *out)
{
	buf_text(out, ",\n \"changes\": {");
	for (size_t state = 1; state < CHANGE_STATES; state++)
		if (change_state_names[state])
			json_put_number(out, change_state_names[state],
				gauge(agent, METRIC_CHANGES, change_state_names[state]));
	json_put_number(out, "silenced", gauge(agent, METRIC_SILENCED, NULL));
	json_put_number(out, "missed_runs", gauge(agent, METRIC_MISSED_RUNS, NULL));
	json_put_moment(out, "last_run", (int64_t)(1000 * gauge(agent, METRIC_LAST_PASS, NULL)));
	buf_char(out, '}');
}

static void put_state(const struct agent *agent, struct buf *out)
{
	bool works = agent->store_error.kind == ERROR_NONE;
	struct arena *scratch = arena_new();

	buf_text(out, ",\n \"state\": {\"path\": ");
	buf_json_text(out, database_shown(scratch, agent->config->agent.state));
	arena_free(scratch);
	buf_printf(out, ", \"bytes\": %" PRId64, store_size(agent->store));
	json_put_text(out, "problem", works ? NULL : agent->store_error.text);
	buf_printf(out, "},\n \"clock\": {\"ahead_seconds\": %.3f, \"wrong\": %s}",
		gauge(agent, METRIC_CLOCK_AHEAD, NULL), agent->clock_ahead != 0 ? "true" : "false");
}

void api_get_status(struct http_request *request)
{
	const struct api *api = api_of(request);
	struct buf *out = &request->buffer;

	metrics_collect_process(api->agent->metrics);
	put_agent(request->context, api->agent, out);
	put_configuration(api->agent, out);
	put_changes(api->agent, out);
	put_state(api->agent, out);
	put_sources(api, request->arena, out);
	put_receivers(api, out);
	put_routes(api, out);
	buf_text(out, "}\n");
	http_send(request, 200);
}

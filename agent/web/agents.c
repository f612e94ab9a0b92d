/* /api/v1/me: the user, their permissions, and the agent. /api/v1/agents: the agents that share
 * this state, as the last turn of this one has seen them. */
#include "agent/fleet/fleet.h"
#include "agent/runtime/events.h"
#include "agent/web/api.h"

void api_get_me(struct http_request *request)
{
	const struct agent *agent = api_of(request)->agent;
	const struct http_person *person = &request->sign_in.person;
	char id[EVENTS_ID];

	json_put(&request->buffer,
		"{person: %s, role: %s, unproven: %d bool, version: %s, "
		"agent: %s optional, external_url: %s, now: %jd time, events: %s}",
		person->name, role_name(person->role), person->unproven, HUNTER_VERSION,
		agent->fleet ? fleet_name(agent) : "", agent->config->agent.external_url,
		agent_now(agent), events_id(agent->events, events_last(agent->events), id));
	http_send(request, 200);
}

void api_get_agents(struct http_request *request)
{
	const struct agent *agent = api_of(request)->agent;
	const struct store_turn *seen = fleet_picture(agent);
	struct buf *out = &request->buffer;

	if (seen) {
		agents_put_json(out, seen, fleet_instance(agent));
	} else if (agent->fleet) {
		http_fail(request, 503, "%s", fleet_trouble(agent));
		return;
	} else {
		json_put(out, "{shared: false, time: %jd time, agents: []}", agent_now(agent));
	}
	http_send(request, 200);
}

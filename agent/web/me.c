/* /api/v1/me: the user, their permissions, and the agent. */
#include "agent/fleet/fleet.h"
#include "agent/runtime/events.h"
#include "agent/web/api.h"

void api_get_me(struct http_request *request)
{
	const struct agent *agent = api_of(request)->agent;
	const struct http_person *person = &request->sign_in.person;
	struct buf *out = &request->buffer;
	char id[EVENTS_ID];

	json_open(out, "person", *person->name ? person->name : "local");
	json_put_text(out, "role", role_name(person->role));
	json_put_bool(out, "unproven", person->unproven);
	json_put_text(out, "version", HUNTER_VERSION);
	json_put_text(out, "agent", agent->fleet ? fleet_name(agent) : NULL);
	json_put_text(out, "external_url", agent->config->agent.external_url);
	json_put_time(out, "now", agent_now(agent));
	json_put_text(out, "events",
		agent->events ? events_id(agent->events, events_last(agent->events), id) : NULL);
	buf_text(out, "}\n");
	http_send(request, 200);
}

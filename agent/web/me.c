/* /api/v1/me: who asks, what they may do, and which agent it is. */
#include "agent/fleet/fleet.h"
#include "agent/runtime/events.h"
#include "agent/web/api.h"

void api_get_me(void *context, struct http_request *request)
{
	const struct agent *agent = api_of(context)->agent;
	const struct http_person *person = http_person(request);
	struct http_answer answer = {0};
	char id[EVENTS_ID];

	json_open(&answer.body, "person", *person->name ? person->name : "local");
	json_put_text(&answer.body, "role", role_name(person->role));
	json_put_bool(&answer.body, "unproven", person->unproven);
	json_put_text(&answer.body, "version", HUNTER_VERSION);
	json_put_text(&answer.body, "agent", agent->fleet ? fleet_name(agent) : NULL);
	json_put_text(&answer.body, "external_url", agent->config->agent.external_url);
	json_put_time(&answer.body, "now", agent_now(agent));
	json_put_text(&answer.body, "events",
		agent->events ? events_id(agent->events, events_last(agent->events), id) : NULL);
	buf_text(&answer.body, "}\n");
	http_answer(request, &answer);
}

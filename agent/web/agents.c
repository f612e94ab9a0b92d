/* /api/v1/agents: the agents that share this state, as the last turn of this one has seen them. */
#include "agent/fleet/fleet.h"
#include "agent/web/api.h"
#include "agent/web/forms.h"

void api_get_agents(void *context, struct http_request *request)
{
	const struct agent *agent = api_of(context)->agent;
	const struct store_turn *seen = fleet_picture(agent);
	struct http_answer answer = {0};

	if (seen) {
		agents_put_json(&answer.body, seen, fleet_instance(agent));
	} else if (agent->fleet) {
		http_fail(request, 503, "%s", fleet_trouble(agent));
		return;
	} else {
		buf_text(&answer.body, "{\"shared\": false");
		json_put_time(&answer.body, "time", agent_now(agent));
		buf_text(&answer.body, ", \"agents\": []}\n");
	}
	http_answer(request, &answer);
}

/* /api/v1/agents: the agents that share this state, as the last turn of this one has seen them. */
#include "agent/fleet/fleet.h"
#include "agent/web/api.h"
#include "agent/web/forms.h"

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
		buf_text(out, "{\"shared\": false");
		json_put_time(out, "time", agent_now(agent));
		buf_text(out, ", \"agents\": []}\n");
	}
	http_send(request, 200);
}

/*
 * A fleet without turns, for tests: the agent holds what the test says.
 */
#ifndef TESTS_UNIT_SCRIPTED_FLEET_H
#define TESTS_UNIT_SCRIPTED_FLEET_H

#include "agent/fleet/fleet.h"

/* Has the agent (see fleet_scripted) hold these shards, and no others, as a turn would, with these
 * news (NULL: the same as before). */
static inline void fleet_script(
	struct agent *agent, const struct fleet_shards *held, const struct fleet_news *news)
{
	const struct store_turn *before = fleet_picture(agent);
	struct store_turn *turn = store_turn_new(NULL, NULL);

	if (before && !news) {
		turn->due = before->due;
		turn->due_set = before->due_set;
		turn->queued = before->queued;
		turn->said = before->said;
		turn->requests = before->requests;
		turn->views = before->views;
	}
	if (news) {
		turn->due = news->due;
		turn->due_set = news->due_set;
		turn->queued = news->last_delivery;
		turn->said = news->last_audit;
		turn->requests = news->requests;
		turn->views = (int64_t)news->views;
	}
	turn->renewed = true;
	turn->now = agent_now(agent);
	turn->agents = arena_array(turn->call.arena, 1, sizeof *turn->agents);
	turn->agents[0] = (struct store_agent){
		.instance = fleet_instance(agent), .name = fleet_name(agent), .address = ""};
	turn->agent_count = 1;
	for (int i = 0; i < FLEET_SHARDS; i++)
		turn->shards[i] = (struct store_shard){
			.holder = held->has[i] ? fleet_instance(agent) : 0, .term = 1};
	fleet_take(agent, turn);
}

#endif

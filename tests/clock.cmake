# Time: the engine's clock that jumps, conditions, and the agent under wall clocks that jump.
hunter_test(condition hunter_agent)
hunter_test(rhythm hunter_agent)
hunter_test(vanish hunter_agent)
hunter_test(jumping hunter_agent)
hunter_test(time hunter_agent)
hunter_test(outages hunter_agent)

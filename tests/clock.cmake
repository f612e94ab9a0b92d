# Time: the engine's clock that jumps, and conditions.
hunter_test(condition hunter_agent)
hunter_test(jumping hunter_agent)

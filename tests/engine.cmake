# The engine, its pieces, and the agent's HTTP face.
hunter_test(engine hunter_agent)
hunter_test(pool hunter_agent)
hunter_test(schedule hunter_agent)
hunter_test(transfers hunter_agent)

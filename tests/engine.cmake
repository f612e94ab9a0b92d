# The engine, its pieces, the Prometheus source, and the agent's HTTP face.
hunter_test(engine hunter_agent)
hunter_test(http hunter_agent)
hunter_test(metrics hunter_agent)
hunter_test(pool hunter_agent)
hunter_test(prometheus hunter_sources)
hunter_test(schedule hunter_agent)
hunter_test(transfers hunter_agent)
hunter_fuzz(prometheus hunter_sources PkgConfig::JANSSON)

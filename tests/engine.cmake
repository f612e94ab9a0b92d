# The engine, its pieces, the Prometheus source, and the agent's HTTP face.
hunter_test(engine hunter_agent)
target_link_options(test_engine PRIVATE -Wl,--wrap=source_find) # it brings a source of its own
hunter_test(http hunter_agent)
hunter_test(metrics hunter_agent)
hunter_test(pool hunter_agent)
hunter_test(prometheus hunter_sources)
hunter_test(prometheus_labels hunter_sources)
hunter_test(schedule hunter_agent)
hunter_test(transfer hunter_core)
hunter_test(transfers hunter_agent)
hunter_fuzz(prometheus hunter_sources PkgConfig::JANSSON)
hunter_fuzz(promql hunter_sources)
hunter_fuzz(export hunter_sources PkgConfig::JANSSON)

# Tests, fuzz targets and the benchmark of the Graphite source.
hunter_test(graphite hunter_sources PkgConfig::JANSSON)
hunter_test(graphite_target hunter_sources)
hunter_test(python hunter_sources PkgConfig::JANSSON)
hunter_fuzz(graphite hunter_sources PkgConfig::JANSSON)
hunter_fuzz(python hunter_sources PkgConfig::JANSSON)

add_executable(bench_graphite bench/bench_graphite.c)
target_link_libraries(bench_graphite PRIVATE hunter_sources PkgConfig::JANSSON)
add_test(NAME cases.config.shipped.graphite
  COMMAND hunter-c validate --config ${CMAKE_SOURCE_DIR}/conf/graphite.yaml)

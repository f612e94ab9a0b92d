# What asking servers costs (tests/bench/run calls it).
add_executable(bench_sources bench/bench_sources.c)
target_link_libraries(bench_sources PRIVATE hunter_sources)

# Tests of `detect` and of the readers and writers it is made of.
hunter_test(number hunter_core)
hunter_test(batch hunter_agent)
hunter_test(lines hunter_agent)
hunter_test(sampling hunter_agent)
hunter_fuzz(lines hunter_agent PkgConfig::JANSSON)
add_executable(bench_lines bench/bench_lines.c)
target_link_libraries(bench_lines PRIVATE hunter_agent PkgConfig::JANSSON)

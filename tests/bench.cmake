# tests/bench/run measures; this is the program it measures whole processes with.
add_executable(bench_process bench/bench_process.c)
add_executable(bench_store bench/bench_store.c)
target_link_libraries(bench_store PRIVATE hunter_agent)

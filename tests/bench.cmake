# tests/bench/run measures; this is the program it measures whole processes with.
add_executable(bench_process bench/bench_process.c)
add_executable(bench_store bench/bench_store.c)
target_link_libraries(bench_store PRIVATE hunter_agent)
# A Prometheus that has much to say, for bench_agent.py.
add_executable(serve_series bench/serve_series.c)
target_link_libraries(serve_series PRIVATE Threads::Threads)
add_executable(bench_cluster bench/bench_cluster.c)
target_link_libraries(bench_cluster PRIVATE hunter_agent)

# tests/bench/run measures; this is the program it measures whole processes with.
add_executable(bench_process bench/bench_process.c)

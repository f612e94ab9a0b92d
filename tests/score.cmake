# Tests of the scoreboard: the metrics, and the labelled series that `evaluate` reads.
hunter_test(score hunter_detectors)
hunter_test(labelled hunter_agent)
hunter_fuzz(labelled hunter_agent)

# Writes the labelled series of bench/generate.h and generate_service.h, for tests/bench/accuracy.
add_executable(write_series bench/write_series.c bench/generate.c bench/generate_service.c)
target_link_libraries(write_series PRIVATE hunter_core)

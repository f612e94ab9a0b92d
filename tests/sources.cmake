# Tests of dates, series and the file sources.
hunter_test(when hunter_core)
hunter_test(series hunter_core)
hunter_test(delimited hunter_sources)
hunter_test(csv hunter_sources)
hunter_test(json hunter_sources)
hunter_test(histostat hunter_sources)

hunter_fuzz(when hunter_core)
hunter_fuzz(zone hunter_core)
hunter_fuzz(label hunter_core)
hunter_fuzz(csv hunter_sources)
hunter_fuzz(json hunter_sources PkgConfig::JANSSON)
hunter_fuzz(histostat hunter_sources)

# Speed of reading files, one tab-separated line a case.
add_executable(bench_files bench/bench_files.c)
target_link_libraries(bench_files PRIVATE hunter_sources)

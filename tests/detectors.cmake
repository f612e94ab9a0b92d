# Tests, fuzz targets and benchmarks of detectors/.
hunter_test(stats hunter_detectors)
hunter_test(golden hunter_detectors PkgConfig::JANSSON)
hunter_test(detectors hunter_detectors)
hunter_test(edivisive hunter_detectors)
hunter_test(edivisive_permutation hunter_detectors)
hunter_test(edivisive_stream hunter_detectors)
hunter_test(edivisive_shapes hunter_detectors)
hunter_test(edivisive_excursions hunter_detectors)
hunter_test(mannwhitney hunter_detectors)
hunter_test(stepfit hunter_detectors PkgConfig::JANSSON)
hunter_test(kernel hunter_detectors)
hunter_test(kmeans hunter_detectors)
hunter_test(modes hunter_detectors)
hunter_test(season hunter_detectors)
hunter_test(combine hunter_detectors)
hunter_test(lookback hunter_detectors PkgConfig::JANSSON)
hunter_fuzz(detectors hunter_detectors)

# Speed of detection alone (tests/bench/run calls it), and predictions for accuracy to be scored from.
add_executable(bench_detectors bench/bench_detectors.c)
target_link_libraries(bench_detectors PRIVATE hunter_detectors)
add_executable(predict bench/predict.c)
target_link_libraries(predict PRIVATE hunter_detectors PkgConfig::JANSSON)

# News: when a change is believed, and how many of many may be false. bench_rows measures what they and the default
# profile are worth, over the series of bench/generate.h; bench_calibration what P means.
hunter_test(confirm hunter_detectors)
hunter_test(standing hunter_detectors)
hunter_test(fdr hunter_detectors)
add_executable(bench_calibration bench/bench_calibration.c bench/generate.c)
target_link_libraries(bench_calibration PRIVATE hunter_detectors)
add_executable(bench_rows bench/bench_rows.c bench/generate.c bench/score.c)
target_link_libraries(bench_rows PRIVATE hunter_detectors PkgConfig::JANSSON)

# Tests, fuzz targets and benchmarks of detectors/.
hunter_test(golden hunter_detectors PkgConfig::JANSSON)
hunter_test(edivisive_stream hunter_detectors)

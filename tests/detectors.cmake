# Tests, fuzz targets and benchmarks of detectors/.

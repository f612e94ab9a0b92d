# Tests of dates, series and the file sources.
hunter_test(when hunter_core)
hunter_test(series hunter_core)
hunter_test(delimited hunter_sources)
hunter_test(csv hunter_sources)
hunter_test(json hunter_sources)
hunter_test(histostat hunter_sources)

hunter_fuzz(when hunter_core)
hunter_fuzz(csv hunter_sources)
hunter_fuzz(json hunter_sources PkgConfig::JANSSON)
hunter_fuzz(histostat hunter_sources)

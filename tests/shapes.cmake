# Clustering: series that changed together.
hunter_test(shapes hunter_agent)
hunter_test(cluster hunter_agent PkgConfig::SQLITE)

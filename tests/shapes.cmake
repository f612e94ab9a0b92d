# Clustering: series that changed together.
hunter_test(shapes hunter_agent)

# Telling: links, and what is told where.
hunter_test(link hunter_core)

# What is news, the store, the notifiers and the agent itself.
hunter_test(announcer hunter_agent)
hunter_test(reconcile hunter_agent)
hunter_test(store hunter_agent)
hunter_test(slack hunter_notifiers PkgConfig::JANSSON)
hunter_fuzz(slack hunter_notifiers)
hunter_test(group hunter_agent)
hunter_test(patience hunter_agent)
hunter_test(news hunter_agent)

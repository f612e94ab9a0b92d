# What is news, the store, the notifiers and the agent itself.
hunter_test(reconcile hunter_agent)
hunter_test(store hunter_agent)

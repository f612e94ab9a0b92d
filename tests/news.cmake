# What is news, the store, the notifiers and the agent itself.

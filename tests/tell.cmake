# Telling: links, and what is told where.
hunter_test(label hunter_core)
hunter_test(link hunter_core)
hunter_test(slack_thread hunter_notifiers PkgConfig::JANSSON)
hunter_test(threads hunter_agent)
hunter_test(sha256 hunter_core)
hunter_test(webhook hunter_notifiers PkgConfig::JANSSON)
hunter_test(courier hunter_agent)
target_link_options(test_courier PRIVATE -Wl,--wrap=notifier_find) # it brings receivers of its own
hunter_test(notices hunter_agent)
target_link_options(test_notices PRIVATE -Wl,--wrap=notifier_find) # it brings a receiver of its own

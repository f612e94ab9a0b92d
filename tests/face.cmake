# What the agent shows of itself: requests, metrics, alert rules.
hunter_test(http_query hunter_agent)
hunter_fuzz(http hunter_agent)

find_program(PROMTOOL promtool)
if(PROMTOOL)
  add_test(NAME cases.alerts COMMAND ${PROMTOOL} test rules ${CMAKE_CURRENT_SOURCE_DIR}/cases/alerts/alerts.yaml)
else()
  message(STATUS "promtool is not installed: the alert rules are not tested (Debian: apt install prometheus)")
endif()

# Tests of agent/core, and of the order of the house.
hunter_test(core hunter_core)
hunter_test(dict hunter_core)
hunter_test(field hunter_core)
hunter_test(zone hunter_core)
hunter_test(repeats hunter_core)
hunter_test(cpus hunter_core)
hunter_test(attribution hunter_core)
add_test(NAME cases.layers
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/cases/layers/check.py ${CMAKE_SOURCE_DIR})
# Names that users rely on: tests/public_names.txt.
add_executable(public_names cases/public_names/names.c)
target_link_libraries(public_names PRIVATE hunter_agent)
add_test(NAME cases.public_names
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/cases/public_names/check.py ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})

# Tests, fuzz targets and benchmarks of conf/.
hunter_test(yaml hunter_conf)
hunter_test(config hunter_conf)
hunter_test(fingerprint hunter_conf)
hunter_test(secret_memory hunter_conf)
target_link_options(test_secret_memory PRIVATE -Wl,--wrap=free,--wrap=realloc) # what is given back is looked over
hunter_fuzz(yaml hunter_conf)
hunter_fuzz(config hunter_conf)

# What we ship, and what Hunter's and Otava's users have, is accepted by the very program.
foreach(name hunter example prometheus)
  add_test(NAME cases.config.shipped.${name}
    COMMAND hunter-c validate --config ${CMAKE_SOURCE_DIR}/conf/${name}.yaml)
endforeach()
file(GLOB WILD CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cases/config/hunter-*.yaml
  ${CMAKE_CURRENT_SOURCE_DIR}/cases/config/otava-*.yaml)
foreach(path ${WILD})
  cmake_path(GET path STEM name)
  add_test(NAME cases.config.${name} COMMAND hunter-c validate --config ${path})
endforeach()

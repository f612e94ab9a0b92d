# `cmake --install`: program, manual, completion, example and documents.
add_executable(manual packaging/manual.c)
target_link_libraries(manual PRIVATE hunter_agent)

# The pages are generated from the templates here and the option tables of this build.
set(PAGES)
foreach(page hunter-c.1 hunter.yaml.5 hunter-c.bash)
  set(made ${CMAKE_BINARY_DIR}/man/${page})
  add_custom_command(OUTPUT ${made}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/man
    COMMAND manual ${CMAKE_SOURCE_DIR}/packaging/${page}.in > ${made}.new
    COMMAND ${CMAKE_COMMAND} -E rename ${made}.new ${made}
    DEPENDS manual ${CMAKE_SOURCE_DIR}/packaging/${page}.in VERBATIM)
  list(APPEND PAGES ${made})
endforeach()
add_custom_target(manual_pages ALL DEPENDS ${PAGES})

set(pages ${CMAKE_BINARY_DIR}/man)
install(TARGETS hunter-c)
install(FILES ${pages}/hunter-c.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${pages}/hunter.yaml.5 DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
install(FILES ${pages}/hunter-c.bash RENAME hunter-c
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/conf/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/conf
  FILES_MATCHING PATTERN "*.yaml" PATTERN "*.csv" PATTERN "*.md")
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs
  FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png" PATTERN "*.json")
install(FILES ${CMAKE_SOURCE_DIR}/packaging/alerts.yaml RENAME hunter-c-alerts.yaml
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(PROGRAMS ${CMAKE_SOURCE_DIR}/packaging/arrivals.py DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md
  ${CMAKE_SOURCE_DIR}/CONTRIBUTING.md ${CMAKE_SOURCE_DIR}/LICENSE
  DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The service. Its user and folders come from sysusers.d and tmpfiles.d; a package's scripts call both.
# hunter-c@INSTANCE.service, one of several agents of a machine with a shared state: the same unit except for these lines.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS packaging/systemd/hunter-c.service)
file(READ packaging/systemd/hunter-c.service unit)
foreach(change "Description=hunter-c =>Description=hunter-c (%i) " "Type=notify\n=>Type=notify\nEnvironment=HUNTER_INSTANCE=%i\n"
    "EnvironmentFile=-/etc/default/hunter-c\n=>EnvironmentFile=-/etc/default/hunter-c\nEnvironmentFile=-/etc/default/hunter-c@%i\n"
    "/run/hunter-c/api.sock=>/run/hunter-c/%i/api.sock" "RuntimeDirectory=hunter-c\n=>RuntimeDirectory=hunter-c/%i\n"
    "systemctl edit hunter-c)=>systemctl edit hunter-c@)")
  string(REPLACE "=>" ";" change "${change}")
  list(GET change 0 from)
  list(GET change 1 to)
  string(FIND "${unit}" "${from}" found)
  if(found EQUAL -1)
    message(FATAL_ERROR "packaging/systemd/hunter-c.service has no \"${from}\"")
  endif()
  string(REPLACE "${from}" "${to}" unit "${unit}")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/hunter-c@.service CONTENT "${unit}" @ONLY)

install(FILES packaging/systemd/hunter-c.service ${CMAKE_BINARY_DIR}/hunter-c@.service DESTINATION lib/systemd/system)
install(FILES packaging/systemd/hunter-c.sysusers RENAME hunter-c.conf DESTINATION lib/sysusers.d)
install(FILES packaging/systemd/hunter-c.tmpfiles RENAME hunter-c.conf DESTINATION lib/tmpfiles.d)

# The page's files, and the plot library of the distribution, compressed into the program.
find_package(ZLIB REQUIRED)
find_file(DYGRAPHS dygraph.min.js PATHS /usr/share/javascript/dygraphs /usr/share/nodejs/dygraphs/dist NO_CACHE
  PATH_SUFFIXES javascript/dygraphs)
if(NOT DYGRAPHS)
  message(FATAL_ERROR "dygraph.min.js is missing: install libjs-dygraphs, or say where it is with -DDYGRAPHS=FILE")
endif()
get_filename_component(dygraphs ${DYGRAPHS} DIRECTORY)

file(GLOB page CONFIGURE_DEPENDS agent/web/page/*)
set(named dygraph.js=${DYGRAPHS} dygraph.css=${dygraphs}/dygraph.min.css)
foreach(file ${page})
  get_filename_component(name ${file} NAME)
  list(APPEND named ${name}=${file})
endforeach()

add_executable(embed packaging/embed.c)
target_link_libraries(embed PRIVATE ZLIB::ZLIB)
set(EMBEDDED ${CMAKE_BINARY_DIR}/embedded.c)
add_custom_command(OUTPUT ${EMBEDDED}
  COMMAND embed ${named} > ${EMBEDDED}.new
  COMMAND ${CMAKE_COMMAND} -E rename ${EMBEDDED}.new ${EMBEDDED}
  DEPENDS embed ${page} ${DYGRAPHS} ${dygraphs}/dygraph.min.css VERBATIM)

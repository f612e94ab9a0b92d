# Fuzz targets: tests/fuzz/fuzz_NAME.c defines LLVMFuzzerTestOneInput, tests/fuzz/corpus/NAME/ holds its seeds.
# hunter_fuzz(NAME LIBRARIES...) builds one. With HUNTER_FUZZ (clang; the preset "fuzz") it is a libFuzzer binary:
#     build/fuzz/tests/fuzz_NAME -max_total_time=600 /tmp/NAME tests/fuzz/corpus/NAME
# Otherwise it is a program that runs every file of the corpus once, registered as the test fuzz.NAME.
if(HUNTER_FUZZ)
  foreach(room core detectors conf sources notifiers agent)
    target_compile_options(hunter_${room} PRIVATE -fsanitize=fuzzer-no-link)  # libFuzzer follows what they cover
  endforeach()
endif()

function(hunter_fuzz name)
  add_executable(fuzz_${name} fuzz/fuzz_${name}.c)
  target_link_libraries(fuzz_${name} PRIVATE ${ARGN})
  if(HUNTER_FUZZ)
    target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME fuzz.${name} COMMAND fuzz_${name} -runs=0 ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name})
  else()
    target_sources(fuzz_${name} PRIVATE fuzz/replay.c)
    add_test(NAME fuzz.${name} COMMAND fuzz_${name} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name})
  endif()
  set_tests_properties(fuzz.${name} PROPERTIES TIMEOUT 300)
endfunction()

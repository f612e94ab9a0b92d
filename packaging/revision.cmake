# `revision`: HUNTER_REVISION, else the commit of a git checkout (which a commit or a checkout brings up to date), else "unknown".
set(revision "${HUNTER_REVISION}")
if(NOT revision OR revision STREQUAL "unknown")
  set(revision "unknown")
  find_program(GIT git)
  if(GIT AND EXISTS ${CMAKE_SOURCE_DIR}/.git)
    execute_process(COMMAND ${GIT} rev-parse --short=12 HEAD WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
      OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    execute_process(COMMAND ${GIT} rev-parse --git-path logs/HEAD WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
      OUTPUT_VARIABLE moves OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT failed)
      set(revision ${commit})
      cmake_path(ABSOLUTE_PATH moves BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
      if(EXISTS ${moves})
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${moves})
      endif()
    endif()
  endif()
endif()

# What makes a fault in memory harder to use, as far as compiler and linker know it. For builds with optimisation, which
# _FORTIFY_SOURCE needs, and not beside sanitizers, which look for the same faults. tests/e2e/test_packaging.py reads the binary.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)

option(HUNTER_HARDEN "hardening flags in builds with optimisation" ON)
set(optimised "$<OR:$<CONFIG:Release>,$<CONFIG:RelWithDebInfo>,$<CONFIG:MinSizeRel>>")

# Adds the first of the flags that the compiler takes without a word; each may be several, with blanks between them.
function(harden_compile)
  foreach(flags ${ARGN})
    string(MAKE_C_IDENTIFIER "HUNTER_HAS${flags}" known)
    check_c_compiler_flag("-Werror ${flags}" ${known})
    if(${known})
      separate_arguments(flags)
      add_compile_options("$<${optimised}:${flags}>")
      return()
    endif()
  endforeach()
endfunction()

# 3 also knows the sizes of what was allocated; older compilers and libraries take it for 2 or refuse it. Distributions set it,
# too, and to set it twice is a warning.
function(harden_fortify)
  foreach(level 3 2)
    set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level}")
    check_c_source_compiles("#include <stdio.h>\n#if __USE_FORTIFY_LEVEL != ${level}\n#error\n#endif\nint main(void) { return 0; }"
      HUNTER_HAS_FORTIFY_${level})
    if(HUNTER_HAS_FORTIFY_${level})
      add_compile_options("$<${optimised}:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=${level}>")
      return()
    endif()
  endforeach()
endfunction()

function(harden_link)
  foreach(flag -pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
    string(MAKE_C_IDENTIFIER "HUNTER_HAS${flag}" known)
    check_linker_flag(C ${flag} ${known})
    if(${known})
      add_link_options("$<${optimised}:${flag}>")
    endif()
  endforeach()
endfunction()

if(HUNTER_HARDEN AND NOT HUNTER_SANITIZE)
  harden_fortify()
  harden_compile(-fPIE)  # CMake's own setting says -fPIC for libraries, which costs inlining, and there are no shared ones
  harden_compile(-fstack-protector-strong -fstack-protector)
  harden_compile(-fstack-clash-protection)
  harden_compile(-fcf-protection=full -mbranch-protection=standard)
  harden_compile(-ftrivial-auto-var-init=zero
    "-ftrivial-auto-var-init=zero -enable-trivial-auto-var-init-zero-knowing-it-will-be-removed-from-clang")
  harden_link()
endif()

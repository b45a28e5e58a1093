# Part of Bastile, under the MIT License. See LICENSE.
#
# Language, output folders, warnings and the optional build accelerators.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
# -O3 costs compile time and buys nothing here: the time is spent in LLVM.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

include(GNUInstallDirs)
# An installed tool still has to find libMLIR.so.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

add_compile_options(
  # CMake's property would make this -fPIE in executables, which could then not
  # share the precompiled headers of the libraries.
  -fPIC
  -Wall -Wextra
  -Wno-unused-parameter # Pattern and interface signatures are fixed by MLIR.
  -Wno-missing-field-initializers
  -fvisibility-inlines-hidden
  -fdiagnostics-color=auto)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False positives of gcc 12 on SmallVector and Optional after inlining.
  add_compile_options(-Wno-maybe-uninitialized -Wno-array-bounds
                      -Wno-dangling-pointer -Wno-stringop-overflow
                      -Wno-stringop-overread)
endif()

if(BASTILE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "libFuzzer comes with clang, but the compiler is ${CMAKE_CXX_COMPILER}")
  endif()
  # MLIR itself is not instrumented, so that neither the types of its classes
  # (vptr, which needs RTTI) nor those of its functions can be checked. The
  # processor itself reports uses of null pointers.
  set(bastile_sanitizers address,undefined)
  set(bastile_ignored "${PROJECT_SOURCE_DIR}/test/fuzz/sanitize-ignore.txt")
  set(CMAKE_CXX_FLAGS_RELEASE "-O1 -gline-tables-only")
  add_compile_options(-fsanitize=fuzzer-no-link,${bastile_sanitizers}
                      -fno-sanitize=vptr,function,null,alignment,object-size
                      -fno-sanitize-recover=all
                      "-fsanitize-ignorelist=${bastile_ignored}"
                      "-fsanitize-coverage-ignorelist=${bastile_ignored}"
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${bastile_sanitizers})
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(BASTILE_PRECOMPILE_DEFAULT ON)
  # With a time stamp inside, no two precompiled headers would be the same to
  # ccache.
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
else()
  set(BASTILE_PRECOMPILE_DEFAULT OFF)
endif()
option(BASTILE_PRECOMPILE "Precompile MLIR's headers" ${BASTILE_PRECOMPILE_DEFAULT})

find_program(BASTILE_CCACHE ccache)
if(BASTILE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache leaves precompiled headers alone unless told otherwise.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      "${BASTILE_CCACHE}")
endif()

find_program(BASTILE_LLD NAMES ld.lld ld.lld-22
             HINTS /usr/lib/llvm-22/bin)
if(BASTILE_LLD)
  get_filename_component(bastile_lld_name "${BASTILE_LLD}" NAME)
  get_filename_component(bastile_lld_dir "${BASTILE_LLD}" DIRECTORY)
  # gcc looks for the name ld.lld only, and Debian leaves that name off PATH; -B
  # tells it where to look.
  if(bastile_lld_name STREQUAL "ld.lld")
    add_link_options(-fuse-ld=lld "-B${bastile_lld_dir}")
  endif()
endif()

# Each cached kernel on disk belongs to one build of the compiler, which this id
# names.
add_link_options(-Wl,--build-id=sha1)

# Part of Bastile, under the MIT License. See LICENSE.
#
# Helpers by which the folders declare their targets. Sources are globbed, so
# that adding a file needs no edit of a CMakeLists.txt.

# Collects the .cpp files of the folder, and of the rooms named, into
# `variable`.
macro(bastile_glob_sources variable)
  set(patterns "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  foreach(room ${ARGN})
    list(APPEND patterns "${CMAKE_CURRENT_SOURCE_DIR}/${room}/*.cpp")
  endforeach()
  file(GLOB ${variable} CONFIGURE_DEPENDS ${patterns})
endmacro()

# Debian's LLVM is built without RTTI and exceptions; a class derived from one
# of its classes has to agree.
function(bastile_use_llvm_language target)
  target_compile_options(${target} PRIVATE -fno-rtti -fno-exceptions)
  if(NOT BASTILE_PRECOMPILE)
    return()
  endif()
  if(target STREQUAL "BastileDialect")
    target_precompile_headers(${target}
                              PRIVATE "${PROJECT_SOURCE_DIR}/cmake/Precompiled.h")
  else()
    target_precompile_headers(${target} REUSE_FROM BastileDialect)
  endif()
endfunction()

# bastile_add_compiler_library(name [ROOMS folders...] LINK libraries...)
function(bastile_add_compiler_library name)
  cmake_parse_arguments(arg "" "" "ROOMS;LINK" ${ARGN})
  bastile_glob_sources(sources ${arg_ROOMS})
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC ${arg_LINK} BastileMLIR)
  bastile_use_llvm_language(${name})
  bastile_depend_on_generated(${name})
endfunction()

# bastile_add_tool(name [LIBRARY library] LINK libraries...): the executable of
# tools/<name>. With LIBRARY, all files but the main one become a library, for
# tests.
function(bastile_add_tool name)
  cmake_parse_arguments(arg "" "LIBRARY" "LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS
       "${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp")
  if(arg_LIBRARY)
    set(main "${CMAKE_CURRENT_SOURCE_DIR}/${name}/${name}.cpp")
    list(REMOVE_ITEM sources "${main}")
    add_library(${arg_LIBRARY} STATIC ${sources})
    target_link_libraries(${arg_LIBRARY} PUBLIC ${arg_LINK})
    bastile_use_llvm_language(${arg_LIBRARY})
    bastile_depend_on_generated(${arg_LIBRARY})
    set(sources "${main}")
    list(APPEND arg_LINK ${arg_LIBRARY})
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${arg_LINK})
  bastile_use_llvm_language(${name})
  bastile_depend_on_generated(${name})
  install(TARGETS ${name} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endfunction()

# The generated headers must exist before any file that includes them is
# compiled; linking a library orders only the link step after its generated
# files.
function(bastile_depend_on_generated target)
  add_dependencies(${target} BastileDialectGen BastilePassesGen)
endfunction()

# bastile_link_package(folder patterns...): links to the files of a Python package in
# the build folder, where PYTHONPATH=build/python finds them.
function(bastile_link_package folder)
  get_filename_component(name "${folder}" NAME)
  set(package "${PROJECT_BINARY_DIR}/python/${name}")
  list(TRANSFORM ARGN PREPEND "${folder}/" OUTPUT_VARIABLE patterns)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE "${folder}" ${patterns})
  # The link of a file that has moved would point to no file.
  file(GLOB_RECURSE links "${package}/*")
  foreach(link IN LISTS links)
    if(IS_SYMLINK "${link}" AND NOT EXISTS "${link}")
      file(REMOVE "${link}")
    endif()
  endforeach()
  foreach(file IN LISTS files)
    get_filename_component(inner "${package}/${file}" DIRECTORY)
    file(MAKE_DIRECTORY "${inner}")
    file(CREATE_LINK "${folder}/${file}" "${package}/${file}" SYMBOLIC)
  endforeach()
endfunction()

# Part of Bastile, under the MIT License. See LICENSE.

include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/BastileRuntimeTargets.cmake")

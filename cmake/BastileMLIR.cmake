# Part of Bastile, under the MIT License. See LICENSE.
#
# Finds MLIR and LLVM and defines two interface targets: `BastileMLIR` (what the
# compiler libraries link) and `BastileMLIRTools` (what tile-opt and
# tile-lsp-server link in addition).
#
# The two ways of linking must never mix: a second copy of MLIR's core has its
# own TypeIDs and registers LLVM's command line options twice.

find_package(MLIR QUIET CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
# Who runs pip sees no more of a failed build than this message.
set(bastile_llvm_advice
  "On Debian 12: apt-get install llvm-22-dev libmlir-22-dev mlir-22-tools clang-22 "
  "lld-22. On Ubuntu 22.04 and 24.04 the same after LLVM's own apt repository was set "
  "up by its script (llvm.sh 22). With an LLVM 22 of your own, set MLIR_DIR in the "
  "environment to its folder lib/cmake/mlir")
string(CONCAT bastile_llvm_advice ${bastile_llvm_advice})
if(NOT MLIR_FOUND)
  message(FATAL_ERROR "Bastile is built with MLIR 22, which is not there. "
                      "${bastile_llvm_advice}")
endif()
# MLIR's API changes with every major version.
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "Bastile is built with MLIR 22, but ${MLIR_DIR} has "
                      "${LLVM_VERSION}. ${bastile_llvm_advice}")
endif()
if(NOT BASTILE_LINK_STATIC AND NOT (TARGET MLIR AND TARGET LLVM))
  message(FATAL_ERROR "The LLVM of ${MLIR_DIR} has no libMLIR.so and libLLVM.so: it "
                      "was configured without LLVM_BUILD_LLVM_DYLIB=ON. "
                      "-DBASTILE_LINK_STATIC=ON links its archives")
endif()
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

include_directories("${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include"
                    "${PROJECT_BINARY_DIR}")
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(bastile_llvm_definitions UNIX_COMMAND "${LLVM_DEFINITIONS}")
add_definitions(${bastile_llvm_definitions})

add_library(BastileMLIR INTERFACE)
add_library(BastileMLIRTools INTERFACE)

if(NOT BASTILE_LINK_STATIC)
  # libMLIR.so also holds MlirOptMain, MlirLspServerMain and the execution
  # engine, so no archive is needed beside it.
  target_link_libraries(BastileMLIR INTERFACE MLIR LLVM)
  target_link_libraries(BastileMLIRTools INTERFACE BastileMLIR)
  return()
endif()

llvm_map_components_to_libnames(bastile_llvm_archives
  Analysis AsmParser BitReader BitWriter Core IPO IRReader Linker MC OrcJIT
  Passes PerfJITEvents Support Target TransformUtils
  NVPTXCodeGen NVPTXDesc NVPTXInfo
  X86AsmParser X86CodeGen X86Desc X86Info native)

find_library(BASTILE_ZLIB_ARCHIVE libz.a REQUIRED)

# The exported MLIR archives name the shared libLLVM (some also libMLIR) as
# their dependency, however one links; LLVM's archives name shared libraries for
# compression.
function(bastile_unlink_shared target)
  get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
  if(NOT libraries)
    return()
  endif()
  if("LLVM" IN_LIST libraries)
    list(APPEND libraries ${bastile_llvm_archives})
  endif()
  list(REMOVE_ITEM libraries LLVM MLIR)
  list(TRANSFORM libraries REPLACE "^ZLIB::ZLIB$" "${BASTILE_ZLIB_ARCHIVE}")
  list(TRANSFORM libraries
       REPLACE "^zstd::libzstd_shared$" "zstd::libzstd_static")
  set_target_properties(${target} PROPERTIES
                        INTERFACE_LINK_LIBRARIES "${libraries}")
endfunction()
get_property(bastile_mlir_archives GLOBAL PROPERTY MLIR_ALL_LIBS)
foreach(target IN LISTS bastile_mlir_archives ITEMS LLVMSupport)
  if(TARGET ${target} AND NOT target STREQUAL "MLIR")
    bastile_unlink_shared(${target})
  endif()
endforeach()

target_link_libraries(BastileMLIR INTERFACE
  MLIRAnalysis MLIRBytecodeWriter MLIRDialectUtils MLIRIR MLIRParser MLIRPass
  MLIRSupport MLIRTransformUtils MLIRTransforms
  MLIRArithDialect MLIRControlFlowDialect MLIRDLTIDialect MLIRFuncDialect
  MLIRGPUDialect MLIRIndexDialect MLIRLLVMDialect MLIRMathDialect
  MLIRMemRefDialect MLIRNVVMDialect MLIRSCFDialect MLIRTensorDialect
  MLIRUBDialect MLIRVectorDialect
  MLIRArithTransforms MLIRFuncTransforms MLIRGPUTransforms MLIRLLVMIRTransforms
  MLIRMathTransforms MLIRMemRefTransforms MLIRSCFTransforms MLIRSCFUtils
  MLIRTensorTransforms MLIRVectorTransforms MLIRVectorUtils
  MLIRArithToLLVM MLIRControlFlowToLLVM MLIRConvertToLLVMInterface
  MLIRFuncToLLVM MLIRGPUToNVVMTransforms MLIRIndexToLLVM MLIRLLVMCommonConversion
  MLIRMathToLibm MLIRMathToLLVM MLIRMemRefToLLVM MLIRNVVMToLLVM
  MLIRReconcileUnrealizedCasts MLIRSCFToControlFlow MLIRUBToLLVM
  MLIRVectorToLLVM MLIRVectorToLLVMPass MLIRVectorToSCF
  MLIRBuiltinToLLVMIRTranslation MLIRGPUToLLVMIRTranslation
  MLIRLLVMToLLVMIRTranslation MLIRNVVMToLLVMIRTranslation
  MLIRTargetLLVMIRExport
  MLIRExecutionEngine MLIRExecutionEngineUtils
  ${bastile_llvm_archives})
target_link_libraries(BastileMLIRTools INTERFACE
  BastileMLIR MLIROptLib MLIRLspServerLib LLVMSupportLSP)

# These flags keep tilec under 64 MB. TypeIDs are addresses of writable objects,
# which identical code folding leaves apart.
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(-Wl,--gc-sections -Wl,--as-needed -static-libstdc++)
if(BASTILE_LLD)
  add_link_options(-Wl,--icf=all)
endif()
# What a wheel must not have: packed relocations need glibc 2.36, and libgcc's
# unwinder, linked from its archive, needs the 2.35 that it was built with. Every
# system with glibc has the unwinder as a library.
if(NOT BASTILE_WHEEL)
  add_link_options(-Wl,-z,pack-relative-relocs -static-libgcc)
endif()

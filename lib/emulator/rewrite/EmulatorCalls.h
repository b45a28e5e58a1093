//===- EmulatorCalls.h - What emulated kernels call -------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The interface between the code that EmulateGpu.cpp generates and the
// emulator that runs it (lib/emulator/EmulatorSymbols.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_EMULATOR_REWRITE_EMULATORCALLS_H
#define BASTILE_LIB_EMULATOR_REWRITE_EMULATORCALLS_H

#include <cstdint>

namespace bastile {

/// Special registers; the X, Y and Z of a register with three dimensions follow
/// each other.
enum class EmulatedRegister : int32_t {
  ThreadX,
  ThreadY,
  ThreadZ,
  BlockSizeX,
  BlockSizeY,
  BlockSizeZ,
  BlockX,
  BlockY,
  BlockZ,
  GridSizeX,
  GridSizeY,
  GridSizeZ,
  Lane,
  Warp,
  WarpSize,
  ClusterX,
  GridClustersX,
  ClusterRank,
  ClusterSize,
};

enum class EmulatedAccess : int32_t { Load, Store, Atomic };

/// What the threads of a warpgroup do together.
enum class WarpgroupStep : int32_t {
  Fence,
  Begin,
  Commit,
  WaitFor,
  SetRegisters
};

/// What the lanes of a warp do with matrices together.
enum class MatrixStep : int32_t {
  Multiply,
  Load,
  LoadTransposed,
  Store,
  StoreTransposed
};

/// Names under which generated code finds the emulator.
namespace emulator_calls {
// i32 (i32 register)
inline constexpr char readRegister[] = "bastile.emulator.register";
// ptr ()
inline constexpr char sharedMemory[] = "bastile.emulator.shared";
// ptr (ptr address, i32 rank, i32 site)
inline constexpr char mapShared[] = "bastile.emulator.map_shared";
// void (ptr address, i64 bytes, i32 alignment, i32 access, i32 site)
inline constexpr char access[] = "bastile.emulator.access";
// void (ptr address, i64 lanes, i32 bytes of one lane, i32 alignment,
//       i32 access, i32 site)
inline constexpr char maskedAccess[] = "bastile.emulator.masked_access";
// i64 (i32 kind, i32 mask, i32 value, i32 offset, i32 clamp, i32 site): the
// value, and in bit 32 whether the source lane is in range
inline constexpr char shuffle[] = "bastile.emulator.shuffle";
// i32 (i32 kind, i32 mask, i32 predicate, i32 site)
inline constexpr char vote[] = "bastile.emulator.vote";
// void (i32 mask, i32 site)
inline constexpr char warpBarrier[] = "bastile.emulator.warp_barrier";
// i32 (i32 id, i32 threads or 0 for all, i32 reduction or -1, i32 predicate,
//      i32 site)
inline constexpr char barrier[] = "bastile.emulator.barrier";
// void (i32 whether it releases earlier writes, i32 site)
inline constexpr char clusterArrive[] = "bastile.emulator.cluster_arrive";
// void (i32 site)
inline constexpr char clusterWait[] = "bastile.emulator.cluster_wait";
// void (ptr mbarrier, i32 arrivals, i32 site)
inline constexpr char initBarrier[] = "bastile.emulator.init_barrier";
// void (ptr mbarrier, i32 arrivals, i32 bytes, i32 site): expects bytes, and
// arrives so many times
inline constexpr char expectMessages[] = "bastile.emulator.expect_messages";
// void (ptr address, i32 bits, ptr mbarrier, i32 site)
inline constexpr char sendMessage[] = "bastile.emulator.send_message";
// void (ptr address, i32 bits, i32 bits, i32 bits, i32 bits, ptr mbarrier,
//       i32 site)
inline constexpr char sendUnit[] = "bastile.emulator.send_unit";
// void (ptr mbarrier, i32 parity of the phase, i32 site)
inline constexpr char waitForMessages[] = "bastile.emulator.wait_for_messages";
// void (ptr to, ptr from, i32 bytes, i32 bytes of the source, i32 site): the
// bytes behind those of the source become zeros
inline constexpr char startCopy[] = "bastile.emulator.start_copy";
// void (): makes a group of the copies started so far
inline constexpr char closeCopies[] = "bastile.emulator.close_copies";
// void (i32 groups that may still be under way)
inline constexpr char waitForCopies[] = "bastile.emulator.wait_for_copies";
// void (i32 id, i32 threads, i32 site)
inline constexpr char arriveAtBarrier[] = "bastile.emulator.arrive_at_barrier";
// i32 (i32 mask, i32 site): whether the lane is the one that is elected
inline constexpr char elect[] = "bastile.emulator.elect";
// void (): between the generic and the async proxy
inline constexpr char fenceProxies[] = "bastile.emulator.fence_proxies";
// void (): after the initialization of mbarriers
inline constexpr char fenceBarriers[] = "bastile.emulator.fence_barriers";
// void (i32 step, i32 operand, ptr registers, i32 count, i32 site): a step of a
// warpgroup other than a product; the operand of a wait is how many groups may
// still be under way, that of `setmaxnreg` the number of registers
inline constexpr char warpgroupStep[] = "bastile.emulator.warpgroup_step";
// void (i32 product, ptr registers, ptr fragment, ptr a, ptr b, i32 site)
inline constexpr char beginProduct[] = "bastile.emulator.begin_product";
// void (i32 type of the factors, i32 bytes of a row of a factor, ptr sums,
//       ptr factors, i32 site): a product of matrices that a warp holds
inline constexpr char multiplyMatrices[] = "bastile.emulator.multiply_matrices";
// void (i32 step, ptr address, ptr registers, i32 matrices, i32 site)
inline constexpr char moveMatrices[] = "bastile.emulator.move_matrices";
// void (ptr registers, i32 count, i32 site): fails if a product has yet to
// write one of the registers
inline constexpr char checkRegisters[] = "bastile.emulator.check_registers";
// void (ptr to, ptr map, ptr coordinates, i32 rank, ptr mbarrier,
//       i32 mask of blocks or -1, i32 site)
inline constexpr char loadTensor[] = "bastile.emulator.load_tensor";
// void (ptr to, ptr from, ptr mbarrier, i32 bytes, i32 mask of blocks or -1,
//       i32 site)
inline constexpr char loadBytes[] = "bastile.emulator.load_bytes";
// void (ptr map, ptr from, ptr coordinates, i32 rank, i32 whether it adds to
//       what is there, i32 site)
inline constexpr char storeTensor[] = "bastile.emulator.store_tensor";
// void (): makes a group of the stores of tensors begun so far
inline constexpr char closeStores[] = "bastile.emulator.close_stores";
// void (i32 groups that may still be under way, i32 whether these may have
// written nothing yet but have read all)
inline constexpr char waitForStores[] = "bastile.emulator.wait_for_stores";
// void (ptr counter, i32 count, i32 site)
inline constexpr char pollCount[] = "bastile.emulator.poll_count";
inline constexpr char publishCount[] = "bastile.emulator.publish_count";
// float (i32 function, i32 flushes subnormals, float x, float y)
inline constexpr char approximate[] = "bastile.emulator.approximate";
// i32 (i32 whether f8E4M3FN, float): f8E4M3FN or f8E5M2, saturating
inline constexpr char truncateToF8[] = "bastile.emulator.truncate_f8";
// float (i32 whether f8E4M3FN, i32 code)
inline constexpr char extendF8[] = "bastile.emulator.extend_f8";
} // namespace emulator_calls

} // namespace bastile

#endif // BASTILE_LIB_EMULATOR_REWRITE_EMULATORCALLS_H

//===- Role.h - The threads that run an op together -------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_FRAGMENTS_ROLE_H
#define BASTILE_PASSES_FRAGMENTS_ROLE_H

#include "dialect/Tile.h"
#include "dialect/Warps.h"
#include "mlir/Transforms/DialectConversion.h"

namespace bastile {

/// The threads of a block that run a region of `tile.roles` together, or all of
/// them outside of roles.
class Role {
public:
  /// The most warpgroups of a role that may take turns: there are that many
  /// barriers for them.
  static constexpr int64_t kMostTurns = 4;
  /// The barrier of the block has number 0, those of roles follow, and then
  /// those of the warpgroups of the role that takes turns.
  static constexpr int64_t kRoleBarriers = 1, kTurnBarriers = 5;

  /// The role that `op` is part of.
  explicit Role(mlir::Operation *op);

  int64_t getThreads() const { return threads; }
  int64_t getWarpgroups() const { return threads / kWarpgroup; }
  /// The number of the role in its block, from 0; none outside of roles.
  std::optional<int64_t> getNumber() const { return number; }

  /// The number of the calling thread in its role.
  mlir::Value getThread(mlir::OpBuilder &builder, mlir::Location loc) const;
  /// The number of the calling thread's warpgroup in its role.
  mlir::Value getWarpgroup(mlir::OpBuilder &builder, mlir::Location loc) const;
  /// The number of the calling thread's warp in its role.
  mlir::Value getWarp(mlir::OpBuilder &builder, mlir::Location loc) const;

  /// Has all threads of the role wait for each other.
  void synchronize(mlir::OpBuilder &builder, mlir::Location loc) const;

  /// Has `build` run by the role's first thread only.
  void runOnFirst(mlir::OpBuilder &builder, mlir::Location loc,
                  llvm::function_ref<void()> build) const;
  /// Has `build` run by the first thread of each of the role's warps only.
  void runOnFirstOfWarps(mlir::OpBuilder &builder, mlir::Location loc,
                         llvm::function_ref<void()> build) const;

private:
  std::optional<int64_t> number;
  int64_t firstThread = 0, threads = 0;
};

/// Has the threads of each warp wait for each other.
void synchronizeWarp(mlir::OpBuilder &builder, mlir::Location loc);

} // namespace bastile

#endif // BASTILE_PASSES_FRAGMENTS_ROLE_H

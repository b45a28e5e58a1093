//===- ClusterExchange.h - Messages between blocks --------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_THREADS_CLUSTEREXCHANGE_H
#define BASTILE_PASSES_THREADS_CLUSTEREXCHANGE_H

#include "dialect/Tile.h"
#include "mlir/Transforms/DialectConversion.h"

namespace bastile {

/// The instruction that sends 32 bits to another block's shared memory and
/// tells a barrier there. It takes their address, the bits and the barrier's.
inline constexpr llvm::StringLiteral kSendInstruction =
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 "
    "[$0], $1, [$2];";

/// Has every block of a cluster give numbers to all of its blocks.
///
/// Each block has a place for every number and an mbarrier that counts the
/// bytes that arrive, so that no thread waits for more than these: not for its
/// own stores to memory, as a barrier of the cluster would have it. Where a
/// loop repeats the exchange, two places take turns. That is enough: who sends
/// for the time after next has received what all blocks sent after their warps
/// had read what it overwrites, and met.
class ClusterExchange {
public:
  /// For an exchange of `slots` numbers of 32 bits of `type`, by `op`.
  ClusterExchange(mlir::ConversionPatternRewriter &rewriter,
                  mlir::Operation *op, mlir::Type type, int64_t slots,
                  int64_t blocks);

  /// Sends `values` into `slots`: threads do whose `lane` is the number of a
  /// block.
  void send(mlir::ValueRange values, mlir::ValueRange slots, mlir::Value lane);

  /// Waits for all numbers. Returns where slot 0 of this block is.
  mlir::Value receive();

private:
  void prepareBarriers();
  void prepareTurns();
  void expect(mlir::Value barrier);
  mlir::Value constant(int64_t value);
  mlir::Value getElement(mlir::Value base, mlir::Type type, mlir::Value index);
  mlir::Value isFirstThread();

  mlir::ConversionPatternRewriter &rewriter;
  mlir::Operation *op;
  mlir::Location loc;
  mlir::Type type;
  int64_t slots, blocks;
  /// Places that take turns.
  int64_t places;
  mlir::Value memory, barriers;
  /// Which place it is this time, and the parity of its barrier's phase.
  mlir::Value place, parity;
};

/// Has the blocks of a cluster meet before the first exchange, once. Runs ahead
/// of the patterns.
void insertClusterMeeting(tile::KernelOp kernel);

} // namespace bastile

#endif // BASTILE_PASSES_THREADS_CLUSTEREXCHANGE_H

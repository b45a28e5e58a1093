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

/// Says of an instruction that sends or loads one of the numbers of an exchange
/// which one that is. They are neighbours in memory, which hides that no load
/// finds another number than its own.
inline constexpr llvm::StringLiteral kNumberAttrName = "tile.number";

/// Sends numbers from every block of a cluster to all blocks of the cluster.
///
/// Each block has a place for every number, and an mbarrier that counts the
/// bytes that arrive. So a thread waits for these bytes and no more, whereas a
/// barrier of the cluster would also wait for the thread's own stores to
/// memory. Where a loop repeats the exchange, two sets of places take turns.
/// Two are enough: a block that sends for the turn after next has received what
/// every block sent in the next turn, and no block sends before its warps have
/// read the places of this turn and met.
class ClusterExchange {
public:
  /// For an exchange by `op` of `slots` numbers of `type`, which has 32 bits.
  ClusterExchange(mlir::ConversionPatternRewriter &rewriter,
                  mlir::Operation *op, mlir::Type type, int64_t slots,
                  int64_t blocks);

  /// Sends `values` into `slots`. Each thread whose `lane` is the number of a
  /// block sends to that block.
  void send(mlir::ValueRange values, mlir::ValueRange slots, mlir::Value lane);

  /// Waits for all numbers and returns the address of slot 0 of this block.
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
  /// How many sets of places take turns.
  int64_t places;
  mlir::Value memory, barriers;
  /// The set of places of this turn, and the parity of its barrier's phase.
  mlir::Value place, parity;
};

/// Has exchanges that do not depend on each other happen at once, so that
/// blocks wait for each other once. To be called before the patterns run.
void joinExchanges(tile::ProgramOp program);

/// Makes the blocks of a cluster of `program` meet once, before the first
/// exchange. To be called before the patterns run.
void insertClusterMeeting(tile::ProgramOp program);

} // namespace bastile

#endif // BASTILE_PASSES_THREADS_CLUSTEREXCHANGE_H

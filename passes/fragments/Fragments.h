//===- Fragments.h - Patterns of programs on tensor cores -------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_FRAGMENTS_FRAGMENTS_H
#define BASTILE_PASSES_FRAGMENTS_FRAGMENTS_H

#include "bastile/Target.h"
#include "dialect/Tile.h"
#include "mlir/Transforms/DialectConversion.h"

namespace bastile {

/// The instruction that sends 16 bytes to another block's shared memory and
/// tells a barrier there. It takes their address, the bits and the barrier's.
inline constexpr llvm::StringLiteral kSendUnitInstruction =
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
    "[$0], {$1, $2, $3, $4}, [$5];";

/// Notes at loads and stores of a program over named dimensions what its
/// arguments say of the dimensions of operands, for the patterns of these.
void nameDimensions(tile::ProgramOp program);
void populateFragmentMemoryPatterns(const mlir::TypeConverter &converter,
                                    mlir::RewritePatternSet &patterns);
/// With `storesMatrices`, the target has an instruction for it (stmatrix).
void populateFragmentPatterns(const mlir::TypeConverter &converter,
                              mlir::RewritePatternSet &patterns,
                              bool storesMatrices);
void populateConvertLayoutPatterns(const mlir::TypeConverter &converter,
                                   mlir::RewritePatternSet &patterns);
/// Comparisons of columns with a number of the row, and what combines them.
void populateColumnBoundPatterns(const mlir::TypeConverter &converter,
                                 mlir::RewritePatternSet &patterns);
void populateExtremesPatterns(const mlir::TypeConverter &converter,
                              mlir::RewritePatternSet &patterns);
void populateNumbersPatterns(const mlir::TypeConverter &converter,
                             mlir::RewritePatternSet &patterns);
void populateBarrierPatterns(const mlir::TypeConverter &converter,
                             mlir::RewritePatternSet &patterns);
/// With `copiesBoxes`, the target may copy boxes of tensors, which counters
/// then order as well.
void populateCounterPatterns(const mlir::TypeConverter &converter,
                             mlir::RewritePatternSet &patterns,
                             bool copiesBoxes);
void populateTensorCopyPatterns(const mlir::TypeConverter &converter,
                                mlir::RewritePatternSet &patterns);
/// Tiles that lie in shared memory as threads hold them.
void populateHeldPatterns(const mlir::TypeConverter &converter,
                          mlir::RewritePatternSet &patterns);
void populateTileCopyPatterns(const mlir::TypeConverter &converter,
                              mlir::RewritePatternSet &patterns);
/// Products of warpgroups, and those of single warps.
void populateDotPatterns(const mlir::TypeConverter &converter,
                         mlir::RewritePatternSet &patterns);
void populateMatrixPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);

/// The bytes of shared memory through which `op` takes a tile; 0 if no thread
/// needs elements of another one.
int64_t getConversionBytes(tile::ConvertLayoutOp op);

/// Gives the first turn to the first warpgroup of each role that takes turns.
void startTurns(tile::RolesOp roles);

/// Whether `target` has the instructions that the ops of `program` become.
bool hasInstructions(const Target &target, tile::ProgramOp program);

/// Checks that `target` has what `program` asks for, where it has threads with
/// roles, copies or products; that tiles are dealt to the warps of the role
/// that computes them; and that threads meet where all of them come.
llvm::LogicalResult verifyRoles(tile::ProgramOp program, const Target &target);

/// Replaces the roles of `program` by branches, once what they run is lowered.
void lowerRoles(tile::ProgramOp program);

} // namespace bastile

#endif // BASTILE_PASSES_FRAGMENTS_FRAGMENTS_H

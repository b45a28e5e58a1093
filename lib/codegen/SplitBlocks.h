//===- SplitBlocks.h - No block longer than code is made for ----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_CODEGEN_SPLITBLOCKS_H
#define BASTILE_LIB_CODEGEN_SPLITBLOCKS_H

namespace llvm {
class FunctionPass;
} // namespace llvm

namespace bastile {

/// A pass that splits blocks of more than some thousand instructions, ahead of
/// the selection of machine instructions. Selection and scheduling look at a
/// block at a time and take time in the square of its length, or more.
llvm::FunctionPass *createSplitBlocks();

} // namespace bastile

#endif // BASTILE_LIB_CODEGEN_SPLITBLOCKS_H

//===- SplitBlocks.h - Splitting of very long blocks ------------*- C++ -*-===//
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
/// the selection of machine instructions. Selection and scheduling take time in
/// the square of a block's length, or more.
llvm::FunctionPass *createSplitBlocks();

} // namespace bastile

#endif // BASTILE_LIB_CODEGEN_SPLITBLOCKS_H

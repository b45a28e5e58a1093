//===- TileDialect.td - The tile dialect --------------------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_TILEDIALECT_TD
#define BASTILE_DIALECT_TILEDIALECT_TD

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::bastile::tile";
  let summary = "Row-wise kernels of language-model training";
  let description = [{
    The dialect describes what a memory-bound kernel computes, on whole tensors,
    and carries it down to what each thread does.

    A *row tensor* has any number of leading dimensions, usually dynamic, and a
    static last one: the *row*, contiguous in memory (`tensor<?x2880xbf16>`,
    `tensor<?x?x128xf32>`). A *row vector* is one row shared by all
    (`tensor<2880xbf16>`, a weight). A *statistic* is a row tensor of length one
    (`tensor<?x1xf32>`, a mean).

    Three groups of ops share these types:

    - *model ops* (`tile.geglu`, `tile.rms_norm`) are what users write; each
      stands in one file under `dialect/ops/` and decomposes into primitives;
    - *primitives* (`tile.reduce`, `tile.broadcast`) are what `arith` and `math`
      lack on row tensors;
    - *kernel ops* (`tile.kernel`, `tile.load`, ...) hold what `fuse` and `tile`
      make of them: kernels over *tiles*, tensors of static shape.
  }];

  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    /// Unit argument attribute of a kernel: the operand may not be written.
    static constexpr ::llvm::StringLiteral kReadOnlyAttrName = "tile.readonly";
    /// Argument attribute of a kernel: bytes that divide the operand's base
    /// address and each of its leading strides.
    static constexpr ::llvm::StringLiteral kAlignmentAttrName =
        "tile.alignment";
    /// Argument attribute of a tiled kernel: with this number of elements, all
    /// operands of a space that have it leave the same remainder when it divides
    /// their base addresses, and their leading strides.
    static constexpr ::llvm::StringLiteral kPhaseAttrName = "tile.phase";
    /// Function attribute: how to call the function's backward (see the pass
    /// `differentiate`).
    static constexpr ::llvm::StringLiteral kBackwardAttrName = "tile.backward";
    /// Argument and result attribute of a function: the name its source gives
    /// the argument, or `differentiate` the result.
    static constexpr ::llvm::StringLiteral kNameAttrName = "tile.name";
    /// Unit argument attribute of a tiled kernel: holds one row for each program,
    /// without gaps.
    static constexpr ::llvm::StringLiteral kPartialAttrName = "tile.partial";
    /// Argument attribute of a tiled kernel: how many neighbouring rows each row
    /// of the operand stands for; these lie without gaps.
    static constexpr ::llvm::StringLiteral kBandAttrName = "tile.band";
    /// Argument attribute of a tiled kernel of several row spaces: the one whose
    /// rows the operand has, 0 if absent.
    static constexpr ::llvm::StringLiteral kSpaceAttrName = "tile.space";
    /// Attribute of a kernel of several row spaces: the names of the kernels that
    /// the second and later ones were, for reports.
    static constexpr ::llvm::StringLiteral kMergedAttrName = "tile.merged";
    /// Argument attribute of a kernel: the result that may take the operand's
    /// place in memory. Unit attribute of a tiled kernel that has such an
    /// operand. Result attribute of a function: the argument whose place it may
    /// take.
    static constexpr ::llvm::StringLiteral kInPlaceAttrName = "tile.in_place";
    /// Unit argument attribute of a function or kernel: where this number is 1,
    /// every result is equal to the argument whose place it may take.
    static constexpr ::llvm::StringLiteral kFactorAttrName = "tile.factor";
    /// Unit result attribute of a function or kernel, and argument attribute of
    /// a tiled kernel: what is computed of this number is rounded to 16 bits or
    /// fewer, so that it may be approximate as well.
    static constexpr ::llvm::StringLiteral kApproximateAttrName =
        "tile.approximate";
    /// On a launch and its kernels: the next launch may start before this one
    /// has ended. On the kernels of that next one: they wait for it.
    static constexpr ::llvm::StringLiteral kOverlapNextAttrName =
        "tile.overlap_next";
    static constexpr ::llvm::StringLiteral kOverlapPreviousAttrName =
        "tile.overlap_previous";
    /// Function attribute with which a user pins a schedule.
    static constexpr ::llvm::StringLiteral kScheduleAttrName = "tile.schedule";

    void registerAttributes();
    void registerModelOps();
  }];
}

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, traits>;

#endif // BASTILE_DIALECT_TILEDIALECT_TD

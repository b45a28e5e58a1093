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
    The dialect describes the computation of memory-bound kernels, first on
    whole tensors, and at last for each thread.

    A *row tensor* has any number of leading dimensions, usually dynamic, and a
    static last one: the *row*, contiguous in memory (`tensor<?x2880xbf16>`,
    `tensor<?x?x128xf32>`). A *row vector* is one row that all rows share
    (`tensor<2880xbf16>`, a weight). A *statistic* has one number for each row
    (`tensor<?x1xf32>`, a mean).

    Three groups of ops share these types:

    - *model ops* (`tile.geglu`, `tile.rms_norm`) are what users write; each
      stands in one file under `dialect/ops/` and decomposes into primitives;
    - *primitives* (`tile.reduce`, `tile.broadcast`) are ops on row tensors that
      `arith` and `math` lack;
    - *kernel ops* (`tile.kernel`, `tile.load`, ...) make up the kernels and
      programs of the passes `fuse` and `tile`. Programs compute on *tiles*,
      tensors of static shape.
  }];

  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    /// Unit argument attribute of a kernel: the kernel only reads the operand.
    static constexpr ::llvm::StringLiteral kReadOnlyAttrName = "tile.readonly";
    /// Argument attribute of a kernel: a number of bytes that divides the
    /// operand's base address and each of its leading strides.
    static constexpr ::llvm::StringLiteral kAlignmentAttrName =
        "tile.alignment";
    /// Argument attribute of a tiled kernel: a number of elements. All operands
    /// of a row space with this attribute leave the same remainder when their
    /// base addresses are divided by it, and so do their leading strides.
    static constexpr ::llvm::StringLiteral kPhaseAttrName = "tile.phase";
    /// Function attribute: how to call the function's backward (see the pass
    /// `differentiate`).
    static constexpr ::llvm::StringLiteral kBackwardAttrName = "tile.backward";
    /// Argument and result attribute of a function: the name that the source
    /// gives the argument, or `differentiate` the result.
    static constexpr ::llvm::StringLiteral kNameAttrName = "tile.name";
    /// Unit argument attribute of a tiled kernel: the operand is a partial
    /// result, with one row for each program and without gaps.
    static constexpr ::llvm::StringLiteral kPartialAttrName = "tile.partial";
    /// Argument attribute of a tiled kernel: how many neighbouring rows share
    /// each row of the operand; the operand's rows lie without gaps.
    static constexpr ::llvm::StringLiteral kBandAttrName = "tile.band";
    /// Argument attribute of a tiled kernel of several row spaces: the row
    /// space to which the operand's rows belong; 0 if absent.
    static constexpr ::llvm::StringLiteral kSpaceAttrName = "tile.space";
    /// Attribute of a kernel of several row spaces: the names that the kernels
    /// of all row spaces but the first had before merging, for reports.
    static constexpr ::llvm::StringLiteral kMergedAttrName = "tile.merged";
    /// Argument attribute of a kernel: the result that may take the operand's
    /// place in memory. Unit attribute of a tiled kernel that has such an
    /// operand. Result attribute of a function: the argument whose place the
    /// result may take.
    static constexpr ::llvm::StringLiteral kInPlaceAttrName = "tile.in_place";
    /// Unit result attribute of a function beside that one: where the result
    /// cannot take the argument's place, which is an error otherwise, it has
    /// memory of its own.
    static constexpr ::llvm::StringLiteral kInPlaceIfPossibleAttrName =
        "tile.in_place_if_possible";
    /// Unit argument attribute of a function or kernel: where this number is 1,
    /// every result equals the argument whose place it may take.
    static constexpr ::llvm::StringLiteral kFactorAttrName = "tile.factor";
    /// Unit result attribute of a function or kernel, and argument attribute of
    /// a tiled kernel: every value computed of this number is rounded to 16
    /// bits or fewer, so the number itself may be approximate.
    static constexpr ::llvm::StringLiteral kApproximateAttrName =
        "tile.approximate";
    /// Unit attributes of a launch and its kernels. With `overlap_next`, the
    /// next launch may start before this one has ended; the kernels of that
    /// next launch have `overlap_previous` and wait for this one.
    static constexpr ::llvm::StringLiteral kOverlapNextAttrName =
        "tile.overlap_next";
    static constexpr ::llvm::StringLiteral kOverlapPreviousAttrName =
        "tile.overlap_previous";
    /// Function attribute by which a user pins a schedule.
    static constexpr ::llvm::StringLiteral kScheduleAttrName = "tile.schedule";

    void registerAttributes();
    void registerModelOps();
  }];
}

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, traits>;

#endif // BASTILE_DIALECT_TILEDIALECT_TD

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
    - *kernel ops* (`tile.kernel`, `tile.program`, `tile.load`, ...) make up the
      kernels of the pass `fuse` and the programs of the pass `tile`. Programs
      compute on *tiles*, tensors of static shape.
  }];

  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    /// Function attribute: how to call the function's backward (see the pass
    /// `differentiate`).
    static constexpr ::llvm::StringLiteral kBackwardAttrName = "tile.backward";
    /// Argument and result attribute of a function: the name that the source
    /// gives the argument, or `differentiate` the result.
    static constexpr ::llvm::StringLiteral kNameAttrName = "tile.name";
    /// Argument attribute of a kernel: the result that may take the operand's
    /// place in memory. Result attribute of a function: the argument whose place
    /// the result may take.
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
    /// a program: every value computed of this number is rounded to 16
    /// bits or fewer, so the number itself may be approximate.
    static constexpr ::llvm::StringLiteral kApproximateAttrName =
        "tile.approximate";
    /// Unit attribute of an exponential: where it is below 2^-126, it may be 0,
    /// as all of its row add up to 1.
    static constexpr ::llvm::StringLiteral kFlushedAttrName = "tile.flushed";
    /// Argument attribute of a function or kernel: a number that all elements
    /// are above, as far as they are not NaN.
    static constexpr ::llvm::StringLiteral kAboveAttrName = "tile.above";
    /// Unit attribute of an `arith.andi` of two conditions that hold for the
    /// same elements: kernels compute one of them, the first one where they go
    /// along rows of the elements, the second one along columns.
    static constexpr ::llvm::StringLiteral kEitherAttrName = "tile.either";
    /// Function attribute by which a user pins a schedule.
    static constexpr ::llvm::StringLiteral kScheduleAttrName = "tile.schedule";

    void registerAttributes();
    void registerTypes();
    void registerModelOps();
  }];
}

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, traits>;

#endif // BASTILE_DIALECT_TILEDIALECT_TD

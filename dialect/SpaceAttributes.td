//===- SpaceAttributes.td - The dimensions of kernels -------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_SPACEATTRIBUTES_TD
#define BASTILE_DIALECT_SPACEATTRIBUTES_TD

include "dialect/TileAttributes.td"

def Tile_SpaceAttr : Tile_Attr<"Space", "space"> {
  let summary = "The dimensions that a kernel goes along";
  let description = [{
    A kernel goes along named dimensions, and each of its tensors has a
    *projection* of them: for each of its own dimensions a name, or a number
    where it has so many elements that the kernel does not go along. That is 1
    where there is nothing to go along. Tensors have a dimension in common where
    dataflow makes it one, never because sizes agree: a square weight has two.

    For example, rows divided by their maxima:

    ```mlir
    tile.kernel @f(%x: tensor<?x2880xf32>) -> tensor<?x2880xf32>
        attributes {space = #tile.space<[r = ?, reduction c = 2880],
            arguments = [(r, c)], results = [(r, c)],
            values = [(r, 1), (r, c), (r, c)]>} {
      %0 = tile.reduce max %x : tensor<?x2880xf32> -> tensor<?x1xf32>
      %1 = tile.broadcast %0 like %x
          : tensor<?x1xf32>, tensor<?x2880xf32> -> tensor<?x2880xf32>
      %2 = arith.divf %x, %1 : tensor<?x2880xf32>
      tile.return %2 : tensor<?x2880xf32>
    }
    ```

    The size of r is known to a call alone. Some op combines elements along c,
    so that it is a reduction; all other dimensions are parallel. `values` has
    the projections of the results of all ops, in order, an empty one for a
    number that is no tensor.

    A dimension may follow from another one. With `g = groups(c, 64)`, an element
    along g stands for 64 neighbours along c; with `w = pieces(c, 2)`, rows along
    w consist of two pieces that go along c each.

    An argument may be read in several ways: a product of x and its transpose has
    the rows of x both for its rows, m, and for its columns, n. The projections
    are listed in the order in which ops read them:

    ```mlir
    tile.kernel @g(%x: tensor<?x64xf32>) -> tensor<?x?xf32>
        attributes {space = #tile.space<[m = ?, reduction k = 64, n = ?],
            arguments = [(m, k) | (n, k)], results = [(m, n)],
            values = [(m, n)]>} {
      %0 = tile.dot %x, %x contract [1, 1]
          : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x?xf32>
      tile.return %0 : tensor<?x?xf32>
    }
    ```

    A kernel on rows has rows of any number of dimensions, one dimension of
    columns, and others that follow from it. A kernel that multiplies, or whose
    rows have a length that only a call knows, has rows m, columns n, and k, which
    its products and reductions sum over a part at a time; b0, b1, ... are those
    of the batch, from the last one on, and d is what an inner product sums over.
  }];
  let parameters = (ins ArrayRefParameter<"SpaceDimension">:$dimensions,
                        "::mlir::ArrayAttr":$arguments,
                        "::mlir::ArrayAttr":$results,
                        "::mlir::ArrayAttr":$values);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The dimension that an element of a projection names; null for a number.
    const SpaceDimension *lookup(::mlir::Attribute name) const;

    /// The projections of an argument, in the order in which it is read.
    ::llvm::ArrayRef<::mlir::Attribute> getOfArgument(unsigned index) const {
      return ::llvm::cast<::mlir::ArrayAttr>(getArguments()[index]).getValue();
    }
    ::mlir::ArrayAttr getOfResult(unsigned index) const {
      return ::llvm::cast<::mlir::ArrayAttr>(getResults()[index]);
    }
    ::mlir::ArrayAttr getOfValue(unsigned index) const {
      return ::llvm::cast<::mlir::ArrayAttr>(getValues()[index]);
    }
  }];
}

#endif // BASTILE_DIALECT_SPACEATTRIBUTES_TD

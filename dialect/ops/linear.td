//===- linear.td - Rows times a matrix ---------------------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

include "dialect/ModelOpBase.td"

def Tile_LinearOp : Tile_ModelOp<"linear", [
    InferTypeOpAdaptor,
    AllElementTypesMatch<["input", "weight"]>]> {
  let summary = "multiplies rows by a matrix, as a linear layer does";
  let description = [{
    ```
    result = x * weight^T + bias
    ```

    `weight` has a row for each column of the result, as long as the rows of x.
    Products are computed in the type of x and `weight`, summed in float32
    (float64 for float64 operands), and rounded once to that type, with the bias
    added. Leading dimensions of x are those of the result.

    Example:

    ```mlir
    %0 = tile.linear %x, %weight : tensor<?x2880xbf16>, tensor<5760x2880xbf16>
    %1 = tile.linear %y, %weight, %bias
        : tensor<?x?x2880xbf16>, tensor<5760x2880xbf16>, tensor<5760xf32>
    ```
  }];
  let arguments = (ins Tile_RowTensor:$input, Tile_Matrix:$weight,
                       Optional<Tile_ResultVector>:$bias);
  let results = (outs Tile_RowTensor:$result);
  let assemblyFormat = [{
    $input `,` $weight (`,` $bias^)? attr-dict `:` type($input) `,`
    type($weight) (`,` type($bias)^)?
  }];
  let hasVerifier = 1;

  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *, ::std::optional<::mlir::Location> location,
        Adaptor adaptor, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      auto input = ::mlir::dyn_cast<::mlir::RankedTensorType>(
          adaptor.getInput().getType());
      auto weight = ::mlir::dyn_cast<::mlir::RankedTensorType>(
          adaptor.getWeight().getType());
      if (!input || input.getRank() < 2 || !weight || weight.getRank() != 2)
        return ::mlir::emitOptionalError(
            location, "input must be a row tensor, and weight a matrix");
      ::llvm::SmallVector<int64_t> shape(input.getShape());
      shape.back() = weight.getDimSize(0);
      types.push_back(input.clone(shape));
      return ::mlir::success();
    }

    ::llvm::LogicalResult $cppClass::verify() {
      if (failed(verifyRowLength(*this, getWeight(), "weight", getInput(),
                                 "input")))
        return ::mlir::failure();
      if (!getBias())
        return ::mlir::success();
      return verifyRowLength(*this, getBias(), "bias", getResult(), "result");
    }

    ::llvm::SmallVector<::mlir::Value>
    $cppClass::decompose(::mlir::ImplicitLocOpBuilder &builder) {
      Expr result = dot(builder, getInput(), getWeight(), {1, 1});
      if (getBias())
        result = result + Expr(builder, getBias());
      return {result.as(getType().getElementType())};
    }
  }];
}

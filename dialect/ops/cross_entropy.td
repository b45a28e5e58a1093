//===- cross_entropy.td - Cross-entropy of logits and targets *- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

include "dialect/ModelOpBase.td"

def Tile_LossReduction : I32EnumAttr<"LossReduction", "how token losses combine", [
    I32EnumAttrCase<"None", 0, "none">,
    I32EnumAttrCase<"Mean", 1, "mean">,
    I32EnumAttrCase<"Sum", 2, "sum">,
  ]> {
  let cppNamespace = "::bastile::tile";
}

def Tile_CrossEntropyOp : Tile_ModelOp<"cross_entropy", [
    InferTypeOpAdaptor]> {
  let summary = "the cross-entropy of logits and targets";
  let description = [{
    For each token, a row of logits with a target t:

    ```
    z = soft_cap * tanh(logits / soft_cap) / temperature
    lse = log(sum(exp(z)))
    loss = (1 - s) * w[t] * (lse - z[t]) + s / V * sum_j(w[j] * (lse - z[j]))
           + z_loss * lse^2
    ```

    with s the `label_smoothing`, V the length of the row and w the optional
    class `weights`, all 1 otherwise. A `soft_cap` of 0, the default, leaves the
    logits as they are. A token whose target is `ignore_index` has the loss 0.
    With `token_scaling`, each token's loss is multiplied by exp(z[t] - lse), the
    probability of its target, taken for a constant.

    `reduction(mean)`, the default, divides the sum of the losses by the number
    of tokens not ignored, or by the sum of their w[t]. As no class weighs the
    last term, z_loss * lse^2, its sum is divided by the number of tokens in
    either case. If all tokens are ignored, the loss and all gradients are 0.

    A target outside of the row that is not `ignore_index` makes the loss of its
    token NaN; the token has no gradient, and no memory is read for it.
    `invalid` counts such targets.

    Results are float32 (float64 for float64 logits): `loss` of all tokens, or
    of each with `reduction(none)`; `lse` of each token; `correct`, an i8 that
    is 1 where no logit is larger than the target's; `invalid`; and `predicted`,
    the least number of a class whose logit is the largest, or -1 for a token
    that is ignored or has a NaN among its logits (an i32, for rows of up to
    2^24 logits). A result that is not used costs nothing. A logit of -inf is
    that of a token that cannot occur.

    Example:

    ```mlir
    %loss, %lse, %correct, %invalid, %predicted =
        tile.cross_entropy %logits, %targets
        : tensor<?x128256xbf16>, tensor<?x1xi64>
    %l, %lse1, %correct1, %invalid1, %predicted1 =
        tile.cross_entropy %logits, %targets weights(%w) reduction(none)
        {label_smoothing = 0.1} : tensor<?x128256xbf16>, tensor<?x1xi64>,
        tensor<128256xf32>
    ```
  }];
  let arguments = (ins
    Tile_RowTensor:$logits, Tile_IntegerStatistic:$targets,
    Optional<Tile_RowVector>:$weights,
    DefaultValuedAttr<Tile_LossReduction, "LossReduction::Mean">:$reduction,
    DefaultValuedAttr<I64Attr, "-100">:$ignore_index,
    DefaultValuedAttr<F64Attr, "0.0">:$label_smoothing,
    DefaultValuedAttr<F64Attr, "0.0">:$z_loss,
    DefaultValuedAttr<F64Attr, "0.0">:$soft_cap,
    DefaultValuedAttr<F64Attr, "1.0">:$temperature,
    UnitAttr:$token_scaling);
  let results = (outs Tile_ComputeRows:$loss, Tile_ComputeTensor:$lse,
                      RankedTensorOf<[I8]>:$correct, Tile_ComputeRows:$invalid,
                      RankedTensorOf<[I32]>:$predicted);
  let assemblyFormat = [{
    $logits `,` $targets (`weights` `(` $weights^ `)`)?
    (`reduction` `(` $reduction^ `)`)? attr-dict `:` type($logits) `,`
    type($targets) (`,` type($weights)^)?
  }];
  let hasVerifier = 1;

  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context, ::std::optional<::mlir::Location> location,
        Adaptor adaptor, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      auto logits = ::mlir::dyn_cast<::mlir::RankedTensorType>(
          adaptor.getLogits().getType());
      if (!logits || logits.getRank() < 2)
        return ::mlir::emitOptionalError(location,
                                         "logits must be a row tensor");
      ::mlir::Type element = logits.getElementType();
      if (!element.isF64())
        element = ::mlir::Float32Type::get(context);
      ::llvm::SmallVector<int64_t> shape(logits.getShape());
      shape.back() = 1;
      auto one = ::mlir::RankedTensorType::get({1}, element);
      auto each = ::mlir::RankedTensorType::get(shape, element);
      // While the op is parsed, an attribute that the source does not give is
      // null.
      LossReductionAttr reduction = adaptor.getReductionAttr();
      bool isEach = reduction && reduction.getValue() == LossReduction::None;
      types.assign({isEach ? each : one, each,
                    each.clone(::mlir::IntegerType::get(context, 8)), one,
                    each.clone(::mlir::IntegerType::get(context, 32))});
      return ::mlir::success();
    }

    ::llvm::LogicalResult $cppClass::verify() {
      auto logits = ::mlir::cast<::mlir::RankedTensorType>(getLogits().getType());
      auto targets =
          ::mlir::cast<::mlir::RankedTensorType>(getTargets().getType());
      if (targets.getShape().drop_back() != logits.getShape().drop_back())
        return emitOpError("targets of type ")
               << targets << " do not have the leading sizes of the logits of "
               << "type " << logits;
      double smoothing = getLabelSmoothing().convertToDouble();
      if (!(smoothing >= 0 && smoothing <= 1))
        return emitOpError("label_smoothing must be from 0 to 1, but is ")
               << smoothing;
      if (double cap = getSoftCap().convertToDouble(); !(cap >= 0))
        return emitOpError("soft_cap must be positive, or 0 for none, but is ")
               << cap;
      if (double temperature = getTemperature().convertToDouble();
          !(temperature > 0))
        return emitOpError("temperature must be positive, but is ")
               << temperature;
      if (!getWeights())
        return ::mlir::success();
      return verifyRowLength(*this, getWeights(), "weights", getLogits(),
                             "logits");
    }

    ::llvm::SmallVector<::mlir::Value>
    $cppClass::decompose(::mlir::ImplicitLocOpBuilder &builder) {
      Expr logits(builder, getLogits()), z = logits;
      double cap = getSoftCap().convertToDouble();
      double temperature = getTemperature().convertToDouble();
      if (cap != 0)
        z = tanh(z * (1 / cap)) * cap;
      if (temperature != 1)
        z = z * (1 / temperature);

      Expr top = stopGradient(rowMax(z));
      Expr shifted = z - top;
      Expr logSum = log(rowSum(exp(shifted)));
      Expr lse = logSum + top;

      int64_t length = z.getType().getShape().back();
      TargetRows targets(builder, getTargets(), getIgnoreIndex(), length);
      ::mlir::Value isTarget = targets.isTarget(z);
      Expr zero = z.constant(0), none = lse.constant(0), one = lse.constant(1);
      // The loss is not lse less the logit: both may be large, and their
      // difference small.
      Expr targetShifted = rowSum(select(isTarget, z, zero)) - top;
      Expr loss = logSum - targetShifted;
      Expr weight = one;
      if (getWeights()) {
        Expr weights = Expr(builder, getWeights()).like(z);
        weight = rowSum(select(isTarget, weights, zero));
        loss = loss * weight;
      }
      if (double smoothing = getLabelSmoothing().convertToDouble()) {
        Expr all = logSum.like(shifted) - shifted;
        if (getWeights())
          all = all * Expr(builder, getWeights());
        loss = loss * (1 - smoothing) + rowSum(all) * (smoothing / length);
      }
      // What a token's loss is multiplied by, and where it is none.
      auto finish = [&](Expr term) {
        if (getTokenScaling())
          term = term * stopGradient(exp(targetShifted - logSum));
        term = select(targets.isInRange(), term, lse.constant(NAN));
        return select(targets.isIgnored(), none, term);
      };
      auto count = [&](const Expr &each) {
        Expr number = sumOfRows(select(targets.isIgnored(), none, each));
        Expr some = number.constant(1);
        ::mlir::Value isEmpty =
            compare(::mlir::arith::CmpFPredicate::OEQ, number, 0.0);
        return select(isEmpty, some, number);
      };
      double scale = getZLoss().convertToDouble();
      bool isMean = getReduction() == LossReduction::Mean;
      // Means of the two are taken over different numbers.
      bool isApart = scale != 0 && isMean && getWeights();
      if (scale != 0 && !isApart)
        loss = loss + lse * lse * scale;
      loss = finish(loss);

      Expr invalid = sumOfRows(
          select(targets.isIgnored(), none,
                 select(targets.isInRange(), none, one)));
      // Logits are compared as they are: a function of them may be computed twice,
      // and rounded in two ways.
      Expr largest = rowMax(logits);
      Expr targetLogit = rowSum(select(isTarget, logits, zero));
      Expr isBest = select(compare(::mlir::arith::CmpFPredicate::OGE,
                                   targetLogit, largest), one, none);
      ::mlir::Value correct = toInteger(
          select(targets.isIgnored(), none,
                 select(targets.isInRange(), isBest, none)),
          builder.getI8Type());
      Expr nowhere = none.constant(length);
      Expr best = rowMin(select(compare(::mlir::arith::CmpFPredicate::OEQ,
                                        logits, largest),
                                columnNumbers(z), zero.constant(length)));
      best = select(compare(::mlir::arith::CmpFPredicate::OEQ, best, nowhere),
                    none.constant(-1), best);
      ::mlir::Value predicted =
          toInteger(select(targets.isIgnored(), none.constant(-1), best),
                    builder.getI32Type());
      if (getReduction() != LossReduction::None)
        loss = sumOfRows(loss);
      if (isMean)
        loss = loss / count(weight);
      if (isApart)
        loss = loss + sumOfRows(finish(lse * lse * scale)) / count(one);
      return {loss.getValue(), lse.getValue(), correct, invalid.getValue(),
              predicted};
    }
  }];
}

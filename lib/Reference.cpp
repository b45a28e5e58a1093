//===- Reference.cpp - What functions compute without rounding ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/Reference.h"

#include "bastile/Compiler.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace bastile;

static double getDouble(APFloat value) {
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

/// Replaces every float type narrower than float64 below `module`.
static void promoteTypes(ModuleOp module) {
  Type f64 = Float64Type::get(module.getContext());
  auto isNarrow = [](Type type) {
    return isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 64;
  };
  AttrTypeReplacer replacer;
  replacer.addReplacement([=](FloatType type) -> std::optional<Type> {
    return isNarrow(type) ? std::optional<Type>(f64) : std::nullopt;
  });
  // Attributes hold their numbers in the format of their type, so replacing
  // that alone would leave them malformed.
  replacer.addReplacement([=](FloatAttr number) -> std::optional<Attribute> {
    if (!isNarrow(number.getType()))
      return std::nullopt;
    return FloatAttr::get(f64, getDouble(number.getValue()));
  });
  replacer.addReplacement(
      [=](DenseFPElementsAttr numbers) -> std::optional<Attribute> {
        if (!isNarrow(numbers.getElementType()))
          return std::nullopt;
        return numbers.mapValues(f64, [](const APFloat &number) {
          return APFloat(getDouble(number)).bitcastToAPInt();
        });
      });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

/// Drops the casts of floats that convert from a type to itself.
static void eraseNoOpCasts(ModuleOp module) {
  module.walk([](Operation *op) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op) ||
        op->getOperand(0).getType() != op->getResult(0).getType())
      return;
    op->replaceAllUsesWith(op->getOperands());
    op->erase();
  });
}

/// Counts the values of decomposed `func` that are computed in, or rounded to,
/// at most 16 bits and then used.
static unsigned countInnerRoundings(func::FuncOp func) {
  unsigned count = 0;
  func.walk([&](Operation *op) {
    // Extending is exact, and so is repeating a value or naming a constant.
    if (op->getNumResults() != 1 || op->getNumOperands() == 0 ||
        !isa<arith::ArithDialect>(op->getDialect()) || isa<arith::ExtFOp>(op))
      return;
    Type type = getElementTypeOrSelf(op->getResult(0).getType());
    if (!isa<FloatType>(type) || type.getIntOrFloatBitWidth() > 16)
      return;
    if (!llvm::all_of(op->getUsers(), llvm::IsaPred<func::ReturnOp>))
      ++count;
  });
  return count;
}

FailureOr<Reference> bastile::buildReference(ModuleOp module,
                                             const GradientOptions &gradients) {
  Reference reference;
  CompileOptions options;
  options.target = &Target::host();
  options.gradients = gradients;
  OwningOpRef<ModuleOp> decomposed = module.clone();
  if (failed(lower(*decomposed, Stage::Decomposed, options)))
    return failure();
  for (auto func : decomposed->getOps<func::FuncOp>())
    reference.innerRoundings[func.getName()] = countInnerRoundings(func);

  // Model ops are promoted before they are decomposed: the constants of their
  // formulas then have all the digits of float64. Not so if a backward is
  // derived: what it reads depends on the types.
  reference.module =
      gradients.arguments.empty() ? module.clone() : std::move(decomposed);
  promoteTypes(*reference.module);
  eraseNoOpCasts(*reference.module);
  if (failed(verify(*reference.module)))
    return failure();
  return reference;
}

//===- Formulas.cpp - The formulas of Expression.h by name ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/frontend/Formulas.h"

#include "dialect/Tile.h"

using namespace mlir;
using namespace bastile;
using namespace bastile::tile;

using Operands = ArrayRef<Value>;

// Each formula has the name of its C++ function here.
#define UNARY(function)                                                        \
  {#function, "n", [](ImplicitLocOpBuilder &builder, Operands operands) {      \
     return tile::function(Expr(builder, operands[0])).getValue();             \
   }}
#define BINARY(function)                                                       \
  {#function, "nn", [](ImplicitLocOpBuilder &builder, Operands operands) {     \
     return tile::function(Expr(builder, operands[0]),                         \
                           Expr(builder, operands[1]))                         \
         .getValue();                                                          \
   }}
#define ARITHMETIC(name, symbol)                                               \
  {#name, "nn", [](ImplicitLocOpBuilder &builder, Operands operands) {         \
     return (Expr(builder, operands[0]) symbol Expr(builder, operands[1]))     \
         .getValue();                                                          \
   }}
#define COMPARISON(name, predicate)                                            \
  {#name, "nn", [](ImplicitLocOpBuilder &builder, Operands operands) {         \
     return compare(arith::CmpFPredicate::predicate,                           \
                    Expr(builder, operands[0]), Expr(builder, operands[1]));   \
   }}
#define LOGIC(name, op)                                                        \
  {#name, "cc",                                                                \
   [](ImplicitLocOpBuilder &builder, Operands operands) -> Value {             \
     return op::create(builder, operands[0], operands[1]);                     \
   }}

static Value negateCondition(ImplicitLocOpBuilder &builder, Operands operands) {
  Value condition = operands.front();
  Value isTrue = arith::ConstantOp::create(builder, builder.getBoolAttr(true));
  isTrue = BroadcastOp::create(builder, condition.getType(), isTrue, condition);
  return arith::XOrIOp::create(builder, condition, isTrue);
}

static const Formula formulas[] = {
    {"negate", "n",
     [](ImplicitLocOpBuilder &builder, Operands operands) {
       return (-Expr(builder, operands[0])).getValue();
     }},
    UNARY(abs),
    UNARY(ceil),
    UNARY(cos),
    UNARY(erf),
    UNARY(erfc),
    UNARY(exp),
    UNARY(exp2),
    UNARY(expm1),
    UNARY(floor),
    UNARY(geluErf),
    UNARY(geluTanh),
    UNARY(log),
    UNARY(log1p),
    UNARY(log2),
    UNARY(relu),
    UNARY(round),
    UNARY(rsqrt),
    UNARY(sigmoid),
    UNARY(silu),
    UNARY(sin),
    UNARY(softplus),
    UNARY(sqrt),
    UNARY(stopGradient),
    UNARY(tanh),

    ARITHMETIC(add, +),
    ARITHMETIC(subtract, -),
    ARITHMETIC(multiply, *),
    ARITHMETIC(divide, /),
    BINARY(max),
    BINARY(min),
    BINARY(power),

    // A comparison with NaN is false, except that NaN is unequal to everything.
    COMPARISON(less, OLT),
    COMPARISON(lessEqual, OLE),
    COMPARISON(greater, OGT),
    COMPARISON(greaterEqual, OGE),
    COMPARISON(equal, OEQ),
    COMPARISON(notEqual, UNE),

    LOGIC(both, arith::AndIOp),
    LOGIC(either, arith::OrIOp),
    {"opposite", "c", &negateCondition},
    {"select", "cnn",
     [](ImplicitLocOpBuilder &builder, Operands operands) {
       return select(operands[0], Expr(builder, operands[1]),
                     Expr(builder, operands[2]))
           .getValue();
     }},
};

const Formula *bastile::findFormula(StringRef name) {
  const Formula *found = llvm::find_if(
      formulas, [&](const Formula &formula) { return formula.name == name; });
  return found == std::end(formulas) ? nullptr : found;
}

static const Reduction reductions[] = {
    {"rowSum", rowSum, /*isOfRows=*/false},
    {"rowMean", rowMean, /*isOfRows=*/false},
    {"rowMax", rowMax, /*isOfRows=*/false},
    {"rowMin", rowMin, /*isOfRows=*/false},
    {"sumOfRows",
     [](const Expr &operand, int64_t) { return sumOfRows(operand); },
     /*isOfRows=*/true},
    {"maxOfRows",
     [](const Expr &operand, int64_t) { return maxOfRows(operand); },
     /*isOfRows=*/true},
};

const Reduction *bastile::findReduction(StringRef name) {
  const Reduction *found =
      llvm::find_if(reductions, [&](const Reduction &reduction) {
        return reduction.name == name;
      });
  return found == std::end(reductions) ? nullptr : found;
}

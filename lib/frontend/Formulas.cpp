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
#define UNARY(function, ...)                                                   \
  {#function, "n",                                                             \
   [](ImplicitLocOpBuilder &builder, Operands operands) {                      \
     return tile::function(Expr(builder, operands[0])).getValue();             \
   },                                                                          \
   __VA_ARGS__}
#define BINARY(function, ...)                                                  \
  {#function, "nn",                                                            \
   [](ImplicitLocOpBuilder &builder, Operands operands) {                      \
     return tile::function(Expr(builder, operands[0]),                         \
                           Expr(builder, operands[1]))                         \
         .getValue();                                                          \
   },                                                                          \
   __VA_ARGS__}
#define ARITHMETIC(name, symbol, integers)                                     \
  {#name, "nn",                                                                \
   [](ImplicitLocOpBuilder &builder, Operands operands) {                      \
     return (Expr(builder, operands[0]) symbol Expr(builder, operands[1]))     \
         .getValue();                                                          \
   },                                                                          \
   integers, /*convertsIntegers=*/true}
#define COMPARISON(name, floats, integers)                                     \
  {#name, "nn",                                                                \
   [](ImplicitLocOpBuilder &builder, Operands operands) {                      \
     return compare(arith::CmpFPredicate::floats, Expr(builder, operands[0]),  \
                    Expr(builder, operands[1]));                               \
   },                                                                          \
   [](ImplicitLocOpBuilder &builder, Operands operands) -> Value {             \
     return arith::CmpIOp::create(builder, arith::CmpIPredicate::integers,     \
                                  operands[0], operands[1]);                   \
   },                                                                          \
   /*convertsIntegers=*/true}
#define LOGIC(name, op) {#name, "bb", create<op>, create<op>}
#define INTEGERS(name, build) {#name, "nn", nullptr, build}

template <typename Op>
static Value create(ImplicitLocOpBuilder &builder, Operands operands) {
  return Op::create(builder, operands[0], operands[1]);
}

/// A condition that is said twice.
static Value createEither(ImplicitLocOpBuilder &builder, Operands operands) {
  auto both = arith::AndIOp::create(builder, operands[0], operands[1]);
  both->setAttr(tile::TileDialect::kEitherAttrName, builder.getUnitAttr());
  return both;
}

static Value getFirst(ImplicitLocOpBuilder &, Operands operands) {
  return operands.front();
}

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
     },
     negateIntegers},
    UNARY(abs, absIntegers),
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
    UNARY(stopGradient, getFirst),
    UNARY(tanh),

    ARITHMETIC(add, +, create<arith::AddIOp>),
    ARITHMETIC(subtract, -, create<arith::SubIOp>),
    ARITHMETIC(multiply, *, create<arith::MulIOp>),
    ARITHMETIC(divide, /, nullptr),
    BINARY(floorDivide, floorDivide, /*convertsIntegers=*/true),
    BINARY(remainder, floorRemainder, /*convertsIntegers=*/true),
    INTEGERS(shiftLeft, shiftLeft),
    INTEGERS(shiftRight, shiftRight),
    BINARY(max, create<arith::MaxSIOp>, /*convertsIntegers=*/true),
    BINARY(min, create<arith::MinSIOp>, /*convertsIntegers=*/true),
    BINARY(power),

    // A comparison with NaN is false, except that NaN is unequal to everything.
    COMPARISON(less, OLT, slt),
    COMPARISON(lessEqual, OLE, sle),
    COMPARISON(greater, OGT, sgt),
    COMPARISON(greaterEqual, OGE, sge),
    COMPARISON(equal, OEQ, eq),
    COMPARISON(notEqual, UNE, ne),

    LOGIC(both, arith::AndIOp),
    LOGIC(either, arith::OrIOp),
    LOGIC(different, arith::XOrIOp),
    {"eitherOf", "bb", createEither, createEither},
    {"opposite", "b", &negateCondition, invertIntegers},
    {"select", "cnn",
     [](ImplicitLocOpBuilder &builder, Operands operands) {
       return select(operands[0], Expr(builder, operands[1]),
                     Expr(builder, operands[2]))
           .getValue();
     },
     [](ImplicitLocOpBuilder &builder, Operands operands) -> Value {
       return arith::SelectOp::create(builder, operands[0], operands[1],
                                      operands[2]);
     },
     /*convertsIntegers=*/true},
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

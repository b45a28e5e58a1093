//===- ExpandCasts.cpp - Conversions between float types ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Casts round once, to the nearest number, ties to even. A number that is
// beyond the range after rounding becomes infinite, or NaN in f8E4M3FN, which
// has no infinity; a formula that wants to saturate clamps first.
//
//===----------------------------------------------------------------------===//

#include "passes/math/ExpandMath.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace bastile;

namespace {

bool isFloat8(Type type) { return isSmallFloat(getElementTypeOrSelf(type)); }

bool isE4M3(Type type) {
  return isa<Float8E4M3FNType>(getElementTypeOrSelf(type));
}

Type withElement(Type type, Type element) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.clone(element) : element;
}

//===----------------------------------------------------------------------===//
// Between float32 and the rest
//===----------------------------------------------------------------------===//

/// Rounds a float64 that is no float32 to the one of its two neighbours whose
/// last bit is odd. So a later rounding knows on which side of a tie the number
/// was.
Value roundToOdd(ImplicitLocOpBuilder &builder, Value value) {
  Type wide = value.getType();
  Formula f(builder, builder.getLoc(), withElement(wide, builder.getF32Type()));
  Value nearest = arith::TruncFOp::create(builder, f.type, value);
  Value back = arith::ExtFOp::create(builder, wide, nearest);
  Value isInexact = f.compare(arith::CmpFPredicate::ONE, back, value);
  Value bits = f.toBits(nearest);
  Value isEven = f.isZero(f.andInt(bits, f.integer(1)));
  Value isFarther = f.less(f.abs(value), f.abs(back));
  Value step = f.select(isFarther, f.integer(-1), f.integer(1));
  step = f.select(f.andInt(isInexact, isEven), step, f.integer(0));
  return f.fromBits(f.addInt(bits, step));
}

/// `value` as a float32 that can be rounded further.
Value toFloat32(ImplicitLocOpBuilder &builder, Value value) {
  Type element = getElementTypeOrSelf(value.getType());
  if (element.isF32())
    return value;
  if (element.isF64())
    return roundToOdd(builder, value);
  return arith::ExtFOp::create(
      builder, withElement(value.getType(), builder.getF32Type()), value);
}

/// `value`, a float32 that `type` holds exactly, as a value of `type`.
Value fromFloat32(ImplicitLocOpBuilder &builder, Type type, Value value) {
  Type element = getElementTypeOrSelf(type);
  if (element.isF32())
    return value;
  if (element.isF64())
    return arith::ExtFOp::create(builder, type, value);
  return arith::TruncFOp::create(builder, type, value);
}

/// Rounds float64 to 16 bits once; processors do so by way of float32, if at
/// all.
struct TruncateDouble : public OpRewritePattern<arith::TruncFOp> {
  /// The benefit puts this pattern ahead of upstream's for bfloat16, which
  /// rounds twice.
  explicit TruncateDouble(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getIn().getType()).isF64() ||
        getElementTypeOrSelf(op.getType()).getIntOrFloatBitWidth() != 16 ||
        op.getRoundingmode())
      return failure();
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(
        op, op.getType(), roundToOdd(builder, op.getIn()));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// In integers
//===----------------------------------------------------------------------===//

/// Adds half a unit to the bits of a float, of which the lower `drop` bits are
/// to be cut off, or one bit less where a tie rounds down to the even
/// neighbour.
Value addHalfUnit(Formula &f, Value bits, int drop) {
  Value isOdd = f.andInt(f.shiftRight(bits, drop), f.integer(1));
  Value half = f.addInt(bits, f.integer((1 << (drop - 1)) - 1));
  return f.addInt(half, isOdd);
}

/// Rounds to bfloat16, for processors without the instruction.
///
/// NaN keeps its upper bits. If it became a constant, LLVM would choose it
/// among vectors of bfloat16 in the end, which it splits into scalars.
struct TruncateToBFloat16 : public OpRewritePattern<arith::TruncFOp> {
  explicit TruncateToBFloat16(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    Value value = op.getIn();
    if (!isFloat32(value.getType()) || op.getRoundingmode() ||
        !getElementTypeOrSelf(op.getType()).isBF16())
      return failure();
    Formula f(rewriter, op.getLoc(), value.getType());
    Value bits = f.toBits(value);
    Value rounded = addHalfUnit(f, bits, 16);
    Value isNaN = f.compare(arith::CmpFPredicate::UNO, value, value);
    Value quieted = f.orInt(bits, f.integer(0x00400000));
    rounded = f.shiftRight(f.select(isNaN, quieted, rounded), 16);
    rounded = arith::TruncIOp::create(f.builder, f.integerType(16), rounded);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), rounded);
    return success();
  }
};

struct Float8Format {
  explicit Float8Format(Type type) {
    const llvm::fltSemantics &semantics =
        cast<FloatType>(getElementTypeOrSelf(type)).getFloatSemantics();
    droppedBits = 24 - APFloat::semanticsPrecision(semantics);
    minExponent = APFloat::semanticsMinExponent(semantics);
    bias = 1 - minExponent;
    // The number that would follow the largest one of the type.
    overflow = isE4M3(type) ? 480.0f : 65536.0f;
    overflowCode = isE4M3(type) ? 0x7F : 0x7C;
  }
  static int32_t bitsOf(float value) {
    return static_cast<int32_t>(llvm::bit_cast<uint32_t>(value));
  }
  /// The bits of float32's mantissa that are dropped.
  int droppedBits;
  int minExponent, bias;
  /// Numbers from here on get a fixed code, since rounding would run past it.
  float overflow;
  int32_t overflowCode;
};

struct TruncateToFloat8 : public OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat8(op.getType()) || op.getRoundingmode())
      return failure();
    Formula f(rewriter, op.getLoc(),
              withElement(op.getType(), rewriter.getF32Type()));
    Value value = toFloat32(f.builder, op.getIn());
    Float8Format format(op.getType());
    Value a = f.abs(value), bits = f.toBits(a);
    // A normal number gets another bias.
    Value normal =
        addHalfUnit(f, f.subInt(bits, f.integer((127 - format.bias) << 23)),
                    format.droppedBits);
    normal = f.shiftRight(normal, format.droppedBits);
    // In the sum with a power of two whose last bit is the unit of subnormals,
    // the low bits are the code.
    float unit = std::ldexp(1.0f, format.minExponent + format.droppedBits);
    Value subnormal = f.subInt(f.toBits(f.add(a, f.number(unit))),
                               f.integer(Float8Format::bitsOf(unit)));
    float minNormal = std::ldexp(1.0f, format.minExponent);
    Value code = f.select(f.less(a, f.number(minNormal)), subnormal, normal);
    Value isInside = f.less(a, f.number(format.overflow));
    code = f.select(isInside, code, f.integer(format.overflowCode));
    if (!isE4M3(op.getType())) {
      Value isNaN = f.compare(arith::CmpFPredicate::UNO, value, value);
      code = f.select(isNaN, f.integer(0x7F), code);
    }
    Value sign = f.andInt(f.shiftRight(f.toBits(value), 24), f.integer(0x80));
    code = arith::TruncIOp::create(f.builder, f.integerType(8),
                                   f.orInt(code, sign));
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), code);
    return success();
  }
};

/// f8E5M2 is the upper half of float16. The bits of f8E4M3FN are moved into the
/// place of float16's and multiplied by a power of two, which corrects the bias
/// and makes subnormal numbers normal.
struct ExtendFloat8 : public OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    Value value = op.getIn();
    if (!isFloat8(value.getType()))
      return failure();
    Formula f(rewriter, op.getLoc(),
              withElement(op.getType(), rewriter.getF32Type()));
    Value single =
        isE4M3(value.getType()) ? extendE4M3(f, value) : extendE5M2(f, value);
    rewriter.replaceOp(op, fromFloat32(f.builder, op.getType(), single));
    return success();
  }

  static Value extendE5M2(Formula &f, Value value) {
    Type type = f.integerType(16);
    Value bits = arith::ExtUIOp::create(f.builder, type, f.toBits(value));
    TypedAttr count = f.builder.getI16IntegerAttr(8);
    if (auto vector = dyn_cast<VectorType>(type))
      count = DenseElementsAttr::get(vector, Attribute(count));
    bits = arith::ShLIOp::create(f.builder, bits,
                                 arith::ConstantOp::create(f.builder, count));
    Value half = arith::BitcastOp::create(
        f.builder, withElement(type, f.builder.getF16Type()), bits);
    return arith::ExtFOp::create(f.builder, f.type, half);
  }

  static Value extendE4M3(Formula &f, Value value) {
    Float8Format format(value.getType());
    Value code =
        arith::ExtUIOp::create(f.builder, f.integerType(32), f.toBits(value));
    Value magnitude = f.andInt(code, f.integer(0x7F));
    Value number = f.mul(f.fromBits(f.shiftLeft(magnitude, format.droppedBits)),
                         f.number(std::ldexp(1.0, 127 - format.bias)));
    Value isNaN = f.isZero(f.subInt(magnitude, f.integer(format.overflowCode)));
    Value bits = f.select(isNaN, f.integer(0x7FC00000), f.toBits(number));
    Value sign = f.shiftLeft(f.andInt(code, f.integer(0x80)), 24);
    return f.fromBits(f.orInt(bits, sign));
  }
};

//===----------------------------------------------------------------------===//
// By the GPU's instructions, which convert two at a time
//===----------------------------------------------------------------------===//

/// The elements of a scalar or vector.
SmallVector<Value> getElements(OpBuilder &builder, Location loc, Value value) {
  auto vector = dyn_cast<VectorType>(value.getType());
  if (!vector)
    return {value};
  SmallVector<Value> elements;
  for (int64_t index = 0; index < vector.getNumElements(); ++index)
    elements.push_back(vector::ExtractOp::create(builder, loc, value, index));
  return elements;
}

/// Whether `type` is a vector of pairs, or otherwise a single element.
bool hasPairs(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getNumElements() % 2 == 0;
}

struct ConvertToFloat8 : public OpRewritePattern<arith::TruncFOp> {
  explicit ConvertToFloat8(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    bool pairs = hasPairs(op.getType());
    if (!isFloat8(op.getType()) || op.getRoundingmode() ||
        (isa<VectorType>(op.getType()) && !pairs))
      return failure();
    Formula f(rewriter, op.getLoc(),
              withElement(op.getType(), rewriter.getF32Type()));
    Value value = toFloat32(f.builder, op.getIn());
    Formula scalar(rewriter, op.getLoc(), rewriter.getF32Type());
    // The instruction saturates numbers that become NaN. 464 is the tie between
    // the largest number and the next one, if there were one.
    if (isE4M3(op.getType())) {
      Value isInside =
          f.compare(arith::CmpFPredicate::OLE, f.abs(value), f.number(464.0));
      Value nan = f.number(std::numeric_limits<double>::quiet_NaN());
      value = f.select(isInside, value, nan);
    }
    SmallVector<Value> elements = getElements(rewriter, op.getLoc(), value);
    if (!pairs)
      elements.push_back(scalar.number(0.0));
    SmallVector<Value> packed;
    for (size_t index = 0; index < elements.size(); index += 2)
      packed.push_back(convert(scalar, elements[index], elements[index + 1],
                               getElementTypeOrSelf(op.getType())));
    Value code;
    if (pairs)
      code = vector::BitCastOp::create(
          f.builder, cast<VectorType>(f.integerType(8)),
          vector::FromElementsOp::create(
              f.builder, VectorType::get(packed.size(), rewriter.getI16Type()),
              packed));
    else
      code = arith::TruncIOp::create(f.builder, f.integerType(8), packed[0]);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), code);
    return success();
  }

  /// Packs two numbers into 16 bits.
  static Value convert(Formula &f, Value low, Value high, Type type) {
    Value packed = NVVM::ConvertF32x2ToF8x2Op::create(
        f.builder, f.builder.getI16Type(), high, low, NVVM::FPRoundingMode::RN,
        NVVM::SaturationMode::SATFINITE, /*relu=*/false, type);
    if (isE4M3(type))
      return packed;
    // The instruction saturates numbers that become infinite; the code of
    // infinity is the next one. From the tie on, numbers round to the even one
    // of the two: infinity.
    auto getStep = [&](Value value, int16_t step) -> Value {
      auto number = [&](int16_t value) -> Value {
        return arith::ConstantOp::create(f.builder,
                                         f.builder.getI16IntegerAttr(value));
      };
      Value isInfinite =
          f.compare(arith::CmpFPredicate::OGE, f.abs(value), f.number(61440.0));
      return f.select(isInfinite, number(step), number(0));
    };
    packed = f.addInt(packed, getStep(low, 1));
    return f.addInt(packed, getStep(high, 0x100));
  }
};

struct ConvertFromFloat8 : public OpRewritePattern<arith::ExtFOp> {
  explicit ConvertFromFloat8(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    if (!isE4M3(op.getIn().getType()) || !hasPairs(op.getType()))
      return failure();
    Formula f(rewriter, op.getLoc(),
              withElement(op.getType(), rewriter.getF32Type()));
    auto type = cast<VectorType>(op.getType());
    Type f8 = getElementTypeOrSelf(op.getIn().getType());
    Value packed = vector::BitCastOp::create(
        f.builder,
        VectorType::get(type.getNumElements() / 2, rewriter.getI16Type()),
        f.toBits(op.getIn()));
    auto codes = VectorType::get(2, rewriter.getI8Type());
    auto halves = VectorType::get(2, rewriter.getF16Type());
    SmallVector<Value> elements;
    for (Value pair : getElements(rewriter, op.getLoc(), packed)) {
      pair = LLVM::BitcastOp::create(f.builder, codes, pair);
      pair = NVVM::ConvertF8x2ToF16x2Op::create(f.builder, halves, pair,
                                                /*relu=*/false, f8);
      llvm::append_range(elements, getElements(rewriter, op.getLoc(), pair));
    }
    Value all = vector::FromElementsOp::create(
        f.builder, type.clone(rewriter.getF16Type()), elements);
    all = arith::ExtFOp::create(f.builder, f.type, all);
    rewriter.replaceOp(op, fromFloat32(f.builder, op.getType(), all));
    return success();
  }
};

/// Widens bfloat16 to float32, of which it is the upper half, by one
/// instruction for each half of a word. LLVM would take the halves apart first.
struct ExtendBFloat16 : public OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getIn().getType()).isBF16() ||
        !isFloat32(op.getType()) || !hasPairs(op.getType()))
      return failure();
    auto type = cast<VectorType>(op.getType());
    auto half =
        VectorType::get(type.getNumElements() / 2, getElementTypeOrSelf(type));
    Formula f(rewriter, op.getLoc(), half);
    Value words =
        vector::BitCastOp::create(f.builder, f.integerType(32), op.getIn());
    Value low = f.fromBits(f.shiftLeft(words, 16));
    Value high =
        f.fromBits(f.andInt(words, f.integer(static_cast<int>(0xFFFF0000))));
    rewriter.replaceOpWithNewOp<vector::InterleaveOp>(op, low, high);
    return success();
  }
};

} // namespace

void bastile::populateCastPatterns(RewritePatternSet &patterns,
                                   const Target &target) {
  MLIRContext *context = patterns.getContext();
  patterns.add<TruncateToFloat8, ExtendFloat8, TruncateDouble>(context);
  if (target.isHost()) {
    patterns.add<TruncateToBFloat16>(context);
    arith::populateExpandBFloat16Patterns(patterns);
    return;
  }
  patterns.add<ExtendBFloat16>(context);
  if (target.computeCapability >= 89)
    patterns.add<ConvertToFloat8, ConvertFromFloat8>(context);
}

//===- ThreadOps.cpp - Instructions of threads in LLVM IR -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Prints the products of a warpgroup as inline assembly. LLVM's own intrinsic
// takes both operands from shared memory only, and its fences and waits let
// registers pass by. Waits for counters are assembly because their loop is one
// instruction to the emulator.
//
//===----------------------------------------------------------------------===//

#include "lib/codegen/ThreadOps.h"

#include "dialect/Tile.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Target/LLVMIR/LLVMTranslationInterface.h"
#include "mlir/Target/LLVMIR/ModuleTranslation.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/Support/FormatVariadic.h"

using namespace bastile;
using llvm::StringRef;
using mlir::LLVM::ModuleTranslation;

namespace {

/// The letter with which inline assembly names registers of a type.
char getConstraint(llvm::Type *type) {
  if (type->isFloatTy())
    return 'f';
  if (type->isDoubleTy())
    return 'd';
  return type->isPointerTy() || type->getPrimitiveSizeInBits() == 64 ? 'l'
                                                                     : 'r';
}

/// One piece of inline assembly: registers that it changes in place, operands
/// that it reads, and the text.
class Assembly {
public:
  explicit Assembly(llvm::IRBuilderBase &builder) : builder(builder) {}

  /// A register that is read and written, or, without a value, only written.
  void addResult(llvm::Type *type, llvm::Value *value) {
    results.push_back(type);
    initial.push_back(value);
  }
  /// Adds an operand; returns its name in the text, once all results are there.
  std::string addOperand(llvm::Value *value) {
    operands.push_back(value);
    return "$" + std::to_string(results.size() + operands.size() - 1);
  }

  /// Inserts `text`; returns the results.
  llvm::SmallVector<llvm::Value *> build(StringRef text) {
    llvm::SmallVector<std::string> constraints;
    llvm::SmallVector<llvm::Value *> values(operands);
    for (llvm::Type *type : results)
      constraints.push_back(std::string("=") + getConstraint(type));
    for (llvm::Value *operand : operands)
      constraints.emplace_back(1, getConstraint(operand->getType()));
    // Registers that change in place follow the operands, so that these keep
    // their numbers.
    for (auto [index, value] : llvm::enumerate(initial))
      if (value) {
        constraints.push_back(std::to_string(index));
        values.push_back(value);
      }
    constraints.emplace_back("~{memory}");
    llvm::Type *type = builder.getVoidTy();
    if (results.size() == 1)
      type = results.front();
    else if (!results.empty())
      // A type of its own. Where registers come from one of two pieces, such as
      // in a loop, LLVM would choose between both as a whole if these had the
      // same type, and then copy all registers to take out one of them.
      type = llvm::StructType::create(builder.getContext(), results);
    auto types = llvm::map_to_vector(
        values, [](llvm::Value *value) { return value->getType(); });
    auto *assembly = llvm::InlineAsm::get(
        llvm::FunctionType::get(type, types, /*isVarArg=*/false), text,
        llvm::join(constraints, ","), /*hasSideEffects=*/true);
    llvm::CallInst *call = builder.CreateCall(assembly, values);
    // All threads of the warpgroup run it together.
    call->setConvergent();
    if (results.size() == 1)
      return {call};
    llvm::SmallVector<llvm::Value *> parts;
    for (unsigned index = 0; index < results.size(); ++index)
      parts.push_back(builder.CreateExtractValue(call, index));
    return parts;
  }

private:
  llvm::IRBuilderBase &builder;
  llvm::SmallVector<llvm::Type *> results;
  llvm::SmallVector<llvm::Value *> initial, operands;
};

/// The descriptor of an operand in shared memory, as the PTX ISA defines it for
/// `wgmma`: address, leading and stride offsets in units of 16 bytes, and the
/// swizzle. Returns the text that makes it a register of `assembly`, called
/// `name`; an operand is the address alone, which all parts of a tile share.
/// Arithmetic on 32 bits, as here, is done once for a whole warp; the assembler
/// does that on 64 bits in each thread, and then moves the result.
std::string buildDescriptor(StringRef name, llvm::Value *address,
                            tile::SharedMatrixAttr matrix, Assembly &assembly,
                            llvm::IRBuilderBase &builder) {
  constexpr uint64_t unit = 16, addressBits = 0x3ffff;
  constexpr unsigned leadingAt = 16, swizzleAt = 30;
  uint64_t swizzle = 0;
  if (matrix.getSwizzle() != 0)
    // 128, 64 and 32 bytes are 1, 2 and 3.
    swizzle = 8 - llvm::Log2_64(matrix.getSwizzle());
  const uint64_t low = (matrix.getLeading() / unit) << leadingAt |
                       static_cast<uint64_t>(matrix.getOffset() / unit);
  const uint64_t high = matrix.getStride() / unit | swizzle << swizzleAt;
  llvm::Value *start = builder.CreatePtrToInt(address, builder.getInt32Ty());
  start = builder.CreateLShr(builder.CreateAnd(start, addressBits), 4);
  return llvm::formatv(".reg .b64 {0}; {{ .reg .b32 low; add.s32 low, {1}, "
                       "{2}; mov.b64 {0}, {{low, {3}}; } ",
                       name, assembly.addOperand(start), low, high)
      .str();
}

StringRef getTypeName(mlir::Type type) {
  if (type.isBF16())
    return "bf16";
  if (type.isF16())
    return "f16";
  return mlir::isa<mlir::Float8E4M3FNType>(type) ? "e4m3" : "e5m2";
}

/// Prints ops of the tile dialect that are left in kernels.
class ThreadOpTranslation : public mlir::LLVMTranslationDialectInterface {
public:
  using LLVMTranslationDialectInterface::LLVMTranslationDialectInterface;

  mlir::LogicalResult
  convertOperation(mlir::Operation *op, llvm::IRBuilderBase &builder,
                   ModuleTranslation &translation) const override {
    return llvm::TypeSwitch<mlir::Operation *, mlir::LogicalResult>(op)
        .Case([&](tile::WgmmaFenceOp fence) {
          if (!findProducts(fence))
            passThrough(fence, kFence, builder, translation);
          return mlir::success();
        })
        .Case([&](tile::WgmmaWaitOp wait) {
          passThrough(wait,
                      getAnchors(wait) + "wgmma.wait_group.sync.aligned " +
                          std::to_string(wait.getPending()) + ";",
                      builder, translation);
          return mlir::success();
        })
        .Case([&](tile::WgmmaOp product) {
          if (!findNext(product))
            convert(product, builder, translation);
          return mlir::success();
        })
        .Case([&](tile::PollCountOp poll) {
          convert(poll,
                  "{ .reg .pred is_less; .reg .b32 seen; POLL: "
                  "ld.acquire.gpu.global.b32 seen, [$0]; "
                  "setp.lt.u32 is_less, seen, $1; @is_less bra POLL; }",
                  builder, translation);
          return mlir::success();
        })
        .Case([&](tile::PublishCountOp publish) {
          convert(publish, "st.release.gpu.global.b32 [$0], $1;", builder,
                  translation);
          return mlir::success();
        })
        .Default([](mlir::Operation *other) {
          return other->emitError("has no form in LLVM IR");
        });
  }

private:
  static constexpr const char *kFence = "wgmma.fence.sync.aligned; ";

  /// A store of the sum of all anchors, which the assembler does not move
  /// behind a wait. It is never made: it is for one of the NaNs that no
  /// arithmetic gives. So its address, which costs nothing to compute, is none
  /// that holds anything.
  static std::string getAnchors(tile::WgmmaWaitOp op) {
    if (op.getAnchors() == 0)
      return "";
    const size_t count = op.getValues().size();
    const size_t first = count - op.getAnchors();
    std::string text = "{ .reg .pred is_nan; .reg .f32 sum; .reg .b32 bits; "
                       "mov.f32 sum, $" +
                       std::to_string(first) + "; ";
    for (size_t index = first + 1; index < count; ++index)
      text += "add.f32 sum, sum, $" + std::to_string(index) + "; ";
    return text + "mov.b32 bits, sum; setp.eq.b32 is_nan, bits, 0x7fd5a5a5; "
                  "@is_nan st.volatile.shared.b32 [bits], bits; } ";
  }

  template <typename Op>
  static void passThrough(Op op, const std::string &text,
                          llvm::IRBuilderBase &builder,
                          ModuleTranslation &translation) {
    Assembly assembly(builder);
    for (mlir::Value value : op.getValues()) {
      llvm::Value *translated = translation.lookupValue(value);
      assembly.addResult(translated->getType(), translated);
    }
    map(op->getResults(), assembly.build(text), translation);
  }

  /// The product right behind `op` that adds to its sums, if nothing else reads
  /// them.
  static tile::WgmmaOp findNext(tile::WgmmaOp op) {
    auto next = mlir::dyn_cast_or_null<tile::WgmmaOp>(op->getNextNode());
    if (!next || !llvm::equal(op.getResults(), next.getAccumulators()) ||
        !llvm::all_of(op.getResults(),
                      [](mlir::Value sum) { return sum.hasOneUse(); }))
      return nullptr;
    return next;
  }

  /// The first of the products that go with `fence`: those behind it, if
  /// nothing else reads what passes through it, and nothing that has an effect
  /// stands in between.
  static tile::WgmmaOp findProducts(tile::WgmmaFenceOp fence) {
    mlir::Operation *next = fence->getNextNode();
    while (next && (mlir::isa<tile::WgmmaFenceOp>(next) || mlir::isPure(next)))
      next = next->getNextNode();
    auto first = mlir::dyn_cast_or_null<tile::WgmmaOp>(next);
    if (!first)
      return nullptr;
    llvm::SmallPtrSet<mlir::Operation *, 8> products;
    for (tile::WgmmaOp op = first; op; op = findNext(op))
      products.insert(op);
    auto isRead = [&](mlir::Value value) {
      return value.hasOneUse() && products.contains(*value.user_begin());
    };
    return llvm::all_of(fence.getResults(), isRead) ? first : nullptr;
  }

  /// Products of which each adds to the sums of the one before, up to `last`,
  /// and the fences that go with them. They are a single piece of assembly:
  /// between pieces, LLVM would take all registers apart and put them together
  /// again, which is most of what a program of products costs to compile. Sums
  /// are no registers that a product reads its operands from, since those hold
  /// no float32.
  static void convert(tile::WgmmaOp last, llvm::IRBuilderBase &builder,
                      ModuleTranslation &translation) {
    llvm::SmallVector<tile::WgmmaOp> products{last};
    while (auto before = mlir::dyn_cast_or_null<tile::WgmmaOp>(
               products.back()->getPrevNode())) {
      if (!findNext(before))
        break;
      products.push_back(before);
    }
    std::reverse(products.begin(), products.end());
    tile::WgmmaOp first = products.front();
    llvm::SmallPtrSet<mlir::Operation *, 4> fences;
    for (mlir::Operation *before = first->getPrevNode();
         before &&
         (mlir::isa<tile::WgmmaFenceOp>(before) || mlir::isPure(before));
         before = before->getPrevNode())
      if (auto fence = mlir::dyn_cast<tile::WgmmaFenceOp>(before))
        if (findProducts(fence))
          fences.insert(fence);
    auto lookUp = [&](mlir::Value value) {
      if (fences.contains(value.getDefiningOp())) {
        auto result = mlir::cast<mlir::OpResult>(value);
        value = result.getOwner()->getOperand(result.getResultNumber());
      }
      return translation.lookupValue(value);
    };

    Assembly assembly(builder);
    const auto accumulators = first.getAccumulators();
    for (size_t index = 0; index < last.getResults().size(); ++index)
      assembly.addResult(builder.getFloatTy(),
                         accumulators.empty() ? nullptr
                                              : lookUp(accumulators[index]));
    std::string text = fences.empty() ? "" : kFence;
    for (tile::WgmmaOp product : products)
      text += print(product, assembly, builder, lookUp);
    map(last->getResults(), assembly.build(text), translation);
  }

  /// The text of a product, whose sums are the results of `assembly`. Its
  /// operands are added there.
  static std::string
  print(tile::WgmmaOp op, Assembly &assembly, llvm::IRBuilderBase &builder,
        llvm::function_ref<llvm::Value *(mlir::Value)> lookUp) {
    std::string sums;
    for (size_t index = 0; index < op.getResults().size(); ++index)
      sums += (index ? ",$" : "$") + std::to_string(index);
    std::string left, text = "{ ";
    if (op.getA()) {
      left = "a";
      text += buildDescriptor(left, lookUp(op.getA()), *op.getAMatrix(),
                              assembly, builder);
    } else {
      llvm::SmallVector<std::string> names;
      for (mlir::Value value : op.getFragment())
        names.push_back(assembly.addOperand(lookUp(value)));
      left = "{" + llvm::join(names, ",") + "}";
    }
    text += buildDescriptor("b", lookUp(op.getB()), op.getBMatrix(), assembly,
                            builder);

    const StringRef type = getTypeName(op.getElementType());
    const StringRef bType =
        getTypeName(op.getBElementType().value_or(op.getElementType()));
    const bool isWide = type == "bf16" || type == "f16";
    // The depth of 32 bytes in elements; scales of 1, and which operands are
    // transposed, as the instruction's last numbers.
    text += std::string(".reg .pred adds; setp.ne.b32 adds, ") +
            (op.getAccumulators().empty() ? "0" : "1") +
            ", 0; wgmma.mma_async.sync.aligned.m64n" +
            std::to_string(op.getColumns()) + (isWide ? "k16" : "k32") +
            ".f32." + type.str() + "." + bType.str() + " {" + sums + "}, " +
            left + ", b, adds, 1, 1";
    auto flag = [](bool isSet) { return isSet ? ", 1" : ", 0"; };
    if (isWide && op.getA())
      text += flag(op.getAMatrix()->getTransposed());
    if (isWide)
      text += flag(op.getBMatrix().getTransposed());
    return text + "; } ";
  }

  template <typename Op>
  static void convert(Op op, StringRef text, llvm::IRBuilderBase &builder,
                      ModuleTranslation &translation) {
    Assembly assembly(builder);
    assembly.addOperand(translation.lookupValue(op.getAddress()));
    assembly.addOperand(translation.lookupValue(op.getCount()));
    assembly.build(text);
  }

  static void map(mlir::ValueRange results,
                  llvm::ArrayRef<llvm::Value *> values,
                  ModuleTranslation &translation) {
    for (auto [result, value] : llvm::zip_equal(results, values))
      translation.mapValue(result, value);
  }
};

} // namespace

void bastile::expandBarrierArrivals(mlir::ModuleOp module) {
  llvm::SmallVector<mlir::NVVM::BarrierArriveOp> arrivals;
  module.walk([&](mlir::NVVM::BarrierArriveOp op) { arrivals.push_back(op); });
  for (mlir::NVVM::BarrierArriveOp op : arrivals) {
    mlir::OpBuilder builder(op);
    mlir::LLVM::CallIntrinsicOp::create(
        builder, op.getLoc(),
        builder.getStringAttr("llvm.nvvm.barrier.cta.arrive.aligned.count"),
        mlir::ValueRange{op.getBarrierId(), op.getNumberOfThreads()});
    op.erase();
  }
}

void bastile::registerThreadOpTranslation(mlir::DialectRegistry &registry) {
  registry.addExtension(
      +[](mlir::MLIRContext * /*context*/, tile::TileDialect *dialect) {
        dialect->addInterfaces<ThreadOpTranslation>();
      });
}

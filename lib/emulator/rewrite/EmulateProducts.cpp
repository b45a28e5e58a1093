//===- EmulateProducts.cpp - Calls for products of matrices ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/rewrite/EmulateOps.h"
#include "lib/emulator/rewrite/EmulatorCalls.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bastile;
namespace calls = bastile::emulator_calls;

//===----------------------------------------------------------------------===//
// Values in memory
//===----------------------------------------------------------------------===//

static constexpr unsigned wordBytes = 4, scratchWords = 1024;

Value OpEmulator::scratch(Operation *op) {
  auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
  Value &memory = scratches[function];
  if (!memory) {
    // In the entry block, so that a loop does not grow the stack.
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&function.getBody().front());
    memory = LLVM::AllocaOp::create(builder, op->getLoc(), pointer(), i32(),
                                    constant(op->getLoc(), scratchWords));
  }
  return memory;
}

Value OpEmulator::scratchAt(Operation *op, unsigned word) {
  return LLVM::GEPOp::create(
      builder, op->getLoc(), pointer(), i32(), scratch(op),
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(word)});
}

unsigned OpEmulator::wordsOf(ValueRange values) {
  uint64_t bytes = 0;
  for (Value value : values)
    bytes += layout.getTypeSize(value.getType());
  return llvm::divideCeil(bytes, wordBytes);
}

unsigned OpEmulator::spill(Operation *op, ValueRange values, unsigned word) {
  for (Value value : values) {
    LLVM::StoreOp::create(builder, op->getLoc(), value, scratchAt(op, word),
                          /*alignment=*/wordBytes);
    word += wordsOf(value);
  }
  return word;
}

//===----------------------------------------------------------------------===//
// Uses of registers
//===----------------------------------------------------------------------===//

/// The values that get what an operand holds without anything reading it;
/// nothing for an op that reads it.
static std::optional<SmallVector<Value>> passedOn(OpOperand &use) {
  Operation *op = use.getOwner();
  unsigned index = use.getOperandNumber();
  using Values = SmallVector<Value>;
  return llvm::TypeSwitch<Operation *, std::optional<Values>>(op)
      .Case<tile::WgmmaFenceOp, tile::WgmmaWaitOp>(
          [&](auto) { return Values{op->getResult(index)}; })
      .Case([&](tile::WgmmaOp product) -> std::optional<Values> {
        if (index < product.getAccumulators().size())
          return Values();
        return std::nullopt;
      })
      .Case<LLVM::InsertElementOp, LLVM::ExtractElementOp,
            LLVM::ShuffleVectorOp, LLVM::InsertValueOp, LLVM::ExtractValueOp>(
          [&](auto) { return Values{op->getResult(0)}; })
      .Case([&](LLVM::SelectOp) -> std::optional<Values> {
        if (index != 0)
          return Values{op->getResult(0)};
        return std::nullopt;
      })
      .Case([&](BranchOpInterface branch) -> std::optional<Values> {
        if (auto argument = branch.getSuccessorBlockArgument(index))
          return Values{*argument};
        return std::nullopt;
      })
      .Default(std::nullopt);
}

void OpEmulator::checkProductUses(LLVM::LLVMFuncOp function) {
  llvm::SetVector<Value> registers;
  function.walk([&](tile::WgmmaOp product) {
    registers.insert_range(product.getResults());
  });
  SmallVector<OpOperand *> reads;
  for (size_t i = 0; i < registers.size(); ++i)
    for (OpOperand &use : registers[i].getUses()) {
      if (std::optional<SmallVector<Value>> values = passedOn(use))
        registers.insert_range(*values);
      else
        reads.push_back(&use);
    }
  for (OpOperand *read : reads) {
    Operation *op = read->getOwner();
    builder.setInsertionPoint(op);
    unsigned words = spill(op, read->get());
    call(op->getLoc(), calls::checkRegisters, Type(),
         {scratch(op), constant(op->getLoc(), words), site(op)});
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static EmulatedMatrix convert(tile::SharedMatrixAttr matrix) {
  return {static_cast<uint64_t>(matrix.getOffset()),
          static_cast<uint64_t>(matrix.getLeading()),
          static_cast<uint64_t>(matrix.getStride()),
          static_cast<uint64_t>(matrix.getSwizzle()), matrix.getTransposed()};
}

static FactorType convert(Type type) {
  if (type.isBF16())
    return FactorType::BF16;
  if (type.isF16())
    return FactorType::F16;
  return isa<Float8E5M2Type>(type) ? FactorType::F8E5M2 : FactorType::F8E4M3;
}

bool OpEmulator::rewrite(tile::WgmmaOp op) {
  EmulatedProduct product;
  product.columns = op.getColumns();
  product.aType = convert(op.getElementType());
  product.bType = convert(op.getBElementType().value_or(op.getElementType()));
  product.hasAccumulators = !op.getAccumulators().empty();
  product.hasFragment = !op.getFragment().empty();
  if (op.getAMatrix())
    product.a = convert(*op.getAMatrix());
  product.b = convert(op.getBMatrix());
  Location loc = op.getLoc();
  spill(op, op.getAccumulators());
  unsigned numRegisters = op.getResults().size();
  spill(op, op.getFragment(), numRegisters);
  Value none = LLVM::ZeroOp::create(builder, loc, pointer());
  result.products.push_back(product);
  call(loc, calls::beginProduct, Type(),
       {constant(loc, result.products.size() - 1), scratch(op),
        scratchAt(op, numRegisters), op.getA() ? op.getA() : none, op.getB(),
        site(op)});
  for (auto [index, value] : llvm::enumerate(op.getResults()))
    value.replaceAllUsesWith(LLVM::LoadOp::create(builder, loc, value.getType(),
                                                  scratchAt(op, index)));
  op.erase();
  return true;
}

bool OpEmulator::rewrite(tile::WgmmaWaitOp op) {
  Location loc = op.getLoc();
  // Sums of products are float32; other registers are not theirs.
  SmallVector<std::pair<Value, Value>> sums;
  SmallVector<Value> values;
  for (auto [value, result] : llvm::zip(op.getValues(), op.getResults()))
    if (getElementTypeOrSelf(value.getType()).isF32()) {
      sums.push_back({value, result});
      values.push_back(value);
    } else {
      result.replaceAllUsesWith(value);
    }
  if (wordsOf(values) > scratchWords)
    return false;
  unsigned words = spill(op, values);
  callStep(op, WarpgroupStep::WaitFor, op.getPending(), words);
  unsigned word = 0;
  for (auto [value, result] : sums) {
    result.replaceAllUsesWith(
        LLVM::LoadOp::create(builder, loc, value.getType(), scratchAt(op, word),
                             /*alignment=*/wordBytes));
    word += wordsOf(value);
  }
  op.erase();
  return true;
}

void OpEmulator::callStep(Operation *op, WarpgroupStep step, int64_t operand,
                          unsigned words) {
  Location loc = op->getLoc();
  call(loc, calls::warpgroupStep, Type(),
       {constant(loc, static_cast<int64_t>(step)), constant(loc, operand),
        scratch(op), constant(loc, words), site(op)});
}

bool OpEmulator::rewriteWarpgroup(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<tile::WgmmaOp, tile::WgmmaWaitOp>(
          [&](auto known) { return rewrite(known); })
      .Case([&](tile::WgmmaFenceOp fence) {
        callStep(op, WarpgroupStep::Fence);
        op->replaceAllUsesWith(fence.getValues());
        op->erase();
        return true;
      })
      .Case([&](NVVM::WgmmaGroupSyncAlignedOp) {
        callStep(op, WarpgroupStep::Commit);
        op->erase();
        return true;
      })
      .Case([&](NVVM::SetMaxRegisterOp registers) {
        callStep(op, WarpgroupStep::SetRegisters, registers.getRegCount());
        op->erase();
        return true;
      })
      .Default(false);
}

//===----------------------------------------------------------------------===//
// Matrices of a warp
//===----------------------------------------------------------------------===//

void OpEmulator::replaceByScratch(Operation *op) {
  replace(op, LLVM::LoadOp::create(builder, op->getLoc(),
                                   op->getResult(0).getType(), scratch(op),
                                   /*alignment=*/wordBytes));
}

static std::optional<FactorType> convert(std::optional<NVVM::MMATypes> type) {
  if (!type)
    return std::nullopt;
  switch (*type) {
  case NVVM::MMATypes::bf16:
    return FactorType::BF16;
  case NVVM::MMATypes::f16:
    return FactorType::F16;
  default:
    return std::nullopt;
  }
}

bool OpEmulator::rewrite(NVVM::MmaOp op) {
  std::optional<FactorType> type = convert(op.getMultiplicandAPtxType());
  NVVM::MMAShapeAttr shape = op.getShape();
  if (!type || type != convert(op.getMultiplicandBPtxType()) ||
      shape.getM() != 16 || shape.getN() != 8 ||
      op.resultPtxType() != NVVM::MMATypes::f32 ||
      op.getLayoutA() != NVVM::MMALayout::row ||
      op.getLayoutB() != NVVM::MMALayout::col)
    return false;
  multiply(op, *type, *type, op.getOperandA(), op.getOperandB(),
           op.getOperandC());
  return true;
}

void OpEmulator::multiply(Operation *op, FactorType aType, FactorType bType,
                          ValueRange a, ValueRange b, ValueRange sums) {
  // The rows of a factor have 16 or 32 bytes.
  Location loc = op->getLoc();
  unsigned rowBytes = b.size() * 16;
  unsigned words = spill(op, sums);
  spill(op, b, spill(op, a, words));
  call(loc, calls::multiplyMatrices, Type(),
       {constant(loc, joinFactorTypes(aType, bType)), constant(loc, rowBytes),
        scratch(op), scratchAt(op, words), site(op)});
  replaceByScratch(op);
}

/// Products of elements of 8 bits, which have no op.
bool OpEmulator::rewriteProduct(LLVM::CallIntrinsicOp op) {
  StringRef name = op.getIntrin();
  if (!name.consume_front("llvm.nvvm.mma.m16n8k32.row.col.f32.") ||
      !name.consume_back(".f32"))
    return false;
  auto getType = [](StringRef type) {
    return llvm::StringSwitch<std::optional<FactorType>>(type)
        .Case("e4m3", FactorType::F8E4M3)
        .Case("e5m2", FactorType::F8E5M2)
        .Default(std::nullopt);
  };
  auto [first, second] = name.split('.');
  std::optional<FactorType> aType = getType(first), bType = getType(second);
  if (!aType || !bType)
    return false;
  constexpr unsigned numA = 4, numB = 2;
  ValueRange operands = op.getArgs();
  multiply(op, *aType, *bType, operands.take_front(numA),
           operands.slice(numA, numB), operands.drop_front(numA + numB));
  return true;
}

/// Whether matrices have eight rows of eight elements of 16 bits.
template <typename Op>
static bool isPlain(Op op) {
  return op.getShape().getM() == 8 && op.getShape().getN() == 8 &&
         op.getEltType() == NVVM::LdStMatrixEltType::B16;
}

bool OpEmulator::rewrite(NVVM::LdMatrixOp op) {
  if (!isPlain(op))
    return false;
  Location loc = op.getLoc();
  MatrixStep step = op.getLayout() == NVVM::MMALayout::row
                        ? MatrixStep::Load
                        : MatrixStep::LoadTransposed;
  call(loc, calls::moveMatrices, Type(),
       {constant(loc, static_cast<int64_t>(step)), op.getPtr(), scratch(op),
        constant(loc, op.getNum()), site(op)});
  replaceByScratch(op);
  return true;
}

bool OpEmulator::rewrite(NVVM::StMatrixOp op) {
  if (!isPlain(op))
    return false;
  Location loc = op.getLoc();
  MatrixStep step = op.getLayout() == NVVM::MMALayout::row
                        ? MatrixStep::Store
                        : MatrixStep::StoreTransposed;
  unsigned words = spill(op, op.getSources());
  call(loc, calls::moveMatrices, Type(),
       {constant(loc, static_cast<int64_t>(step)), op.getPtr(), scratch(op),
        constant(loc, words), site(op)});
  op.erase();
  return true;
}

bool OpEmulator::rewriteMatrices(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<NVVM::MmaOp, NVVM::LdMatrixOp, NVVM::StMatrixOp>(
          [&](auto known) { return rewrite(known); })
      .Case([&](LLVM::CallIntrinsicOp call) { return rewriteProduct(call); })
      .Default(false);
}

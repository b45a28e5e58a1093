//===- EmulateOps.cpp - Operations of a GPU as calls to the emulator ------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/rewrite/EmulateOps.h"
#include "lib/emulator/rewrite/EmulatedMath.h"
#include "lib/emulator/rewrite/EmulatorCalls.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace bastile;
using namespace mlir;
namespace calls = bastile::emulator_calls;

std::string bastile::describe(Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '\'' << op->getName();
  if (auto intrinsic = dyn_cast<LLVM::CallIntrinsicOp>(op))
    os << ' ' << intrinsic.getIntrin();
  os << '\'';
  if (auto file = op->getLoc()->findInstanceOf<FileLineColLoc>())
    os << " at " << file.getFilename().getValue() << ':' << file.getLine()
       << ':' << file.getColumn();
  return text;
}

Value OpEmulator::call(Location loc, StringRef callee, Type resultType,
                       ValueRange operands) {
  // The function is declared with the types after the rewrite, whose pointers
  // have no address space.
  SmallVector<Type> types = llvm::map_to_vector(operands, [&](Value operand) {
    return isa<LLVM::LLVMPointerType>(operand.getType()) ? pointer()
                                                         : operand.getType();
  });
  auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(callee);
  if (!function) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    Type type = resultType;
    if (!type)
      type = LLVM::LLVMVoidType::get(builder.getContext());
    function =
        LLVM::LLVMFuncOp::create(builder, module.getLoc(), callee,
                                 LLVM::LLVMFunctionType::get(type, types));
  }
  auto op = LLVM::CallOp::create(builder, loc, function, operands);
  return resultType ? op.getResult() : Value();
}

void OpEmulator::replace(Operation *op, Value value) {
  op->getResult(0).replaceAllUsesWith(value);
  op->erase();
}

Value OpEmulator::site(Operation *op) {
  result.sites.push_back(describe(op));
  return constant(op->getLoc(), result.sites.size() - 1);
}

void OpEmulator::rewrite(LLVM::AddressOfOp op) {
  const auto *variable = llvm::find_if(
      llvm::ArrayRef(result.variables), [&](const EmulatedVariable &one) {
        return one.isShared && one.name == op.getGlobalName();
      });
  if (variable == llvm::ArrayRef(result.variables).end())
    return;
  Value base = call(op.getLoc(), calls::sharedMemory, pointer(), {});
  replace(op,
          LLVM::GEPOp::create(
              builder, op.getLoc(), pointer(), builder.getI8Type(), base,
              ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(variable->offset)}));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void OpEmulator::checkAccess(Operation *op, Value address, Type type,
                             std::optional<uint64_t> alignment,
                             EmulatedAccess access) {
  // No other thread can reach a variable on the thread's own stack.
  if (address.getDefiningOp<LLVM::AllocaOp>())
    return;
  Location loc = op->getLoc();
  // Only the elements count: MLIR pads a vector to a power of two of them.
  uint64_t bytes = layout.getTypeSize(getElementTypeOrSelf(type));
  if (auto vector = dyn_cast<VectorType>(type))
    bytes *= vector.getNumElements();
  uint64_t required = alignment.value_or(layout.getTypeABIAlignment(type));
  call(loc, calls::access, Type(),
       {address, constant64(loc, bytes), constant(loc, required),
        constant(loc, static_cast<int64_t>(access)), site(op)});
}

void OpEmulator::checkMasked(Operation *op, Value address, Value mask,
                             VectorType type, uint64_t alignment,
                             EmulatedAccess access) {
  Location loc = op->getLoc();
  Type bits = builder.getIntegerType(type.getNumElements());
  Value lanes = LLVM::BitcastOp::create(builder, loc, bits, mask);
  if (type.getNumElements() < 64)
    lanes = LLVM::ZExtOp::create(builder, loc, i64(), lanes);
  call(loc, calls::maskedAccess, Type(),
       {address, lanes,
        constant(loc, layout.getTypeSize(type.getElementType())),
        constant(loc, alignment), constant(loc, static_cast<int64_t>(access)),
        site(op)});
}

void OpEmulator::rewrite(LLVM::MaskedLoadOp op) {
  checkMasked(op, op.getData(), op.getMask(), cast<VectorType>(op.getType()),
              op.getAlignment(), EmulatedAccess::Load);
}

void OpEmulator::rewrite(LLVM::MaskedStoreOp op) {
  checkMasked(op, op.getData(), op.getMask(),
              cast<VectorType>(op.getValue().getType()), op.getAlignment(),
              EmulatedAccess::Store);
}

bool OpEmulator::rewriteMemory(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](LLVM::LoadOp load) {
        checkAccess(op, load.getAddr(), load.getType(), load.getAlignment(),
                    EmulatedAccess::Load);
        return true;
      })
      .Case([&](LLVM::StoreOp store) {
        checkAccess(op, store.getAddr(), store.getValue().getType(),
                    store.getAlignment(), EmulatedAccess::Store);
        return true;
      })
      .Case([&](LLVM::AtomicRMWOp atomic) {
        checkAccess(op, atomic.getPtr(), atomic.getType(),
                    atomic.getAlignment(), EmulatedAccess::Atomic);
        return true;
      })
      .Case([&](LLVM::AtomicCmpXchgOp atomic) {
        checkAccess(op, atomic.getPtr(), atomic.getVal().getType(),
                    atomic.getAlignment(), EmulatedAccess::Atomic);
        return true;
      })
      .Case<LLVM::MaskedLoadOp, LLVM::MaskedStoreOp>([&](auto masked) {
        rewrite(masked);
        return true;
      })
      .Default(false);
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

bool OpEmulator::rewriteRegister(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (!name.consume_front("nvvm.read.ptx.sreg."))
    return false;
  using Register = std::optional<EmulatedRegister>;
  auto number = llvm::StringSwitch<Register>(name)
                    .Case("tid.x", EmulatedRegister::ThreadX)
                    .Case("tid.y", EmulatedRegister::ThreadY)
                    .Case("tid.z", EmulatedRegister::ThreadZ)
                    .Case("ntid.x", EmulatedRegister::BlockSizeX)
                    .Case("ntid.y", EmulatedRegister::BlockSizeY)
                    .Case("ntid.z", EmulatedRegister::BlockSizeZ)
                    .Case("ctaid.x", EmulatedRegister::BlockX)
                    .Case("ctaid.y", EmulatedRegister::BlockY)
                    .Case("ctaid.z", EmulatedRegister::BlockZ)
                    .Case("nctaid.x", EmulatedRegister::GridSizeX)
                    .Case("nctaid.y", EmulatedRegister::GridSizeY)
                    .Case("nctaid.z", EmulatedRegister::GridSizeZ)
                    .Case("laneid", EmulatedRegister::Lane)
                    .Case("warpid", EmulatedRegister::Warp)
                    .Case("warpsize", EmulatedRegister::WarpSize)
                    .Case("clusterid.x", EmulatedRegister::ClusterX)
                    .Case("nclusterid.x", EmulatedRegister::GridClustersX)
                    .Cases({"cluster.ctaid.x", "cluster.ctarank"},
                           EmulatedRegister::ClusterRank)
                    .Cases({"cluster.nctaid.x", "cluster.nctarank"},
                           EmulatedRegister::ClusterSize)
                    .Default(std::nullopt);
  if (!number)
    return false;
  Value index = constant(op->getLoc(), static_cast<int64_t>(*number));
  replace(op, call(op->getLoc(), calls::readRegister, i32(), index));
  return true;
}

void OpEmulator::rewrite(NVVM::ShflOp op) {
  Location loc = op.getLoc();
  Type type = op.getVal().getType();
  Value bits = op.getVal();
  if (type != i32())
    bits = LLVM::BitcastOp::create(builder, loc, i32(), bits);
  Value packed = call(loc, calls::shuffle, i64(),
                      {constant(loc, static_cast<int64_t>(op.getKind())),
                       op.getThreadMask(), bits, op.getOffset(),
                       op.getMaskAndClamp(), site(op)});
  Value value = LLVM::TruncOp::create(builder, loc, i32(), packed);
  if (type != i32())
    value = LLVM::BitcastOp::create(builder, loc, type, value);
  if (auto structType = dyn_cast<LLVM::LLVMStructType>(op.getType())) {
    Value shifted = LLVM::LShrOp::create(builder, loc, packed,
                                         constant64(loc, /*value=*/32));
    Value valid =
        LLVM::TruncOp::create(builder, loc, builder.getI1Type(), shifted);
    Value both = LLVM::PoisonOp::create(builder, loc, structType);
    both = LLVM::InsertValueOp::create(builder, loc, both, value,
                                       ArrayRef<int64_t>{0});
    value = LLVM::InsertValueOp::create(builder, loc, both, valid,
                                        ArrayRef<int64_t>{1});
  }
  replace(op, value);
}

void OpEmulator::rewrite(NVVM::VoteSyncOp op) {
  Location loc = op.getLoc();
  Value predicate = LLVM::ZExtOp::create(builder, loc, i32(), op.getPred());
  Value value = call(loc, calls::vote, i32(),
                     {constant(loc, static_cast<int64_t>(op.getKind())),
                      op.getMask(), predicate, site(op)});
  if (op.getType() != i32())
    value = LLVM::TruncOp::create(builder, loc, op.getType(), value);
  replace(op, value);
}

void OpEmulator::rewrite(NVVM::BarrierOp op) {
  Location loc = op.getLoc();
  Value zero = constant(loc, 0);
  auto valueOr = [&](Value value) { return value ? value : zero; };
  int64_t reduction =
      op.getReductionOp() ? static_cast<int64_t>(*op.getReductionOp()) : -1;
  Value value =
      call(loc, calls::barrier, i32(),
           {valueOr(op.getBarrierId()), valueOr(op.getNumberOfThreads()),
            constant(loc, reduction), valueOr(op.getReductionPredicate()),
            site(op)});
  if (op->getNumResults() != 0)
    op->getResult(0).replaceAllUsesWith(value);
  op.erase();
}

/// Whether the type that a conversion names is f8E4M3FN, for the emulator.
static int64_t isE4M3(Type type) { return isa<Float8E4M3FNType>(type); }

void OpEmulator::rewrite(NVVM::ConvertF32x2ToF8x2Op op) {
  Location loc = op.getLoc();
  Value type = constant(loc, isE4M3(op.getDstTy()));
  Value high = call(loc, calls::truncateToF8, i32(), {type, op.getA()});
  Value low = call(loc, calls::truncateToF8, i32(), {type, op.getB()});
  high = LLVM::ShlOp::create(builder, loc, high, constant(loc, /*value=*/8));
  Value both = LLVM::OrOp::create(builder, loc, high, low);
  both = LLVM::TruncOp::create(builder, loc, builder.getI16Type(), both);
  if (op.getType() != both.getType())
    both = LLVM::BitcastOp::create(builder, loc, op.getType(), both);
  replace(op, both);
}

void OpEmulator::rewrite(NVVM::ConvertF8x2ToF16x2Op op) {
  Location loc = op.getLoc();
  Value type = constant(loc, isE4M3(op.getSrcType()));
  Value result = LLVM::PoisonOp::create(builder, loc, op.getType());
  for (int64_t index : {0, 1}) {
    Value position = constant(loc, index);
    Value code =
        LLVM::ExtractElementOp::create(builder, loc, op.getSrc(), position);
    code = LLVM::ZExtOp::create(builder, loc, i32(), code);
    Value number =
        call(loc, calls::extendF8, builder.getF32Type(), {type, code});
    number =
        LLVM::FPTruncOp::create(builder, loc, builder.getF16Type(), number);
    result =
        LLVM::InsertElementOp::create(builder, loc, result, number, position);
  }
  replace(op, result);
}

bool OpEmulator::rewriteIntrinsic(LLVM::CallIntrinsicOp op) {
  std::optional<ApproximateCall> known = parseApproximation(op.getIntrin());
  bool isScalar = op->getNumResults() == 1 &&
                  op->getResult(0).getType().isF32() && known &&
                  op.getArgs().size() == known->numOperands;
  if (!isScalar)
    // LLVM's own intrinsics exist on the host too.
    return !op.getIntrin().starts_with("llvm.nvvm.");
  Location loc = op.getLoc();
  Value x = op.getArgs().front(), y = op.getArgs().back();
  replace(op, call(loc, calls::approximate, builder.getF32Type(),
                   {constant(loc, static_cast<int64_t>(known->function)),
                    constant(loc, known->flushesSubnormals), x, y}));
  return true;
}

/// The instruction that the backend chooses for one of LLVM's ops on float32
/// that may be approximate.
static std::optional<Approximation> getApproximation(Operation *op) {
  auto flagged = dyn_cast<LLVM::FastmathFlagsInterface>(op);
  if (!flagged || !getElementTypeOrSelf(op->getResult(0).getType()).isF32() ||
      !bitEnumContainsAll(flagged.getFastmathAttr().getValue(),
                          LLVM::FastmathFlags::afn))
    return std::nullopt;
  if (isa<LLVM::Exp2Op>(op))
    return Approximation::Exp2;
  if (isa<LLVM::SqrtOp>(op))
    return Approximation::Sqrt;
  if (isa<LLVM::FDivOp>(op))
    return matchPattern(op->getOperand(0), m_OneFloat())
               ? Approximation::Reciprocal
               : Approximation::Divide;
  return std::nullopt;
}

bool OpEmulator::rewriteApproximate(Operation *op) {
  std::optional<Approximation> function = getApproximation(op);
  if (!function)
    return false;
  Location loc = op->getLoc();
  // The divisor is the second operand, as in a division.
  auto approximate = [&](Value x, Value y) {
    if (*function == Approximation::Reciprocal)
      x = y;
    return call(loc, calls::approximate, builder.getF32Type(),
                {constant(loc, static_cast<int64_t>(*function)),
                 constant(loc, /*flushesSubnormals=*/0), x, y});
  };
  Value x = op->getOperands().front(), y = op->getOperands().back();
  auto vector = dyn_cast<VectorType>(x.getType());
  if (!vector) {
    replace(op, approximate(x, y));
    return true;
  }
  Value all = LLVM::PoisonOp::create(builder, loc, vector);
  for (int64_t index = 0; index < vector.getNumElements(); ++index) {
    Value position = constant(loc, index);
    auto extract = [&](Value from) -> Value {
      return LLVM::ExtractElementOp::create(builder, loc, from, position);
    };
    all = LLVM::InsertElementOp::create(
        builder, loc, all, approximate(extract(x), extract(y)), position);
  }
  replace(op, all);
  return true;
}

bool OpEmulator::rewrite(Operation *op) {
  builder.setInsertionPoint(op);
  Location loc = op->getLoc();
  if (rewriteMemory(op) || rewriteMessages(op) || rewriteTensors(op) ||
      rewriteWarpgroup(op) || rewriteMatrices(op) || rewriteRegister(op) ||
      rewriteApproximate(op))
    return true;
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<LLVM::AddressOfOp, NVVM::ShflOp, NVVM::VoteSyncOp, NVVM::BarrierOp>(
          [&](auto known) {
            rewrite(known);
            return true;
          })
      // These conversions saturate, and round to nearest.
      .Case([&](NVVM::ConvertF32x2ToF8x2Op convert) {
        if (convert.getSat() != NVVM::SaturationMode::SATFINITE ||
            convert.getRnd() != NVVM::FPRoundingMode::RN || convert.getRelu())
          return false;
        rewrite(convert);
        return true;
      })
      .Case([&](NVVM::ConvertF8x2ToF16x2Op convert) {
        if (convert.getRelu())
          return false;
        rewrite(convert);
        return true;
      })
      .Case([&](NVVM::BarrierArriveOp arrive) {
        Value id = arrive.getBarrierId();
        call(loc, calls::arriveAtBarrier, Type(),
             {id ? id : constant(loc, /*value=*/0), arrive.getNumberOfThreads(),
              site(op)});
        op->erase();
        return true;
      })
      .Case([&](NVVM::ElectSyncOp elect) {
        Value mask = elect.getMembermask();
        Value isLeader =
            call(loc, calls::elect, i32(),
                 {mask ? mask : constant(loc, /*value=*/-1), site(op)});
        replace(op, LLVM::TruncOp::create(builder, loc, builder.getI1Type(),
                                          isLeader));
        return true;
      })
      .Case([&](NVVM::Barrier0Op) {
        Value zero = constant(loc, 0);
        call(loc, calls::barrier, i32(),
             {zero, zero, constant(loc, -1), zero, site(op)});
        op->erase();
        return true;
      })
      .Case([&](NVVM::GriddepcontrolOp control) {
        // In the emulator, launches run one after the other, so none has to
        // wait.
        control->erase();
        return true;
      })
      .Case([&](NVVM::SyncWarpOp sync) {
        call(loc, calls::warpBarrier, Type(), {sync.getMask(), site(op)});
        op->erase();
        return true;
      })
      .Case([&](NVVM::ClusterArriveOp arrive) {
        if (!arrive.getAligned())
          return false;
        call(loc, calls::clusterArrive, Type(),
             {constant(loc, /*value=*/1), site(op)});
        op->erase();
        return true;
      })
      .Case([&](NVVM::ClusterArriveRelaxedOp arrive) {
        if (!arrive.getAligned())
          return false;
        call(loc, calls::clusterArrive, Type(),
             {constant(loc, /*value=*/0), site(op)});
        op->erase();
        return true;
      })
      .Case([&](NVVM::ClusterWaitOp wait) {
        if (!wait.getAligned())
          return false;
        call(loc, calls::clusterWait, Type(), site(op));
        op->erase();
        return true;
      })
      .Case([&](NVVM::MapaOp map) {
        replace(op, call(loc, calls::mapShared, pointer(),
                         {map.getA(), map.getB(), site(op)}));
        return true;
      })
      .Case([&](NVVM::RcpApproxFtzF32Op reciprocal) {
        Value x = reciprocal.getArg();
        replace(op, call(loc, calls::approximate, builder.getF32Type(),
                         {constant(loc, static_cast<int64_t>(
                                            Approximation::Reciprocal)),
                          constant(loc, /*flushesSubnormals=*/1), x, x}));
        return true;
      })
      .Case([&](LLVM::CallIntrinsicOp intrinsic) {
        return rewriteIntrinsic(intrinsic);
      })
      // Emulated threads take turns: memory is always up to date.
      .Case([&](NVVM::MembarOp) {
        op->erase();
        return true;
      })
      // Nothing in the emulator checks inline assembly, nor these accesses.
      .Case<LLVM::InlineAsmOp, LLVM::MemcpyOp, LLVM::MemcpyInlineOp,
            LLVM::MemmoveOp, LLVM::MemsetOp, LLVM::masked_gather,
            LLVM::masked_scatter, LLVM::masked_expandload,
            LLVM::masked_compressstore>([](Operation *) { return false; })
      .Default([](Operation *op) {
        return !isa<NVVM::NVVMDialect, tile::TileDialect>(op->getDialect());
      });
}

//===- LowerBuffers.cpp - Tiles that a thread keeps in shared memory ------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/threads/LowerTiles.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

static constexpr auto kShared =
    static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared);

static Value advance(OpBuilder &builder, Location loc, Value pointer, Type type,
                     Value count) {
  count =
      arith::IndexCastUIOp::create(builder, loc, builder.getI32Type(), count);
  return LLVM::GEPOp::create(builder, loc, pointer.getType(), type, pointer,
                             ValueRange{count}, LLVM::GEPNoWrapFlags::none);
}

/// Neighbouring threads get neighbouring addresses, so that they access
/// different banks of shared memory.
void bastile::forEachKeptPiece(
    OpBuilder &builder, Location loc, RankedTensorType type, Value buffer,
    Value slot, llvm::function_ref<void(int64_t, Value, unsigned)> visit) {
  tile::BlockedAttr layout = getLayout(type);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  int64_t threads = layout.getThreadRows() * layout.getThreadColumns();
  int64_t count = layout.getNumPieces(type.getShape());
  Type element = getMemoryType(type.getElementType());
  auto vector = dyn_cast<VectorType>(getPieceType(type));
  int64_t elements = vector ? vector.getNumElements() : 1;
  uint64_t bytes = elements * getElementBytes(type);
  auto alignment = static_cast<unsigned>(llvm::MinAlign(bytes, 16));
  Value first =
      arith::MulIOp::create(builder, loc, slot, constant(count * threads));
  first = arith::AddIOp::create(builder, loc, first, getThreadId(builder, loc));
  for (int64_t index = 0; index < count; ++index) {
    Value number =
        arith::AddIOp::create(builder, loc, first, constant(index * threads));
    // The address is counted in elements, because LLVM pads a vector whose
    // length is not a power of two.
    number = arith::MulIOp::create(builder, loc, number, constant(elements));
    visit(index, advance(builder, loc, buffer, element, number), alignment);
  }
}

namespace {

/// The shared memory that a launch gives to each block of `program`, in
/// addition to what the code declares.
LLVM::GlobalOp getLaunchMemory(OpBuilder &builder, tile::ProgramOp program) {
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), 0);
  auto module = program->getParentOfType<ModuleOp>();
  std::string name = (program.getSymName() + "_shared").str();
  // A function of the user may have this name already.
  while (Operation *found = module.lookupSymbol(name)) {
    auto global = dyn_cast<LLVM::GlobalOp>(found);
    if (global && global.getType() == type)
      return global;
    name += "_";
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(program);
  return LLVM::GlobalOp::create(
      builder, program.getLoc(), type,
      /*isConstant=*/false, LLVM::Linkage::External, name,
      /*value=*/Attribute(), program.getSharedAlignment(), kShared);
}

struct LowerBuffer : public OpConversionPattern<tile::BufferOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::BufferOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto program = op->getParentOfType<tile::ProgramOp>();
    Location loc = op.getLoc();
    Value memory = LLVM::AddressOfOp::create(
        rewriter, loc, getLaunchMemory(rewriter, program));
    Value offset =
        arith::ConstantIndexOp::create(rewriter, loc, op.getOffset());
    rewriter.replaceOp(
        op, advance(rewriter, loc, memory, rewriter.getI8Type(), offset));
    return success();
  }
};

struct LowerKeep : public OpConversionPattern<tile::KeepOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::KeepOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getValue().getType());
    if (!getLayout(type))
      return failure();
    Location loc = op.getLoc();
    forEachKeptPiece(rewriter, loc, type, adaptor.getBuffer().front(),
                     adaptor.getSlot().front(),
                     [&](int64_t index, Value address, unsigned alignment) {
                       storePiece(rewriter, loc, adaptor.getValue()[index],
                                  address, alignment);
                     });
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerTake : public OpConversionPattern<tile::TakeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::TakeOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (!getLayout(type))
      return failure();
    Location loc = op.getLoc();
    SmallVector<Value> pieces;
    forEachKeptPiece(rewriter, loc, type, adaptor.getBuffer().front(),
                     adaptor.getSlot().front(),
                     [&](int64_t, Value address, unsigned alignment) {
                       pieces.push_back(loadPiece(rewriter, loc,
                                                  getPieceType(type), address,
                                                  alignment));
                     });
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

struct LowerCommit : public OpConversionPattern<tile::CommitCopiesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::CommitCopiesOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::CpAsyncCommitGroupOp>(op);
    return success();
  }
};

struct LowerWait : public OpConversionPattern<tile::WaitCopiesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::WaitCopiesOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::CpAsyncWaitGroupOp>(op, op.getPending());
    return success();
  }
};

} // namespace

void bastile::populateBufferPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<LowerBuffer, LowerKeep, LowerTake, LowerCommit, LowerWait>(
      converter, patterns.getContext());
}

//===- ProgramSignature.cpp - What a program takes ------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tile/ProgramSignature.h"

#include "dialect/ElementBytes.h"
#include "dialect/OperandMemory.h"
#include "dialect/Rows.h"
#include "passes/tile/RowNumbers.h"

using namespace mlir;
using namespace bastile;

namespace {

/// Collects the types and attributes of a program's arguments.
class SignatureBuilder {
public:
  SignatureBuilder(OpBuilder &builder, const KernelTiling &tiling)
      : builder(builder), tiling(tiling) {}

  void addSizes(int64_t count) {
    types.append(count, builder.getIndexType());
    attributes.append(count, builder.getDictionaryAttr({}));
  }
  void addArgument(BlockArgument argument);
  void addResult(unsigned index, Value result);

  SmallVector<Type> types;
  SmallVector<Attribute> attributes;

private:
  void addOperand(Value value, bool isWithoutGaps, NamedAttrList marks);

  OpBuilder &builder;
  const KernelTiling &tiling;
};

} // namespace

/// The rows that share a row of `argument`, if it is read as packed bands.
static IntegerAttr getBand(BlockArgument argument) {
  for (OpOperand &use : argument.getUses())
    if (auto repeat = dyn_cast<tile::RepeatBandsOp>(use.getOwner());
        repeat && getSizeOperand(repeat) != &use)
      return repeat.getBandAttr();
  return nullptr;
}

/// Whether the kernel only takes sizes from `value`: its rows are never read.
static bool givesOnlySizes(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && !isRead(argument);
}

void SignatureBuilder::addOperand(Value value, bool isWithoutGaps,
                                  NamedAttrList marks) {
  auto type = cast<RankedTensorType>(value.getType());
  if (tiling.hasPhase(value))
    marks.set(tile::ProgramOp::kPhaseAttrName,
              builder.getI64IntegerAttr(tiling.schedule.getVector()));
  SmallVector<int64_t> sizes{type.getShape().back()};
  if (isWithoutGaps || type.getRank() >= 2)
    sizes.insert(sizes.begin(), isWithoutGaps ? 1 : tiling.variant.leading,
                 ShapedType::kDynamic);
  types.push_back(isWithoutGaps
                      ? MemRefType::get(sizes, type.getElementType())
                      : tile::getStridedType(sizes, type.getElementType()));
  if (IntegerAttr space = tiling.getSpace(value))
    marks.set(tile::ProgramOp::kSpaceAttrName, space);
  marks.set(tile::ProgramOp::kAlignmentAttrName,
            builder.getI64IntegerAttr(givesOnlySizes(value)
                                          ? getElementBytes(type)
                                          : tiling.getAlignment(value)));
  attributes.push_back(marks.getDictionary(builder.getContext()));
}

void SignatureBuilder::addArgument(BlockArgument argument) {
  NamedAttrList marks;
  if (!tiling.getKernel().getArgAttr(argument.getArgNumber(),
                                     tile::TileDialect::kInPlaceAttrName) &&
      !tiling.isLoadedAhead(argument))
    marks.set(tile::ProgramOp::kReadOnlyAttrName, builder.getUnitAttr());
  IntegerAttr band = getBand(argument);
  if (band)
    marks.set(tile::ProgramOp::kBandAttrName, band);
  addOperand(argument, /*isWithoutGaps=*/bool(band), marks);
}

void SignatureBuilder::addResult(unsigned index, Value result) {
  NamedAttrList marks;
  auto reduce = result.getDefiningOp<tile::ReduceRowsOp>();
  if (reduce && reduce.getPartial())
    marks.set(tile::ProgramOp::kPartialAttrName, builder.getUnitAttr());
  if (auto pack = result.getDefiningOp<tile::PackBandsOp>())
    marks.set(tile::ProgramOp::kBandAttrName, pack.getBandAttr());
  bool isWithoutGaps = !marks.empty();
  if (tiling.getKernel().getResultAttr(index,
                                       tile::TileDialect::kApproximateAttrName))
    marks.set(tile::TileDialect::kApproximateAttrName, builder.getUnitAttr());
  addOperand(result, isWithoutGaps, marks);
}

tile::ProgramOp bastile::createProgram(ImplicitLocOpBuilder &builder,
                                       const KernelTiling &tiling,
                                       int64_t columnBlocks) {
  const KernelShape &shape = tiling.shape;
  const TileVariant &variant = tiling.variant;
  const bool keepsRows = !shape.combinedDimensions.empty();
  const int64_t spaces = keepsRows ? 2 : 1;
  SignatureBuilder signature(builder, tiling);
  signature.addSizes(spaces * variant.leading);
  const SmallVector<int64_t> unmerged = getUnmergedSizes(tiling);
  signature.addSizes(unmerged.size());
  bool isInPlace = false;
  for (BlockArgument argument : tiling.getBody().getArguments()) {
    isInPlace |= bool(tiling.getKernel().getArgAttr(
        argument.getArgNumber(), tile::TileDialect::kInPlaceAttrName));
    signature.addArgument(argument);
  }
  for (auto [index, result] :
       llvm::enumerate(tiling.getReturn()->getOperands()))
    signature.addResult(index, result);

  auto program = tile::ProgramOp::create(
      builder, variant.name, builder.getFunctionType(signature.types, {}),
      variant.leading, tiling.schedule);
  program.setArgAttrsAttr(builder.getArrayAttr(signature.attributes));
  if (!unmerged.empty())
    program.setUnmergedSizes(ArrayRef(unmerged));
  if (columnBlocks > 1)
    program.setColumnBlocks(columnBlocks);
  if (shape.band)
    program.setBand(shape.band);
  if (keepsRows) {
    program.setSpaces(spaces);
    program.setCombines(ArrayRef(shape.combinedDimensions));
  } else if (shape.numCombinedRows > 0) {
    program.setRowPrograms(1);
  }
  program.setInPlace(isInPlace);
  Block *body = builder.createBlock(&program.getBody());
  for (Type type : signature.types)
    body->addArgument(type, builder.getLoc());
  return program;
}

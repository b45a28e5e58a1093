//===- SpaceEmitter.cpp - Tiles of a program over dimensions --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/products/SpaceEmitter.h"

#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/building/ElementOps.h"
#include "passes/building/SumTiles.h"
#include "passes/products/MaskBounds.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

Value SpaceEmitter::constant(int64_t value) {
  return arith::ConstantIndexOp::create(builder, value);
}

Value SpaceEmitter::emitNumber(BlockArgument argument) {
  const unsigned operand = operands.find(argument, /*ofFactor=*/true);
  OpBuilder::InsertionGuard guard(builder);
  if (Operation *loop = getLoop())
    builder.setInsertionPoint(loop);
  Value number =
      memref::LoadOp::create(builder, getMemory(operand), getIndices(operand));
  return arith::IndexCastOp::create(builder, builder.getIndexType(), number);
}

std::pair<Value, Value>
SpaceEmitter::emitNumbersOfRows(BlockArgument argument) {
  OpBuilder::InsertionGuard guard(builder);
  if (Operation *loop = getLoop())
    builder.setInsertionPoint(loop);
  auto &known = numbersOfRows[argument];
  if (known.first && known.first.getParentRegion()->isAncestor(
                         builder.getInsertionBlock()->getParent()))
    return known;
  const unsigned operand = operands.find(argument, /*ofFactor=*/true);
  const RankedTensorType type = operands.getAll()[operand].type;
  const int64_t rank = type.getRank();
  auto extremes = tile::ExtremesOp::create(
      builder, getMemory(operand), getIndices(operand),
      /*dimension=*/type.getDimSize(rank - 2) != 1 ? rank - 2 : rank - 1,
      extents.getMatrixRows(), getSize("m"));
  auto toIndex = [&](Value number) -> Value {
    return arith::IndexCastOp::create(builder, builder.getIndexType(), number);
  };
  known = {toIndex(extremes.getLeast()), toIndex(extremes.getGreatest())};
  return known;
}

RankedTensorType SpaceEmitter::getTileType(RankedTensorType type,
                                           bool ofFactor) const {
  const int64_t rank = type.getRank();
  bool hasRows = rank >= 2 && type.getDimSize(rank - 2) != 1;
  if (extents.matrices > 1 && rank >= 3)
    hasRows |= type.getDimSize(rank - 3) != 1;
  bool hasColumns = type.getShape().back() != 1;
  if (ofFactor && space.isTransposed())
    std::swap(hasRows, hasColumns);
  const int64_t columns = ofFactor ? extents.streamed : extents.columns;
  return RankedTensorType::get(
      {hasRows ? extents.rows : 1, hasColumns ? columns : 1},
      type.getElementType(), layout);
}

SmallVector<Value> SpaceEmitter::getIndices(unsigned operand) {
  const Operand &own = operands.getAll()[operand];
  SmallVector<Value> indices;
  for (unsigned place = 0; place < own.type.getRank(); ++place) {
    const int64_t ahead = own.type.getRank() - 1 - place;
    Attribute name = operands.getDimension(own, place);
    if (ahead >= 2) {
      indices.push_back(isa<StringAttr>(name) ? batch.lookup(name)
                                              : constant(0));
      continue;
    }
    switch (ahead == 0 ? own.column : own.row) {
    case Axis::Whole:
      indices.push_back(constant(0));
      break;
    case Axis::Streamed:
      indices.push_back(isa<StringAttr>(name) ? stream : constant(0));
      break;
    case Axis::Rows:
      indices.push_back(isa<StringAttr>(name) ? row : constant(0));
      break;
    default:
      indices.push_back(isa<StringAttr>(name) ? column : constant(0));
    }
  }
  return indices;
}

void SpaceEmitter::emitStore(unsigned operand, Value tile) {
  tile::StoreOp::create(builder, tile, getMemory(operand), getIndices(operand),
                        /*misalignment=*/Value(), /*alignment=*/IntegerAttr(),
                        /*offset=*/nullptr, /*length=*/nullptr,
                        /*space=*/nullptr, /*band=*/nullptr);
}

Value SpaceEmitter::roundLeft(tile::DotOp dot, Value left) {
  auto type = cast<RankedTensorType>(left.getType());
  if (type.getElementType() == dot.getFactorType())
    return left;
  return arith::TruncFOp::create(builder, type.clone(dot.getFactorType()),
                                 left);
}

Value SpaceEmitter::emitLoadDot(tile::DotOp dot, Value sum) {
  SmallVector<Value> indices[2];
  Value memory[2];
  SmallVector<int64_t> contract(dot.getContract());
  for (unsigned index : {0, 1}) {
    const unsigned operand = operands.findFactor(dot, index);
    memory[index] = getMemory(operand);
    indices[index] = getIndices(operand);
    indices[index].erase(indices[index].end() - 2 + contract[index]);
  }
  if (space.getRowFactor(dot) == 1) {
    std::swap(memory[0], memory[1]);
    std::swap(indices[0], indices[1]);
    std::swap(contract[0], contract[1]);
  }
  return tile::LoadDotOp::create(builder, cast<RankedTensorType>(sum.getType()),
                                 memory[0], indices[0], memory[1], indices[1],
                                 sum, contract);
}

Value SpaceEmitter::emitLoad(BlockArgument argument, bool ofFactor) {
  const unsigned operand = operands.find(argument, ofFactor);
  const bool isTransposed = ofFactor && space.isTransposed();
  if (ofFactor && emitStaged)
    if (Value tile = emitStaged(operand))
      return tile;
  const bool isInvariant =
      program.isArgReadOnly(program.getNumSizes() + operand);
  return tile::LoadOp::create(
      builder, getTileType(operands.getAll()[operand].type, ofFactor),
      getMemory(operand), getIndices(operand), /*misalignment=*/Value(),
      /*alignment=*/IntegerAttr(),
      isInvariant ? builder.getUnitAttr() : nullptr,
      /*offset=*/nullptr, /*length=*/nullptr, /*space=*/nullptr,
      /*band=*/nullptr, isTransposed ? builder.getUnitAttr() : nullptr);
}

Value SpaceEmitter::emit(Value value, bool ofFactor) {
  // Operands and constants are of the kind of their reader.
  if (!isa<BlockArgument>(value) &&
      !isa<arith::ConstantOp>(value.getDefiningOp()))
    ofFactor = space.isOfFactor(value.getDefiningOp());
  const bool isStreamed = ofFactor && space.hasStreamed(value);
  return tiles.get(builder, value, isStreamed, [&] {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return emitLoad(argument, ofFactor);
    return emitOp(cast<OpResult>(value), ofFactor);
  });
}

Value SpaceEmitter::emitOp(OpResult result, bool ofFactor) {
  if (auto dot = dyn_cast<tile::DotOp>(result.getOwner()))
    return emitInner(dot);
  if (auto iota = dyn_cast<tile::IotaOp>(result.getOwner()))
    return emitIota(iota, ofFactor);
  if (Value unscaled = powersOf2.getUnscaled(result))
    return emit(unscaled, ofFactor);
  if (const PowerOf2 *power = powersOf2.lookup(result)) {
    Value tile =
        emitPower(power->x, emitExponentOf2(power->statistic, ofFactor));
    tile.getDefiningOp()->setDiscardableAttrs(
        result.getOwner()->getDiscardableAttrDictionary());
    return tile;
  }
  if (auto select = dyn_cast<arith::SelectOp>(result.getOwner());
      select && getLoop() && space.isStreamed(result))
    if (std::optional<Mask> mask = Mask::get(select, space))
      return emitMasked(result, *mask);
  return emitElements(
      builder, result, [&](Value operand) { return emit(operand, ofFactor); },
      [&](RankedTensorType type) { return getTileType(type, ofFactor); });
}

/// The tile of a number of each row in units of log 2.
Value SpaceEmitter::emitExponentOf2(Value statistic, bool ofFactor) {
  if (Value exponent = getInLogs2(statistic))
    return emit(exponent, ofFactor);
  return createExponentOf2(builder, builder.getLoc(),
                           emit(statistic, ofFactor));
}

Value SpaceEmitter::emitPower(Value x, Value exponent) {
  Value scores = emit(x, /*ofFactor=*/true);
  Value less = arith::NegFOp::create(builder, exponent);
  if (less.getType() != scores.getType())
    less = tile::BroadcastOp::create(
        builder, cast<RankedTensorType>(scores.getType()), less,
        /*like=*/Value());
  Value factor = createSplat(builder, builder.getLoc(), scores.getType(),
                             powersOf2.getScale(x) * llvm::numbers::log2e);
  // Whatever reads the power hides its error (PowersOf2.h).
  return math::Exp2Op::create(
      builder, math::FmaOp::create(builder, scores, factor, less),
      arith::FastMathFlags::afn);
}

/// Compares positions only where the mask hides some element of the tile.
Value SpaceEmitter::emitMasked(OpResult result, const Mask &mask) {
  Value shown = emit(mask.shown, true);
  Value isShown = emitIsShown(builder, *this, mask.conditions);
  auto branch = scf::IfOp::create(builder, shown.getType(), isShown,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, shown);
  builder.setInsertionPointToStart(branch.elseBlock());
  // Nothing else reads what is computed here.
  LoopTiles::Scope scope(tiles, /*isInside=*/true);
  Value masked = emitElements(
      builder, result, [&](Value operand) { return emit(operand, true); },
      [&](RankedTensorType type) { return getTileType(type, true); });
  scf::YieldOp::create(builder, masked);
  return branch.getResult(0);
}

/// The numbers of columns, which count from `first`, in each row of a tile.
Value SpaceEmitter::numberColumns(RankedTensorType type, Value first) {
  const auto row = RankedTensorType::get(
      {1, type.getDimSize(1)}, type.getElementType(), type.getEncoding());
  Value numbers =
      tile::IotaOp::create(builder, row, /*like=*/Value(), first,
                           /*misalignment=*/Value(), /*over=*/nullptr);
  return row == type ? numbers
                     : tile::BroadcastOp::create(builder, type, numbers,
                                                 /*like=*/Value());
}

Value SpaceEmitter::spread(RankedTensorType type, Value number) {
  if (number.getType().isIndex())
    number =
        arith::IndexCastUIOp::create(builder, type.getElementType(), number);
  return tile::BroadcastOp::create(builder, type, number, /*like=*/Value());
}

/// The numbers of rows, which count from `first`, in each column of a tile.
Value SpaceEmitter::numberRows(RankedTensorType type, Value first) {
  const auto column = RankedTensorType::get(
      {type.getDimSize(0), 1}, type.getElementType(), type.getEncoding());
  Value numbers = tile::IotaRowsOp::create(builder, column, first);
  return column == type ? numbers
                        : tile::BroadcastOp::create(builder, type, numbers,
                                                    /*like=*/Value());
}

/// The number that `iota` counts over several dimensions, the last of them
/// fastest; null if each has one place. `rows` names the dimension of rows.
/// `getPlace` says where in a dimension `ahead` of the last one a tile lies, in
/// whose terms `asPlace` puts a size.
Value SpaceEmitter::countOver(
    tile::IotaOp iota, StringRef rows,
    function_ref<Value(int64_t ahead, StringAttr name)> getPlace,
    function_ref<Value(Value size)> asPlace) {
  Value number;
  const ArrayRef<int64_t> over = *iota.getOver();
  for (int64_t dimension : over) {
    if (iota.getType().getDimSize(dimension) == 1)
      continue;
    const int64_t ahead = iota.getType().getRank() - 1 - dimension;
    auto name = builder.getStringAttr(ahead != 1 ? getBatchName(ahead - 2)
                                                 : rows.str());
    Value place = getPlace(ahead, name);
    if (number)
      place = arith::AddIOp::create(
          builder,
          arith::MulIOp::create(builder, number, asPlace(getSize(name))),
          place);
    number = place;
  }
  return number;
}

/// The numbers of rows that `iota` counts over dimensions of which a tile has
/// several places each: those of rows, of matrices or of both.
Value SpaceEmitter::emitIotaOfMatrices(tile::IotaOp iota,
                                       RankedTensorType type) {
  const auto column = RankedTensorType::get(
      {type.getDimSize(0), 1}, type.getElementType(), type.getEncoding());
  auto splat = [&](Value number) { return spread(column, number); };
  Value inTile = tile::IotaRowsOp::create(builder, column, constant(0));
  Value ofMatrix = splat(constant(extents.getMatrixRows()));
  auto getPlace = [&](int64_t ahead, StringAttr name) -> Value {
    Value first = splat(ahead != 1 ? batch.lookup(name) : row);
    if (ahead == 1)
      return arith::AddIOp::create(
          builder, first, arith::RemUIOp::create(builder, inTile, ofMatrix));
    if (ahead == 2)
      return arith::AddIOp::create(
          builder, first, arith::DivUIOp::create(builder, inTile, ofMatrix));
    return first;
  };
  Value number = countOver(iota, "m", getPlace, splat);
  return column == type ? number
                        : tile::BroadcastOp::create(builder, type, number,
                                                    /*like=*/Value());
}

Value SpaceEmitter::emitIota(tile::IotaOp iota, bool ofFactor) {
  RankedTensorType type = getTileType(iota.getType(), ofFactor);
  const bool isTransposed = ofFactor && space.isTransposed();
  if (!iota.getOver()) {
    if (!KernelSpace::hasColumns(iota.getResult()))
      return numberColumns(type, constant(0));
    return isTransposed ? numberRows(type, row)
                        : numberColumns(type, ofFactor ? stream : column);
  }
  if (extents.matrices > 1 && type.getDimSize(0) != 1)
    return emitIotaOfMatrices(iota, type);
  bool numbersRows = false;
  auto getPlace = [&](int64_t ahead, StringAttr name) -> Value {
    numbersRows = ahead == 1;
    if (!numbersRows)
      return batch.lookup(name);
    return isTransposed ? stream : row;
  };
  Value number = countOver(iota, isTransposed ? "k" : "m", getPlace,
                           [](Value size) { return size; });
  if (!number)
    number = constant(0);
  if (numbersRows)
    return isTransposed ? numberColumns(type, number)
                        : numberRows(type, number);
  return spread(type, number);
}

Value SpaceEmitter::emitFrom(Value statistic, Value maximum, Value tile) {
  if (statistic == maximum)
    return tile;
  auto dependsOnMaximum = [&](Value value) {
    SmallVector<Value> pending{value};
    DenseSet<Value> seen;
    while (!pending.empty()) {
      Value next = pending.pop_back_val();
      if (next == maximum)
        return true;
      if (Operation *producer = next.getDefiningOp();
          producer && seen.insert(next).second)
        llvm::append_range(pending, getValueOperands(producer));
    }
    return false;
  };
  return emitElements(
      builder, cast<OpResult>(statistic),
      [&](Value operand) {
        return dependsOnMaximum(operand) ? emitFrom(operand, maximum, tile)
                                         : emit(operand);
      },
      [&](RankedTensorType type) { return getTileType(type, false); });
}

Value SpaceEmitter::isCut(StringRef name, Value first, int64_t length) {
  Value end = arith::AddIOp::create(builder, first, constant(length));
  return arith::CmpIOp::create(builder, arith::CmpIPredicate::ugt, end,
                               getSize(name));
}

Value SpaceEmitter::isInside(StringRef name, Value first, Value numbers) {
  Value left = arith::SubIOp::create(builder, getSize(name), first);
  return arith::CmpIOp::create(
      builder, arith::CmpIPredicate::slt, numbers,
      spread(cast<RankedTensorType>(numbers.getType()), left));
}

Value SpaceEmitter::maskEnd(Value value, tile::ReduceKind kind,
                            bool masksRows) {
  auto type = cast<RankedTensorType>(value.getType());
  Value isAnyOutside = isCut("k", stream, extents.streamed);
  if (masksRows)
    isAnyOutside = arith::OrIOp::create(builder, isAnyOutside,
                                        isCut("m", row, extents.rows));
  auto branch =
      scf::IfOp::create(builder, type, isAnyOutside, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, value);
  builder.setInsertionPointToStart(branch.thenBlock());
  auto numberType =
      RankedTensorType::get(type.getShape(), builder.getI32Type(), layout);
  Value zero = constant(0);
  Value isKept = isInside("k", stream, numberColumns(numberType, zero));
  if (masksRows)
    isKept = arith::AndIOp::create(
        builder, isKept, isInside("m", row, numberRows(numberType, zero)));
  TypedAttr neutral = tile::ReduceOp::getNeutral(kind, type.getElementType());
  Value outside = arith::ConstantOp::create(
      builder, DenseElementsAttr::get(type, Attribute(neutral)));
  scf::YieldOp::create(
      builder,
      arith::SelectOp::create(builder, isKept, value, outside).getResult());
  return branch.getResult(0);
}

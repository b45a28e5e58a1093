//===- KernelSpace.cpp - The dimensions that a kernel goes along ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/KernelSpace.h"

#include "dialect/Dimensions.h"
#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bastile;

bool bastile::isOverDimensions(tile::KernelOp kernel) {
  auto isOfAnyLength = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() > 0 &&
           ShapedType::isDynamic(tensor.getShape().back());
  };
  Block &body = kernel.getBody().front();
  return llvm::any_of(body.getArgumentTypes(), isOfAnyLength) ||
         llvm::any_of(body, [&](Operation &op) {
           return isa<tile::DotOp>(op) ||
                  llvm::any_of(op.getResultTypes(), isOfAnyLength);
         });
}

bool bastile::sumsOverRows(tile::DotOp dot) {
  return dot.isOnTensors() && dot.getContract()[0] == 0;
}

FactorOps::FactorOps(Block &body) {
  for (auto dot : body.getOps<tile::DotOp>()) {
    transposed |= KernelSpace::isLeftComputed(dot) && sumsOverRows(dot);
    ops.insert_range(getComputedFactor(dot));
  }
  if (llvm::all_of(body.getOps<tile::DotOp>(),
                   [&](tile::DotOp dot) { return contains(dot); }))
    for (Operation &op : body.without_terminator())
      ops.insert(&op);
}

bool FactorOps::hasStreamed(Value value) const {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !transposed)
    return KernelSpace::hasColumns(value);
  return type.getRank() > 1 && type.getDimSize(type.getRank() - 2) != 1;
}

bool FactorOps::readsStream(OpOperand &use) const {
  return contains(use.getOwner()) && !isa<tile::DotOp>(use.getOwner()) &&
         hasStreamed(use.get());
}

KernelSpace::KernelSpace(tile::KernelOp kernel, tile::SpaceAttr space)
    : space(space), factors(kernel.getBody().front()) {
  Block &body = kernel.getBody().front();
  unsigned index = 0;
  auto noteColumns = [&](Value value) {
    if (columns)
      return;
    const tile::SpaceDimension *own = getColumns(value);
    while (own && own->base)
      own = space.lookup(own->base);
    columns = own;
  };
  for (auto dot : body.getOps<tile::DotOp>())
    if (!isInner(dot))
      dots.push_back(dot);
  llvm::for_each(body.getArguments(), noteColumns);
  for (Operation &op : body.without_terminator()) {
    for (Value result : op.getResults()) {
      values[result] = space.getOfValue(index++);
      noteColumns(result);
    }
  }
}

ArrayRef<Attribute> KernelSpace::getProjection(Value value) const {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return cast<ArrayAttr>(space.getOfArgument(argument.getArgNumber()).front())
        .getValue();
  return values.at(value).getValue();
}

const tile::SpaceDimension *KernelSpace::getColumns(Value value) const {
  ArrayRef<Attribute> projection = getProjection(value);
  return projection.empty() ? nullptr : space.lookup(projection.back());
}

bool KernelSpace::hasColumns(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() > 0 && type.getShape().back() != 1;
}

//===----------------------------------------------------------------------===//
// Kernels on rows
//===----------------------------------------------------------------------===//

bool KernelSpace::isWhole(Value value) const {
  const tile::SpaceDimension *own = getColumns(value);
  return own &&
         (own == columns || (own->pieces > 1 && own->base == columns->name));
}

int64_t KernelSpace::getGroup(Value value) const {
  const tile::SpaceDimension *own = getColumns(value);
  if (own && own->pieces > 1)
    own = space.lookup(own->base);
  return own ? own->group : 1;
}

int64_t KernelSpace::getPieces(Value value) const {
  if (const tile::SpaceDimension *own = getColumns(value))
    return own->pieces;
  ArrayRef<Attribute> projection = getProjection(value);
  return columns || projection.empty()
             ? 1
             : cast<IntegerAttr>(projection.back()).getInt();
}

SmallVector<int64_t> KernelSpace::getGroups() const {
  SmallVector<int64_t> groups;
  for (const tile::SpaceDimension &dimension : space.getDimensions())
    if (dimension.group > 1 && !llvm::is_contained(groups, dimension.group))
      groups.push_back(dimension.group);
  return groups;
}

//===----------------------------------------------------------------------===//
// Kernels over m, n and k
//===----------------------------------------------------------------------===//

bool KernelSpace::reducesStream(Operation *op) const {
  if (auto dot = dyn_cast<tile::DotOp>(op))
    return !isInner(dot);
  return isRowReduction(op) && isOfFactor(op);
}

//===----------------------------------------------------------------------===//
// What a program can compute
//===----------------------------------------------------------------------===//

/// Checks the factors of `dot`: what its kernel computes is a left factor, and
/// all such factors are summed along their rows, or all of them over these.
static LogicalResult verifyFactors(tile::DotOp dot, const KernelSpace &space) {
  const bool isLeft = !isa<BlockArgument>(dot.getA());
  if (!isa<BlockArgument>(dot.getB()) || (isLeft && space.isInner(dot)))
    return dot.emitOpError("multiplies a value that its kernel computes, and "
                           "that is no left factor with rows that are summed; "
                           "compute it in a kernel of its own");
  if (space.isInner(dot) && sumsOverBatch(dot))
    return dot.emitOpError("adds up products over the batch for a factor that "
                           "its kernel computes for each matrix of the batch; "
                           "compute it in a kernel of its own");
  if (isLeft && sumsOverRows(dot) != space.isTransposed())
    return dot.emitOpError("sums along the rows of a factor that its kernel "
                           "computes, beside a product that sums over such "
                           "rows; compute it in a kernel of its own");
  return success();
}

/// Whether a program can compute `op` element by element, or number elements.
static bool isOfElements(Operation *op) {
  return mayFollowDot(op) || isa<tile::IotaOp>(op);
}

/// Checks that the rows of `op` are those of `leader`.
static LogicalResult verifyRows(Operation *op, Operation *leader) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(leader->getResult(0).getType()).getShape();
  if (!type || type.getRank() < 2 ||
      type.getShape().drop_back() == shape.drop_back())
    return success();
  InFlightDiagnostic error = op->emitOpError("computes a ")
                             << type << " in a kernel of other rows";
  error.attachNote(leader->getLoc())
      << "a " << leader->getResult(0).getType() << " is computed here";
  return error;
}

LogicalResult bastile::verifyComputes(tile::KernelOp kernel,
                                      tile::SpaceAttr attribute) {
  const KernelSpace space(kernel, attribute);
  Block &body = kernel.getBody().front();
  tile::DotOp first = space.getDot();
  // Factors that are summed over their rows have other rows than products.
  Operation *leader = first, *ofFactor = nullptr;
  for (auto dot : body.getOps<tile::DotOp>())
    if (failed(verifyFactors(dot, space)))
      return failure();
  for (Operation &op : body.without_terminator()) {
    const bool isReduction = isRowReduction(&op) && !space.isTransposed() &&
                             space.reducesStream(&op);
    if (!isa<tile::DotOp>(op) && !isReduction && !isOfElements(&op)) {
      InFlightDiagnostic error =
          op.emitOpError("cannot share a kernel with a product or with rows of "
                         "unknown length, "
                         "as it is not computed element by element");
      if (first)
        error.attachNote(first.getLoc()) << "the product is here";
      return error;
    }
    auto type = dyn_cast<RankedTensorType>(op.getResult(0).getType());
    if (!type || type.getRank() < 2)
      continue;
    const bool isOfFactor = space.isTransposed() && space.isOfFactor(&op);
    Operation *&own = isOfFactor ? ofFactor : leader;
    if (!own)
      own = &op;
    if (failed(verifyRows(&op, own)))
      return failure();
    if (first && KernelSpace::hasColumns(op.getResult(0)) && !isOfFactor &&
        !space.isStreamed(op.getResult(0)) &&
        type.getShape() != first.getSumType().getShape()) {
      InFlightDiagnostic error = op.emitOpError("computes a ")
                                 << type << " in the kernel of a product";
      error.attachNote(first.getLoc())
          << "the product is a " << first.getSumType();
      return error;
    }
  }
  return success();
}

//===- RowSpace.cpp - The space of a kernel on rows -----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/Rows.h"
#include "dialect/space/DimensionList.h"

using namespace mlir;
using namespace bastile;

using Dimension = ValueDimensions::Dimension;

static RankedTensorType getTensor(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

/// The piece whose columns the rows of `value` have, if only pieces of it are
/// loaded or stored; null if only its sizes are of use; otherwise `value`.
static Value getPiece(Value value) {
  if (auto join = value.getDefiningOp<tile::JoinOp>())
    return join.getPieces().front();
  Value piece;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (getSizeOperand(user) == &use)
      continue;
    auto split = dyn_cast<tile::SplitOp>(user);
    if (!split)
      return value;
    piece = split.getPieces().front();
  }
  return piece;
}

/// `known` without the columns of arguments of `kernel` that give nothing but
/// sizes: a space does not name these, so that one who reads it would not know
/// that they are one with another dimension.
static KnownDimensions getNamed(tile::KernelOp kernel, KnownDimensions known) {
  for (auto [argument, numbers] :
       llvm::zip(kernel.getBody().getArguments(), known.numbers))
    if (!numbers.empty() && !getPiece(argument))
      numbers.back() = std::nullopt;
  return known;
}

namespace {

/// Finds the space of a kernel on rows.
class RowSpace {
public:
  RowSpace(tile::KernelOp kernel, const KnownDimensions &known)
      : kernel(kernel), body(kernel.getBody().front()),
        builder(kernel.getContext()), dimensions(body, known.numbers),
        list(kernel.getContext()) {
    noteNames(known);
    findColumns();
  }

  FailureOr<tile::SpaceAttr> find();

private:
  void noteNames(const KnownDimensions &known);
  void findColumns();
  LogicalResult verifyPieces(Value value);
  LogicalResult verifyColumns();
  std::optional<Dimension> getColumns(Value value) const;
  bool isOfKernel(Dimension columns) const;
  StringAttr getName(Dimension dimension, StringRef stem);
  StringAttr getColumnName(Dimension dimension, int64_t length);
  Attribute projectColumns(Value value);
  ArrayAttr project(Value value);
  void markReductions();

  tile::KernelOp kernel;
  Block &body;
  Builder builder;
  const ValueDimensions dimensions;
  /// The values that have columns of their own: no statistics, and no tensors
  /// of which only pieces are read or written, or only the sizes, or nothing.
  SmallVector<Value> values;
  /// The dimensions of what is loaded or stored.
  DenseSet<Dimension> inMemory;
  /// A value that goes along whole rows; null if there is none.
  Value whole;
  DimensionList list;
  DenseMap<Dimension, StringAttr> names, given;
};

} // namespace

/// Notes the names that the function gives to dimensions of the kernel.
void RowSpace::noteNames(const KnownDimensions &known) {
  SmallVector<Value> operands(body.getArguments());
  llvm::append_range(operands, body.getTerminator()->getOperands());
  for (auto [value, numbers] : llvm::zip(operands, known.numbers))
    for (auto [place, number] : llvm::enumerate(numbers)) {
      std::optional<Dimension> own = dimensions.get(value, place);
      StringAttr name = number ? known.names.lookup(*number) : StringAttr();
      if (own && name && given.try_emplace(*own, name).second)
        list.reserve(name);
    }
}

/// Finds the values that go along whole rows: those of the kernel's columns, of
/// which all other columns are groups.
void RowSpace::findColumns() {
  auto add = [&](Value value) {
    if (dimensions.getColumns(value) && getPiece(value) == value)
      values.push_back(value);
  };
  auto addInMemory = [&](Value value) {
    if (auto columns = dimensions.getColumns(value))
      inMemory.insert(*columns);
  };
  llvm::for_each(body.getArguments(), add);
  llvm::for_each(body.getArguments(), addInMemory);
  for (Operation &op : body) {
    llvm::for_each(op.getResults(), add);
    if (isa<tile::SplitOp>(op))
      llvm::for_each(op.getResults(), addInMemory);
    if (isa<tile::JoinOp, tile::ReturnOp>(op))
      llvm::for_each(op.getOperands(), addInMemory);
  }
  auto findWhole = [&](bool isInMemory) {
    for (Value value : values) {
      Dimension columns = *dimensions.getColumns(value);
      if (isInMemory && !inMemory.contains(columns))
        continue;
      if (!whole ||
          dimensions.isOfGroups(*dimensions.getColumns(whole), columns))
        whole = value;
    }
  };
  findWhole(/*isInMemory=*/true);
  findWhole(/*isInMemory=*/false);
}

/// The dimension of `value` along its rows. Where a value is repeated along
/// columns that nothing in memory has, to be summed, any columns of that length
/// will do, and so the kernel's.
std::optional<Dimension> RowSpace::getColumns(Value value) const {
  auto columns = dimensions.getColumns(value);
  if (columns && whole && !inMemory.contains(*columns) &&
      getTensor(value).getShape().back() == getTensor(whole).getShape().back())
    return dimensions.getColumns(whole);
  return columns;
}

/// Whether `columns` are the kernel's, or groups of these.
bool RowSpace::isOfKernel(Dimension columns) const {
  if (!whole)
    return false;
  const Dimension ofWhole = *dimensions.getColumns(whole);
  return columns == ofWhole || dimensions.isOfGroups(columns, ofWhole);
}

/// Rows in pieces whose columns stand for groups of the same rows' columns
/// would be defined by themselves.
LogicalResult RowSpace::verifyPieces(Value value) {
  auto rows = dimensions.getColumns(value);
  Value piece = rows ? getPiece(value) : Value();
  auto columns =
      piece && piece != value ? getColumns(piece) : std::optional<Dimension>();
  if (!columns ||
      (*columns != *rows && !dimensions.isOfGroups(*columns, *rows)))
    return success();
  InFlightDiagnostic error = kernel.emitOpError(
      "goes along rows in pieces of which each column stands for a group of "
      "the same rows' columns; name the two dimensions apart, or split the "
      "function");
  error.attachNote(value.getLoc())
      << "the rows of " << value.getType() << " are in pieces";
  return error;
}

LogicalResult RowSpace::verifyColumns() {
  for (BlockArgument argument : body.getArguments())
    if (failed(verifyPieces(argument)))
      return failure();
  for (Operation &op : body)
    for (Value result : op.getResults())
      if (failed(verifyPieces(result)))
        return failure();
  for (Value value : values) {
    if (isOfKernel(*getColumns(value)))
      continue;
    InFlightDiagnostic error = kernel.emitOpError(
        "goes along two dimensions of columns; a kernel has one, and groups of "
        "its columns. If they are one, give the kernel a 'space' that says so; "
        "otherwise make two kernels");
    error.attachNote(whole.getLoc())
        << "the columns of " << whole.getType() << " are one";
    error.attachNote(value.getLoc())
        << "and those of " << value.getType() << " are another";
    return error;
  }
  return success();
}

/// The name of `dimension`: that of the function, or one that begins with
/// `stem`.
StringAttr RowSpace::getName(Dimension dimension, StringRef stem) {
  StringAttr &name = names[dimension];
  if (!name)
    name = given.lookup(dimension);
  if (!name)
    name = list.createName(stem);
  return name;
}

/// The name of `dimension`, the kernel's columns or groups of these.
StringAttr RowSpace::getColumnName(Dimension dimension, int64_t length) {
  const Dimension ofWhole = *dimensions.getColumns(whole);
  if (dimension == ofWhole) {
    StringAttr name = getName(dimension, "c");
    list.noteSize(name, length);
    return name;
  }
  const int64_t ofRow = getTensor(whole).getShape().back();
  StringAttr base = getColumnName(ofWhole, ofRow);
  StringAttr name = getName(dimension, "g");
  list.noteBase(name, base, ofRow / length, /*pieces=*/1);
  return name;
}

/// What a projection says of `value` along its rows.
Attribute RowSpace::projectColumns(Value value) {
  const int64_t length = getTensor(value).getShape().back();
  Value piece = getPiece(value);
  // What nobody reads is computed all the same.
  if (!piece && isa<OpResult>(value))
    piece = value;
  auto columns = piece ? getColumns(piece) : std::nullopt;
  if (!columns || !isOfKernel(*columns))
    return builder.getI64IntegerAttr(length);
  const int64_t ofPiece = getTensor(piece).getShape().back();
  StringAttr name = getColumnName(*columns, ofPiece);
  if (piece == value)
    return name;
  StringAttr rows = getName(*dimensions.getColumns(value), "w");
  list.noteBase(rows, name, /*group=*/1, length / ofPiece);
  return rows;
}

ArrayAttr RowSpace::project(Value value) {
  SmallVector<Attribute> places;
  if (RankedTensorType type = getTensor(value); type && type.getRank() > 0) {
    for (int64_t place = 0; place + 1 < type.getRank(); ++place) {
      auto dimension = dimensions.get(value, place);
      if (!dimension) {
        places.push_back(builder.getI64IntegerAttr(1));
        continue;
      }
      StringAttr name = getName(*dimension, "r");
      list.noteSize(name, type.getDimSize(place));
      places.push_back(name);
    }
    places.push_back(projectColumns(value));
  }
  return builder.getArrayAttr(places);
}

void RowSpace::markReductions() {
  for (Operation &op : body)
    visitReductions(op, [&](Value value, unsigned place) {
      if (auto name = dyn_cast<StringAttr>(project(value)[place]))
        list.get(name).isReduction = true;
    });
}

FailureOr<tile::SpaceAttr> RowSpace::find() {
  if (failed(verifyColumns()))
    return failure();
  SmallVector<Attribute> arguments;
  for (Value argument : body.getArguments())
    arguments.push_back(builder.getArrayAttr(project(argument)));
  auto ofValue = [&](Value value) { return project(value); };
  auto [results, ofValues] = collectProjections(body, ofValue, ofValue);
  markReductions();
  return tile::SpaceAttr::get(kernel.getContext(), list.takeSorted(),
                              builder.getArrayAttr(arguments), results,
                              ofValues);
}

FailureOr<tile::SpaceAttr> bastile::findRowSpace(tile::KernelOp kernel,
                                                 const KnownDimensions &known) {
  return RowSpace(kernel, getNamed(kernel, known)).find();
}

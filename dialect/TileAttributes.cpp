//===- TileAttributes.cpp - Schedules and layouts -------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/Tile.h"
#include "dialect/Warps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile::tile;

#define GET_ATTRDEF_CLASSES
#include "dialect/TileAttributes.cpp.inc"

void TileDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/TileAttributes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

/// A field of a schedule, by its name.
using Field = std::pair<const char *, int64_t>;

/// Checks that each field may be a number of what it counts.
static LogicalResult verifyFields(function_ref<InFlightDiagnostic()> emitError,
                                  ArrayRef<Field> fields) {
  // This is far past any machine's limits, and products of such fields fit 64
  // bits.
  constexpr int64_t maxField = int64_t(1) << 24;
  for (auto [name, value] : fields)
    if (value < 0 || value > maxField)
      return emitError() << "schedule field '" << name << "' must be from 0 to "
                         << maxField << ", but is " << value;
  return success();
}

static LogicalResult verifyStages(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t stages) {
  constexpr int64_t maxStages = 8;
  if (stages > maxStages)
    return emitError() << "schedule field 'stages' must be at most "
                       << maxStages << ", but is " << stages;
  return success();
}

static LogicalResult
verifyScheduleVector(function_ref<InFlightDiagnostic()> emitError,
                     int64_t vector) {
  if (vector && (!llvm::isPowerOf2_64(vector) || vector > 16))
    return emitError() << "schedule field 'vector' must be a power of two up "
                          "to 16, but is "
                       << vector;
  return success();
}

LogicalResult RowsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t rows, int64_t threads, int64_t vector,
                               int64_t columns, int64_t persistent,
                               int64_t cluster, int64_t stages, Reread) {
  const Field fields[] = {
      {"rows", rows},       {"threads", threads},       {"vector", vector},
      {"columns", columns}, {"persistent", persistent}, {"cluster", cluster},
      {"stages", stages}};
  return failure(failed(verifyFields(emitError, fields)) ||
                 failed(verifyStages(emitError, stages)) ||
                 failed(verifyScheduleVector(emitError, vector)));
}

LogicalResult MatmulAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t rows, int64_t columns, int64_t depth,
                                 int64_t threads, int64_t vector,
                                 int64_t stages, int64_t roles, int64_t cluster,
                                 int64_t split, int64_t steps, int64_t resident,
                                 int64_t matrices) {
  const Field fields[] = {
      {"rows", rows},       {"columns", columns},   {"depth", depth},
      {"threads", threads}, {"vector", vector},     {"stages", stages},
      {"roles", roles},     {"cluster", cluster},   {"split", split},
      {"steps", steps},     {"resident", resident}, {"matrices", matrices}};
  if (failed(verifyFields(emitError, fields)) ||
      failed(verifyStages(emitError, stages)) ||
      failed(verifyScheduleVector(emitError, vector)))
    return failure();
  if (roles > 2)
    return emitError() << "'roles' is " << roles << ", not 1 or 2";
  if (steps > 2)
    return emitError() << "'steps' is " << steps << ", not 1 or 2";
  if (resident > 3)
    return emitError() << "'resident' is " << resident << ", not 1, 2 or 3";
  if (matrices > 1 && rows % matrices != 0)
    return emitError() << "'matrices' is " << matrices << ", of which " << rows
                       << " 'rows' have no equal parts";
  return success();
}

LogicalResult LaunchAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t threads, int64_t cluster,
                                 int64_t persistent) {
  return verifyFields(
      emitError,
      {{"threads", threads}, {"cluster", cluster}, {"persistent", persistent}});
}

//===----------------------------------------------------------------------===//
// Tiles of rows
//===----------------------------------------------------------------------===//

LogicalResult BlockedAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t vector, int64_t threadRows,
                                  int64_t threadColumns, int64_t blocks,
                                  int64_t group, int64_t columns) {
  if (vector < 1 || threadRows < 1 || threadColumns < 1 || blocks < 1 ||
      group < 1)
    return emitError() << "layout fields must be at least 1";
  // These limits make the product of all fields but the last fit 64 bits.
  constexpr int64_t most = 1 << 20, mostColumns = 1 << 24;
  if (vector > most || threadRows > most || threadColumns > most ||
      blocks > most || group > mostColumns || columns > mostColumns)
    return emitError() << "layout fields must be at most " << most
                       << ", a group " << mostColumns;
  if (columns < 0 || (columns > 0 && columns <= group))
    return emitError() << "a group of " << group << " columns is no part of "
                       << columns;
  if (group > 1 && group % vector != 0)
    return emitError() << "a group of " << group
                       << " columns does not divide into pieces of " << vector;
  return success();
}

LogicalResult BlockedAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type elementType,
    function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != 2 || llvm::any_of(shape, ShapedType::isDynamic))
    return emitError() << "a layout describes a tile of two static dimensions";
  if (shape[0] != 1 && shape[0] % getThreadRows() != 0)
    return emitError() << shape[0] << " rows do not divide into "
                       << getThreadRows() << " rows of threads";
  int64_t deal = getThreadColumns() * getVector();
  int64_t columns = shape[1] * getGroup();
  if (getColumns()) {
    if (shape[1] * getGroup() < getColumns() ||
        (shape[1] - 1) * getGroup() >= getColumns())
      return emitError() << shape[1] << " columns are not one for each "
                         << getGroup() << " of " << getColumns();
    columns = getColumns();
  }
  if (shape[1] == 1 || columns % (getBlocks() * deal) == 0)
    return success();
  InFlightDiagnostic diagnostic = emitError();
  diagnostic << shape[1] << " columns do not divide into pieces of "
             << getVector() << " for " << getThreadColumns() << " threads";
  if (getBlocks() > 1)
    diagnostic << " in each of " << getBlocks() << " blocks";
  return diagnostic;
}

int64_t BlockedAttr::getNumPieces(ArrayRef<int64_t> shape) const {
  return getRowRepeats(shape) * getColumnRepeats(shape);
}

int64_t BlockedAttr::getPieceElements(ArrayRef<int64_t> shape) const {
  return shape[1] == 1 || getGroup() > 1 ? 1 : getVector();
}

std::pair<int64_t, int64_t> BlockedAttr::getElement(ArrayRef<int64_t> shape,
                                                    int64_t block,
                                                    int64_t thread,
                                                    int64_t piece) const {
  int64_t columnRepeats = getColumnRepeats(shape);
  int64_t row =
      (piece / columnRepeats) * getThreadRows() + thread / getThreadColumns();
  int64_t column =
      (piece % columnRepeats) * getColumnsPerDeal() +
      (block * getThreadColumns() + thread % getThreadColumns()) * getVector();
  return {shape[0] == 1 ? 0 : row, shape[1] == 1 ? 0 : column / getGroup()};
}

//===----------------------------------------------------------------------===//
// Tiles of products
//===----------------------------------------------------------------------===//

/// Checks the elements of each piece of a tile of products.
static LogicalResult verifyVector(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t vector) {
  if (vector != 2 && vector != 4)
    return emitError() << "a piece of products has 2 or 4 elements, not "
                       << vector;
  return success();
}

LogicalResult MmaAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                              int64_t warps, int64_t vector) {
  constexpr int64_t most = 32;
  if (warps < 1 || warps > most)
    return emitError() << "a block has 1 to " << most << " warps, not "
                       << warps;
  return verifyVector(emitError, vector);
}

LogicalResult MmaRhsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t vector) {
  return verifyVector(emitError, vector);
}

/// Checks that `shape` is that of a tile of two static dimensions with no more
/// elements than a multiprocessor's registers have bytes: each of a thread's
/// pieces becomes an op.
static LogicalResult
verifyFragments(ArrayRef<int64_t> shape,
                function_ref<InFlightDiagnostic()> emitError) {
  if (shape.size() != 2 || llvm::any_of(shape, ShapedType::isDynamic))
    return emitError() << "a layout describes a tile of two static dimensions";
  constexpr int64_t most = 1 << 18;
  if (shape[0] > most || shape[1] > most || shape[0] * shape[1] > most)
    return emitError() << "a tile of " << shape[0] << " rows of " << shape[1]
                       << " columns is more than the registers of a block hold";
  return success();
}

LogicalResult
MmaAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                        function_ref<InFlightDiagnostic()> emitError) const {
  if (failed(verifyFragments(shape, emitError)))
    return failure();
  if (int64_t rows = kWarpRows * getWarps();
      shape[0] != 1 && (shape[0] < 1 || shape[0] % rows != 0))
    return emitError() << shape[0] << " rows do not divide into " << kWarpRows
                       << " for each of " << getWarps() << " warps";
  if (shape[1] != 1 && (shape[1] < 1 || shape[1] % getChunkColumns() != 0))
    return emitError() << shape[1] << " columns do not divide into pieces of "
                       << getChunkColumns();
  return success();
}

int64_t MmaAttr::getNumPieces(ArrayRef<int64_t> shape) const {
  return getRowRepeats(shape) * getChunks(shape) * getRowsPerRepeat(shape);
}

int64_t MmaAttr::getPieceElements(ArrayRef<int64_t> shape) const {
  return shape[1] == 1 ? 1 : getVector();
}

std::pair<int64_t, int64_t> MmaAttr::getElement(ArrayRef<int64_t> shape,
                                                int64_t /*block*/,
                                                int64_t thread,
                                                int64_t piece) const {
  int64_t half = piece % getRowsPerRepeat(shape);
  int64_t chunk = piece / getRowsPerRepeat(shape) % getChunks(shape);
  int64_t repeat = piece / getRowsPerRepeat(shape) / getChunks(shape);
  int64_t lane = thread % bastile::kWarp;
  int64_t row = (repeat * getWarps() + thread / bastile::kWarp) * kWarpRows +
                lane / kLanesPerRow + half * kWarpRows / 2;
  int64_t column =
      chunk * getChunkColumns() + lane % kLanesPerRow * getVector();
  return {shape[0] == 1 ? 0 : row, shape[1] == 1 ? 0 : column};
}

LogicalResult
MmaRhsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type /*elementType*/,
                           function_ref<InFlightDiagnostic()> emitError) const {
  if (failed(verifyFragments(shape, emitError)))
    return failure();
  if (shape[0] < 1 || shape[0] % kRows != 0 || shape[1] < 1 ||
      shape[1] % getStepColumns() != 0)
    return emitError() << shape[0] << " rows of " << shape[1]
                       << " columns do not divide into " << kRows << " rows of "
                       << getStepColumns();
  return success();
}

int64_t MmaRhsAttr::getNumPieces(ArrayRef<int64_t> shape) const {
  return getPiece(shape, /*chunk=*/shape[0] / kChunk, /*step=*/0);
}

int64_t MmaRhsAttr::getPieceElements(ArrayRef<int64_t> /*shape*/) const {
  return getVector();
}

std::pair<int64_t, int64_t> MmaRhsAttr::getElement(ArrayRef<int64_t> shape,
                                                   int64_t /*block*/,
                                                   int64_t thread,
                                                   int64_t piece) const {
  constexpr int64_t lanesPerRow = MmaAttr::kLanesPerRow;
  const int64_t steps = shape[1] / getStepColumns();
  int64_t half = piece % kPieces;
  int64_t step = piece / kPieces % steps;
  int64_t chunk = piece / kPieces / steps;
  int64_t lane = thread % bastile::kWarp;
  return {chunk * kChunk + lane / lanesPerRow,
          step * getStepColumns() + half * getStepColumns() / kPieces +
              lane % lanesPerRow * getVector()};
}

LogicalResult SharedAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t swizzle) {
  if (swizzle != 32 && swizzle != 64 && swizzle != 128)
    return emitError() << "a panel has 32, 64 or 128 bytes, not " << swizzle;
  return success();
}

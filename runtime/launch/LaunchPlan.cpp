//===- LaunchPlan.cpp - From tensors to packed launches -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/LaunchPlan.h"
#include "bastile/runtime/Shapes.h"
#include "runtime/Text.h"
#include "runtime/launch/Features.h"
#include "runtime/metadata/OperandName.h"

using namespace bastile::runtime;

const TensorView &LaunchPlan::view(const Operand &operand) const {
  switch (operand.kind) {
  case Operand::Kind::Input:
    return buffers.inputs[operand.index];
  case Operand::Kind::Output:
    return buffers.outputs[operand.index];
  case Operand::Kind::Piece:
    return pieces[operand.index];
  case Operand::Kind::Temporary:
    break;
  }
  return buffers.temporaries[operand.index];
}

/// Finds the views of pieces, whose tensors have been checked.
void LaunchPlan::findPieces() {
  pieces.clear();
  for (const PieceSpec &spec : function->pieces) {
    TensorView piece = view(spec.whole);
    const unsigned d = spec.dimension;
    piece.sizes[d] /= spec.count;
    const int64_t first =
        spec.interleaved ? spec.index : spec.index * piece.sizes[d];
    // No kernel reads a tensor without elements, which may be nowhere.
    if (piece.elementCount() != 0)
      piece.data = static_cast<char *>(piece.data) +
                   first * piece.strides[d] * byteSize(piece.type);
    if (spec.interleaved)
      piece.strides[d] *= spec.count;
    pieces.push_back(piece);
  }
}

std::string LaunchPlan::prefix(const Launch &launch) const {
  return concat("function '", function->name, "': kernel '", launch.kernel,
                "': ");
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Finds the rows of each row space, and checks the operands that go with them.
Error LaunchPlan::findRows(const Launch &launch) {
  if (Error error = checkShared(launch))
    return error;
  if (Error error = findSizes(launch))
    return error;
  if (Error error = countRows(launch))
    return error;
  return checkBands(launch);
}

/// Checks that operands which all rows share are contiguous, since a kernel
/// gets no strides for them.
Error LaunchPlan::checkShared(const Launch &launch) const {
  for (const Operand &operand : launch.operands) {
    const TensorView &tensor = view(operand);
    if (!operand.rows && !tensor.isContiguous())
      return makeError(prefix(launch), describe(*function, operand),
                       " of shape ", print(tensor.sizes), " has strides ",
                       print(tensor.strides), ", expected contiguous");
  }
  return Error::success();
}

/// Finds the size of the row operands of `space` in `dimension`. Operands that
/// always have size 1 there repeat their rows.
Error LaunchPlan::findSize(const Launch &launch, unsigned space,
                           unsigned dimension) {
  const Operand *first = nullptr;
  for (const Operand &operand : launch.operands) {
    if (!operand.rows || operand.space != space ||
        function->isAlwaysOne(operand, dimension))
      continue;
    if (!first)
      first = &operand;
    const Dimensions &sizes = view(*first).sizes, &others = view(operand).sizes;
    if (sizes[dimension] != others[dimension])
      return makeError(prefix(launch), describe(*function, *first),
                       " has shape ", print(sizes), ", but ",
                       describe(*function, operand), " has shape ",
                       print(others), ": all but the last size must agree");
  }
  spaces[space].sizes.push_back(first ? view(*first).sizes[dimension] : 1);
  return Error::success();
}

Error LaunchPlan::findSizes(const Launch &launch) {
  spaces.assign(launch.spaces, Space());
  for (unsigned space = 0; space != launch.spaces; ++space)
    for (unsigned d = 0; d != launch.leading; ++d)
      if (Error error = findSize(launch, space, d))
        return error;
  return checkCombined(launch);
}

/// Checks that the combination of rows has their sizes in the other dimensions.
Error LaunchPlan::checkCombined(const Launch &launch) const {
  if (launch.combines.empty() || launch.spaces == 1)
    return Error::success();
  const Dimensions &rows = spaces[0].sizes, &left = spaces[1].sizes;
  auto dimension = launch.combines.begin();
  for (unsigned d = 0; d != launch.leading; ++d) {
    const bool isCombined =
        dimension != launch.combines.end() && *dimension == d;
    if (isCombined)
      ++dimension;
    if (left[d] != (isCombined ? 1 : rows[d]))
      return makeError(prefix(launch), "rows of leading sizes ", print(rows),
                       " do not combine to those of ", print(left));
  }
  return Error::success();
}

/// Checks that each operand with one row for each band has as many rows as
/// there are bands.
Error LaunchPlan::checkBands(const Launch &launch) const {
  for (const Operand &operand : launch.operands) {
    if (operand.band == 0)
      continue;
    const int64_t size = rows.front();
    const int64_t bands = size / operand.band + (size % operand.band != 0);
    const Dimensions &sizes = view(operand).sizes;
    if (sizes[0] != bands)
      return makeError(prefix(launch), describe(*function, operand),
                       " has shape ", print(sizes), ", expected ", bands,
                       " rows, one for each ", operand.band, " of ", size);
  }
  return Error::success();
}

Error LaunchPlan::countRows(const Launch &launch) {
  rows.clear();
  for (const Space &space : spaces) {
    const Dimensions &sizes = space.sizes;
    // With a size of 0 the product is 0, however large the other sizes are.
    const bool isEmpty =
        std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
    int64_t count = isEmpty ? 0 : 1;
    for (int64_t size : sizes)
      if (!isEmpty && __builtin_mul_overflow(count, size, &count))
        return makeError(prefix(launch), "leading sizes ", print(sizes),
                         " are too many rows");
    rows.push_back(count);
  }
  return Error::success();
}

Error LaunchPlan::checkPointers(const Launch &launch) const {
  for (const Operand &operand : launch.operands)
    if (!view(operand).data && view(operand).elementCount() != 0)
      return makeError(prefix(launch), describe(*function, operand),
                       " is a null pointer");
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Choosing a variant
//===----------------------------------------------------------------------===//

/// Whether `variant` can run here and take the operands. If it cannot,
/// `reason`, if given, receives why.
bool LaunchPlan::admits(const Launch &launch, const Variant &variant,
                        std::string *reason) const {
  if (!hasFeatures(variant, capacity, reason))
    return false;
  return launch.hasDimensions() ? admitsOperands(launch, variant, reason)
                                : admitsRows(launch, variant, reason);
}

bool LaunchPlan::admitsRows(const Launch &launch, const Variant &variant,
                            std::string *reason) const {
  for (const Space &space : spaces) {
    if (space.merged.size() <= variant.leading)
      continue;
    if (reason)
      *reason = concat("'", variant.entry, "' takes rows of ", variant.leading,
                       " leading dimensions, but these strides need ",
                       space.merged.size());
    return false;
  }
  for (unsigned k = 0; k != launch.operands.size(); ++k) {
    const Operand &operand = launch.operands[k];
    // The kernel does not access rows that do not exist.
    if (operand.rows && rows[operand.space] == 0)
      continue;
    const TensorView &tensor = view(operand);
    // A power of two divides all of these numbers if it divides their union.
    // Bits of a product beyond 64 make no difference to that.
    uint64_t bits = reinterpret_cast<uintptr_t>(tensor.data);
    for (int64_t stride : leadingStrides[k])
      bits |= static_cast<uint64_t>(stride) *
              static_cast<uint64_t>(byteSize(tensor.type));
    if ((bits & static_cast<uint64_t>(variant.alignment[k] - 1)) == 0)
      continue;
    if (reason)
      *reason =
          concat("'", variant.entry, "' needs ", describe(*function, operand),
                 " and its rows aligned to ", variant.alignment[k],
                 " bytes, but it is at ", tensor.data, " with strides ",
                 print(tensor.strides));
    return false;
  }
  const Operand *other = findOtherPhase(launch, variant);
  if (other && reason)
    *reason =
        concat("'", variant.entry, "' needs ", describe(*function, *other),
               " and its rows to begin as far behind an aligned address "
               "as the other operands");
  return !other;
}

/// An operand that begins at another place between aligned addresses than the
/// first operand of its row space; null if there is none.
const Operand *LaunchPlan::findOtherPhase(const Launch &launch,
                                          const Variant &variant) const {
  auto getAddress = [&](unsigned k) {
    const TensorView &tensor = view(launch.operands[k]);
    return reinterpret_cast<intptr_t>(tensor.data) / byteSize(tensor.type);
  };
  for (unsigned k = 0; k != launch.operands.size(); ++k) {
    const int64_t mask = variant.phase[k] - 1;
    const unsigned space = launch.operands[k].space;
    if (mask == 0 || rows[space] == 0)
      continue;
    unsigned first = 0;
    while (variant.phase[first] == 1 || launch.operands[first].space != space)
      ++first;
    int64_t difference = getAddress(k) ^ getAddress(first);
    for (unsigned d = 0; d != leadingStrides[k].size(); ++d)
      difference |= leadingStrides[k][d] ^ leadingStrides[first][d];
    if ((difference & mask) != 0)
      return &launch.operands[k];
  }
  return nullptr;
}

Error LaunchPlan::computeGrid(const Launch &launch, const Variant &variant,
                              int64_t &grid) const {
  std::optional<int64_t> value =
      variant.grid.evaluate({rows, capacity, buffers.inputs, namedSizes});
  if (!value)
    return makeError(prefix(launch), "the grid of '", variant.entry,
                     "' overflows or divides by zero");
  if (*value % variant.cluster != 0)
    return makeError(prefix(launch), "the grid of '", variant.entry, "', ",
                     *value, " blocks, is no multiple of its cluster of ",
                     variant.cluster);
  grid = *value;
  return Error::success();
}

Error LaunchPlan::chooseVariant(const Launch &launch, const Variant *&choice,
                                int64_t &grid) const {
  // A kernel of no blocks takes any operands.
  const bool mayBeEmpty =
      launch.hasDimensions() &&
      std::find(namedSizes.begin(), namedSizes.end(), 0) != namedSizes.end();
  for (const Variant &variant : launch.variants) {
    const bool isAdmitted = admits(launch, variant, /*reason=*/nullptr);
    if (!isAdmitted && !mayBeEmpty)
      continue;
    if (Error error = computeGrid(launch, variant, grid))
      return error;
    choice = &variant;
    if (isAdmitted || grid == 0)
      return Error::success();
  }
  std::string reason;
  (void)admits(launch, launch.variants.back(), &reason);
  return makeError(prefix(launch), "no variant takes these operands: ", reason);
}

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

void LaunchPlan::packRows(const Launch &launch, const Variant &variant,
                          PlannedLaunch &result) const {
  // A variant with more dimensions than are left in a row space gets sizes of 1
  // and strides of 0 in front.
  auto pad = [&](const Dimensions &values, unsigned dimension, int64_t fill) {
    const unsigned padding = variant.leading - values.size();
    return dimension < padding ? fill : values[dimension - padding];
  };
  for (const Argument &argument : variant.arguments) {
    switch (argument.kind) {
    case Argument::Kind::Size:
      result.values.push_back(
          pad(spaces[argument.space].merged, argument.dimension, 1));
      break;
    case Argument::Kind::UnmergedSize:
      result.values.push_back(spaces.front().sizes[argument.dimension]);
      break;
    case Argument::Kind::Pointer:
      result.values.push_back(reinterpret_cast<intptr_t>(
          view(launch.operands[argument.operand]).data));
      break;
    case Argument::Kind::Stride:
      result.values.push_back(
          pad(leadingStrides[argument.operand], argument.dimension, 0));
      break;
    case Argument::Kind::TensorMap:
      assert(false && "rows have no tensor maps");
      break;
    }
  }
}

void LaunchPlan::pack(const Launch &launch, const Variant &variant,
                      PlannedLaunch &result) const {
  result.variant = &variant;
  result.values.clear();
  // Maps that were made for the last call are kept.
  result.maps.resize(variant.tensorMaps.size());
  if (launch.hasDimensions())
    packNamed(launch, variant, result);
  else
    packRows(launch, variant, result);
  result.arguments.clear();
  for (int64_t &value : result.values)
    result.arguments.push_back(&value);
  if (result.maps.empty())
    return;
  for (size_t i = 0; i != variant.arguments.size(); ++i)
    if (variant.arguments[i].kind == Argument::Kind::TensorMap)
      result.arguments[i] = &result.maps[variant.arguments[i].map].encoded;
}

/// Whether the launch would read what a skipped launch did not write.
bool LaunchPlan::lacksContents(const Launch &launch) const {
  for (const Operand &operand : launch.operands) {
    const Operand &whole = function->whole(operand);
    if (whole.kind == Operand::Kind::Temporary &&
        temporaryContents[whole.index] == Contents::Missing &&
        view(operand).elementCount() != 0)
      return true;
  }
  return false;
}

Error LaunchPlan::addFill(const Operand &operand) {
  const TensorView &tensor = view(operand);
  if (tensor.elementCount() == 0)
    return Error::success();
  if (!tensor.data)
    return makeError("function '", function->name,
                     "': ", describe(*function, operand), " is a null pointer");
  fills.push_back({tensor.data, tensor.byteCount()});
  return Error::success();
}

Error LaunchPlan::skip(const Launch &launch) {
  for (const Operand &operand : launch.operands) {
    const Operand &whole = function->whole(operand);
    if (whole.kind == Operand::Kind::Temporary &&
        temporaryContents[whole.index] == Contents::None)
      temporaryContents[whole.index] = Contents::Missing;
    if (operand.kind == Operand::Kind::Output &&
        function->outputs[operand.index].zeroIfNoRows)
      if (Error error = addFill(operand))
        return error;
  }
  return Error::success();
}

Error LaunchPlan::prepareLaunch(const Launch &launch) {
  if (Error error =
          launch.hasDimensions() ? findNamedSizes(launch) : findRows(launch))
    return error;
  const bool isEmpty =
      !launch.hasDimensions() && !launch.combinesAll() &&
      std::all_of(rows.begin(), rows.end(), [](int64_t n) { return n == 0; });
  if (isEmpty || lacksContents(launch))
    return skip(launch);

  if (!launch.hasDimensions())
    mergeLeading(launch);
  const Variant *variant = nullptr;
  int64_t grid = 0;
  if (Error error = chooseVariant(launch, variant, grid))
    return error;
  if (grid == 0)
    return skip(launch);
  if (Error error = checkPointers(launch))
    return error;

  PlannedLaunch &result = planned[plannedCount++];
  pack(launch, *variant, result);
  result.config = {grid, variant->block, variant->cluster,
                   variant->sharedMemory, /*overlapPrevious=*/false};
  for (const Operand &operand : launch.operands) {
    const Operand &whole = function->whole(operand);
    if (whole.kind == Operand::Kind::Temporary)
      temporaryContents[whole.index] = Contents::Defined;
  }
  return Error::success();
}

Error LaunchPlan::checkBuffers() const {
  if (Error error = checkInputs(*function, buffers.inputs))
    return error;
  if (Error error =
          checkOutputs(*function, buffers.inputs, buffers.outputs, capacity))
    return error;
  return checkTemporaries(*function, buffers.inputs, buffers.temporaries,
                          capacity);
}

Error LaunchPlan::prepareTemporaries() {
  temporaryContents.assign(function->temporaries.size(), Contents::None);
  for (unsigned i = 0; i != function->temporaries.size(); ++i) {
    if (!function->temporaries[i].zeroed)
      continue;
    temporaryContents[i] = Contents::Defined;
    if (Error error = addFill({Operand::Kind::Temporary, i}))
      return error;
  }
  return Error::success();
}

Error LaunchPlan::prepareLaunches() {
  if (planned.size() < function->launches.size())
    planned.resize(function->launches.size());
  bool mayOverlap = false;
  for (const Launch &launch : function->launches) {
    const size_t before = plannedCount;
    if (Error error = prepareLaunch(launch))
      return error;
    const bool runs = plannedCount != before;
    if (runs)
      planned[before].config.overlapPrevious = mayOverlap;
    // A launch must not overlap the one before a skipped launch: the two were
    // never promised to be independent.
    mayOverlap = runs && launch.overlapNext;
  }
  return Error::success();
}

Error LaunchPlan::prepare(const Function &newFunction,
                          const Buffers &newBuffers,
                          const Capacity &newCapacity) {
  function = &newFunction;
  buffers = newBuffers;
  capacity = newCapacity;
  fills.clear();
  plannedCount = 0;

  Error error = checkBuffers();
  if (!error) {
    findPieces();
    error = prepareTemporaries();
  }
  if (!error)
    error = prepareLaunches();
  if (error) {
    fills.clear();
    plannedCount = 0;
  }
  return error;
}

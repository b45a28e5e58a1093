//===- LaunchPlan.cpp - From tensors to packed launches -------------------===//

#include "bastile/runtime/LaunchPlan.h"
#include "Text.h"
#include "bastile/runtime/Shapes.h"

using namespace bastile::runtime;

const TensorView &LaunchPlan::view(const Operand &operand) const {
  switch (operand.kind) {
  case Operand::Kind::Input:
    return buffers.inputs[operand.index];
  case Operand::Kind::Output:
    return buffers.outputs[operand.index];
  case Operand::Kind::Temporary:
    break;
  }
  return buffers.temporaries[operand.index];
}

std::string LaunchPlan::prefix(const Launch &launch) const {
  return concat("function '", function->name, "': kernel '", launch.kernel,
                "': ");
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Checks that the row operands have the same leading sizes and that the rest
/// are contiguous: a kernel is given no strides for those.
Error LaunchPlan::checkOperands(const Launch &launch) const {
  const Operand *first = nullptr;
  for (const Operand &operand : launch.operands) {
    const TensorView &tensor = view(operand);
    if (!operand.rows) {
      if (!tensor.isContiguous())
        return makeError(prefix(launch), describe(*function, operand),
                         " of shape ", print(tensor.sizes), " has strides ",
                         print(tensor.strides), ", expected contiguous");
      continue;
    }
    if (!first)
      first = &operand;
    const Dimensions &sizes = view(*first).sizes;
    if (!std::equal(sizes.begin(), sizes.begin() + launch.leading,
                    tensor.sizes.begin()))
      return makeError(
          prefix(launch), describe(*function, *first), " has shape ",
          print(sizes), ", but ", describe(*function, operand), " has shape ",
          print(tensor.sizes), ": all but the last size must agree");
  }
  return Error::success();
}

Error LaunchPlan::countRows(const Launch &launch, int64_t &rows) const {
  rows = 1;
  for (const Operand &operand : launch.operands) {
    if (!operand.rows)
      continue;
    const Dimensions &sizes = view(operand).sizes;
    // A zero settles the product, however large the other sizes are.
    const int64_t *end = sizes.begin() + launch.leading;
    if (std::find(sizes.begin(), end, 0) != end) {
      rows = 0;
      return Error::success();
    }
    for (const int64_t *size = sizes.begin(); size != end; ++size)
      if (__builtin_mul_overflow(rows, *size, &rows))
        return makeError(prefix(launch), describe(*function, operand),
                         " of shape ", print(sizes), " has too many rows");
    break;
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

/// Whether a step in a dimension of stride `outer` is the same as `size` steps
/// of stride `inner`.
static bool isMergeable(int64_t outer, int64_t inner, int64_t size) {
  int64_t distance;
  return !__builtin_mul_overflow(inner, size, &distance) && distance == outer;
}

/// Merges the leading dimensions as far as the strides of all row operands
/// allow. The result does not depend on the order of merging.
void LaunchPlan::mergeLeading(const Launch &launch) {
  const unsigned operandCount = launch.operands.size();
  leadingSizes.clear();
  // Never shrunk, so that the next call finds the memory.
  if (leadingStrides.size() < operandCount)
    leadingStrides.resize(operandCount);
  for (Dimensions &strides : leadingStrides)
    strides.clear();

  const Operand *first = nullptr;
  for (const Operand &operand : launch.operands)
    if (operand.rows && !first)
      first = &operand;
  if (!first)
    return;

  for (unsigned d = 0; d != launch.leading; ++d) {
    const int64_t size = view(*first).sizes[d];
    if (size == 1)
      continue;
    bool merge = !leadingSizes.empty();
    for (unsigned k = 0; merge && k != operandCount; ++k)
      if (launch.operands[k].rows)
        merge = isMergeable(leadingStrides[k].back(),
                            view(launch.operands[k]).strides[d], size);
    if (merge)
      leadingSizes.back() *= size;
    else
      leadingSizes.push_back(size);
    for (unsigned k = 0; k != operandCount; ++k) {
      if (!launch.operands[k].rows)
        continue;
      const int64_t stride = view(launch.operands[k]).strides[d];
      if (merge)
        leadingStrides[k].back() = stride;
      else
        leadingStrides[k].push_back(stride);
    }
  }
}

/// Whether `variant` can take the operands. If not and `reason` is given, says
/// why there.
bool LaunchPlan::admits(const Launch &launch, const Variant &variant,
                        std::string *reason) const {
  if (leadingSizes.size() > variant.leading) {
    if (reason)
      *reason = concat("'", variant.entry, "' walks ", variant.leading,
                       " leading dimensions, but these strides need ",
                       leadingSizes.size());
    return false;
  }
  for (unsigned k = 0; k != launch.operands.size(); ++k) {
    const TensorView &tensor = view(launch.operands[k]);
    // A power of two divides all of these if it divides their union.
    int64_t bits = reinterpret_cast<intptr_t>(tensor.data);
    for (int64_t stride : leadingStrides[k])
      bits |= stride * byteSize(tensor.type);
    if ((bits & (variant.alignment[k] - 1)) == 0)
      continue;
    if (reason)
      *reason = concat("'", variant.entry, "' needs ",
                       describe(*function, launch.operands[k]),
                       " and its rows aligned to ", variant.alignment[k],
                       " bytes, but it is at ", tensor.data, " with strides ",
                       print(tensor.strides));
    return false;
  }
  return true;
}

Error LaunchPlan::chooseVariant(const Launch &launch,
                                const Variant *&choice) const {
  for (const Variant &variant : launch.variants) {
    if (admits(launch, variant, /*reason=*/nullptr)) {
      choice = &variant;
      return Error::success();
    }
  }
  std::string reason;
  (void)admits(launch, launch.variants.back(), &reason);
  return makeError(prefix(launch), "no variant takes these operands: ", reason);
}

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

void LaunchPlan::pack(const Launch &launch, const Variant &variant,
                      PlannedLaunch &result) const {
  // A variant that walks more dimensions than there are left is given sizes
  // of 1 in front.
  const unsigned padding = variant.leading - leadingSizes.size();
  result.variant = &variant;
  result.values.clear();
  for (const Argument &argument : variant.arguments) {
    const unsigned d = argument.dimension;
    switch (argument.kind) {
    case Argument::Kind::Size:
      result.values.push_back(d < padding ? 1 : leadingSizes[d - padding]);
      break;
    case Argument::Kind::Pointer:
      result.values.push_back(reinterpret_cast<intptr_t>(
          view(launch.operands[argument.operand]).data));
      break;
    case Argument::Kind::Stride:
      result.values.push_back(
          d < padding ? 0 : leadingStrides[argument.operand][d - padding]);
      break;
    }
  }
  result.arguments.clear();
  for (int64_t &value : result.values)
    result.arguments.push_back(&value);
}

/// Whether the launch would read what a skipped launch did not write.
bool LaunchPlan::lacksContents(const Launch &launch) const {
  for (const Operand &operand : launch.operands)
    if (operand.kind == Operand::Kind::Temporary &&
        temporaryContents[operand.index] == Contents::Missing)
      return true;
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
    if (operand.kind == Operand::Kind::Temporary &&
        temporaryContents[operand.index] == Contents::None)
      temporaryContents[operand.index] = Contents::Missing;
    if (operand.kind == Operand::Kind::Output &&
        function->outputs[operand.index].zeroIfNoRows)
      if (Error error = addFill(operand))
        return error;
  }
  return Error::success();
}

Error LaunchPlan::prepareLaunch(const Launch &launch) {
  if (Error error = checkOperands(launch))
    return error;
  int64_t rows = 0;
  if (Error error = countRows(launch, rows))
    return error;
  if (rows == 0 || lacksContents(launch))
    return skip(launch);

  mergeLeading(launch);
  const Variant *variant = nullptr;
  if (Error error = chooseVariant(launch, variant))
    return error;
  std::optional<int64_t> grid =
      variant->grid.evaluate({rows, multiprocessors, buffers.inputs});
  if (!grid)
    return makeError(prefix(launch), "the grid of '", variant->entry,
                     "' overflows or divides by zero");
  if (*grid == 0)
    return skip(launch);
  if (*grid % variant->cluster != 0)
    return makeError(prefix(launch), "the grid of '", variant->entry, "', ",
                     *grid, " blocks, is no multiple of its cluster of ",
                     variant->cluster);
  if (Error error = checkPointers(launch))
    return error;

  PlannedLaunch &result = planned[plannedCount++];
  pack(launch, *variant, result);
  result.config = {*grid, variant->block, variant->cluster,
                   variant->sharedMemory, /*overlapPrevious=*/false};
  for (const Operand &operand : launch.operands)
    if (operand.kind == Operand::Kind::Temporary)
      temporaryContents[operand.index] = Contents::Defined;
  return Error::success();
}

Error LaunchPlan::checkBuffers() const {
  if (Error error = checkInputs(*function, buffers.inputs))
    return error;
  if (Error error = checkOutputs(*function, buffers.inputs, buffers.outputs,
                                 multiprocessors))
    return error;
  return checkTemporaries(*function, buffers.inputs, buffers.temporaries,
                          multiprocessors);
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
    // A launch must not overlap whatever ran before a skipped one: nobody
    // promised that for those two.
    mayOverlap = runs && launch.overlapNext;
  }
  return Error::success();
}

Error LaunchPlan::prepare(const Function &newFunction,
                          const Buffers &newBuffers,
                          int64_t newMultiprocessors) {
  function = &newFunction;
  buffers = newBuffers;
  multiprocessors = newMultiprocessors;
  fills.clear();
  plannedCount = 0;

  Error error = checkBuffers();
  if (!error)
    error = prepareTemporaries();
  if (!error)
    error = prepareLaunches();
  if (error) {
    fills.clear();
    plannedCount = 0;
  }
  return error;
}

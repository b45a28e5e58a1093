//===- Shapes.cpp - Checking inputs, resolving output shapes --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/Shapes.h"
#include "runtime/Text.h"
#include "runtime/launch/DimensionOrder.h"
#include "runtime/metadata/OperandName.h"

#include <numeric>

using namespace bastile::runtime;

/// The beginning of every message about an operand of a function.
static std::string prefix(const Function &function, const Operand &operand) {
  return concat("function '", function.name,
                "': ", describe(function, operand));
}

static Error checkCount(const Function &function, const char *what,
                        size_t expected, size_t given) {
  if (expected == given)
    return Error::success();
  return makeError("function '", function.name, "': expected ", expected, " ",
                   what, ", got ", given);
}

/// Checks the properties of a view that do not depend on the expected shape.
static Error checkView(const Function &function, const Operand &operand,
                       const TensorView &view, ElementType type, bool strided) {
  if (view.type != type)
    return makeError(prefix(function, operand), " has type ", name(view.type),
                     ", expected ", name(type));
  if (view.strides.size() != view.rank())
    return makeError(prefix(function, operand), " has ", view.rank(),
                     " sizes, but ", view.strides.size(), " strides");
  if (!strided && view.rank() != 0 && view.sizes.back() != 1 &&
      view.strides.back() != 1)
    return makeError(prefix(function, operand), " has stride ",
                     view.strides.back(), " in its last dimension, expected 1");
  return Error::success();
}

static Error checkBytes(const Function &function, const Operand &operand,
                        ElementType type, const Dimensions &sizes) {
  if (countBytes(type, sizes))
    return Error::success();
  return makeError(prefix(function, operand), " of shape ", print(sizes),
                   " has more bytes than an address counts");
}

/// Whether the elements of a view, whose bytes can be counted, lie so far apart
/// that no address reaches all of them.
static bool isTooWide(const TensorView &view) {
  if (view.elementCount() == 0)
    return false;
  int64_t width = byteSize(view.type);
  for (unsigned i = 0; i != view.rank(); ++i) {
    int64_t distance;
    if (view.sizes[i] == 1)
      continue;
    if (__builtin_mul_overflow(view.sizes[i] - 1, view.strides[i], &distance) ||
        __builtin_mul_overflow(distance, byteSize(view.type), &distance))
      return true;
    if (distance < 0 ? __builtin_sub_overflow(width, distance, &width)
                     : __builtin_add_overflow(width, distance, &width))
      return true;
  }
  return false;
}

/// Checks that the numbers that the runtime computes from a view's sizes and
/// strides fit their types.
static Error checkExtent(const Function &function, const Operand &operand,
                         const TensorView &view) {
  if (Error error = checkBytes(function, operand, view.type, view.sizes))
    return error;
  if (!isTooWide(view))
    return Error::success();
  return makeError(prefix(function, operand), " of shape ", print(view.sizes),
                   " has strides ", print(view.strides),
                   ", further apart than an address reaches");
}

static bool matches(const std::vector<std::optional<int64_t>> &shape,
                    const Dimensions &sizes) {
  if (shape.size() != sizes.size())
    return false;
  for (unsigned i = 0; i != sizes.size(); ++i)
    if (sizes[i] < 0 || (shape[i] && *shape[i] != sizes[i]))
      return false;
  return true;
}

Error bastile::runtime::checkInputs(const Function &function,
                                    Span<const TensorView> inputs) {
  if (Error error =
          checkCount(function, "inputs", function.inputs.size(), inputs.size()))
    return error;
  for (unsigned i = 0; i != inputs.size(); ++i) {
    const InputSpec &spec = function.inputs[i];
    Operand operand = {Operand::Kind::Input, i};
    if (Error error =
            checkView(function, operand, inputs[i], spec.type, spec.strided))
      return error;
    if (!matches(spec.shape, inputs[i].sizes))
      return makeError(prefix(function, operand), " has shape ",
                       print(inputs[i].sizes), ", expected ",
                       print(spec.shape));
    if (Error error = checkExtent(function, operand, inputs[i]))
      return error;
  }
  return Error::success();
}

/// Computes the shape of an output or temporary from checked inputs.
static Error resolve(const Function &function, const Operand &operand,
                     const BufferSpec &spec, const ExpressionContext &context,
                     Dimensions &result) {
  result.clear();
  for (const Expression &size : spec.shape) {
    std::optional<int64_t> value = size.evaluate(context);
    if (!value)
      return makeError(prefix(function, operand), ": size ", result.size(),
                       " overflows or divides by zero");
    result.push_back(*value);
  }
  return checkBytes(function, operand, spec.type, result);
}

static Error resolveAll(const Function &function, Operand::Kind kind,
                        const std::vector<BufferSpec> &specs,
                        const ExpressionContext &context,
                        std::vector<Dimensions> &results) {
  results.resize(specs.size());
  for (unsigned i = 0; i != specs.size(); ++i)
    if (Error error =
            resolve(function, {kind, i}, specs[i], context, results[i]))
      return error;
  return Error::success();
}

Error bastile::runtime::resolveShapes(const Function &function,
                                      Span<const TensorView> inputs,
                                      const Capacity &capacity,
                                      ResolvedShapes &result) {
  if (Error error = checkInputs(function, inputs))
    return error;
  ExpressionContext context = {/*rows=*/{}, capacity, inputs};
  if (Error error = resolveAll(function, Operand::Kind::Output,
                               function.outputs, context, result.outputs))
    return error;
  return resolveAll(function, Operand::Kind::Temporary, function.temporaries,
                    context, result.temporaries);
}

/// Whether the strides say in which order the rows of `view` lie.
static bool hasRowsInOrder(const TensorView &view) {
  if (view.sizes.back() != 1 && view.strides.back() != 1)
    return false;
  return view.elementCount() != 0 &&
         std::find(view.strides.begin(), view.strides.end() - 1, 0) ==
             view.strides.end() - 1;
}

/// The input of these sizes, else of these leading sizes, that says in which
/// order its rows lie; null for none.
static const TensorView *findLike(const Dimensions &sizes,
                                  Span<const TensorView> inputs) {
  const TensorView *like = nullptr;
  for (const TensorView &input : inputs) {
    if (input.rank() != sizes.size() ||
        !std::equal(sizes.begin(), sizes.end() - 1, input.sizes.begin()) ||
        !hasRowsInOrder(input))
      continue;
    if (input.sizes.back() == sizes.back())
      return &input;
    if (!like)
      like = &input;
  }
  return like;
}

// The traced operator says ahead of a call what this decides
// (python/bastile/_torch/layouts.py).
Dimensions bastile::runtime::chooseStrides(const Dimensions &sizes,
                                           Span<const TensorView> inputs) {
  Dimensions strides =
      TensorView::contiguous(nullptr, ElementType::I8, sizes).strides;
  if (sizes.size() < 3 || sizes.back() == 1)
    return strides;
  const TensorView *like = findLike(sizes, inputs);
  if (!like)
    return strides;
  Dimensions order;
  for (unsigned d = 0; d + 1 != sizes.size(); ++d)
    insert(order, d, [&](unsigned outer) {
      return like->strides[outer] < like->strides[d];
    });
  int64_t stride = sizes.back();
  for (unsigned place = order.size(); place-- != 0;) {
    strides[order[place]] = stride;
    stride *= sizes[order[place]];
  }
  return strides;
}

/// Checks a buffer that the caller allocated for `operand`.
static Error checkBuffer(const Function &function, const Operand &operand,
                         const BufferSpec &spec,
                         const ExpressionContext &context,
                         const TensorView &view) {
  if (Error error = checkView(function, operand, view, spec.type, spec.strided))
    return error;
  Dimensions expected;
  if (Error error = resolve(function, operand, spec, context, expected))
    return error;
  if (view.sizes != expected)
    return makeError(prefix(function, operand), " has shape ",
                     print(view.sizes), ", expected ", print(expected));
  return checkExtent(function, operand, view);
}

/// Whether elements of `view` share memory because a stride is 0. Inputs may
/// share memory; buffers that are written must not.
static bool repeatsElements(const TensorView &view) {
  // A size of 0 makes the strides further out 0.
  if (std::find(view.sizes.begin(), view.sizes.end(), 0) != view.sizes.end())
    return false;
  for (unsigned i = 0; i != view.rank(); ++i)
    if (view.sizes[i] > 1 && view.strides[i] == 0)
      return true;
  return false;
}

namespace {
/// The bytes from the first to behind the last of a view that has elements,
/// and the distance of which all its rows are multiples apart. Where elements
/// of a row lie apart, each is a row of its own.
struct Extent {
  explicit Extent(const TensorView &view)
      : begin(reinterpret_cast<intptr_t>(view.data)), end(begin) {
    const bool hasRows = view.rank() != 0 && view.strides.back() == 1;
    for (unsigned i = 0; i + hasRows < view.rank(); ++i) {
      if (view.sizes[i] == 1)
        continue;
      const int64_t stride = view.strides[i] * byteSize(view.type);
      step = std::gcd(step, stride);
      (stride < 0 ? begin : end) += (view.sizes[i] - 1) * stride;
    }
    row = (hasRows ? view.sizes.back() : 1) * byteSize(view.type);
    end += row;
  }

  intptr_t begin, end;
  int64_t step = 0, row = 0;
};
} // namespace

/// Whether some byte belongs to rows of both views. Rows that lie between each
/// other, as those of slices of one tensor along its rows do, share none.
static bool shareMemory(const TensorView &a, const TensorView &b) {
  if (a.elementCount() == 0 || b.elementCount() == 0)
    return false;
  const Extent one(a), other(b);
  if (one.end <= other.begin || other.end <= one.begin)
    return false;
  const int64_t step = std::gcd(one.step, other.step);
  if (step == 0)
    return true;
  // How far behind a row of the one a row of the other begins.
  const int64_t distance = ((other.begin - one.begin) % step + step) % step;
  return distance < one.row || distance + other.row > step;
}

/// Checks that output `index`, which lies in the memory of an input, lies just
/// as that input, and that nothing else lies there: a launch may read it after
/// that.
static Error checkPlace(const Function &function, unsigned index,
                        const TensorView &output,
                        Span<const TensorView> inputs) {
  const unsigned place = *function.outputs[index].mayAlias;
  const TensorView &input = inputs[place];
  const std::string what = prefix(function, {Operand::Kind::Output, index}) +
                           " takes the memory of input '" +
                           function.inputs[place].name + "'";
  if (output.data != input.data || output.sizes != input.sizes ||
      output.strides != input.strides)
    return makeError(
        what, ", of shape ", print(input.sizes), " and strides ",
        print(input.strides), ", but begins elsewhere or has shape ",
        print(output.sizes), " and strides ", print(output.strides));
  for (unsigned i = 0; i != inputs.size(); ++i)
    if (i != place && shareMemory(output, inputs[i]))
      return makeError(what, ", and input '", function.inputs[i].name,
                       "' lies there as well; pass a copy of it");
  return Error::success();
}

Error bastile::runtime::checkOutputs(const Function &function,
                                     Span<const TensorView> inputs,
                                     Span<const TensorView> outputs,
                                     const Capacity &capacity) {
  if (Error error = checkCount(function, "outputs", function.outputs.size(),
                               outputs.size()))
    return error;
  ExpressionContext context = {/*rows=*/{}, capacity, inputs};
  for (unsigned i = 0; i != outputs.size(); ++i) {
    const BufferSpec &spec = function.outputs[i];
    Operand operand = {Operand::Kind::Output, i};
    if (Error error = checkBuffer(function, operand, spec, context, outputs[i]))
      return error;
    if (repeatsElements(outputs[i]))
      return makeError(prefix(function, operand), " of shape ",
                       print(outputs[i].sizes), " has strides ",
                       print(outputs[i].strides),
                       ": elements that are written must not share memory");
    if (spec.zeroIfNoRows && !outputs[i].isContiguous())
      return makeError(prefix(function, operand), " of shape ",
                       print(outputs[i].sizes), " has strides ",
                       print(outputs[i].strides), ", expected contiguous");
    if (spec.mayAlias && shareMemory(outputs[i], inputs[*spec.mayAlias]))
      if (Error error = checkPlace(function, i, outputs[i], inputs))
        return error;
  }
  return Error::success();
}

Error bastile::runtime::checkTemporaries(const Function &function,
                                         Span<const TensorView> inputs,
                                         Span<const TensorView> temporaries,
                                         const Capacity &capacity) {
  if (Error error = checkCount(function, "temporaries",
                               function.temporaries.size(), temporaries.size()))
    return error;
  ExpressionContext context = {/*rows=*/{}, capacity, inputs};
  for (unsigned i = 0; i != temporaries.size(); ++i) {
    Operand operand = {Operand::Kind::Temporary, i};
    if (Error error = checkBuffer(function, operand, function.temporaries[i],
                                  context, temporaries[i]))
      return error;
    if (!temporaries[i].isContiguous())
      return makeError(prefix(function, operand), " of shape ",
                       print(temporaries[i].sizes), " has strides ",
                       print(temporaries[i].strides), ", expected contiguous");
  }
  return Error::success();
}

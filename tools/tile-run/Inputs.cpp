//===- Inputs.cpp - The inputs that a function is called on ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Inputs.h"

#include "bastile/runtime/Files.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MathExtras.h"

using namespace bastile;
using namespace bastile::run;
using llvm::StringRef;
using runtime::Dimensions;
using runtime::Error;
using runtime::Expected;
using runtime::Function;
using runtime::InputSpec;
using runtime::NpyArray;

static constexpr int64_t kDefaultRows = 8192;

Expected<NamedValues>
run::parseNamedValues(const std::vector<std::string> &arguments,
                      const std::string &option) {
  NamedValues values;
  for (const std::string &argument : arguments) {
    auto [name, value] = StringRef(argument).split('=');
    if (name.empty() || value.empty())
      return Error("--" + option + " takes name=value, not '" + argument + "'");
    if (!values.emplace(name.str(), value.str()).second)
      return Error("--" + option + " is given twice for '" + name.str() + "'");
  }
  return values;
}

static std::string describe(const InputSpec &spec) {
  return "input '" + spec.name + "'";
}

/// Reads "4x128x2880".
static Expected<Dimensions> parseShape(const InputSpec &spec,
                                       const std::string &text) {
  llvm::SmallVector<StringRef> parts;
  StringRef(text).split(parts, 'x');
  Dimensions sizes;
  if (parts.size() != spec.shape.size())
    return Error(describe(spec) + " has " + std::to_string(spec.shape.size()) +
                 " dimensions, but --shape gives it " + text);
  for (StringRef part : parts) {
    int64_t size;
    if (part.getAsInteger(10, size) || size < 0)
      return Error("malformed shape '" + text + "' for " + describe(spec));
    sizes.push_back(size);
  }
  return sizes;
}

Expected<const NpyArray *>
ArrayFiles::load(const std::string &path,
                 const std::vector<runtime::ElementType> &types) {
  auto found = arrays.find(path);
  if (found != arrays.end() && llvm::is_contained(types, found->second.type))
    return &found->second;
  Expected<std::string> contents = runtime::readFile(path);
  if (!contents)
    return contents.takeError();
  Error error;
  for (runtime::ElementType type : types) {
    Expected<NpyArray> array = runtime::parseNpy(*contents, type);
    if (array)
      return &(arrays[path] = std::move(*array));
    error = Error("'" + path + "': " + array.takeError().message());
  }
  return error;
}

namespace {

/// A shape for one input, from an npy file or the command line.
struct Given {
  const NpyArray *array = nullptr;
  std::optional<Dimensions> sizes;
};

} // namespace

static Expected<Given> getGiven(const InputSpec &spec,
                                const InputOptions &options,
                                ArrayFiles &files) {
  Given given;
  auto file = options.files.find(spec.name);
  auto shape = options.shapes.find(spec.name);
  if (file != options.files.end()) {
    if (shape != options.shapes.end())
      return Error(describe(spec) + " is given both a file and a shape");
    if (options.ranges.count(spec.name))
      return Error(describe(spec) + " is given both a file and a range");
    Expected<const NpyArray *> array = files.load(file->second, {spec.type});
    if (!array)
      return array.takeError();
    const std::vector<int64_t> &shape = (*array)->shape;
    if (shape.size() != spec.shape.size())
      return Error("'" + file->second + "' has " +
                   std::to_string(shape.size()) + " dimensions, but " +
                   describe(spec) + " has " +
                   std::to_string(spec.shape.size()));
    given.sizes = Dimensions(shape.data(), shape.size());
    given.array = *array;
  } else if (shape != options.shapes.end()) {
    Expected<Dimensions> sizes = parseShape(spec, shape->second);
    if (!sizes)
      return sizes.takeError();
    given.sizes = *sizes;
  }
  return given;
}

/// The last dimension in which any input of this rank has a size known only at
/// launch. An input that repeats its rows in that dimension has none there.
static std::optional<unsigned> findRowDimension(const Function &function,
                                                unsigned rank) {
  std::optional<unsigned> last;
  for (const InputSpec &spec : function.inputs)
    for (unsigned i = 0; spec.shape.size() == rank && i != rank; ++i)
      if (!spec.shape[i])
        last = std::max(last.value_or(0), i);
  return last;
}

/// Whether operand `index` of a launch over named dimensions may have gaps
/// between its rows: the last variant takes all its strides, or has it
/// described by a tensor map.
static bool takesGaps(const runtime::Launch &launch, size_t index) {
  if (!launch.hasDimensions() || launch.maps[index].empty())
    return false;
  const unsigned last = launch.maps[index].size() - 1;
  return (launch.variants.back().packed[index] & ((1u << last) - 1)) == 0;
}

bool run::needsNoGaps(const Function &function, runtime::Operand::Kind kind,
                      unsigned index) {
  for (const runtime::Launch &launch : function.launches)
    for (const runtime::Operand &operand : launch.operands)
      if (operand.kind == kind && operand.index == index && !operand.rows &&
          !takesGaps(launch, &operand - launch.operands.data()))
        return true;
  return false;
}

/// The input whose leading size `operand` has.
static std::optional<unsigned> findSource(const Function &function,
                                          const runtime::Operand &operand) {
  using Kind = runtime::Operand::Kind;
  const runtime::Operand &whole = function.whole(operand);
  if (whole.kind == Kind::Input)
    return whole.index;
  const auto &buffers =
      whole.kind == Kind::Output ? function.outputs : function.temporaries;
  const runtime::Expression &size = buffers[whole.index].shape.front();
  if (size.kind != runtime::Expression::Kind::InputSize || size.dimension != 0)
    return std::nullopt;
  return size.input;
}

/// How many rows of other inputs share one row of input `index`: the input
/// itself has a row for each band of them, or a value computed from it has.
static int64_t findBand(const Function &function, unsigned index) {
  for (const runtime::Launch &launch : function.launches)
    for (const runtime::Operand &operand : launch.operands)
      if (operand.band != 0 && findSource(function, operand) == index)
        return operand.band;
  return 1;
}

/// The dimensions of launches over named dimensions that dimension `dimension`
/// of input `index` is.
static llvm::SmallVector<std::pair<const runtime::Launch *, unsigned>>
findNamed(const Function &function, size_t index, unsigned dimension) {
  llvm::SmallVector<std::pair<const runtime::Launch *, unsigned>> found;
  for (const runtime::Launch &launch : function.launches) {
    if (!launch.hasDimensions())
      continue;
    for (auto [operand, map] : llvm::zip_equal(launch.operands, launch.maps))
      if (operand.kind == runtime::Operand::Kind::Input &&
          operand.index == index && map[dimension].dimension)
        found.emplace_back(&launch, *map[dimension].dimension);
  }
  return found;
}

/// Chooses the size of dimension `dimension` of input `index`: that of another
/// input which is given and has the same named dimension there. Otherwise the
/// first dimension of a launch is taken for the rows. Nothing if the dimension
/// has no name.
static std::optional<int64_t> chooseNamed(const Function &function,
                                          size_t index, unsigned dimension,
                                          const std::vector<Given> &all,
                                          const InputOptions &options) {
  auto names = findNamed(function, index, dimension);
  if (names.empty())
    return std::nullopt;
  const bool isRows = names.front().second == 0;
  if (isRows && options.rows)
    return *options.rows;
  if (all[index].sizes)
    return (*all[index].sizes)[dimension];
  for (size_t other = 0; other != all.size(); ++other)
    for (unsigned d = 0; all[other].sizes && d != all[other].sizes->size(); ++d)
      if (llvm::any_of(findNamed(function, other, d), [&](const auto &name) {
            return llvm::is_contained(names, name);
          }))
        return (*all[other].sizes)[d];
  return isRows ? kDefaultRows : 1;
}

/// Chooses the sizes of input `index`; `given` has the sizes given for all
/// inputs.
static Dimensions chooseSizes(const Function &function, size_t index,
                              const std::vector<Given> &all,
                              const InputOptions &options) {
  const InputSpec &spec = function.inputs[index];
  const Given &given = all[index];
  const int64_t band = findBand(function, index);
  const std::optional<Dimensions> *source = &given.sizes;
  for (size_t other = 0; other != all.size(); ++other)
    if (!*source && all[other].sizes &&
        all[other].sizes->size() == spec.shape.size() &&
        findBand(function, other) == 1)
      source = &all[other].sizes;
  std::optional<unsigned> rowDimension =
      findRowDimension(function, spec.shape.size());
  Dimensions sizes;
  for (unsigned i = 0; i != spec.shape.size(); ++i) {
    if (!spec.shape[i])
      if (auto size = chooseNamed(function, index, i, all, options)) {
        sizes.push_back(*size);
        continue;
      }
    bool isRows = rowDimension == i && !spec.shape[i];
    if (given.sizes && !(isRows && options.rows))
      sizes.push_back((*given.sizes)[i]);
    else if (spec.shape[i])
      sizes.push_back(*spec.shape[i]);
    else if (isRows && options.rows)
      sizes.push_back(llvm::divideCeil(*options.rows, band));
    else if (*source)
      sizes.push_back(llvm::divideCeil((**source)[i], band));
    else
      sizes.push_back(isRows ? llvm::divideCeil(kDefaultRows, band) : 1);
  }
  return sizes;
}

Error run::setLeadingElements(Tensor &tensor, const NpyArray &array,
                              const std::string &file) {
  const Dimensions &sizes = tensor.sizes();
  bool matches = array.shape.size() == sizes.size();
  for (unsigned i = 0; matches && i != sizes.size(); ++i)
    matches = i == 0 ? array.shape[i] >= sizes[i] : array.shape[i] == sizes[i];
  if (!matches)
    return Error("the shape of '" + file + "' does not fit");
  tensor.setElements(array.data.data());
  return Error::success();
}

/// Reads a range of integers, as in "-4:4".
static Expected<IntegerRange> parseRange(const InputSpec &spec,
                                         const std::string &text) {
  if (runtime::isFloat(spec.type))
    return Error(describe(spec) + " is of " +
                 std::string(runtime::name(spec.type)) +
                 ", but --range is for integers");
  auto [low, high] = StringRef(text).split(':');
  IntegerRange range;
  if (low.getAsInteger(10, range.low) || high.getAsInteger(10, range.high))
    return Error("malformed range '" + text + "' for " + describe(spec) +
                 ", expected low:high");
  if (range.low >= range.high)
    return Error("the range " + text + " for " + describe(spec) + " is empty");
  if (!holds(spec.type, range))
    return Error("the range " + text + " for " + describe(spec) +
                 " is beyond " + std::string(runtime::name(spec.type)));
  return range;
}

/// Makes the elements of an input without a file.
static Expected<std::vector<char>> makeElements(const InputSpec &spec,
                                                int64_t count,
                                                const InputOptions &options,
                                                uint64_t seed) {
  IntegerRange range;
  auto given = options.ranges.find(spec.name);
  if (given != options.ranges.end()) {
    Expected<IntegerRange> parsed = parseRange(spec, given->second);
    if (!parsed)
      return parsed.takeError();
    range = *parsed;
  }
  if (runtime::isFloat(spec.type))
    return makeRandomElements(spec.type, count, seed);
  return makeRandomIntegers(spec.type, count, range, seed);
}

/// Fails if a name that was given is none of the function's inputs.
static Error checkNames(const Function &function, const NamedValues &values) {
  for (const auto &[name, value] : values) {
    bool found = false;
    for (const InputSpec &spec : function.inputs)
      found |= spec.name == name;
    if (!found)
      return Error("function '" + function.name + "' has no input '" + name +
                   "'");
  }
  return Error::success();
}

Expected<std::vector<Tensor>> run::makeInputs(const Function &function,
                                              const InputOptions &options,
                                              ArrayFiles &files) {
  for (const NamedValues *values :
       {&options.files, &options.shapes, &options.ranges})
    if (Error error = checkNames(function, *values))
      return error;
  std::vector<Given> given;
  for (const InputSpec &spec : function.inputs) {
    Expected<Given> one = getGiven(spec, options, files);
    if (!one)
      return one.takeError();
    given.push_back(*one);
  }

  std::vector<Tensor> inputs;
  for (size_t i = 0; i != given.size(); ++i) {
    const InputSpec &spec = function.inputs[i];
    Dimensions sizes = chooseSizes(function, i, given, options);
    Placement placement = options.placement;
    if (needsNoGaps(function, runtime::Operand::Kind::Input, i))
      placement = placement.withoutGaps();
    if (Error error = checkMemory(describe(spec), spec.type, sizes, placement))
      return error;
    Tensor &input = inputs.emplace_back(spec.type, sizes, placement);
    if (const NpyArray *array = given[i].array) {
      if (Error error =
              setLeadingElements(input, *array, options.files.at(spec.name)))
        return error;
      continue;
    }
    // Every input gets numbers of its own.
    auto elements = makeElements(spec, input.elementCount(), options,
                                 options.seed * 1000 + i);
    if (!elements)
      return elements.takeError();
    input.setElements(elements->data());
  }
  return inputs;
}

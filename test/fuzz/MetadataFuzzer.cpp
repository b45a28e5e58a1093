//===- MetadataFuzzer.cpp - Metadata, and calls of what it describes ------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// Reads any text as metadata. Metadata that is accepted is called: shapes are
// resolved and launches planned for tensors of many sizes and strides, whose
// memory nothing touches.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/LaunchPlan.h"
#include "bastile/runtime/Metadata.h"
#include "bastile/runtime/Shapes.h"

#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

using namespace bastile::runtime;
using nlohmann::json;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

static constexpr int64_t sizes[] = {
    0, 1, 2, 3, 7, 8, 128, int64_t(1) << 31, int64_t(1) << 40, INT64_MAX};

namespace {

/// A GPU on which every variant may run.
class AbleGpu final : public GpuTraits {
public:
  int64_t countClusters(int64_t) const override { return 66; }
  bool has(Feature) const override { return true; }
  std::string explainLack(Feature) const override { return ""; }
};

class Caller {
public:
  Caller(const Function &function, unsigned seed)
      : function(function), random(seed) {}

  void call() {
    const AbleGpu gpu;
    const Capacity capacity(choose({1, 2, 132, INT64_MAX}),
                            random() % 2 == 0 ? &gpu : nullptr);
    common = sizes[random() % std::size(sizes)];
    for (const InputSpec &input : function.inputs)
      inputs.push_back(makeInput(input));
    ResolvedShapes shapes;
    if (resolveShapes(function, inputs, capacity, shapes))
      return;
    for (size_t i = 0; i != shapes.outputs.size(); ++i)
      outputs.push_back(place(function.outputs[i].type, shapes.outputs[i]));
    for (size_t i = 0; i != shapes.temporaries.size(); ++i)
      temporaries.push_back(
          place(function.temporaries[i].type, shapes.temporaries[i]));
    LaunchPlan plan;
    if (plan.prepare(function, {inputs, outputs, temporaries}, capacity))
      return;
    for (const PlannedLaunch &launch : plan.launches()) {
      if (launch.config.grid < 1 ||
          launch.values.size() != launch.variant->arguments.size() ||
          launch.arguments.size() != launch.values.size())
        std::abort();
      for (const PlannedTensorMap &map : launch.maps)
        if (map.spec.sizes[map.spec.rank - 1] < 1)
          std::abort();
    }
    for (const ZeroFill &fill : plan.zeroFills())
      if (fill.bytes < 1)
        std::abort();
  }

private:
  int64_t choose(std::initializer_list<int64_t> values) {
    return values.begin()[random() % values.size()];
  }

  /// Makes an address, aligned or not.
  void *address() {
    return reinterpret_cast<void *>(
        static_cast<intptr_t>(4096 + random() % 64 * choose({1, 16, 64})));
  }

  TensorView place(ElementType type, const Dimensions &shape) {
    return TensorView::contiguous(address(), type, shape);
  }

  TensorView makeInput(const InputSpec &spec) {
    Dimensions shape;
    for (const std::optional<int64_t> &size : spec.shape)
      shape.push_back(size                ? *size
                      : random() % 2 == 0 ? common
                                          : sizes[random() % std::size(sizes)]);
    TensorView view = place(spec.type, shape);
    if (spec.strided && random() % 4 == 0)
      view.strides.back() = choose({0, 2, 8, -1, INT64_MAX});
    if (view.rank() > 1 && random() % 3 == 0)
      view.strides[random() % (view.rank() - 1)] =
          choose({0, 1, 24, -8, INT64_MAX, INT64_MIN});
    return view;
  }

  const Function &function;
  std::minstd_rand random;
  /// A size that many dimensions have.
  int64_t common = 0;
  std::vector<TensorView> inputs, outputs, temporaries;
};

/// Exchanges, copies and removes values of a document.
class DocumentMutator {
public:
  explicit DocumentMutator(unsigned seed) : random(seed) {}

  void mutate(json &document) {
    std::vector<json *> nodes;
    collect(document, nodes);
    json &node = *nodes[random() % nodes.size()];
    switch (random() % 6) {
    case 0:
    case 1:
      node = makeValue();
      break;
    case 2:
      node = json(*nodes[random() % nodes.size()]);
      break;
    case 3:
      node = json{{choose({"add", "mul", "min", "max", "ceildiv"}),
                   json::array({json(node), makeValue()})}};
      break;
    case 4:
      edit(node);
      break;
    case 5:
      if (node.is_number_integer())
        node = static_cast<int64_t>(node.get<uint64_t>() + random() % 5 - 2);
      break;
    }
  }

private:
  const char *choose(std::initializer_list<const char *> values) {
    return values.begin()[random() % values.size()];
  }

  static void collect(json &value, std::vector<json *> &nodes) {
    nodes.push_back(&value);
    if (value.is_structured())
      for (json &nested : value)
        collect(nested, nodes);
  }

  json makeValue() {
    static const int64_t integers[] = {0,
                                       1,
                                       2,
                                       3,
                                       8,
                                       16,
                                       384,
                                       -1,
                                       INT32_MAX,
                                       int64_t(1) << 32,
                                       int64_t(1) << 62,
                                       INT64_MAX,
                                       INT64_MIN};
    switch (random() % 6) {
    case 0:
      return nullptr;
    case 1:
      return random() % 2 == 0;
    case 2:
      return choose({"rows", "multiprocessors", "", "f32", "bf16", "i1",
                     "runtime", "nobody"});
    case 3:
      return json{{choose({"input", "output", "temporary", "rows", "clusters",
                           "pointer", "stride", "size"}),
                   integers[random() % std::size(integers)]},
                  {"dimension", random() % 3}};
    default:
      return integers[random() % std::size(integers)];
    }
  }

  /// Removes an element of an array or object, or repeats one of an array.
  void edit(json &node) {
    if (!node.is_structured() || node.empty())
      return;
    auto element = std::next(node.begin(), random() % node.size());
    if (node.is_array() && random() % 2 == 0)
      node.push_back(json(*element));
    else
      node.erase(element);
  }

  std::minstd_rand random;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  Expected<Metadata> metadata = parseMetadata(text);
  if (!metadata)
    return 0;
  for (const Function &function : metadata->functions)
    for (unsigned seed = 1; seed != 9; ++seed)
      Caller(function, seed).call();
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  json document = json::parse(data, data + size, /*cb=*/nullptr,
                              /*allow_exceptions=*/false);
  if (document.is_discarded() || seed % 8 == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  DocumentMutator mutator(seed);
  for (unsigned count = 1 + seed / 8 % 3; count != 0; --count)
    mutator.mutate(document);
  const std::string text =
      document.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > maxSize)
    return size;
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

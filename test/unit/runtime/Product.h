//===- Product.h - A launch over named dimensions ---------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TEST_UNIT_RUNTIME_PRODUCT_H
#define BASTILE_TEST_UNIT_RUNTIME_PRODUCT_H

#include "Support.h"

namespace bastile::runtime {

/// A product of matrices and a vector that is added to its rows. It has a
/// variant with tensor maps, one that takes rows of aligned strides, and one
/// that takes any stride.
inline const char *const product = R"({
  "name": "product",
  "inputs": [{"name": "x", "type": "bf16", "shape": [null, null]},
             {"name": "w", "type": "bf16", "shape": [null, null]},
             {"name": "bias", "type": "f32", "shape": [null]}],
  "outputs": [{"name": "y", "type": "bf16",
               "shape": [{"input": 0, "dimension": 0},
                         {"input": 1, "dimension": 0}]}],
  "launches": [{
    "kernel": "product",
    "dimensions": ["m", "n", "k"],
    "operands": [{"input": 0, "map": ["m", "k"]},
                 {"input": 1, "map": ["n", "k"]},
                 {"input": 2, "map": ["n"]},
                 {"output": 0, "map": ["m", "n"]}],
    "variants": [
      {"entry": "product_wgmma", "alignment": [16, 16, 4, 16],
       "arguments": [{"size": "m"}, {"size": "n"}, {"size": "k"},
                     {"tensor_map": 0, "box": [128, 64], "swizzle": 128},
                     {"tensor_map": 1, "box": [256, 64], "swizzle": 128},
                     {"pointer": 2},
                     {"pointer": 3}, {"stride": 3, "dimension": 0}],
       "grid": {"mul": [2, {"min": [
         {"clusters": 2},
         {"mul": [{"ceildiv": [{"size": "m"}, 256]},
                  {"ceildiv": [{"size": "n"}, 256]}]}]}]},
       "block": 384, "cluster": 2, "shared_memory": 212992,
       "requires": ["wgmma"]},
      {"entry": "product_rows", "alignment": [16, 16, 4, 16],
       "arguments": [{"size": "k"},
                     {"pointer": 0}, {"stride": 0, "dimension": 0},
                     {"pointer": 1}, {"stride": 1, "dimension": 0},
                     {"pointer": 2}, {"pointer": 3}],
       "grid": {"mul": [{"ceildiv": [{"size": "m"}, 128]},
                        {"ceildiv": [{"size": "n"}, 128]}]},
       "block": 128},
      {"entry": "product_strided", "alignment": [2, 2, 4, 2],
       "arguments": [{"size": "m"}, {"size": "n"}, {"size": "k"},
                     {"pointer": 0}, {"stride": 0, "dimension": 0},
                     {"stride": 0, "dimension": 1},
                     {"pointer": 1}, {"stride": 1, "dimension": 0},
                     {"pointer": 2},
                     {"pointer": 3}, {"stride": 3, "dimension": 0}],
       "grid": {"mul": [{"ceildiv": [{"size": "m"}, 64]},
                        {"ceildiv": [{"size": "n"}, 64]}]},
       "block": 64}]}]})";

/// A GPU that has what it is told to have.
class FakeGpu final : public GpuTraits {
public:
  explicit FakeGpu(bool hasAll = true) : hasAll(hasAll) {}

  int64_t countClusters(int64_t blocks) const override { return 132 / blocks; }
  bool has(Feature) const override { return hasAll; }
  std::string explainLack(Feature) const override {
    return "which the fake lacks";
  }

private:
  bool hasAll;
};

/// Plans the product of matrices that lie contiguously, unless changed.
class ProductPlan {
public:
  ProductPlan(int64_t m, int64_t n, int64_t k)
      : inputs{make(0x10000, {m, k}), make(0x20000, {n, k}),
               TensorView::contiguous(fakeAddress(0x30000), ElementType::F32,
                                      {n})},
        outputs{make(0x40000, {m, n})} {}

  static TensorView make(intptr_t address, const Dimensions &sizes) {
    return TensorView::contiguous(fakeAddress(address), ElementType::BF16,
                                  sizes);
  }

  Error prepare() {
    return plan.prepare(function, {inputs, outputs, {}}, Capacity(132, &gpu));
  }
  /// The variant that is chosen; empty if nothing is launched.
  std::string entry() {
    EXPECT_OK(prepare());
    return plan.launches().empty() ? "" : launch().variant->entry;
  }
  PlannedLaunch &launch() { return plan.launches()[0]; }

  Function function = parseFunction(product);
  std::vector<TensorView> inputs, outputs;
  FakeGpu gpu;
  LaunchPlan plan;
};

} // namespace bastile::runtime

#endif // BASTILE_TEST_UNIT_RUNTIME_PRODUCT_H

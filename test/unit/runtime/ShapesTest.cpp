//===- ShapesTest.cpp -----------------------------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/Shapes.h"
#include "Support.h"

using namespace bastile::runtime;

namespace {

Function makeNorm() {
  return parseFunction(R"({
    "name": "norm",
    "inputs": [{"name": "x", "type": "bf16", "shape": [null, null, 16]},
               {"name": "weight", "type": "f32", "shape": [16]}],
    "outputs": [{"name": "y", "type": "bf16",
                 "shape": [{"input": 0, "dimension": 0},
                           {"input": 0, "dimension": 1}, 16]},
                {"name": "total", "type": "f32", "shape": [16],
                 "zero_if_no_rows": true}],
    "temporaries": [{"type": "f32",
                     "shape": [{"mul": [{"input": 0, "dimension": 1}, 2]}, 1]}],
    "launches": []})");
}

struct Norm {
  Error prepare() const {
    LaunchPlan plan;
    return plan.prepare(function, {inputs, outputs, temporaries}, 1);
  }

  Function function = makeNorm();
  void *data = fakeAddress(0x1000);
  std::vector<TensorView> inputs = {
      TensorView::contiguous(data, ElementType::BF16, {3, 5, 16}),
      TensorView::contiguous(data, ElementType::F32, {16})};
  std::vector<TensorView> outputs = {
      TensorView::contiguous(data, ElementType::BF16, {3, 5, 16}),
      TensorView::contiguous(data, ElementType::F32, {16})};
  std::vector<TensorView> temporaries = {
      TensorView::contiguous(data, ElementType::F32, {10, 1})};
};

TEST(ShapesTest, resolvesFromInputs) {
  Norm norm;
  ResolvedShapes shapes;
  ASSERT_OK(resolveShapes(norm.function, norm.inputs, 1, shapes));
  EXPECT_EQ(shapes.outputs[0], (Dimensions{3, 5, 16}));
  EXPECT_EQ(shapes.outputs[1], (Dimensions{16}));
  EXPECT_EQ(shapes.temporaries[0], (Dimensions{10, 1}));
  EXPECT_OK(norm.prepare());
}

TEST(ShapesTest, reportsOverflow) {
  Norm norm;
  norm.inputs[0] = {nullptr, ElementType::BF16, {0, INT64_MAX, 16}, {0, 0, 1}};
  ResolvedShapes shapes;
  expectError(resolveShapes(norm.function, norm.inputs, 1, shapes),
              "function 'norm': temporary 0: size 0 overflows");
}

TEST(ShapesTest, reportsSizesWhoseProductOverflows) {
  Function function = parseFunction(R"({
    "name": "wide",
    "inputs": [{"name": "x", "type": "f32", "shape": [null, 4]}],
    "outputs": [{"name": "y", "type": "f32",
                 "shape": [{"input": 0, "dimension": 0}, 4611686018427387904]}],
    "launches": []})");
  std::vector<TensorView> inputs = {
      TensorView::contiguous(fakeAddress(64), ElementType::F32, {8, 4})};
  ResolvedShapes shapes;
  expectError(resolveShapes(function, inputs, 1, shapes),
              "function 'wide': output 'y' of shape [8, 4611686018427387904] "
              "has more bytes than an address counts");
  // Tensors without rows take no bytes.
  inputs = {TensorView::contiguous(nullptr, ElementType::F32, {0, 4})};
  EXPECT_OK(resolveShapes(function, inputs, 1, shapes));
  EXPECT_EQ(
      TensorView::contiguous(nullptr, ElementType::F32, shapes.outputs.front())
          .byteCount(),
      0);
}

TEST(ShapesTest, choosesStridesAsInputsLie) {
  void *data = fakeAddress(0x1000);
  auto makeView = [&](const Dimensions &sizes, const Dimensions &strides) {
    return TensorView{data, ElementType::BF16, sizes, strides};
  };
  auto stridesOf = [](const Dimensions &sizes,
                      const std::vector<TensorView> &inputs) {
    return chooseStrides(sizes, inputs);
  };
  const TensorView weight =
      TensorView::contiguous(data, ElementType::F32, {16});
  // Heads that a view put ahead of the sequence, out of packed rows.
  const TensorView heads = makeView({2, 3, 5, 16}, {720, 16, 144, 1});
  const TensorView keys = makeView({2, 1, 7, 16}, {112, 112, 16, 1});
  const TensorView repeated = makeView({2, 3, 5, 16}, {0, 0, 0, 1});
  EXPECT_EQ(stridesOf({2, 3, 5, 16}, {weight, keys, repeated, heads}),
            (Dimensions{240, 16, 48, 1}));
  // Rows of another length lie in the same order.
  EXPECT_EQ(stridesOf({2, 3, 5, 8}, {heads, keys}),
            (Dimensions{120, 8, 24, 1}));
  // The input of the same sizes comes first.
  const TensorView bias =
      TensorView::contiguous(data, ElementType::F32, {2, 3, 5, 7});
  EXPECT_EQ(stridesOf({2, 3, 5, 7}, {heads, bias}), bias.strides);

  // Numbers of rows are row-major, and so is what no input tells an order of.
  EXPECT_EQ(stridesOf({2, 3, 5, 1}, {heads}), (Dimensions{15, 5, 1, 1}));
  EXPECT_EQ(stridesOf({4, 16}, {makeView({4, 16}, {32, 1})}),
            (Dimensions{16, 1}));
  EXPECT_EQ(stridesOf({3, 5, 16}, {makeView({3, 5, 16}, {0, 48, 1})}),
            (Dimensions{80, 16, 1}));
  EXPECT_EQ(stridesOf({3, 5, 16}, {makeView({3, 5, 16}, {1, 3, 15})}),
            (Dimensions{80, 16, 1}));
  EXPECT_EQ(stridesOf({3, 5, 16}, {heads}), (Dimensions{80, 16, 1}));
}

TEST(TensorViewTest, countsBytes) {
  EXPECT_EQ(countBytes(ElementType::BF16, {}), 2);
  EXPECT_EQ(countBytes(ElementType::BF16, {3, 5}), 30);
  EXPECT_EQ(countBytes(ElementType::BF16, {INT64_MAX, INT64_MAX, 0}), 0);
  EXPECT_EQ(countBytes(ElementType::I8, {INT64_MAX}), INT64_MAX);
  EXPECT_EQ(countBytes(ElementType::BF16, {INT64_MAX}), std::nullopt);
  EXPECT_EQ(countBytes(ElementType::BF16, {2, -1}), std::nullopt);
}

TEST(ShapesTest, checksInputs) {
  Norm norm;
  norm.inputs.pop_back();
  expectError(norm.prepare(), "function 'norm': expected 2 inputs, got 1");

  norm = Norm();
  norm.inputs[0].type = ElementType::F16;
  expectError(norm.prepare(),
              "function 'norm': input 'x' has type f16, expected bf16");

  norm = Norm();
  norm.inputs[1] = TensorView::contiguous(norm.data, ElementType::F32, {17});
  expectError(norm.prepare(), "input 'weight' has shape [17], expected [16]");

  norm = Norm();
  norm.inputs[0] = TensorView::contiguous(norm.data, ElementType::BF16, {16});
  expectError(norm.prepare(), "input 'x' has shape [16], expected [?, ?, 16]");

  norm = Norm();
  norm.inputs[0].sizes[0] = -1;
  expectError(norm.prepare(), "input 'x' has shape [-1, 5, 16], expected");

  norm = Norm();
  norm.inputs[0].strides = {80, 1, 5};
  expectError(norm.prepare(),
              "input 'x' has stride 5 in its last dimension, expected 1");

  norm = Norm();
  norm.inputs[0].strides = {16, 1};
  expectError(norm.prepare(), "input 'x' has 3 sizes, but 2 strides");
}

TEST(ShapesTest, checksOutputs) {
  Norm norm;
  norm.outputs[0].sizes = {3, 4, 16};
  expectError(norm.prepare(),
              "output 'y' has shape [3, 4, 16], expected [3, 5, 16]");

  norm = Norm();
  norm.outputs[0].strides = {0, 16, 1};
  expectError(norm.prepare(), "output 'y' of shape [3, 5, 16] has strides "
                              "[0, 16, 1]: elements that are written");

  norm = Norm();
  norm.outputs[0].strides = {16, 48, 1};
  EXPECT_OK(norm.prepare());

  // A tensor without elements shares no memory.
  norm = Norm();
  norm.inputs[0] =
      TensorView::contiguous(norm.data, ElementType::BF16, {3, 0, 16});
  norm.outputs[0] = norm.inputs[0];
  norm.temporaries[0] =
      TensorView::contiguous(norm.data, ElementType::F32, {0, 1});
  EXPECT_OK(norm.prepare());
}

/// A call of a function whose output may take the memory of its first input.
struct Update {
  Error prepare() const {
    LaunchPlan plan;
    return plan.prepare(function, {inputs, outputs, {}}, 1);
  }

  static TensorView view(uintptr_t address, Dimensions sizes,
                         Dimensions strides) {
    return {fakeAddress(address), ElementType::F32, sizes, strides};
  }

  Function function = parseFunction(R"({
    "name": "update",
    "inputs": [{"name": "x", "type": "f32", "shape": [null, 4]},
               {"name": "step", "type": "f32", "shape": [null, 4]}],
    "outputs": [{"name": "y", "type": "f32",
                 "shape": [{"input": 0, "dimension": 0}, 4],
                 "may_alias": 0}],
    "launches": []})");
  std::vector<TensorView> inputs = {view(0x1000, {2, 4}, {4, 1}),
                                    view(0x2000, {2, 4}, {4, 1})};
  std::vector<TensorView> outputs = {inputs[0]};
};

TEST(ShapesTest, checksOutputsInTheMemoryOfInputs) {
  EXPECT_OK(Update().prepare());

  // The step begins at the last number of x.
  Update update;
  update.inputs[1].data = fakeAddress(0x101c);
  expectError(update.prepare(),
              "output 'y' takes the memory of input 'x', and input 'step' lies "
              "there as well; pass a copy of it");
  update.inputs[1].data = fakeAddress(0x1020);
  EXPECT_OK(update.prepare());
  // Somebody who copies may have them in one place.
  update.inputs[1].data = fakeAddress(0x1000);
  update.outputs[0].data = fakeAddress(0x3000);
  EXPECT_OK(update.prepare());

  // Columns of one tensor.
  update = Update();
  update.inputs[0] = Update::view(0x1000, {2, 4}, {8, 1});
  update.inputs[1] = Update::view(0x1010, {2, 4}, {8, 1});
  update.outputs[0] = update.inputs[0];
  EXPECT_OK(update.prepare());
  update.inputs[1].data = fakeAddress(0x100c);
  expectError(update.prepare(), "input 'step' lies there as well");
  update.inputs[1].data = fakeAddress(0x0ff4);
  expectError(update.prepare(), "input 'step' lies there as well");
  update.inputs[1].data = fakeAddress(0x0ff0);
  EXPECT_OK(update.prepare());

  // A row that all rows share, between them or not.
  update.inputs[1] = Update::view(0x1010, {2, 4}, {0, 1});
  EXPECT_OK(update.prepare());
  update.inputs[1] = Update::view(0x1020, {2, 4}, {0, 1});
  expectError(update.prepare(), "input 'step' lies there as well");

  update = Update();
  update.outputs[0].data = fakeAddress(0x1010);
  expectError(update.prepare(), "output 'y' takes the memory of input 'x', of "
                                "shape [2, 4] and strides [4, 1], but begins "
                                "elsewhere");

  // Nothing is overwritten.
  update = Update();
  for (TensorView *view : {&update.inputs[0], &update.inputs[1]})
    *view = Update::view(0x1000, {0, 4}, {4, 1});
  update.outputs[0] = update.inputs[0];
  EXPECT_OK(update.prepare());
}

TEST(ShapesTest, checksTemporaries) {
  Norm norm;
  norm.temporaries.clear();
  expectError(norm.prepare(), "expected 1 temporaries, got 0");

  norm = Norm();
  norm.temporaries[0].strides = {2, 1};
  expectError(norm.prepare(), "temporary 0 of shape [10, 1] has strides [2, 1],"
                              " expected contiguous");
}

TEST(TensorViewTest, knowsContiguity) {
  TensorView view =
      TensorView::contiguous(nullptr, ElementType::F16, {2, 1, 3});
  EXPECT_EQ(view.strides, (Dimensions{3, 3, 1}));
  EXPECT_EQ(view.elementCount(), 6);
  EXPECT_EQ(view.byteCount(), 12);
  EXPECT_TRUE(view.isContiguous());
  view.strides = {3, 99, 1};
  EXPECT_TRUE(view.isContiguous());
  view.strides = {4, 3, 1};
  EXPECT_FALSE(view.isContiguous());
  view.sizes = {2, 0, 3};
  EXPECT_TRUE(view.isContiguous());
}

} // namespace

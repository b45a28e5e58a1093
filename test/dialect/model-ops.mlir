// RUN: tile-opt %s | tile-opt | FileCheck %s
// RUN: tile-opt %s --mlir-print-op-generic | tile-opt | FileCheck %s

// CHECK-LABEL: func @reglu
func.func @reglu(%gate: tensor<?x8xbf16>, %up: tensor<?x8xbf16>) {
  // CHECK: tile.reglu %{{[^ ]*}}, %{{[^ ]*}} : tensor<?x8xbf16>
  %0 = tile.reglu %gate, %up : tensor<?x8xbf16>
  return
}

// CHECK-LABEL: func @swiglu
func.func @swiglu(%gate: tensor<?x8xbf16>, %up: tensor<?x8xbf16>) {
  // CHECK: tile.swiglu %{{[^ ]*}}, %{{[^ ]*}} : tensor<?x8xbf16>
  %0 = tile.swiglu %gate, %up : tensor<?x8xbf16>
  // CHECK: tile.swiglu %{{[^ ]*}}, %{{[^ ]*}} {gate_scale = 5.000000e-01 : f64, output_scale = 2.000000e+00 : f64} : tensor<?x8xbf16>
  %1 = tile.swiglu %gate, %up {gate_scale = 0.5, output_scale = 2.0} : tensor<?x8xbf16>
  // CHECK: tile.swiglu %{{[^ ]*}}, %{{[^ ]*}} : tensor<?x8xbf16>
  %2 = tile.swiglu %gate, %up {gate_scale = 1.0} : tensor<?x8xbf16>
  return
}

// CHECK-LABEL: func @relu_squared
func.func @relu_squared(%x: tensor<?x8xbf16>) {
  // CHECK: tile.relu_squared %{{[^ ]*}} : tensor<?x8xbf16>
  %0 = tile.relu_squared %x : tensor<?x8xbf16>
  return
}

// CHECK-LABEL: func @silu
func.func @silu(%x: tensor<?x8xbf16>) {
  // CHECK: tile.silu %{{[^ ]*}} : tensor<?x8xbf16>
  %0 = tile.silu %x : tensor<?x8xbf16>
  return
}

// CHECK-LABEL: func @softmax
func.func @softmax(%x: tensor<?x8xbf16>) {
  // CHECK: tile.softmax %{{[^ ]*}} : tensor<?x8xbf16>
  %0 = tile.softmax %x : tensor<?x8xbf16>
  return
}

// CHECK-LABEL: func @log_softmax
func.func @log_softmax(%x: tensor<?x8xbf16>) {
  // CHECK: tile.log_softmax %{{[^ ]*}} : tensor<?x8xbf16>
  %0 = tile.log_softmax %x : tensor<?x8xbf16>
  return
}

// CHECK-LABEL: func @gelu
func.func @gelu(%x: tensor<?x8xbf16>) {
  // CHECK: tile.gelu %{{[^ ]*}} : tensor<?x8xbf16>
  %0 = tile.gelu %x : tensor<?x8xbf16>
  // CHECK: tile.gelu %{{[^ ]*}} form({{ *}}tanh) : tensor<?x8xbf16>
  %1 = tile.gelu %x form(tanh) : tensor<?x8xbf16>
  // CHECK: tile.gelu %{{[^ ]*}} : tensor<?x8xbf16>
  %2 = tile.gelu %x form(erf) : tensor<?x8xbf16>
  return
}

// CHECK-LABEL: func @add_bias
func.func @add_bias(%x: tensor<?x8xbf16>, %b: tensor<8xf32>) {
  // CHECK: tile.add_bias %{{[^ ]*}}, %{{[^ ]*}} : tensor<?x8xbf16>, tensor<8xf32>
  %0 = tile.add_bias %x, %b : tensor<?x8xbf16>, tensor<8xf32>
  return
}

// CHECK-LABEL: func @linear
func.func @linear(%x: tensor<?x?x8xbf16>, %w: tensor<3x8xbf16>, %b: tensor<3xf32>) -> tensor<?x?x3xbf16> {
  // CHECK: tile.linear %{{[^ ]*}}, %{{[^ ]*}} : tensor<?x?x8xbf16>, tensor<3x8xbf16>{{$}}
  %0 = tile.linear %x, %w : tensor<?x?x8xbf16>, tensor<3x8xbf16>
  // CHECK: tile.linear %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} : tensor<?x?x8xbf16>, tensor<3x8xbf16>, tensor<3xf32>
  %1 = tile.linear %x, %w, %b : tensor<?x?x8xbf16>, tensor<3x8xbf16>, tensor<3xf32>
  return %1 : tensor<?x?x3xbf16>
}

// CHECK-LABEL: func @layer_norm
func.func @layer_norm(%x: tensor<?x8xbf16>, %w: tensor<8xf32>, %b: tensor<8xbf16>) {
  // CHECK: tile.layer_norm %{{[^ ]*}} : tensor<?x8xbf16>{{$}}
  %0 = tile.layer_norm %x : tensor<?x8xbf16>
  // CHECK: tile.layer_norm %{{[^ ]*}}, %{{[^ ]*}} {eps = 0.000000e+00 : f64} : tensor<?x8xbf16>, tensor<8xf32>
  %1 = tile.layer_norm %x, %w {eps = 0.0} : tensor<?x8xbf16>, tensor<8xf32>
  // CHECK: tile.layer_norm %{{[^ ]*}}, %{{[^ ]*}} bias(%{{[^ ]*}}) : tensor<?x8xbf16>, tensor<8xf32>, tensor<8xbf16>
  %2 = tile.layer_norm %x, %w bias(%b) : tensor<?x8xbf16>, tensor<8xf32>, tensor<8xbf16>
  // CHECK: tile.layer_norm %{{[^ ]*}} bias(%{{[^ ]*}}) : tensor<?x8xbf16>, tensor<8xbf16>
  %3 = tile.layer_norm %x bias(%b) : tensor<?x8xbf16>, tensor<8xbf16>
  return
}

// CHECK-LABEL: func @add_rms_norm
func.func @add_rms_norm(%x: tensor<?x8xbf16>, %r: tensor<?x8xbf16>, %w: tensor<8xf32>) {
  // CHECK: %{{[^ ]*}}, %{{[^ ]*}} = tile.add_rms_norm %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} : tensor<?x8xbf16>, tensor<8xf32>
  %0, %1 = tile.add_rms_norm %x, %r, %w : tensor<?x8xbf16>, tensor<8xf32>
  // CHECK: tile.add_rms_norm %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} casting({{ *}}gemma) {eps = 1.000000e-05 : f64, offset = 1.000000e+00 : f64}
  %2, %3 = tile.add_rms_norm %x, %r, %w casting(gemma) {eps = 1.0e-5, offset = 1.0} : tensor<?x8xbf16>, tensor<8xf32>
  return
}

// A residual may have another type, and weight and bias may be absent.
// CHECK-LABEL: func @add_rms_norm_types
func.func @add_rms_norm_types(%x: tensor<?x8xbf16>, %r: tensor<?x8xf32>, %b: tensor<8xf32>) -> (tensor<?x8xbf16>, tensor<?x8xf32>) {
  // CHECK: tile.add_rms_norm %{{[^ ]*}}, %{{[^ ]*}} bias(%{{[^ ]*}}) {groups = 2 : i64} : tensor<?x8xbf16> + tensor<?x8xf32>, tensor<8xf32>
  %0, %1 = tile.add_rms_norm %x, %r bias(%b) {groups = 2} : tensor<?x8xbf16> + tensor<?x8xf32>, tensor<8xf32>
  // CHECK: tile.add_rms_norm %{{[^ ]*}}, %{{[^ ]*}} : tensor<?x8xbf16>{{$}}
  %2, %3 = tile.add_rms_norm %x, %x : tensor<?x8xbf16>
  return %0, %1 : tensor<?x8xbf16>, tensor<?x8xf32>
}

// CHECK-LABEL: func @rms_norm_options
func.func @rms_norm_options(%x: tensor<?x8xbf16>, %w: tensor<8xf32>, %b: tensor<8xbf16>) {
  // CHECK: tile.rms_norm %{{[^ ]*}}, %{{[^ ]*}} bias(%{{[^ ]*}}) casting({{ *}}none) {groups = 4 : i64} : tensor<?x8xbf16>, tensor<8xf32>, tensor<8xbf16>
  %0 = tile.rms_norm %x, %w bias(%b) casting(none) {groups = 4} : tensor<?x8xbf16>, tensor<8xf32>, tensor<8xbf16>
  // CHECK: tile.rms_norm %{{[^ ]*}} bias(%{{[^ ]*}}) : tensor<?x8xbf16>, tensor<8xbf16>
  %1 = tile.rms_norm %x bias(%b) : tensor<?x8xbf16>, tensor<8xbf16>
  return
}

// Angles for half a row or all of it; leading sizes of 1 are shared.
// CHECK-LABEL: func @rope
func.func @rope(%q: tensor<?x?x?x8xbf16>, %c: tensor<1x?x1x4xf32>, %f: tensor<?x?x?x8xf32>, %h: tensor<?x?x1x2xf32>) {
  // CHECK: tile.rope %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} : tensor<?x?x?x8xbf16>, tensor<1x?x1x4xf32>
  %0 = tile.rope %q, %c, %c : tensor<?x?x?x8xbf16>, tensor<1x?x1x4xf32>
  // CHECK: tile.rope %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} interleaved : tensor<?x?x?x8xbf16>, tensor<1x?x1x4xf32>
  %1 = tile.rope %q, %c, %c interleaved : tensor<?x?x?x8xbf16>, tensor<1x?x1x4xf32>
  // CHECK: tile.rope %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} : tensor<?x?x?x8xbf16>, tensor<?x?x?x8xf32>
  %2 = tile.rope %q, %f, %f : tensor<?x?x?x8xbf16>, tensor<?x?x?x8xf32>
  // CHECK: tile.rope %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} {rotary = 4 : i64} : tensor<?x?x?x8xbf16>, tensor<?x?x1x2xf32>
  %3 = tile.rope %q, %h, %h {rotary = 4} : tensor<?x?x?x8xbf16>, tensor<?x?x1x2xf32>
  // CHECK: tile.rope %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} interleaved {rotary = 4 : i64} : tensor<?x?x?x8xbf16>, tensor<?x?x1x2xf32>
  %4 = tile.rope %q, %h, %h interleaved {rotary = 4} : tensor<?x?x?x8xbf16>, tensor<?x?x1x2xf32>
  return
}

// CHECK-LABEL: func @cross_entropy
func.func @cross_entropy(%x: tensor<?x?x8xbf16>, %t: tensor<?x?x1xi32>, %w: tensor<8xf32>, %d: tensor<?x8xf64>, %u: tensor<?x1xi64>) {
  // CHECK: tile.cross_entropy %{{[^ ]*}}, %{{[^ ]*}} : tensor<?x?x8xbf16>, tensor<?x?x1xi32>
  %0:5 = tile.cross_entropy %x, %t : tensor<?x?x8xbf16>, tensor<?x?x1xi32>
  // CHECK: tile.cross_entropy %{{[^ ]*}}, %{{[^ ]*}} weights(%{{[^ ]*}}) reduction({{ *}}sum) {ignore_index = 0 : i64, label_smoothing = 1.000000e-01 : f64, soft_cap = 3.000000e+01 : f64, temperature = 2.000000e+00 : f64, z_loss = 1.000000e-04 : f64}
  %1:5 = tile.cross_entropy %x, %t weights(%w) reduction(sum) {ignore_index = 0, label_smoothing = 0.1, soft_cap = 30.0, temperature = 2.0, z_loss = 1.0e-4} : tensor<?x?x8xbf16>, tensor<?x?x1xi32>, tensor<8xf32>
  // CHECK: tile.cross_entropy %{{[^ ]*}}, %{{[^ ]*}} reduction({{ *}}none) : tensor<?x8xf64>, tensor<?x1xi64>
  %2:5 = tile.cross_entropy %d, %u reduction(none) : tensor<?x8xf64>, tensor<?x1xi64>
  return
}

// The types of the losses follow from the logits and the reduction.
// CHECK-LABEL: func @cross_entropy_types
func.func @cross_entropy_types(%x: tensor<?x8xbf16>, %d: tensor<?x8xf64>, %t: tensor<?x1xi64>)
    -> (tensor<1xf32>, tensor<?x1xf32>, tensor<?x1xi8>, tensor<1xf32>, tensor<?x1xi32>, tensor<?x1xf64>) {
  %0:5 = tile.cross_entropy %x, %t : tensor<?x8xbf16>, tensor<?x1xi64>
  %1:5 = tile.cross_entropy %d, %t reduction(none) : tensor<?x8xf64>, tensor<?x1xi64>
  // CHECK: return {{.*}} : tensor<1xf32>, tensor<?x1xf32>, tensor<?x1xi8>, tensor<1xf32>, tensor<?x1xi32>, tensor<?x1xf64>
  return %0#0, %0#1, %0#2, %0#3, %0#4, %1#0 : tensor<1xf32>, tensor<?x1xf32>, tensor<?x1xi8>, tensor<1xf32>, tensor<?x1xi32>, tensor<?x1xf64>
}

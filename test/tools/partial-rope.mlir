// Where half of what turns does not divide the head, as in Phi-4-mini: both forms
// compile, forward and backward, for every kind of target, and are right.

// RUN: tilec %s --target=sm_90a --grad=q | FileCheck %s --check-prefix=PTX
// RUN: tilec %s --target=sm_80 --grad=q | FileCheck %s --check-prefix=PTX
// RUN: tilec %s --target=host --grad=q | FileCheck %s --check-prefix=HOST

// RUN: tile-run %s --emulate --target=sm_90a --rows=3 --grad=q --check | FileCheck %s

// CHECK: halves {{.*}} result0 {{.*}} PASS
// CHECK: halves_backward {{.*}} grad_q {{.*}} PASS
// CHECK: neighbours {{.*}} result0 {{.*}} PASS
// CHECK: neighbours_backward {{.*}} grad_q {{.*}} PASS

// PTX-DAG:  .entry halves_kernel(
// PTX-DAG:  .entry halves_backward_kernel(
// HOST-DAG: {{^}}halves_kernel:
// HOST-DAG: {{^}}halves_backward_kernel:
func.func @halves(%q: tensor<?x?x?x128xbf16>, %c: tensor<1x?x1x48xf32>,
                  %s: tensor<1x?x1x48xf32>) -> tensor<?x?x?x128xbf16> {
  %0 = tile.rope %q, %c, %s {rotary = 96}
      : tensor<?x?x?x128xbf16>, tensor<1x?x1x48xf32>
  return %0 : tensor<?x?x?x128xbf16>
}

// PTX-DAG:  .entry neighbours_kernel(
// PTX-DAG:  .entry neighbours_backward_kernel(
// HOST-DAG: {{^}}neighbours_kernel:
// HOST-DAG: {{^}}neighbours_backward_kernel:
func.func @neighbours(%q: tensor<?x?x?x128xbf16>, %c: tensor<1x?x1x48xf32>,
                      %s: tensor<1x?x1x48xf32>) -> tensor<?x?x?x128xbf16> {
  %0 = tile.rope %q, %c, %s interleaved {rotary = 96}
      : tensor<?x?x?x128xbf16>, tensor<1x?x1x48xf32>
  return %0 : tensor<?x?x?x128xbf16>
}

// RUN: tilec %s --target=sm_80 --grad -o %t.ptx
// RUN: tilec %s --target=sm_80 --grad --emit=fused -o - | FileCheck %s

// The upstream gradient has a type without the 64 columns that it is summed over: memory
// for its whole rows has no size, so that its product is a kernel of its own.
// CHECK-LABEL: func @shared_backward(
func.func @shared(%q: tensor<?x?x64xbf16>, %k: tensor<1x?x64xbf16>) -> tensor<?x?x?xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x?x64xbf16>, tensor<1x?x64xbf16> -> tensor<?x?x?xf32>
  %p = math.tanh %s : tensor<?x?x?xf32>
  %dk = tile.dot %p, %q contract [0, 0] : tensor<?x?x?xf32>, tensor<?x?x64xbf16> -> tensor<?x?x?xf32>
  return %dk : tensor<?x?x?xf32>
}

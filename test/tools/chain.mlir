// RUN: tilec %s | FileCheck %s
// RUN: tilec %s --emit=fused | FileCheck %s --check-prefix=FUSED

// A chain is one kernel: three inputs and a weight in, two results out, each
// moved once.
// FUSED-COUNT-1: tile.kernel
// FUSED-NOT:     tile.kernel

// CHECK:         .visible .entry block_kernel(
// CHECK-COUNT-4: ld.global.nc.{{(L1::no_allocate\.|L2::[a-zA-Z0-9]*\.)*}}v4
// CHECK-NOT:     ld.global
// CHECK-COUNT-2: st.global.v4
// CHECK-NOT:     st.global
// CHECK:         .visible .entry block_kernel_unaligned(
func.func @block(%x: tensor<?x1024xbf16>, %residual: tensor<?x1024xbf16>,
                 %weight: tensor<1024xbf16>, %up: tensor<?x1024xbf16>)
    -> (tensor<?x1024xbf16>, tensor<?x1024xbf16>)
    attributes {tile.schedule = #tile.rows<rows = 1, threads = 128, vector = 8, columns = 1024>} {
  %sum = arith.addf %residual, %x : tensor<?x1024xbf16>
  %norm = tile.rms_norm %sum, %weight : tensor<?x1024xbf16>, tensor<1024xbf16>
  %result = tile.geglu %norm, %up : tensor<?x1024xbf16>
  return %sum, %result : tensor<?x1024xbf16>, tensor<?x1024xbf16>
}

// RUN: tile-opt %s | tile-opt | FileCheck %s

// CHECK-LABEL: func @primitives
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xf32>, %[[S:[^:]*]]: tensor<?x2xf32>
func.func @primitives(%x: tensor<?x8xf32>, %s: tensor<?x2xf32>, %t: tensor<300x8xf32>) {
  // CHECK: tile.reduce_bands {{ *}}max %[[X]] of 128 : tensor<?x8xf32>
  %0 = tile.reduce_bands max %x of 128 : tensor<?x8xf32>
  // CHECK: tile.pack_bands %[[X]] of 128 : tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = tile.pack_bands %x of 128 : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: tile.repeat_bands %[[S]] of 3 like %[[X]] : tensor<?x2xf32>, tensor<?x8xf32> -> tensor<?x2xf32>
  %2 = tile.repeat_bands %s of 3 like %x : tensor<?x2xf32>, tensor<?x8xf32> -> tensor<?x2xf32>
  // CHECK: tile.pack_bands %{{.*}} of 128 : tensor<300x8xf32> -> tensor<3x8xf32>
  %3 = tile.pack_bands %t of 128 : tensor<300x8xf32> -> tensor<3x8xf32>
  return
}

// CHECK-LABEL: func @quantize
func.func @quantize(%x: tensor<?x4096xbf16>) {
  // CHECK: tile.quantize %{{.*}} power_of_two band(128) : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>
  %q, %s = tile.quantize %x power_of_two band(128)
      : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>
  // CHECK: tile.dequantize %{{.*}}, %{{.*}} band(128) : tensor<?x4096xf8E4M3FN>, tensor<?x32xf32> -> tensor<?x4096xbf16>
  %0 = tile.dequantize %q, %s band(128)
      : tensor<?x4096xf8E4M3FN>, tensor<?x32xf32> -> tensor<?x4096xbf16>
  return
}

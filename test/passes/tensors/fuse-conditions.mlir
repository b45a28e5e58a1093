// RUN: tile-opt %s --fuse -split-input-file | FileCheck %s

// No kernel leaves a condition for another: it is computed again from what was
// compared, which can lie in memory.

// CHECK-LABEL: tile.kernel @combined_kernel1({{.*}}) -> tensor<64xf32>
// CHECK-NOT:     arith.cmpf
// CHECK:         tile.return %{{.*}} : tensor<64xf32>
// CHECK-LABEL: tile.kernel @combined_kernel2(
// CHECK-SAME:      %[[SUM:.*]]: tensor<64xf32>, %{{.*}}: tensor<?x64xf32>)
// CHECK:         arith.cmpf ogt, %[[SUM]], %{{.*}} : tensor<64xf32>
func.func @combined(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %s = tile.reduce_rows add %x : tensor<?x64xf32> -> tensor<64xf32>
  %c = arith.cmpf ogt, %s, %zero : tensor<64xf32>
  %b = tile.broadcast %c like %x : tensor<64xi1>, tensor<?x64xf32> -> tensor<?x64xi1>
  %n = arith.negf %x : tensor<?x64xf32>
  %y = arith.select %b, %x, %n : tensor<?x64xi1>, tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// A condition on rows that are repeated is one on the repetition. One kernel, as
// nothing but an argument is read from other rows, cast where it is used.
// CHECK-LABEL: tile.kernel @repeated_kernel(
// CHECK-SAME:      %[[T:.*]]: tensor<1x?x64xbf16>, %{{.*}}: tensor<?x?x64xf32>)
// CHECK:         %[[ROWS:.*]] = tile.broadcast %[[T]] like %{{.*}} -> tensor<?x?x64xbf16>
// CHECK:         %[[WIDE:.*]] = arith.extf %[[ROWS]]
// CHECK:         arith.cmpf olt, %[[WIDE]], %{{.*}} : tensor<?x?x64xf32>
// CHECK:         arith.andi
// CHECK-LABEL: func.func @repeated
// CHECK:         tile.launch
// CHECK-NOT:     tile.launch
func.func @repeated(%x: tensor<?x?x64xf32>, %t: tensor<1x?x64xbf16>) -> tensor<?x?x64xf32> {
  %half = arith.constant 0.5 : f32
  %h = tile.broadcast %half like %t : f32, tensor<1x?x64xbf16> -> tensor<1x?x64xf32>
  %w = arith.extf %t : tensor<1x?x64xbf16> to tensor<1x?x64xf32>
  %c0 = arith.cmpf olt, %w, %h : tensor<1x?x64xf32>
  %c1 = arith.cmpf ogt, %w, %h : tensor<1x?x64xf32>
  %c = arith.andi %c0, %c1 : tensor<1x?x64xi1>
  %b = tile.broadcast %c like %x : tensor<1x?x64xi1>, tensor<?x?x64xf32> -> tensor<?x?x64xi1>
  %n = arith.negf %x : tensor<?x?x64xf32>
  %y = arith.select %b, %x, %n : tensor<?x?x64xi1>, tensor<?x?x64xf32>
  return %y : tensor<?x?x64xf32>
}

// -----

// What is compared has to be computed on its own rows: its number is left in
// memory, not the condition. Each row has one, which goes along the row after.
// CHECK-LABEL: tile.kernel @of_statistic_kernel0({{.*}}) -> tensor<1x?x1xf32>
// CHECK-LABEL: tile.kernel @of_statistic_kernel1(
// CHECK-SAME:      %[[S:.*]]: tensor<1x?x1xf32>, %{{.*}}: tensor<?x?x64xf32>)
// CHECK:         %[[ROWS:.*]] = tile.broadcast %[[S]] like %{{.*}} -> tensor<?x?x1xf32>
// CHECK:         %[[C:.*]] = arith.cmpf ogt, %[[ROWS]], %{{.*}} : tensor<?x?x1xf32>
// CHECK:         tile.broadcast %[[C]] like %{{.*}} : tensor<?x?x1xi1>, {{.*}} -> tensor<?x?x64xi1>
func.func @of_statistic(%x: tensor<?x?x64xf32>, %t: tensor<1x?x64xf32>) -> tensor<?x?x64xf32> {
  %zero = arith.constant 0.0 : f32
  %s = tile.reduce add %t : tensor<1x?x64xf32> -> tensor<1x?x1xf32>
  %z = tile.broadcast %zero like %t : f32, tensor<1x?x64xf32> -> tensor<1x?x1xf32>
  %c = arith.cmpf ogt, %s, %z : tensor<1x?x1xf32>
  %b = tile.broadcast %c like %x : tensor<1x?x1xi1>, tensor<?x?x64xf32> -> tensor<?x?x64xi1>
  %n = arith.negf %x : tensor<?x?x64xf32>
  %y = arith.select %b, %x, %n : tensor<?x?x64xi1>, tensor<?x?x64xf32>
  return %y : tensor<?x?x64xf32>
}

// -----

// A condition of groups, spread over rows that are repeated.
// CHECK-LABEL: tile.kernel @of_groups_kernel0({{.*}}) -> tensor<1x4x2xf32>
// CHECK-LABEL: tile.kernel @of_groups_kernel1(
// CHECK:         tile.broadcast %{{.*}} : tensor<1x4x2xf32>, {{.*}} -> tensor<?x4x2xf32>
// CHECK:         arith.cmpf {{.*}} : tensor<?x4x2xf32>
// CHECK:         tile.broadcast %{{.*}} : tensor<?x4x2xi1>, {{.*}} -> tensor<?x4x64xi1>
func.func @of_groups(%x: tensor<?x4x64xf32>, %t: tensor<1x4x64xf32>) -> tensor<?x4x64xf32> {
  %s = tile.reduce add %t : tensor<1x4x64xf32> -> tensor<1x4x2xf32>
  %z = arith.constant dense<0.0> : tensor<1x4x2xf32>
  %c = arith.cmpf ogt, %s, %z : tensor<1x4x2xf32>
  %w = tile.broadcast %c : tensor<1x4x2xi1> -> tensor<1x4x64xi1>
  %b = tile.broadcast %w like %x : tensor<1x4x64xi1>, tensor<?x4x64xf32> -> tensor<?x4x64xi1>
  %n = arith.negf %x : tensor<?x4x64xf32>
  %y = arith.select %b, %x, %n : tensor<?x4x64xi1>, tensor<?x4x64xf32>
  return %y : tensor<?x4x64xf32>
}

// -----

// Integers of 16 bits cannot lie in memory either.
// CHECK-LABEL: tile.kernel @short_integers_kernel(
// CHECK:         tile.broadcast %{{.*}} : tensor<1x4x64xi32>, {{.*}} -> tensor<?x4x64xi32>
// CHECK:         arith.trunci %{{.*}} : tensor<?x4x64xi32> to tensor<?x4x64xi16>
func.func @short_integers(%x: tensor<?x4x64xi32>, %t: tensor<1x4x64xi32>) -> tensor<?x4x64xi32> {
  %0 = arith.trunci %t : tensor<1x4x64xi32> to tensor<1x4x64xi16>
  %1 = tile.broadcast %0 like %x : tensor<1x4x64xi16>, tensor<?x4x64xi32> -> tensor<?x4x64xi16>
  %2 = arith.extsi %1 : tensor<?x4x64xi16> to tensor<?x4x64xi32>
  %3 = arith.addi %x, %2 : tensor<?x4x64xi32>
  return %3 : tensor<?x4x64xi32>
}

// -----

// The rows of bands come out of memory as well.
// CHECK-LABEL: tile.kernel @of_bands_kernel(
// CHECK:         %[[S:.*]] = tile.repeat_bands %{{.*}} of 8 like %{{.*}} -> tensor<?x64xf32>
// CHECK:         arith.cmpf ogt, %[[S]], %{{.*}} : tensor<?x64xf32>
func.func @of_bands(%x: tensor<?x64xf32>, %s: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %zero = arith.constant 0.0 : f32
  %z = tile.broadcast %zero like %s : f32, tensor<?x64xf32> -> tensor<?x64xf32>
  %c = arith.cmpf ogt, %s, %z : tensor<?x64xf32>
  %b = tile.repeat_bands %c of 8 like %x : tensor<?x64xi1>, tensor<?x64xf32> -> tensor<?x64xi1>
  %n = arith.negf %x : tensor<?x64xf32>
  %y = arith.select %b, %x, %n : tensor<?x64xi1>, tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// A condition that is computed of repeated rows has the sizes of these, not of the one
// row that they repeat.
// CHECK-LABEL: tile.kernel @repeated_static_rows_kernel
// CHECK:         %[[ROWS:.*]] = tile.broadcast %{{.*}} : tensor<1x8x1xbf16> -> tensor<3x8x1xbf16>
// CHECK:         %[[SEEN:.*]] = arith.cmpf oge, %[[ROWS]], %[[ROWS]]
// CHECK:         tile.broadcast %[[SEEN]] like %{{.*}} : tensor<3x8x1xi1>, tensor<3x8x{{.*}} -> tensor<3x8x66xi1>
func.func @repeated_static_rows(%x: tensor<3x8x66xf32>, %c: tensor<1x8x1xbf16>) -> tensor<3x8x66xf32> {
  %0 = arith.cmpf oge, %c, %c : tensor<1x8x1xbf16>
  %1 = tile.broadcast %0 : tensor<1x8x1xi1> -> tensor<3x8x66xi1>
  %2 = arith.negf %x : tensor<3x8x66xf32>
  %3 = arith.select %1, %x, %2 : tensor<3x8x66xi1>, tensor<3x8x66xf32>
  return %3 : tensor<3x8x66xf32>
}

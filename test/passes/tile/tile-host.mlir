// RUN: tile-opt %s --tile=target=host -split-input-file | FileCheck %s

// The host's accesses cost the same whatever their alignment.
// CHECK-LABEL: tile.program @unaligned(
// CHECK-SAME:      tile.alignment = 4 : i64, tile.readonly
// CHECK-NOT:   tile.program @
// CHECK:       tile.launch [@unaligned](
tile.kernel @unaligned(%x: tensor<?x128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 1, vector = 16, columns = 64>} {
  %0 = arith.addf %x, %x : tensor<?x128xf32>
  tile.return %0 : tensor<?x128xf32>
}
func.func @f(%x: tensor<?x128xf32>) -> tensor<?x128xf32> {
  %0 = tile.launch [@unaligned](%x) : (tensor<?x128xf32>) -> tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
}

// -----

// CHECK-LABEL: tile.program @leading(
// CHECK:       tile.program @leading_strided(
// CHECK-NOT:   tile.program @
// CHECK:       tile.launch [@leading, @leading_strided](
tile.kernel @leading(%x: tensor<?x?x128xf32>) -> tensor<?x?x128xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 1, vector = 16, columns = 64>} {
  %0 = arith.addf %x, %x : tensor<?x?x128xf32>
  tile.return %0 : tensor<?x?x128xf32>
}
func.func @f(%x: tensor<?x?x128xf32>) -> tensor<?x?x128xf32> {
  %0 = tile.launch [@leading](%x) : (tensor<?x?x128xf32>) -> tensor<?x?x128xf32>
  return %0 : tensor<?x?x128xf32>
}

// -----

// A program adds up a few rows at a time, and these sums with what each addition
// of one rounds off.
// CHECK-LABEL: tile.program @sum_of_rows(
// CHECK:         %[[SUMS:.*]]:2 = scf.for %[[FIRST:.*]] = %{{.*}} to %[[LAST:.*]] step %[[DISTANCE:.*]] iter_args(%[[SUM:.*]] = %{{.*}}, %[[LOST:.*]] = %{{.*}})
// CHECK:           %[[NEXT:.*]] = arith.addi %[[FIRST]], %[[DISTANCE]]
// CHECK-NEXT:      %[[END:.*]] = arith.minui %[[NEXT]], %[[LAST]]
// CHECK:           %[[BLOCK:.*]] = scf.for %{{.*}} = %[[FIRST]] to %[[END]]
// CHECK:             %[[X:.*]] = tile.load
// CHECK:             %[[ROWS:.*]] = arith.addf %{{.*}}, %[[X]]
// CHECK-NEXT:        scf.yield %[[ROWS]]
// CHECK:           %[[NEXT:.*]] = arith.addf %[[SUM]], %[[BLOCK]]
// CHECK-NEXT:      %[[OF_BLOCK:.*]] = arith.subf %[[NEXT]], %[[SUM]]
// CHECK-NEXT:      %[[OF_SUM:.*]] = arith.subf %[[NEXT]], %[[OF_BLOCK]]
// CHECK-DAG:       %[[LOST_SUM:.*]] = arith.subf %[[SUM]], %[[OF_SUM]]
// CHECK-DAG:       %[[LOST_BLOCK:.*]] = arith.subf %[[BLOCK]], %[[OF_BLOCK]]
// CHECK:           %[[ERROR:.*]] = arith.addf %[[LOST_SUM]], %[[LOST_BLOCK]]
// CHECK-NEXT:      %[[ALL:.*]] = arith.addf %[[LOST]], %[[ERROR]]
// CHECK-NEXT:      scf.yield %[[NEXT]], %[[ALL]]
// CHECK:         %[[IS_NUMBER:.*]] = arith.cmpf ord, %[[SUMS]]#1, %[[SUMS]]#1
// CHECK-NEXT:    %[[WHOLE:.*]] = arith.addf %[[SUMS]]#0, %[[SUMS]]#1
// CHECK-NEXT:    %[[RESULT:.*]] = arith.select %[[IS_NUMBER]], %[[WHOLE]], %[[SUMS]]#0
// CHECK:         tile.store %[[RESULT]]
tile.kernel @sum_of_rows(%x: tensor<?x64xf32>) -> tensor<?x64xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 1, vector = 16, columns = 64, persistent = 1>} {
  %0 = tile.reduce_rows add %x partial : tensor<?x64xf32> -> tensor<?x64xf32>
  tile.return %0 : tensor<?x64xf32>
}
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = tile.launch [@sum_of_rows](%x) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----

// A maximum rounds nothing.
// CHECK-LABEL: tile.program @maximum_of_rows(
// CHECK:         scf.for {{.*}} iter_args(%{{[^,]*}}) ->
// CHECK-NOT:     arith.subf
// CHECK:         tile.return
tile.kernel @maximum_of_rows(%x: tensor<?x64xf32>) -> tensor<?x64xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 1, vector = 16, columns = 64, persistent = 1>} {
  %0 = tile.reduce_rows max %x partial : tensor<?x64xf32> -> tensor<?x64xf32>
  tile.return %0 : tensor<?x64xf32>
}
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = tile.launch [@maximum_of_rows](%x) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----

// The threads of a schedule are a GPU's: a program of the host is one.
// CHECK-LABEL: tile.program @threads_of_a_gpu(
// CHECK-NOT:     tile.fold
// CHECK:         scf.for {{.*}} -> (tensor<1x64xf32>)
// CHECK-NOT:     tile.fold
// CHECK:         tile.return
tile.kernel @threads_of_a_gpu(%x: tensor<?x1000xf32>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 128, vector = 8, columns = 64>} {
  %0 = tile.reduce max %x : tensor<?x1000xf32> -> tensor<?x1xf32>
  tile.return %0 : tensor<?x1xf32>
}
func.func @f(%x: tensor<?x1000xf32>) -> tensor<?x1xf32> {
  %0 = tile.launch [@threads_of_a_gpu](%x) : (tensor<?x1000xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// RUN: tile-opt %s --tile=target=sm_90a -split-input-file | FileCheck %s

// Every launch of a kernel runs all of its programs.
// CHECK:       tile.program @rows(
// CHECK:       tile.program @rows_unaligned(
// CHECK-LABEL: func.func @both
// CHECK-COUNT-2: tile.launch [@rows, @rows_unaligned](%{{.*}})
// CHECK-NOT:   tile.launch
tile.kernel @rows(%x: tensor<?x128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %0 = arith.addf %x, %x : tensor<?x128xf32>
  tile.return %0 : tensor<?x128xf32>
}
func.func @both(%x: tensor<?x128xf32>) -> tensor<?x128xf32> {
  %0 = tile.launch [@rows](%x) : (tensor<?x128xf32>) -> tensor<?x128xf32>
  %1 = tile.launch [@rows](%0) : (tensor<?x128xf32>) -> tensor<?x128xf32>
  return %1 : tensor<?x128xf32>
}

// -----

// A factor that both products read is an operand of the program for each.
// CHECK:       tile.program @square(
// CHECK-LABEL: func.func @twice(
// CHECK-SAME:      %[[X:.*]]: tensor<?x64xbf16>
// CHECK-COUNT-2: tile.launch [@square](%[[X]], %[[X]])
tile.kernel @square(%x: tensor<?x64xbf16>) -> tensor<?x?xf32>
    attributes {schedule = #tile.matmul<rows = 16, columns = 16, depth = 16, threads = 32, vector = 2, stages = 2>} {
  %0 = tile.dot %x, %x contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  tile.return %0 : tensor<?x?xf32>
}
func.func @twice(%x: tensor<?x64xbf16>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %0 = tile.launch [@square](%x) : (tensor<?x64xbf16>) -> tensor<?x?xf32>
  %1 = tile.launch [@square](%x) : (tensor<?x64xbf16>) -> tensor<?x?xf32>
  return %0, %1 : tensor<?x?xf32>, tensor<?x?xf32>
}

// RUN: tile-opt %s --fuse "--schedule=schedule='columns = 128'" --tile --canonicalize --cse -split-input-file | FileCheck %s

// Elements are numbered in their rows, those of statistics too: a program along
// the row knows which columns it has, but the first of a statistic is its first.
// CHECK-LABEL: tile.program @beside_kernel(
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[COLUMN:.*]] = arith.muli %{{.*}}, %c128
// CHECK-DAG:     tile.iota from %[[COLUMN]] : tensor<{{[0-9]+}}x128xi32>
// CHECK-DAG:     tile.iota from %[[C0]] : tensor<{{[0-9]+}}x1xi32>
// CHECK:         tile.return
func.func @beside(%x: tensor<?x256xi32>, %s: tensor<?x1xi32>)
    -> (tensor<?x256xi32>, tensor<?x1xi32>) {
  %0 = tile.iota like %x : tensor<?x256xi32>, tensor<?x256xi32>
  %1 = tile.iota like %s : tensor<?x1xi32>, tensor<?x1xi32>
  %2 = arith.addi %s, %1 : tensor<?x1xi32>
  %3 = tile.broadcast %2 like %x : tensor<?x1xi32>, tensor<?x256xi32> -> tensor<?x256xi32>
  %4 = arith.addi %0, %3 : tensor<?x256xi32>
  %5 = arith.addi %4, %x : tensor<?x256xi32>
  return %5, %2 : tensor<?x256xi32>, tensor<?x1xi32>
}

// -----

// It is found ahead of a loop over the columns.
// CHECK-LABEL: tile.program @in_a_loop_kernel(
// CHECK:         %[[C0:.*]] = arith.constant 0 : index
// CHECK:         tile.iota from %[[C0]] : tensor<{{[0-9]+}}x1xi32>
// CHECK:         scf.for
// CHECK:         tile.return
func.func @in_a_loop(%x: tensor<?x256xf32>, %s: tensor<?x1xi32>)
    -> (tensor<?x256xf32>, tensor<?x1xf32>) {
  %0 = tile.iota like %s : tensor<?x1xi32>, tensor<?x1xi32>
  %1 = arith.addi %s, %0 : tensor<?x1xi32>
  %2 = arith.sitofp %1 : tensor<?x1xi32> to tensor<?x1xf32>
  %3 = tile.broadcast %2 like %x : tensor<?x1xf32>, tensor<?x256xf32> -> tensor<?x256xf32>
  %4 = arith.addf %x, %3 : tensor<?x256xf32>
  %5 = tile.reduce add %4 : tensor<?x256xf32> -> tensor<?x1xf32>
  return %4, %5 : tensor<?x256xf32>, tensor<?x1xf32>
}

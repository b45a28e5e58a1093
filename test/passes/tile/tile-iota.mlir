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

// -----

// With one leading dimension, the number of a row is the program's own.
// CHECK-LABEL: tile.program @rows_kernel(
// CHECK-SAME:      %[[N:[^:]*]]: index, %[[X:[^:]*]]: memref
// CHECK:         %[[ROW:.*]] = tile.iota_rows from %{{.*}} : tensor<[[R:[0-9]+]]x1xi32>
// CHECK:         tile.broadcast %[[ROW]] : tensor<[[R]]x1xi32> -> tensor<[[R]]x128xi32>
func.func @rows(%x: tensor<?x256xi32>) -> tensor<?x256xi32> {
  %0 = tile.iota over [0] like %x : tensor<?x1xi32>, tensor<?x256xi32>
  %1 = tile.broadcast %0 like %x : tensor<?x1xi32>, tensor<?x256xi32> -> tensor<?x256xi32>
  %2 = arith.addi %1, %x : tensor<?x256xi32>
  return %2 : tensor<?x256xi32>
}

// -----

// With several, which the runtime may merge, it is divided by the sizes ahead of
// that: of the dimensions behind, and of its own unless it is the first.
// CHECK-LABEL: tile.program @inner_kernel(
// CHECK-SAME:      %{{[^:]*}}: index, %[[H:[^:]*]]: index, %[[S:[^:]*]]: index, %{{[^:]*}}: memref
// CHECK-SAME:      unmerged_sizes = array<i64: 1, 2>
// CHECK-DAG:     %[[H64:.*]] = arith.index_castui %[[H]] : index to i64
// CHECK-DAG:     %[[S64:.*]] = arith.index_castui %[[S]] : index to i64
// CHECK-DAG:     %[[ROW:.*]] = tile.iota_rows from %{{.*}} : tensor<[[R:[0-9]+]]x1xi64>
// CHECK-DAG:     %[[HS:.*]] = tile.broadcast %[[H64]]
// CHECK-DAG:     %[[SS:.*]] = tile.broadcast %[[S64]]
// CHECK:         %[[D:.*]] = arith.divui %[[ROW]], %[[SS]]
// CHECK:         %[[M:.*]] = arith.remui %[[D]], %[[HS]]
// CHECK:         arith.trunci %[[M]] : tensor<[[R]]x1xi64> to tensor<[[R]]x1xi32>
func.func @inner(%x: tensor<?x?x?x128xi32>) -> tensor<?x?x?x128xi32> {
  %0 = tile.iota over [1] like %x : tensor<?x?x?x1xi32>, tensor<?x?x?x128xi32>
  %1 = tile.broadcast %0 like %x : tensor<?x?x?x1xi32>, tensor<?x?x?x128xi32> -> tensor<?x?x?x128xi32>
  %2 = arith.addi %1, %x : tensor<?x?x?x128xi32>
  return %2 : tensor<?x?x?x128xi32>
}

// -----

// The first dimension asks for the sizes behind it alone, and static sizes are no
// arguments; all dimensions together ask for none.
// CHECK-LABEL: tile.program @outer_kernel(
// CHECK-SAME:      %{{[^:]*}}: index, %[[S:[^:]*]]: index, %{{[^:]*}}: memref
// CHECK-SAME:      unmerged_sizes = array<i64: 2>
// CHECK:         %[[FIVE:.*]] = arith.constant 5 : index
// CHECK:         arith.muli %[[S]], %[[FIVE]]
// CHECK:         arith.divui
// CHECK-NOT:     arith.remui %{{.*}} : tensor
// CHECK:         tile.return
func.func @outer(%x: tensor<?x5x?x128xi32>) -> tensor<?x5x?x128xi32> {
  %0 = tile.iota over [0] like %x : tensor<?x5x?x1xi32>, tensor<?x5x?x128xi32>
  %1 = tile.iota over [0, 1, 2] like %x : tensor<?x5x?x1xi32>, tensor<?x5x?x128xi32>
  %2 = arith.addi %0, %1 : tensor<?x5x?x1xi32>
  %3 = tile.broadcast %2 like %x : tensor<?x5x?x1xi32>, tensor<?x5x?x128xi32> -> tensor<?x5x?x128xi32>
  %4 = arith.addi %3, %x : tensor<?x5x?x128xi32>
  return %4 : tensor<?x5x?x128xi32>
}

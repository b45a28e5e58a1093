// RUN: tile-opt %s --tile --canonicalize --cse -split-input-file | FileCheck %s

// The first rows are loaded ahead of the loop and the next ones before the
// current ones are computed on; after the last group, that one is loaded once
// more. An assembler would delay the load of what never changes past barriers,
// so that these are neither invariant nor of an operand that is only read. What
// all rows share is loaded where it is needed.
// CHECK-LABEL: tile.program @ahead(
// CHECK-SAME:      %[[ROWS:[^:]*]]: index, %[[X:[^:]*]]: memref<?x256xf32, strided<[?, 1]>> {tile.alignment = 16 : i64}, %[[W:[^:]*]]: memref<256xf32> {tile.alignment = 16 : i64, tile.readonly}, %[[Y:[^:]*]]: memref
// CHECK-DAG:     %[[ID:.*]] = tile.program_id
// CHECK-DAG:     %[[COUNT:.*]] = tile.program_count
// CHECK-DAG:     %[[TWO:.*]] = arith.constant 2 : index
// CHECK:         %[[GROUPS:.*]] = arith.ceildivui %[[ROWS]], %[[TWO]]
// CHECK:         %[[HAS_ROWS:.*]] = arith.cmpi ult, %[[ID]], %[[GROUPS]]
// CHECK-NEXT:    scf.if %[[HAS_ROWS]] {
// CHECK-NEXT:      %[[ROW:.*]] = arith.muli %[[ID]], %[[TWO]]
// CHECK-NEXT:      %[[FIRST:.*]] = tile.load %[[X]][%[[ROW]], %{{.*}}] {alignment = 16 : i64} :
// CHECK-NEXT:      scf.for %[[GROUP:.*]] = %[[ID]] to %[[GROUPS]] step %[[COUNT]] iter_args(%[[CURRENT:.*]] = %[[FIRST]])
// CHECK-NEXT:        %[[AFTER:.*]] = arith.addi %[[GROUP]], %[[COUNT]]
// CHECK-NEXT:        %[[HAS_NEXT:.*]] = arith.cmpi ult, %[[AFTER]], %[[GROUPS]]
// CHECK-NEXT:        %[[NEXT:.*]] = arith.select %[[HAS_NEXT]], %[[AFTER]], %[[GROUP]]
// CHECK-NEXT:        %[[ROW:.*]] = arith.muli %[[NEXT]], %[[TWO]]
// CHECK-NEXT:        %[[LOADED:.*]] = tile.load %[[X]][%[[ROW]], %{{.*}}] {alignment = 16 : i64} :
// CHECK:             %[[ROW:.*]] = arith.muli %[[GROUP]], %[[TWO]]
// CHECK:             tile.load %[[W]][%{{.*}}] {alignment = 16 : i64, invariant}
// CHECK:             tile.reduce add %[[CURRENT]]
// CHECK-NOT:         tile.load
// CHECK:             tile.store %{{.*}}, %[[Y]][%[[ROW]],
// CHECK-NEXT:        scf.yield %[[LOADED]]
// CHECK:         tile.return
tile.kernel @ahead(%x: tensor<?x256xf32>, %w: tensor<256xf32>) -> tensor<?x256xf32>
    attributes {schedule = #tile.rows<rows = 2, threads = 64, vector = 4, columns = 256, persistent = 1, stages = 2>} {
  %0 = tile.reduce add %x : tensor<?x256xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x1xf32>, tensor<?x256xf32> -> tensor<?x256xf32>
  %2 = tile.broadcast %w like %x : tensor<256xf32>, tensor<?x256xf32> -> tensor<?x256xf32>
  %3 = arith.mulf %1, %2 : tensor<?x256xf32>
  tile.return %3 : tensor<?x256xf32>
}
func.func @f(%x: tensor<?x256xf32>, %w: tensor<256xf32>) -> tensor<?x256xf32> {
  %0 = tile.launch [@ahead](%x, %w) : (tensor<?x256xf32>, tensor<256xf32>) -> tensor<?x256xf32>
  return %0 : tensor<?x256xf32>
}

// -----

// Sums of the rows come first among what the loop carries, and are neutral in a
// program that has no rows.
// CHECK-LABEL: tile.program @sums(
// CHECK-DAG:     %[[NEUTRAL:.*]] = arith.constant dense<0.000000e+00> : tensor<1x256xf32>
// CHECK:         %[[SUMS:.*]] = scf.if
// CHECK:           %[[FIRST:.*]] = tile.load
// CHECK-NEXT:      %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%[[SUM:.*]] = %[[NEUTRAL]], %[[CURRENT:.*]] = %[[FIRST]])
// CHECK:             %[[LOADED:.*]] = tile.load
// CHECK-NEXT:        %[[NEXT:.*]] = arith.addf %[[SUM]], %[[CURRENT]]
// CHECK-NEXT:        scf.yield %[[NEXT]], %[[LOADED]]
// CHECK:           scf.yield %[[LOOP]]#0
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[NEUTRAL]]
// CHECK:         tile.store %[[SUMS]]
tile.kernel @sums(%x: tensor<?x256xf32>) -> tensor<?x256xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256, persistent = 1, stages = 2>} {
  %0 = tile.reduce_rows add %x partial : tensor<?x256xf32> -> tensor<?x256xf32>
  tile.return %0 : tensor<?x256xf32>
}
func.func @f(%x: tensor<?x256xf32>) -> tensor<?x256xf32> {
  %0 = tile.launch [@sums](%x) : (tensor<?x256xf32>) -> tensor<?x256xf32>
  return %0 : tensor<?x256xf32>
}

// -----

// A row that is taken apart is loaded ahead in as many loads as it takes.
// CHECK-LABEL: tile.program @pieces(
// CHECK:         scf.for {{.*}} iter_args(%[[LOW:.*]] = %{{.*}}, %[[HIGH:.*]] = %{{.*}})
// CHECK:           %[[NEXT_LOW:.*]] = tile.load {{.*}} {alignment = 16 : i64, length = 256 : i64}
// CHECK-NEXT:      %[[NEXT_HIGH:.*]] = tile.load {{.*}} {alignment = 16 : i64, length = 256 : i64, offset = 256 : i64}
// CHECK-NEXT:      arith.subf %[[LOW]], %[[HIGH]]
// CHECK:           scf.yield %[[NEXT_LOW]], %[[NEXT_HIGH]]
tile.kernel @pieces(%x: tensor<?x512xf32>) -> tensor<?x256xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256, persistent = 1, stages = 2>} {
  %0, %1 = tile.split %x : tensor<?x512xf32> -> tensor<?x256xf32>, tensor<?x256xf32>
  %2 = arith.subf %0, %1 : tensor<?x256xf32>
  tile.return %2 : tensor<?x256xf32>
}
func.func @f(%x: tensor<?x512xf32>) -> tensor<?x256xf32> {
  %0 = tile.launch [@pieces](%x) : (tensor<?x512xf32>) -> tensor<?x256xf32>
  return %0 : tensor<?x256xf32>
}

// RUN: tile-opt %s --tile --canonicalize --cse -split-input-file | FileCheck %s

// A persistent program adds up its rows in registers, tile by tile, and stores one
// row of partial results after the last. Rows past the end count as nothing.
// CHECK-LABEL: tile.program @rows_in_registers(
// CHECK-SAME:      %[[ROWS:[^:]*]]: index, %[[X:[^:]*]]: memref<{{[^:]*}}> {tile{{[^}]*}}}, %[[Y:[^:]*]]: memref<{{[^:]*}}> {tile{{[^}]*}}},
// CHECK-SAME:      %[[PARTIALS:[^:]*]]: memref<?x256xf32> {tile.alignment = 16 : i64, tile.partial})
// CHECK-DAG:     %[[NEUTRAL:.*]] = arith.constant dense<0.000000e+00> : tensor<2x256xf32>
// CHECK-DAG:     %[[ID:.*]] = tile.program_id
// CHECK:         %[[SUMS:.*]] = scf.for {{.*}} iter_args(%[[SO_FAR:.*]] = %[[NEUTRAL]])
// CHECK:           %[[EXP:.*]] = math.exp
// CHECK-NEXT:      tile.store %[[EXP]], %[[Y]][%[[ROW:.*]], %{{.*}}]
// CHECK-NEXT:      %[[MASKED:.*]] = tile.mask_rows %[[EXP]] from %[[ROW]] limit %[[ROWS]] else 0.000000e+00 : f32
// CHECK-NEXT:      %[[NEXT:.*]] = arith.addf %[[SO_FAR]], %[[MASKED]]
// CHECK-NEXT:      scf.yield %[[NEXT]]
// CHECK:         %[[SUM:.*]] = tile.reduce_rows add %[[SUMS]] : tensor<2x256xf32> -> tensor<1x256xf32>
// CHECK-NEXT:    tile.store %[[SUM]], %[[PARTIALS]][%[[ID]],
// CHECK-NEXT:    tile.return
tile.kernel @rows_in_registers(%x: tensor<?x256xf32>) -> (tensor<?x256xf32>, tensor<?x256xf32>)
    attributes {schedule = #tile.rows<rows = 2, threads = 32, vector = 4, columns = 256, persistent = 1>} {
  %0 = math.exp %x : tensor<?x256xf32>
  %1 = tile.reduce_rows add %0 partial : tensor<?x256xf32> -> tensor<?x256xf32>
  tile.return %0, %1 : tensor<?x256xf32>, tensor<?x256xf32>
}
func.func @f(%x: tensor<?x256xf32>) -> (tensor<?x256xf32>, tensor<?x256xf32>) {
  %0:2 = tile.launch [@rows_in_registers](%x) : (tensor<?x256xf32>) -> (tensor<?x256xf32>, tensor<?x256xf32>)
  return %0#0, %0#1 : tensor<?x256xf32>, tensor<?x256xf32>
}

// -----

// A row that takes several sweeps does not fit in registers: the program adds it to
// its row of the partial results, which it has cleared.
// CHECK-LABEL: tile.program @rows_in_memory(
// CHECK-SAME:      %[[X:[^:]*]]: memref<{{[^:]*}}> {tile{{[^}]*}}}, %[[PARTIALS:[^:]*]]: memref<?x512xf32> {tile.alignment = 16 : i64, tile.partial})
// CHECK-DAG:     %[[NEUTRAL:.*]] = arith.constant dense<0.000000e+00> : tensor<1x256xf32>
// CHECK-DAG:     %[[ID:.*]] = tile.program_id
// CHECK:         scf.for %[[COLUMN:.*]] =
// CHECK-NEXT:      tile.store %[[NEUTRAL]], %[[PARTIALS]][%[[ID]], %[[COLUMN]]]
// CHECK:         scf.for %[[ROW:.*]] = %[[ID]] to
// CHECK:           scf.for
// CHECK:           tile.reduce {{ *}}max
// CHECK-NEXT:      scf.for %[[COLUMN:.*]] =
// CHECK:             %[[VALUE:.*]] = arith.subf
// CHECK-NEXT:        %[[BEFORE:.*]] = tile.load %[[PARTIALS]][%[[ID]], %[[COLUMN]]] {alignment = 16 : i64}
// CHECK-NEXT:        %[[AFTER:.*]] = arith.addf %[[BEFORE]], %[[VALUE]]
// CHECK-NEXT:        tile.store %[[AFTER]], %[[PARTIALS]][%[[ID]], %[[COLUMN]]]
// CHECK-NOT:     tile.store
// CHECK:         tile.return
tile.kernel @rows_in_memory(%x: tensor<?x512xf32>) -> tensor<?x512xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256, persistent = 1>} {
  %0 = tile.reduce max %x : tensor<?x512xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x1xf32>, tensor<?x512xf32> -> tensor<?x512xf32>
  %2 = arith.subf %x, %1 : tensor<?x512xf32>
  %3 = tile.reduce_rows add %2 partial : tensor<?x512xf32> -> tensor<?x512xf32>
  tile.return %3 : tensor<?x512xf32>
}
func.func @f(%x: tensor<?x512xf32>) -> tensor<?x512xf32> {
  %0 = tile.launch [@rows_in_memory](%x) : (tensor<?x512xf32>) -> tensor<?x512xf32>
  return %0 : tensor<?x512xf32>
}

// -----

// One program for each tile of columns combines all partial results, and what
// follows is computed after its loop.
// CHECK-LABEL: tile.program @combine_partials(
// CHECK-SAME:      %[[ROWS:[^:]*]]: index, %[[X:[^:]*]]: memref<{{[^:]*}}> {tile{{[^}]*}}}, %[[Y:[^:]*]]: memref<256xbf16>
// CHECK-SAME:      column_blocks = 8 : i64, {{.*}}row_programs = 1 : i64
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1 : index
// CHECK:         %[[COLUMN:.*]] = arith.muli
// CHECK:         %[[GROUPS:.*]] = arith.ceildivui %[[ROWS]]
// CHECK-NEXT:    %[[SUMS:.*]] = scf.for %{{.*}} = %[[ZERO]] to %[[GROUPS]] step %[[ONE]]
// CHECK:           tile.mask_rows
// CHECK:         %[[SUM:.*]] = tile.reduce_rows add %[[SUMS]]
// CHECK-NEXT:    %[[ROUNDED:.*]] = arith.truncf %[[SUM]]
// CHECK-NEXT:    tile.store %[[ROUNDED]], %[[Y]][%[[COLUMN]]]
tile.kernel @combine_partials(%p: tensor<?x256xf32>) -> tensor<256xbf16>
    attributes {schedule = #tile.rows<rows = 8, threads = 32, vector = 1, columns = 32, persistent = 1>} {
  %0 = tile.reduce_rows add %p : tensor<?x256xf32> -> tensor<256xf32>
  %1 = arith.truncf %0 : tensor<256xf32> to tensor<256xbf16>
  tile.return %1 : tensor<256xbf16>
}
func.func @f(%x: tensor<?x256xf32>) -> tensor<256xbf16> {
  %0 = tile.launch [@combine_partials](%x) : (tensor<?x256xf32>) -> tensor<256xbf16>
  return %0 : tensor<256xbf16>
}

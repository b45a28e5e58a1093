// RUN: tile-opt %s --tile --canonicalize --cse -split-input-file | FileCheck %s

// Pieces of a row are loaded and stored apart, each with its place in the row.
// CHECK-LABEL: tile.program @pieces(
// CHECK-DAG:     %[[LOW:.*]] = tile.load {{.*}} {alignment = 16 : i64, invariant, length = 128 : i64}
// CHECK-DAG:     %[[HIGH:.*]] = tile.load {{.*}} {alignment = 16 : i64, invariant, length = 128 : i64, offset = 128 : i64}
// CHECK-NEXT:    %[[NEGATED:.*]] = arith.negf %[[HIGH]]
// CHECK-NEXT:    tile.store %[[NEGATED]], {{.*}} {alignment = 16 : i64, length = 128 : i64}
// CHECK-NEXT:    tile.store %[[LOW]], {{.*}} {alignment = 16 : i64, length = 128 : i64, offset = 128 : i64}
// CHECK-NEXT:    tile.return
tile.kernel @pieces(%x: tensor<?x256xf32>) -> tensor<?x256xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %a, %b = tile.split %x : tensor<?x256xf32> -> tensor<?x128xf32>, tensor<?x128xf32>
  %0 = arith.negf %b : tensor<?x128xf32>
  %1 = tile.join %0, %a : tensor<?x128xf32>, tensor<?x128xf32> -> tensor<?x256xf32>
  tile.return %1 : tensor<?x256xf32>
}
func.func @f(%x: tensor<?x256xf32>) -> tensor<?x256xf32> {
  %0 = tile.launch [@pieces](%x) : (tensor<?x256xf32>) -> tensor<?x256xf32>
  return %0 : tensor<?x256xf32>
}

// -----

// Interleaved pieces come out of one load and go into one store, of a tile as many
// times wider. One of them stored alone is a tile of its own.
// CHECK-LABEL: tile.program @interleaved(
// CHECK:         %[[WHOLE:.*]] = tile.load {{.*}} -> tensor<1x256xf32>
// CHECK-NEXT:    %[[PIECES:.*]]:2 = tile.split interleaved %[[WHOLE]]
// CHECK-NEXT:    %[[NEGATED:.*]] = arith.negf %[[PIECES]]#1 : tensor<1x128xf32>
// CHECK-NEXT:    %[[RESULT:.*]] = tile.join interleaved %[[NEGATED]], %[[PIECES]]#0
// CHECK-NEXT:    tile.store %[[RESULT]], {{.*}} : tensor<1x256xf32>
// CHECK-NEXT:    tile.store %[[PIECES]]#0, {{.*}} : tensor<1x128xf32>
// CHECK-NEXT:    tile.return
tile.kernel @interleaved(%x: tensor<?x256xf32>) -> (tensor<?x256xf32>, tensor<?x128xf32>)
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %a, %b = tile.split interleaved %x : tensor<?x256xf32> -> tensor<?x128xf32>, tensor<?x128xf32>
  %0 = arith.negf %b : tensor<?x128xf32>
  %1 = tile.join interleaved %0, %a : tensor<?x128xf32>, tensor<?x128xf32> -> tensor<?x256xf32>
  tile.return %1, %a : tensor<?x256xf32>, tensor<?x128xf32>
}
func.func @f(%x: tensor<?x256xf32>) -> (tensor<?x256xf32>, tensor<?x128xf32>) {
  %0:2 = tile.launch [@interleaved](%x) : (tensor<?x256xf32>) -> (tensor<?x256xf32>, tensor<?x128xf32>)
  return %0#0, %0#1 : tensor<?x256xf32>, tensor<?x128xf32>
}

// -----

// Each part is loaded and stored on its own.
// CHECK-LABEL: tile.program @parts(
// CHECK:         %[[PART0:.*]] = tile.load {{.*}} {alignment = 16 : i64, invariant, length = 256 : i64} : {{.*}} -> tensor<1x256xf32>
// CHECK-NEXT:    %[[A:.*]]:2 = tile.split interleaved %[[PART0]] : tensor<1x256xf32> -> tensor<1x128xf32>, tensor<1x128xf32>
// CHECK-NEXT:    %[[PART1:.*]] = tile.load {{.*}} {alignment = 16 : i64, invariant, length = 256 : i64, offset = 256 : i64} : {{.*}} -> tensor<1x256xf32>
// CHECK-NEXT:    %[[B:.*]]:2 = tile.split interleaved %[[PART1]]
// CHECK-NEXT:    %[[NEGATED:.*]] = arith.negf %[[A]]#1
// CHECK-NEXT:    %[[RESULT0:.*]] = tile.join interleaved %[[B]]#0, %[[B]]#1 : tensor<1x128xf32>, tensor<1x128xf32> -> tensor<1x256xf32>
// CHECK-NEXT:    tile.store %[[RESULT0]], {{.*}} {alignment = 16 : i64, length = 256 : i64}
// CHECK-NEXT:    %[[RESULT1:.*]] = tile.join interleaved %[[NEGATED]], %[[A]]#0
// CHECK-NEXT:    tile.store %[[RESULT1]], {{.*}} {alignment = 16 : i64, length = 256 : i64, offset = 256 : i64}
// CHECK-NEXT:    tile.return
tile.kernel @parts(%x: tensor<?x512xf32>) -> tensor<?x512xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %0:4 = tile.split interleaved parts(2) %x
      : tensor<?x512xf32> -> tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>
  %1 = arith.negf %0#1 : tensor<?x128xf32>
  %2 = tile.join interleaved parts(2) %0#2, %0#3, %1, %0#0
      : tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32> -> tensor<?x512xf32>
  tile.return %2 : tensor<?x512xf32>
}
func.func @f(%x: tensor<?x512xf32>) -> tensor<?x512xf32> {
  %0 = tile.launch [@parts](%x) : (tensor<?x512xf32>) -> tensor<?x512xf32>
  return %0 : tensor<?x512xf32>
}

// -----

// Pieces of a single element are loaded and stored apart, wherever along the
// other rows a program is, and at the alignment of an element.
// CHECK-LABEL: tile.program @single_elements(
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[A:.*]] = tile.load %[[X:.*]][%[[ROW:.*]], %[[C0]]] {alignment = 4 : i64, invariant, length = 1 : i64} : {{.*}} -> tensor<1x1xf32>
// CHECK-DAG:     %[[B:.*]] = tile.load %[[X]][%[[ROW]], %[[C0]]] {alignment = 4 : i64, invariant, length = 1 : i64, offset = 1 : i64} : {{.*}} -> tensor<1x1xf32>
// CHECK-NOT:     tile.split
// CHECK-NOT:     tile.join
// CHECK:         tile.store %[[B]], %[[R:.*]][%[[ROW]], %[[C0]]] {alignment = 4 : i64, length = 1 : i64}
// CHECK-NEXT:    tile.store %[[A]], %[[R]][%[[ROW]], %[[C0]]] {alignment = 4 : i64, length = 1 : i64, offset = 1 : i64}
tile.kernel @single_elements(%x: tensor<?x2xf32>, %y: tensor<?x256xf32>) -> (tensor<?x2xf32>, tensor<?x256xf32>)
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %a, %b = tile.split interleaved %x : tensor<?x2xf32> -> tensor<?x1xf32>, tensor<?x1xf32>
  %0 = tile.broadcast %a like %y : tensor<?x1xf32>, tensor<?x256xf32> -> tensor<?x256xf32>
  %1 = arith.mulf %y, %0 : tensor<?x256xf32>
  %2 = tile.join interleaved %b, %a : tensor<?x1xf32>, tensor<?x1xf32> -> tensor<?x2xf32>
  tile.return %2, %1 : tensor<?x2xf32>, tensor<?x256xf32>
}
func.func @f(%x: tensor<?x2xf32>, %y: tensor<?x256xf32>) -> (tensor<?x2xf32>, tensor<?x256xf32>) {
  %0:2 = tile.launch [@single_elements](%x, %y) : (tensor<?x2xf32>, tensor<?x256xf32>) -> (tensor<?x2xf32>, tensor<?x256xf32>)
  return %0#0, %0#1 : tensor<?x2xf32>, tensor<?x256xf32>
}

// -----

// Columns are counted from the tile's first; the tensor that gives the sizes is not
// read.
// CHECK-LABEL: tile.program @iota(
// CHECK:         %[[COLUMN:.*]] = arith.muli
// CHECK-NOT:     tile.load
// CHECK:         tile.iota from %[[COLUMN]] : tensor<1x256xi32>
// CHECK-NOT:     tile.load
// CHECK:         tile.return
tile.kernel @iota(%x: tensor<?x1000xf32>) -> tensor<?x1000xi32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %0 = tile.iota like %x : tensor<?x1000xi32>, tensor<?x1000xf32>
  tile.return %0 : tensor<?x1000xi32>
}
func.func @f(%x: tensor<?x1000xf32>) -> tensor<?x1000xi32> {
  %0 = tile.launch [@iota](%x) : (tensor<?x1000xf32>) -> tensor<?x1000xi32>
  return %0 : tensor<?x1000xi32>
}

// -----

// An operand that is written in place is neither constant nor read-only.
// CHECK-LABEL: tile.program @in_place(
// CHECK-SAME:      %[[X:[^:]*]]: memref<?x256xf32, strided<[?, 1]>> {tile.alignment = 16 : i64}, %[[Y:[^:]*]]: memref<?x256xf32, strided<[?, 1]>> {tile.alignment = 16 : i64, tile.readonly},
// CHECK-SAME:      in_place
// CHECK-DAG:     tile.load %[[X]][{{.*}}] {alignment = 16 : i64} :
// CHECK-DAG:     tile.load %[[Y]][{{.*}}] {alignment = 16 : i64, invariant} :
tile.kernel @in_place(%x: tensor<?x256xf32> {tile.in_place = 0 : i64}, %y: tensor<?x256xf32>) -> tensor<?x256xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %0 = arith.addf %x, %y : tensor<?x256xf32>
  tile.return %0 : tensor<?x256xf32>
}
func.func @f(%x: tensor<?x256xf32>, %y: tensor<?x256xf32>) -> tensor<?x256xf32> {
  %0 = tile.launch [@in_place](%x, %y) : (tensor<?x256xf32>, tensor<?x256xf32>) -> tensor<?x256xf32>
  return %0 : tensor<?x256xf32>
}

// -----

// Rows whose pieces are single numbers have no columns, and tiles of one.
// CHECK-LABEL: tile.program @single_numbers(
// CHECK-SAME:      %{{[^:]*}}: index, %[[X:[^:]*]]: memref<?x2xf32, strided<[?, 1]>> {tile.alignment = 4 : i64, tile.readonly}
// CHECK:         tile.load %[[X]]{{.*}} {alignment = 4 : i64, invariant, length = 1 : i64} : {{.*}} -> tensor<32x1xf32>
// CHECK:         tile.load %[[X]]{{.*}} length = 1 : i64, offset = 1 : i64} : {{.*}} -> tensor<32x1xf32>
tile.kernel @single_numbers(%x: tensor<?x2xf32>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<rows = 32, threads = 32, vector = 1, columns = 1>} {
  %0, %1 = tile.split %x : tensor<?x2xf32> -> tensor<?x1xf32>, tensor<?x1xf32>
  %2 = arith.addf %0, %1 : tensor<?x1xf32>
  tile.return %2 : tensor<?x1xf32>
}
func.func @f(%x: tensor<?x2xf32>) -> tensor<?x1xf32> {
  %0 = tile.launch [@single_numbers](%x) : (tensor<?x2xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// -----

// Of the pairs, single numbers are read, which need no alignment; they are as
// long as the rows, but no rows of these columns.
// CHECK-LABEL: tile.program @pairs(
// CHECK-SAME:      %{{[^:]*}}: index, %{{[^:]*}}: memref<?x2xf32, strided<[?, 1]>> {tile.alignment = 8 : i64, tile.readonly}, %{{[^:]*}}: memref<?x2xf32, strided<[?, 1]>> {tile.alignment = 4 : i64, tile.readonly}
tile.kernel @pairs(%x: tensor<?x2xf32>, %y: tensor<?x2xf32>) -> tensor<?x2xf32>
    attributes {schedule = #tile.rows<rows = 32, threads = 32, vector = 2, columns = 2>} {
  %0, %1 = tile.split %y : tensor<?x2xf32> -> tensor<?x1xf32>, tensor<?x1xf32>
  %2 = arith.subf %0, %1 : tensor<?x1xf32>
  %3 = tile.broadcast %2 like %x : tensor<?x1xf32>, tensor<?x2xf32> -> tensor<?x2xf32>
  %4 = arith.addf %x, %3 : tensor<?x2xf32>
  tile.return %4 : tensor<?x2xf32>
}
func.func @f(%x: tensor<?x2xf32>, %y: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = tile.launch [@pairs](%x, %y) : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}

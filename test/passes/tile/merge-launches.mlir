// RUN: tile-opt %s --tile=target=host --merge-launches -split-input-file | FileCheck %s

// The sizes of both row spaces come first, then what each kernel reads and what it
// writes; the programs of the second kernel follow those of the first.
// CHECK-LABEL: tile.program @merged(
// CHECK-SAME:      %[[N0:[^:]*]]: index, %[[N1:[^:]*]]: index,
// CHECK-SAME:      %[[X:[^:]*]]: memref<?x128xf32, strided<[?, 1]>> {tile.alignment = 4 : i64, tile.readonly},
// CHECK-SAME:      %[[V:[^:]*]]: memref<64xf32> {tile.alignment = 4 : i64, tile.readonly},
// CHECK-SAME:      %[[Y:[^:]*]]: memref<?x128xf32, strided<[?, 1]>> {tile.alignment = 4 : i64, tile.readonly, tile.space = 1 : i64},
// CHECK-SAME:      %[[W:[^:]*]]: memref<64xf32> {tile.alignment = 4 : i64, tile.readonly},
// CHECK-SAME:      %[[X2:[^:]*]]: memref<?x128xf32, strided<[?, 1]>> {tile.alignment = 4 : i64},
// CHECK-SAME:      %[[Y2:[^:]*]]: memref<?x128xf32, strided<[?, 1]>> {tile.alignment = 4 : i64, tile.space = 1 : i64})
// CHECK-SAME:      leading = 1 : i64
// CHECK-SAME:      merged = ["second"]
// CHECK-SAME:      spaces = 2 : i64
// CHECK:         %[[P:.*]] = tile.program_id
// CHECK:         %[[FOUR:.*]] = arith.constant 4 : index
// CHECK:         %[[GROUPS:.*]] = arith.ceildivui %[[N0]], %[[FOUR]]
// CHECK:         %[[TWO:.*]] = arith.constant 2 : index
// CHECK:         %[[COUNT:.*]] = arith.muli %[[GROUPS]], %[[TWO]]
// CHECK:         %[[FIRST:.*]] = arith.cmpi ult, %[[P]], %[[COUNT]]
// CHECK:         scf.if %[[FIRST]] {
// CHECK-NOT:       tile.program_id
// CHECK:           arith.remui %[[P]],
// CHECK:           tile.load %[[X]][
// CHECK-NOT:       space
// CHECK:           tile.store %{{.*}}, %[[X2]][
// CHECK-NOT:       space
// CHECK:         } else {
// CHECK:           %[[Q:.*]] = arith.subi %[[P]], %[[COUNT]]
// CHECK-NOT:       tile.program_id
// CHECK:           arith.remui %[[Q]],
// CHECK:           tile.load %[[Y]][{{.*}}] {{{.*}}space = 1 : i64}
// CHECK:           tile.store %{{.*}}, %[[Y2]][{{.*}}] {{{.*}}space = 1 : i64}
// CHECK:         }
// CHECK-NEXT:    tile.return
// CHECK-NOT:   tile.program
// CHECK-LABEL: func.func @f(
// CHECK-SAME:      %[[A:[^:]*]]: {{[^,]*}}, %[[B:[^:]*]]: {{[^,]*}}, %[[C:[^:]*]]: tensor<64xf32>
// CHECK-NEXT:    %[[R:.*]]:2 = tile.launch [@merged](%[[A]], %[[C]], %[[B]], %[[C]])
// CHECK-NEXT:    return %[[R]]#0, %[[R]]#1
#tiles = #tile.rows<rows = 4, threads = 1, vector = 4, columns = 64>
tile.kernel @merged(%x: tensor<?x128xf32>, %v: tensor<64xf32>) -> tensor<?x128xf32>
    attributes {schedule = #tiles} {
  %0 = arith.addf %x, %x : tensor<?x128xf32>
  tile.return %0 : tensor<?x128xf32>
}
tile.kernel @second(%y: tensor<?x128xf32>, %v: tensor<64xf32>) -> tensor<?x128xf32>
    attributes {schedule = #tiles} {
  %0 = arith.mulf %y, %y : tensor<?x128xf32>
  tile.return %0 : tensor<?x128xf32>
}
func.func @f(%x: tensor<?x128xf32>, %y: tensor<?x128xf32>, %v: tensor<64xf32>)
    -> (tensor<?x128xf32>, tensor<?x128xf32>) {
  %0 = tile.launch [@merged](%x, %v) : (tensor<?x128xf32>, tensor<64xf32>) -> tensor<?x128xf32>
  %1 = tile.launch [@second](%y, %v) : (tensor<?x128xf32>, tensor<64xf32>) -> tensor<?x128xf32>
  return %0, %1 : tensor<?x128xf32>, tensor<?x128xf32>
}

// -----

// Three at once. What they share has fewer rows, so that no variant merges
// leading dimensions.
// CHECK-LABEL: tile.program @three(
// CHECK-SAME:      %{{[^:]*}}: index, %{{[^:]*}}: index, %{{[^:]*}}: index, %{{[^:]*}}: index, %[[M:[^:]*]]: index, %[[N:[^:]*]]: index, %{{[^:]*}}: memref
// CHECK-SAME:      leading = 2 : i64
// CHECK-SAME:      merged = ["three1", "three2"]
// CHECK-SAME:      spaces = 3 : i64
// CHECK:         scf.if
// CHECK:         else
// CHECK:           scf.if
// CHECK:             space = 1 : i64
// CHECK:           else
// CHECK:             space = 2 : i64
// CHECK-NOT:   tile.program
// CHECK:       tile.launch [@three](%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}})
#one = #tile.rows<rows = 1, threads = 1, vector = 4, columns = 128>
tile.kernel @three(%x: tensor<?x4x128xf32>, %c: tensor<?x1x128xf32>) -> tensor<?x4x128xf32>
    attributes {schedule = #one} {
  %0 = tile.broadcast %c like %x : tensor<?x1x128xf32>, tensor<?x4x128xf32> -> tensor<?x4x128xf32>
  tile.return %0 : tensor<?x4x128xf32>
}
tile.kernel @three1(%x: tensor<?x2x128xf32>, %c: tensor<?x1x128xf32>) -> tensor<?x2x128xf32>
    attributes {schedule = #one} {
  %0 = tile.broadcast %c like %x : tensor<?x1x128xf32>, tensor<?x2x128xf32> -> tensor<?x2x128xf32>
  tile.return %0 : tensor<?x2x128xf32>
}
tile.kernel @three2(%x: tensor<?x3x128xf32>, %c: tensor<?x1x128xf32>) -> tensor<?x3x128xf32>
    attributes {schedule = #one} {
  %0 = tile.broadcast %c like %x : tensor<?x1x128xf32>, tensor<?x3x128xf32> -> tensor<?x3x128xf32>
  tile.return %0 : tensor<?x3x128xf32>
}
func.func @f(%x: tensor<?x4x128xf32>, %y: tensor<?x2x128xf32>, %z: tensor<?x3x128xf32>, %c: tensor<?x1x128xf32>)
    -> (tensor<?x4x128xf32>, tensor<?x2x128xf32>, tensor<?x3x128xf32>) {
  %0 = tile.launch [@three](%x, %c) : (tensor<?x4x128xf32>, tensor<?x1x128xf32>) -> tensor<?x4x128xf32>
  %1 = tile.launch [@three1](%y, %c) : (tensor<?x2x128xf32>, tensor<?x1x128xf32>) -> tensor<?x2x128xf32>
  %2 = tile.launch [@three2](%z, %c) : (tensor<?x3x128xf32>, tensor<?x1x128xf32>) -> tensor<?x3x128xf32>
  return %0, %1, %2 : tensor<?x4x128xf32>, tensor<?x2x128xf32>, tensor<?x3x128xf32>
}

// -----

// What the second launch waits for moves ahead of both, unless that is the
// first launch.
// CHECK-LABEL: func.func @order(
// CHECK-NEXT:    %[[NEED:.*]] = tile.launch [@need]
// CHECK-NEXT:    %[[R:.*]]:2 = tile.launch [@a](%{{.*}}, %{{.*}}, %[[NEED]], %{{.*}})
// CHECK-NEXT:    return %[[R]]#0, %[[R]]#1
// CHECK-LABEL: func.func @dependent(
// CHECK-NEXT:    tile.launch [@c]
// CHECK-NEXT:    tile.launch [@d]
// CHECK-NEXT:    tile.launch [@e]
// CHECK-NEXT:    return
#one = #tile.rows<rows = 1, threads = 1, vector = 4, columns = 128>
tile.kernel @a(%x: tensor<?x128xf32>, %v: tensor<128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #one} {
  tile.return %x : tensor<?x128xf32>
}
tile.kernel @need(%x: tensor<?x128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #one} {
  tile.return %x : tensor<?x128xf32>
}
tile.kernel @b(%x: tensor<?x128xf32>, %v: tensor<128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #one} {
  tile.return %x : tensor<?x128xf32>
}
func.func @order(%x: tensor<?x128xf32>, %y: tensor<?x128xf32>, %v: tensor<128xf32>)
    -> (tensor<?x128xf32>, tensor<?x128xf32>) {
  %0 = tile.launch [@a](%x, %v) : (tensor<?x128xf32>, tensor<128xf32>) -> tensor<?x128xf32>
  %1 = tile.launch [@need](%y) : (tensor<?x128xf32>) -> tensor<?x128xf32>
  %2 = tile.launch [@b](%1, %v) : (tensor<?x128xf32>, tensor<128xf32>) -> tensor<?x128xf32>
  return %0, %2 : tensor<?x128xf32>, tensor<?x128xf32>
}
tile.kernel @c(%x: tensor<?x128xf32>, %v: tensor<128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #one} {
  tile.return %x : tensor<?x128xf32>
}
tile.kernel @d(%x: tensor<?x128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #one} {
  tile.return %x : tensor<?x128xf32>
}
tile.kernel @e(%x: tensor<?x128xf32>, %v: tensor<128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #one} {
  tile.return %x : tensor<?x128xf32>
}
func.func @dependent(%x: tensor<?x128xf32>, %v: tensor<128xf32>) -> tensor<?x128xf32> {
  %0 = tile.launch [@c](%x, %v) : (tensor<?x128xf32>, tensor<128xf32>) -> tensor<?x128xf32>
  %1 = tile.launch [@d](%0) : (tensor<?x128xf32>) -> tensor<?x128xf32>
  %2 = tile.launch [@e](%1, %v) : (tensor<?x128xf32>, tensor<128xf32>) -> tensor<?x128xf32>
  return %2 : tensor<?x128xf32>
}

// -----

// Not merged: no operand is common.
// CHECK-LABEL: func.func @nothing_shared(
// CHECK-NEXT:    tile.launch [@first]
// CHECK-NEXT:    tile.launch [@second]
#one = #tile.rows<rows = 1, threads = 1, vector = 4, columns = 128>
tile.kernel @first(%x: tensor<?x128xf32>, %v: tensor<128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #one} {
  tile.return %x : tensor<?x128xf32>
}
tile.kernel @second(%x: tensor<?x128xf32>, %v: tensor<128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #one} {
  tile.return %x : tensor<?x128xf32>
}
func.func @nothing_shared(%x: tensor<?x128xf32>, %y: tensor<?x128xf32>, %v: tensor<128xf32>, %w: tensor<128xf32>)
    -> (tensor<?x128xf32>, tensor<?x128xf32>) {
  %0 = tile.launch [@first](%x, %v) : (tensor<?x128xf32>, tensor<128xf32>) -> tensor<?x128xf32>
  %1 = tile.launch [@second](%y, %w) : (tensor<?x128xf32>, tensor<128xf32>) -> tensor<?x128xf32>
  return %0, %1 : tensor<?x128xf32>, tensor<?x128xf32>
}

// -----

// Not merged: schedules differ.
// CHECK-LABEL: func.func @schedules(
// CHECK-NEXT:    tile.launch [@first]
// CHECK-NEXT:    tile.launch [@second]
#one = #tile.rows<rows = 1, threads = 1, vector = 4, columns = 128>
tile.kernel @first(%x: tensor<?x128xf32>, %v: tensor<128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #one} {
  tile.return %x : tensor<?x128xf32>
}
tile.kernel @second(%x: tensor<?x128xf32>, %v: tensor<128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #tile.rows<rows = 2, threads = 1, vector = 4, columns = 128>} {
  tile.return %x : tensor<?x128xf32>
}
func.func @schedules(%x: tensor<?x128xf32>, %y: tensor<?x128xf32>, %v: tensor<128xf32>, %w: tensor<128xf32>)
    -> (tensor<?x128xf32>, tensor<?x128xf32>) {
  %0 = tile.launch [@first](%x, %v) : (tensor<?x128xf32>, tensor<128xf32>) -> tensor<?x128xf32>
  %1 = tile.launch [@second](%y, %v) : (tensor<?x128xf32>, tensor<128xf32>) -> tensor<?x128xf32>
  return %0, %1 : tensor<?x128xf32>, tensor<?x128xf32>
}

// -----

// Not merged: programs are persistent.
// CHECK-LABEL: func.func @persistent(
// CHECK-NEXT:    tile.launch [@first]
// CHECK-NEXT:    tile.launch [@second]
#one = #tile.rows<rows = 1, threads = 1, vector = 4, columns = 128>
tile.kernel @first(%x: tensor<?x128xf32>, %v: tensor<128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 1, vector = 4, columns = 128, persistent = 1>} {
  tile.return %x : tensor<?x128xf32>
}
tile.kernel @second(%x: tensor<?x128xf32>, %v: tensor<128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 1, vector = 4, columns = 128, persistent = 1>} {
  tile.return %x : tensor<?x128xf32>
}
func.func @persistent(%x: tensor<?x128xf32>, %y: tensor<?x128xf32>, %v: tensor<128xf32>, %w: tensor<128xf32>)
    -> (tensor<?x128xf32>, tensor<?x128xf32>) {
  %0 = tile.launch [@first](%x, %v) : (tensor<?x128xf32>, tensor<128xf32>) -> tensor<?x128xf32>
  %1 = tile.launch [@second](%y, %v) : (tensor<?x128xf32>, tensor<128xf32>) -> tensor<?x128xf32>
  return %0, %1 : tensor<?x128xf32>, tensor<?x128xf32>
}

// -----

// Not merged: programs take clusters.
// CHECK-LABEL: func.func @clusters(
// CHECK-NEXT:    tile.launch [@first]
// CHECK-NEXT:    tile.launch [@second]
#one = #tile.rows<rows = 1, threads = 1, vector = 4, columns = 128>
tile.kernel @first(%x: tensor<?x128xf32>, %v: tensor<128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 1, vector = 4, columns = 128, cluster = 2>} {
  tile.return %x : tensor<?x128xf32>
}
tile.kernel @second(%x: tensor<?x128xf32>, %v: tensor<128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 1, vector = 4, columns = 128, cluster = 2>} {
  tile.return %x : tensor<?x128xf32>
}
func.func @clusters(%x: tensor<?x128xf32>, %y: tensor<?x128xf32>, %v: tensor<128xf32>, %w: tensor<128xf32>)
    -> (tensor<?x128xf32>, tensor<?x128xf32>) {
  %0 = tile.launch [@first](%x, %v) : (tensor<?x128xf32>, tensor<128xf32>) -> tensor<?x128xf32>
  %1 = tile.launch [@second](%y, %v) : (tensor<?x128xf32>, tensor<128xf32>) -> tensor<?x128xf32>
  return %0, %1 : tensor<?x128xf32>, tensor<?x128xf32>
}

// -----

// Not merged: one overwrites what the other reads.
// CHECK-LABEL: func.func @in_place(
// CHECK-NEXT:    tile.launch [@first]
// CHECK-NEXT:    tile.launch [@second]
#one = #tile.rows<rows = 1, threads = 1, vector = 4, columns = 128>
tile.kernel @first(%x: tensor<?x128xf32>, %v: tensor<128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #one} {
  tile.return %x : tensor<?x128xf32>
}
tile.kernel @second(%x: tensor<?x128xf32>, %v: tensor<128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #one} {
  tile.return %x : tensor<?x128xf32>
}
func.func @in_place(%x: tensor<?x128xf32>, %y: tensor<?x128xf32>, %v: tensor<128xf32>)
    -> (tensor<?x128xf32>, tensor<?x128xf32> {tile.in_place = 0 : index}) {
  %0 = tile.launch [@first](%x, %v) : (tensor<?x128xf32>, tensor<128xf32>) -> tensor<?x128xf32>
  %1 = tile.launch [@second](%y, %v) : (tensor<?x128xf32>, tensor<128xf32>) -> tensor<?x128xf32>
  return %0, %1 : tensor<?x128xf32>, tensor<?x128xf32>
}

// -----

// Sizes ahead of merging are those of one row space: such kernels stay alone.
// CHECK-LABEL: tile.program @numbers(
// CHECK-SAME:      unmerged_sizes = array<i64: 1>
// CHECK-LABEL: tile.program @plain(
// CHECK-NOT:   merged =
// CHECK-LABEL: func.func @alone(
// CHECK:         tile.launch [@numbers
// CHECK:         tile.launch [@plain
#tiles = #tile.rows<rows = 1, threads = 1, vector = 4, columns = 64>
tile.kernel @numbers(%x: tensor<?x?x64xi32>, %v: tensor<64xi32>) -> tensor<?x?x64xi32>
    attributes {schedule = #tiles} {
  %0 = tile.iota over [1] like %x : tensor<?x?x1xi32>, tensor<?x?x64xi32>
  %1 = tile.broadcast %0 like %x : tensor<?x?x1xi32>, tensor<?x?x64xi32> -> tensor<?x?x64xi32>
  %2 = arith.addi %x, %1 : tensor<?x?x64xi32>
  tile.return %2 : tensor<?x?x64xi32>
}
tile.kernel @plain(%y: tensor<?x?x64xi32>, %v: tensor<64xi32>) -> tensor<?x?x64xi32>
    attributes {schedule = #tiles} {
  %0 = arith.muli %y, %y : tensor<?x?x64xi32>
  tile.return %0 : tensor<?x?x64xi32>
}
func.func @alone(%x: tensor<?x?x64xi32>, %y: tensor<?x?x64xi32>, %v: tensor<64xi32>)
    -> (tensor<?x?x64xi32>, tensor<?x?x64xi32>) {
  %0 = tile.launch [@numbers](%x, %v) : (tensor<?x?x64xi32>, tensor<64xi32>) -> tensor<?x?x64xi32>
  %1 = tile.launch [@plain](%y, %v) : (tensor<?x?x64xi32>, tensor<64xi32>) -> tensor<?x?x64xi32>
  return %0, %1 : tensor<?x?x64xi32>, tensor<?x?x64xi32>
}

// -----

// Nor are kernels merged whose programs take a band of rows each.
// CHECK-LABEL: tile.program @first(
// CHECK-SAME:      band = 64
// CHECK-NOT:   merged =
// CHECK-LABEL: func.func @bands(
// CHECK-NEXT:    tile.launch [@first](
// CHECK-NEXT:    tile.launch [@second](
#tiles = #tile.rows<rows = 4, threads = 1, vector = 4, columns = 128>
tile.kernel @first(%x: tensor<?x128xf32>, %v: tensor<128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #tiles} {
  %0 = tile.reduce max %x : tensor<?x128xf32> -> tensor<?x1xf32>
  %1 = tile.reduce_bands max %0 of 64 : tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x128xf32> -> tensor<?x128xf32>
  tile.return %2 : tensor<?x128xf32>
}
tile.kernel @second(%x: tensor<?x128xf32>, %v: tensor<128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #tiles} {
  %0 = tile.reduce min %x : tensor<?x128xf32> -> tensor<?x1xf32>
  %1 = tile.reduce_bands min %0 of 64 : tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x128xf32> -> tensor<?x128xf32>
  tile.return %2 : tensor<?x128xf32>
}
func.func @bands(%x: tensor<?x128xf32>, %y: tensor<?x128xf32>, %v: tensor<128xf32>)
    -> (tensor<?x128xf32>, tensor<?x128xf32>) {
  %0 = tile.launch [@first](%x, %v) : (tensor<?x128xf32>, tensor<128xf32>) -> tensor<?x128xf32>
  %1 = tile.launch [@second](%y, %v) : (tensor<?x128xf32>, tensor<128xf32>) -> tensor<?x128xf32>
  return %0, %1 : tensor<?x128xf32>, tensor<?x128xf32>
}

// RUN: tile-opt %s | tile-opt | FileCheck %s
// RUN: tile-opt %s --mlir-print-op-generic | tile-opt | FileCheck %s

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// CHECK-LABEL: func @geglu
// CHECK-SAME:      %[[GATE:.*]]: tensor<?x2880xbf16>, %[[UP:.*]]: tensor<?x2880xbf16>
func.func @geglu(%gate: tensor<?x2880xbf16>, %up: tensor<?x2880xbf16>) {
  // CHECK: tile.geglu %[[GATE]], %[[UP]] : tensor<?x2880xbf16>
  %0 = tile.geglu %gate, %up : tensor<?x2880xbf16>
  // CHECK: tile.geglu %[[GATE]], %[[UP]] {alpha = 1.500000e+00 : f64, limit = 5.000000e+00 : f64}
  %1 = tile.geglu %gate, %up {alpha = 1.5, limit = 5.0} : tensor<?x2880xbf16>
  // CHECK: tile.geglu %[[GATE]], %[[UP]] {unlimited}
  %2 = tile.geglu %gate, %up {unlimited} : tensor<?x2880xbf16>
  // CHECK: tile.geglu %[[GATE]], %[[UP]] form({{ *}}tanh) : tensor
  %3 = tile.geglu %gate, %up form(tanh) : tensor<?x2880xbf16>
  // CHECK: tile.geglu %[[GATE]], %[[UP]] form({{ *}}erf) : tensor
  %4 = tile.geglu %gate, %up form(erf) : tensor<?x2880xbf16>
  return
}

// A form that is the default is not printed.
// CHECK-LABEL: func @geglu_default_form
func.func @geglu_default_form(%x: tensor<?x8xf32>) {
  // CHECK: tile.geglu %{{.*}}, %{{.*}} : tensor<?x8xf32>
  %0 = tile.geglu %x, %x form(gpt_oss) : tensor<?x8xf32>
  return
}

// CHECK-LABEL: func @geglu_types
func.func @geglu_types(%a: tensor<?x1xf16>, %b: tensor<?x?x?x7xf32>,
                       %c: tensor<4x2x31xf64>) {
  // CHECK: tile.geglu %{{.*}} : tensor<?x1xf16>
  %0 = tile.geglu %a, %a : tensor<?x1xf16>
  // CHECK: tile.geglu %{{.*}} : tensor<?x?x?x7xf32>
  %1 = tile.geglu %b, %b : tensor<?x?x?x7xf32>
  // CHECK: tile.geglu %{{.*}} : tensor<4x2x31xf64>
  %2 = tile.geglu %c, %c : tensor<4x2x31xf64>
  return
}

// CHECK-LABEL: func @rms_norm
// CHECK-SAME:      %[[X:.*]]: tensor<?x64xbf16>, %[[W:.*]]: tensor<64xf32>
func.func @rms_norm(%x: tensor<?x64xbf16>, %w: tensor<64xf32>) {
  // CHECK: tile.rms_norm %[[X]] : tensor<?x64xbf16>
  %0 = tile.rms_norm %x : tensor<?x64xbf16>
  // CHECK: tile.rms_norm %[[X]] {eps = 0.000000e+00 : f64} : tensor<?x64xbf16>
  %1 = tile.rms_norm %x {eps = 0.0} : tensor<?x64xbf16>
  // CHECK: tile.rms_norm %[[X]], %[[W]] : tensor<?x64xbf16>, tensor<64xf32>
  %2 = tile.rms_norm %x, %w : tensor<?x64xbf16>, tensor<64xf32>
  // CHECK: tile.rms_norm %[[X]], %[[W]] casting({{ *}}gemma) {offset = 1.000000e+00 : f64}
  %3 = tile.rms_norm %x, %w casting(gemma) {offset = 1.0}
      : tensor<?x64xbf16>, tensor<64xf32>
  return
}

// CHECK-LABEL: func @rms_norm_default_casting
func.func @rms_norm_default_casting(%x: tensor<?x?x128xf16>) {
  // CHECK: tile.rms_norm %{{[^ ]*}} : tensor<?x?x128xf16>
  %0 = tile.rms_norm %x casting(llama) : tensor<?x?x128xf16>
  return
}

// CHECK-LABEL: func @broadcast_like
// CHECK-SAME:      %[[SCALAR:[^:]*]]: f32, %[[VECTOR:[^:]*]]: tensor<8xf32>, %[[STATISTIC:[^:]*]]: tensor<?x1xf32>, %[[X:[^:]*]]: tensor<?x8xbf16>
func.func @broadcast_like(%scalar: f32, %vector: tensor<8xf32>,
                          %statistic: tensor<?x1xf32>, %x: tensor<?x8xbf16>) {
  // CHECK: tile.broadcast %[[SCALAR]] like %[[X]] : f32, tensor<?x8xbf16> -> tensor<?x8xf32>
  %0 = tile.broadcast %scalar like %x : f32, tensor<?x8xbf16> -> tensor<?x8xf32>
  // CHECK: tile.broadcast %[[VECTOR]] like %[[X]] : tensor<8xf32>, tensor<?x8xbf16> -> tensor<?x8xf32>
  %1 = tile.broadcast %vector like %x
      : tensor<8xf32>, tensor<?x8xbf16> -> tensor<?x8xf32>
  // CHECK: tile.broadcast %[[STATISTIC]] like %[[X]] : tensor<?x1xf32>, tensor<?x8xbf16> -> tensor<?x8xf32>
  %2 = tile.broadcast %statistic like %x
      : tensor<?x1xf32>, tensor<?x8xbf16> -> tensor<?x8xf32>
  return
}

// CHECK-LABEL: func @broadcast_tile
func.func @broadcast_tile(%scalar: f32, %vector: tensor<1x8xf32>,
                          %statistic: tensor<4x1xf32>) {
  // CHECK: tile.broadcast %{{.*}} : f32 -> tensor<4x8xf32>
  %0 = tile.broadcast %scalar : f32 -> tensor<4x8xf32>
  // CHECK: tile.broadcast %{{.*}} : tensor<1x8xf32> -> tensor<4x8xf32>
  %1 = tile.broadcast %vector : tensor<1x8xf32> -> tensor<4x8xf32>
  // CHECK: tile.broadcast %{{.*}} : tensor<4x1xf32> -> tensor<4x8xf32>
  %2 = tile.broadcast %statistic : tensor<4x1xf32> -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: func @broadcast_rows
func.func @broadcast_rows(%cos: tensor<1x?x8xf32>, %v: tensor<1xf32>, %x: tensor<?x?x8xf32>) {
  // CHECK: tile.broadcast %{{.*}} like %{{.*}} : tensor<1x?x8xf32>, tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %0 = tile.broadcast %cos like %x : tensor<1x?x8xf32>, tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  // CHECK: tile.broadcast %{{.*}} like %{{.*}} : tensor<1xf32>, tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %1 = tile.broadcast %v like %x : tensor<1xf32>, tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  return
}

// CHECK-LABEL: func @broadcast_integers
func.func @broadcast_integers(%s: i32, %x: tensor<?x8xf32>, %t: tensor<4x1xi64>) {
  // CHECK: tile.broadcast %{{.*}} like %{{.*}} : i32, tensor<?x8xf32> -> tensor<?x8xi32>
  %0 = tile.broadcast %s like %x : i32, tensor<?x8xf32> -> tensor<?x8xi32>
  // CHECK: tile.broadcast %{{.*}} : tensor<4x1xi64> -> tensor<4x8xi64>
  %1 = tile.broadcast %t : tensor<4x1xi64> -> tensor<4x8xi64>
  return
}

// CHECK-LABEL: func @split
// CHECK-SAME:      %[[X:.*]]: tensor<?x12xbf16>, %[[W:.*]]: tensor<8xi32>
func.func @split(%x: tensor<?x12xbf16>, %w: tensor<8xi32>) {
  // CHECK: tile.split %[[X]] : tensor<?x12xbf16> -> tensor<?x4xbf16>, tensor<?x4xbf16>, tensor<?x4xbf16>
  %0, %1, %2 = tile.split %x : tensor<?x12xbf16> -> tensor<?x4xbf16>, tensor<?x4xbf16>, tensor<?x4xbf16>
  // CHECK: tile.split interleaved %[[W]] : tensor<8xi32> -> tensor<4xi32>, tensor<4xi32>
  %3, %4 = tile.split interleaved %w : tensor<8xi32> -> tensor<4xi32>, tensor<4xi32>
  // CHECK: tile.split interleaved parts(2) %[[W]] : tensor<8xi32> -> tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>
  %5:4 = tile.split interleaved parts(2) %w : tensor<8xi32> -> tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>
  return
}

// CHECK-LABEL: func @piece
// CHECK-SAME:      %[[X:.*]]: tensor<?x12xbf16>, %[[W:.*]]: tensor<8x4xbf16>
func.func @piece(%x: tensor<?x12xbf16>, %w: tensor<8x4xbf16>) {
  // CHECK: tile.piece %[[X]] dimension 1[2 of 3] : tensor<?x12xbf16> -> tensor<?x4xbf16>
  %0 = tile.piece %x dimension 1[2 of 3] : tensor<?x12xbf16> -> tensor<?x4xbf16>
  // CHECK: tile.piece %[[W]] dimension 0[0 of 2] interleaved : tensor<8x4xbf16> -> tensor<4x4xbf16>
  %1 = tile.piece %w dimension 0[0 of 2] interleaved : tensor<8x4xbf16> -> tensor<4x4xbf16>
  return
}

// CHECK-LABEL: func @join
// CHECK-SAME:      %[[X:.*]]: tensor<?x4xbf16>, %[[W:.*]]: tensor<4xi32>
func.func @join(%x: tensor<?x4xbf16>, %w: tensor<4xi32>) {
  // CHECK: tile.join %[[X]], %[[X]], %[[X]] : tensor<?x4xbf16>, tensor<?x4xbf16>, tensor<?x4xbf16> -> tensor<?x12xbf16>
  %0 = tile.join %x, %x, %x : tensor<?x4xbf16>, tensor<?x4xbf16>, tensor<?x4xbf16> -> tensor<?x12xbf16>
  // CHECK: tile.join interleaved %[[W]], %[[W]] : tensor<4xi32>, tensor<4xi32> -> tensor<8xi32>
  %1 = tile.join interleaved %w, %w : tensor<4xi32>, tensor<4xi32> -> tensor<8xi32>
  // CHECK: tile.join interleaved parts(2) %[[W]], %[[W]], %[[W]], %[[W]] : {{.*}} -> tensor<16xi32>
  %2 = tile.join interleaved parts(2) %w, %w, %w, %w : tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32> -> tensor<16xi32>
  return
}

// CHECK-LABEL: func @iota
// CHECK-SAME:      %[[X:.*]]: tensor<?x8xbf16>, %[[COLUMN:.*]]: index
func.func @iota(%x: tensor<?x8xbf16>, %column: index) {
  // CHECK: tile.iota like %[[X]] : tensor<?x8xi32>, tensor<?x8xbf16>
  %0 = tile.iota like %x : tensor<?x8xi32>, tensor<?x8xbf16>
  // CHECK: tile.iota from %[[COLUMN]] : tensor<4x8xi32>
  %1 = tile.iota from %column : tensor<4x8xi32>
  // CHECK: tile.iota : tensor<4x8xi32>
  %2 = tile.iota : tensor<4x8xi32>
  // CHECK: tile.iota over [0] like %[[X]] : tensor<?x1xi32>, tensor<?x8xbf16>
  %3 = tile.iota over [0] like %x : tensor<?x1xi32>, tensor<?x8xbf16>
  return
}

// CHECK-LABEL: func @stop_gradient
func.func @stop_gradient(%x: tensor<?x1xf32>) {
  // CHECK: tile.stop_gradient %{{.*}} : tensor<?x1xf32>
  %0 = tile.stop_gradient %x : tensor<?x1xf32>
  return
}

// CHECK-LABEL: func @copy
func.func @copy(%x: tensor<?x8xbf16>, %w: tensor<8xi8>) {
  // CHECK: tile.copy %{{.*}} : tensor<?x8xbf16>
  %0 = tile.copy %x : tensor<?x8xbf16>
  // CHECK: tile.copy %{{.*}} : tensor<8xi8>
  %1 = tile.copy %w : tensor<8xi8>
  return
}

// CHECK-LABEL: func @reduce_rows
// CHECK-SAME:      %[[X:.*]]: tensor<?x?x8xf32>, %[[T:.*]]: tensor<4x8xf64>
func.func @reduce_rows(%x: tensor<?x?x8xf32>, %t: tensor<4x8xf64>) {
  // CHECK: tile.reduce_rows {{ *}}add %[[X]] : tensor<?x?x8xf32> -> tensor<8xf32>
  %0 = tile.reduce_rows add %x : tensor<?x?x8xf32> -> tensor<8xf32>
  // CHECK: tile.reduce_rows {{ *}}max %[[X]] partial : tensor<?x?x8xf32> -> tensor<?x8xf32>
  %1 = tile.reduce_rows max %x partial : tensor<?x?x8xf32> -> tensor<?x8xf32>
  // CHECK: tile.reduce_rows {{ *}}add %[[X]] : tensor<?x?x8xf32> -> tensor<1x?x8xf32>
  %3 = tile.reduce_rows add %x : tensor<?x?x8xf32> -> tensor<1x?x8xf32>
  // CHECK: tile.reduce_rows {{ *}}min %[[T]] : tensor<4x8xf64> -> tensor<1x8xf64>
  %2 = tile.reduce_rows min %t : tensor<4x8xf64> -> tensor<1x8xf64>
  return
}

// CHECK-LABEL: func @reduce
// CHECK-SAME:      %[[X:.*]]: tensor<?x8xf32>, %[[Y:.*]]: tensor<?x?x8xf64>
func.func @reduce(%x: tensor<?x8xf32>, %y: tensor<?x?x8xf64>) {
  // CHECK: tile.reduce {{ *}}add %[[X]] : tensor<?x8xf32> -> tensor<?x1xf32>
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x1xf32>
  // CHECK: tile.reduce {{ *}}max %[[X]] : tensor<?x8xf32> -> tensor<?x1xf32>
  %1 = tile.reduce max %x : tensor<?x8xf32> -> tensor<?x1xf32>
  // CHECK: tile.reduce {{ *}}min %[[Y]] : tensor<?x?x8xf64> -> tensor<?x?x1xf64>
  %2 = tile.reduce min %y : tensor<?x?x8xf64> -> tensor<?x?x1xf64>
  return
}

// CHECK-LABEL: tile.kernel @on_tensors
// CHECK-SAME:      (%[[X:.*]]: tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK-SAME:      attributes {schedule = #tile.rows<threads = 128, vector = 4>}
tile.kernel @on_tensors(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {schedule = #tile.rows<threads = 128, vector = 4>} {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  // CHECK: tile.return %{{.*}} : tensor<?x8xf32>
  tile.return %0 : tensor<?x8xf32>
}

// CHECK-LABEL: func @launch
// CHECK-SAME:      %[[X:.*]]: tensor<?x8xf32>
func.func @launch(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: tile.launch [@on_tensors](%[[X]]) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %0 = tile.launch [@on_tensors](%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// Once kernels are tiled, a launch may name several programs.
// CHECK-LABEL: func @launch_variants
func.func @launch_variants(%x: tensor<?x8xf32>, %w: tensor<8xf32>) -> tensor<?x8xf32> {
  // CHECK: tile.launch [@on_tiles, @unaligned](%{{.*}}, %{{.*}}) {overlap_next} :
  %0 = tile.launch [@on_tiles, @unaligned](%x, %w) {overlap_next}
      : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// CHECK-LABEL: tile.program @on_tiles
// CHECK-SAME:      %[[ROWS:[^:]*]]: index,
// CHECK-SAME:      %[[X:[^:]*]]: memref<?x8xf32, strided<[?, 1]>> {tile.alignment = 16 : i64, tile.readonly},
// CHECK-SAME:      %[[W:[^:]*]]: memref<8xf32> {tile.readonly},
// CHECK-SAME:      %[[Y:[^:]*]]: memref<?x8xf32, strided<[?, 1]>>
// CHECK-SAME:      attributes {column_blocks = 2 : i64, leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>}
tile.program @on_tiles(%rows: index,
    %x: memref<?x8xf32, strided<[?, 1]>> {tile.alignment = 16 : i64, tile.readonly},
    %w: memref<8xf32> {tile.readonly}, %y: memref<?x8xf32, strided<[?, 1]>>)
    attributes {column_blocks = 2 : i64, leading = 1 : i64, schedule = #schedule} {
  // CHECK: %[[ID:.*]] = tile.program_id
  %id = tile.program_id
  // CHECK: %[[COUNT:.*]] = tile.program_count
  %count = tile.program_count
  // CHECK: %[[T:.*]] = tile.load %[[X]][%[[ID]], %[[COUNT]]] {alignment = 16 : i64, invariant}
  // CHECK-SAME: : memref<?x8xf32, strided<[?, 1]>> -> tensor<2x4xf32>
  %t = tile.load %x[%id, %count] {alignment = 16 : i64, invariant}
      : memref<?x8xf32, strided<[?, 1]>> -> tensor<2x4xf32>
  // CHECK: tile.load %[[W]][%[[COUNT]]] : memref<8xf32> -> tensor<1x4xf32>
  %v = tile.load %w[%count] : memref<8xf32> -> tensor<1x4xf32>
  // CHECK: %[[M:.*]] = tile.mask %[[T]] from %[[COUNT]] limit 8 else 0.000000e+00 : f32 : tensor<2x4xf32>
  %m = tile.mask %t from %count limit 8 else 0.0 : f32 : tensor<2x4xf32>
  // CHECK: tile.mask_rows %[[T]] from %[[ID]] limit %[[ROWS]] else 0xFF800000 : f32 : tensor<2x4xf32>
  %r = tile.mask_rows %t from %id limit %rows else 0xFF800000 : f32 : tensor<2x4xf32>
  // CHECK: tile.store %[[M]], %[[Y]][%[[ID]], %[[COUNT]]] {alignment = 16 : i64}
  // CHECK-SAME: : tensor<2x4xf32>, memref<?x8xf32, strided<[?, 1]>>
  tile.store %m, %y[%id, %count] {alignment = 16 : i64}
      : tensor<2x4xf32>, memref<?x8xf32, strided<[?, 1]>>
  // CHECK: tile.load %[[X]][%[[ID]], %[[COUNT]]] {length = 4 : i64, offset = 2 : i64}
  %p = tile.load %x[%id, %count] {offset = 2 : i64, length = 4 : i64}
      : memref<?x8xf32, strided<[?, 1]>> -> tensor<2x4xf32>
  // CHECK: tile.store %{{.*}}, %[[Y]][%[[ID]], %[[COUNT]]] {length = 4 : i64, offset = 4 : i64}
  tile.store %p, %y[%id, %count] {offset = 4 : i64, length = 4 : i64}
      : tensor<2x4xf32>, memref<?x8xf32, strided<[?, 1]>>
  // CHECK: tile.return{{$}}
  tile.return
}

// A program that is the only one for its columns, and one that writes in place.
// CHECK-LABEL: tile.program @marks
// CHECK-SAME:      %{{[^:]*}}: memref<?x8xf32> {tile.partial})
// CHECK-SAME:      attributes {column_blocks = 2 : i64, in_place, leading = 1 : i64, row_programs = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>}
tile.program @marks(%rows: index, %p: memref<?x8xf32> {tile.partial})
    attributes {column_blocks = 2 : i64, leading = 1 : i64, row_programs = 1 : i64, in_place, schedule = #schedule} {
  tile.return
}

tile.program @unaligned(%rows: index, %x: memref<?x8xf32, strided<[?, 1]>>,
    %w: memref<8xf32>, %y: memref<?x8xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #schedule} {
  tile.return
}

// CHECK-LABEL: tile.program @empty()
tile.program @empty() attributes {leading = 0 : i64, schedule = #schedule} {
  // CHECK-NEXT: tile.return
  tile.return
}

// CHECK-LABEL: tile.program private @private_kernel
tile.program private @private_kernel() attributes {leading = 0 : i64, schedule = #schedule} {
  tile.return
}

// Every field of a schedule; those that are left out, or 0, are not printed.
// CHECK-LABEL: func @schedule
// CHECK-SAME:      tile.schedule = #tile.rows<rows = 4, threads = 128, vector = 8, columns = 1024, persistent = 2, cluster = 4>
func.func @schedule() attributes {tile.schedule = #tile.rows<
    cluster = 4, persistent = 2, columns = 1024, vector = 8, threads = 128, rows = 4>} {
  return
}

// CHECK-LABEL: func @schedule_of_product
// CHECK-SAME:      tile.schedule = #tile.matmul<rows = 128, columns = 64, depth = 32, threads = 128, vector = 2, stages = 4>
func.func @schedule_of_product() attributes {tile.schedule = #tile.matmul<
    stages = 4, vector = 2, threads = 128, depth = 32, columns = 64, rows = 128>} {
  return
}

// CHECK-LABEL: func @empty_schedule
// CHECK-SAME:      tile.schedule = #tile.rows}
func.func @empty_schedule() attributes {tile.schedule = #tile.rows<rows = 0>} {
  return
}

// CHECK-LABEL: func @layout
// CHECK-SAME:      tensor<4x16xf32, #tile.blocked<vector = 2, threadRows = 2, threadColumns = 4>>
func.func @layout(%tile: tensor<4x16xf32, #tile.blocked<vector = 2, threadRows = 2, threadColumns = 4>>) {
  return
}

// Where it is shared by the blocks of a cluster, the layout says so.
// CHECK-LABEL: func @layout_of_cluster
// CHECK-SAME:      tensor<4x16xf32, #tile.blocked<vector = 2, threadRows = 2, threadColumns = 2, blocks = 4>>
// CHECK-SAME:      tensor<4x8xf32, #tile.blocked<vector = 2, threadRows = 2, threadColumns = 2>>
func.func @layout_of_cluster(
    %shared: tensor<4x16xf32, #tile.blocked<vector = 2, threadRows = 2, threadColumns = 2, blocks = 4>>,
    %own: tensor<4x8xf32, #tile.blocked<vector = 2, threadRows = 2, threadColumns = 2, blocks = 1>>) {
  return
}

// A dimension of size one is held by every thread along it.
// CHECK-LABEL: func @layout_of_edges
func.func @layout_of_edges(
    %vector: tensor<1x16xf32, #tile.blocked<vector = 2, threadRows = 2, threadColumns = 4>>,
    %statistic: tensor<4x1xf32, #tile.blocked<vector = 2, threadRows = 2, threadColumns = 4>>) {
  return
}

// The type of the scale says what shares one.
// CHECK-LABEL: func @quantize
// CHECK-SAME:      %[[X:.*]]: tensor<?x4096xbf16>
func.func @quantize(%x: tensor<?x4096xbf16>, %d: tensor<?x?x130xf64>) {
  // CHECK: %[[Q:.*]], %[[S:.*]] = tile.quantize %[[X]] : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN>, tensor<?x1xf32>
  %q0, %s0 = tile.quantize %x format(e4m3)
      : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN>, tensor<?x1xf32>
  // CHECK: %[[Q1:.*]], %[[S1:.*]] = tile.quantize %[[X]] format({{ *}}e5m2) power_of_two {min_amax = 1.000000e-04 : f64} : tensor<?x4096xbf16> -> tensor<?x4096xf8E5M2>, tensor<?x32xf32>
  %q1, %s1 = tile.quantize %x format(e5m2) power_of_two {min_amax = 1.0e-4}
      : tensor<?x4096xbf16> -> tensor<?x4096xf8E5M2>, tensor<?x32xf32>
  // CHECK: %[[Q2:.*]], %[[S2:.*]] = tile.quantize %[[X]] : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN>, tensor<1xf32>
  %q2, %s2 = tile.quantize %x
      : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN>, tensor<1xf32>
  // CHECK: tile.quantize %{{.*}} : tensor<?x?x130xf64> -> tensor<?x?x130xf8E4M3FN>, tensor<?x?x1xf64>
  %q3, %s3 = tile.quantize %d
      : tensor<?x?x130xf64> -> tensor<?x?x130xf8E4M3FN>, tensor<?x?x1xf64>
  // CHECK: tile.dequantize %[[Q]], %[[S]] : tensor<?x4096xf8E4M3FN>, tensor<?x1xf32> -> tensor<?x4096xbf16>
  %0 = tile.dequantize %q0, %s0
      : tensor<?x4096xf8E4M3FN>, tensor<?x1xf32> -> tensor<?x4096xbf16>
  // CHECK: tile.dequantize %[[Q1]], %[[S1]] : tensor<?x4096xf8E5M2>, tensor<?x32xf32> -> tensor<?x4096xf16>
  %1 = tile.dequantize %q1, %s1
      : tensor<?x4096xf8E5M2>, tensor<?x32xf32> -> tensor<?x4096xf16>
  // CHECK: tile.dequantize %[[Q2]], %[[S2]] : tensor<?x4096xf8E4M3FN>, tensor<1xf32> -> tensor<?x4096xf32>
  %2 = tile.dequantize %q2, %s2
      : tensor<?x4096xf8E4M3FN>, tensor<1xf32> -> tensor<?x4096xf32>
  return
}

// CHECK-LABEL: func @groups
func.func @groups(%x: tensor<?x4096xf32>) {
  // CHECK: %[[MAX:.*]] = tile.reduce max %{{.*}} : tensor<?x4096xf32> -> tensor<?x32xf32>
  %0 = tile.reduce max %x : tensor<?x4096xf32> -> tensor<?x32xf32>
  // CHECK: tile.broadcast %[[MAX]] like %{{.*}} : tensor<?x32xf32>, tensor<?x4096xf32> -> tensor<?x4096xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x32xf32>, tensor<?x4096xf32> -> tensor<?x4096xf32>
  return
}

// CHECK-LABEL: func @misaligned
// CHECK-SAME:      %[[X:[^:]*]]: memref<{{[^:]*}}>, %[[B:[^:]*]]: memref<{{[^:]*}}>, %[[I:[^:]*]]: index
func.func @misaligned(%x: memref<?x9xf32, strided<[?, 1]>>, %b: memref<2x4x16xf32>, %i: index) {
  // CHECK: %[[S:.*]] = tile.misalignment %[[X]][%[[I]]] to 4 : memref<?x9xf32, strided<[?, 1]>> -> tensor<4x1xi32>
  %s = tile.misalignment %x[%i] to 4 : memref<?x9xf32, strided<[?, 1]>> -> tensor<4x1xi32>
  // CHECK: tile.load %[[X]][%[[I]], %[[I]]] misaligned %[[S]] {alignment = 16 : i64} : memref<?x9xf32, strided<[?, 1]>>, tensor<4x1xi32> -> tensor<4x16xf32>
  %0 = tile.load %x[%i, %i] misaligned %s {alignment = 16 : i64}
      : memref<?x9xf32, strided<[?, 1]>>, tensor<4x1xi32> -> tensor<4x16xf32>
  // CHECK: tile.mask %{{.*}} from %[[I]] misaligned %[[S]] limit 9 else 0.000000e+00 : f32 : tensor<4x16xf32>, tensor<4x1xi32>
  %1 = tile.mask %0 from %i misaligned %s limit 9 else 0.0 : f32 : tensor<4x16xf32>, tensor<4x1xi32>
  // CHECK: tile.iota from %[[I]] misaligned %[[S]] of tensor<4x1xi32> : tensor<4x16xi32>
  %2 = tile.iota from %i misaligned %s of tensor<4x1xi32> : tensor<4x16xi32>
  // CHECK: tile.store %{{.*}}, %[[X]][%[[I]], %[[I]]] misaligned %[[S]] : tensor<4x16xf32>, memref<?x9xf32, strided<[?, 1]>>, tensor<4x1xi32>
  tile.store %1, %x[%i, %i] misaligned %s
      : tensor<4x16xf32>, memref<?x9xf32, strided<[?, 1]>>, tensor<4x1xi32>
  // CHECK: tile.copy_ahead %[[X]][%[[I]], %[[I]]] misaligned %[[S]] to %[[B]][%[[I]]] {tile = tensor<4x16xf32>} : memref<?x9xf32, strided<[?, 1]>>, memref<2x4x16xf32>, tensor<4x1xi32>
  tile.copy_ahead %x[%i, %i] misaligned %s to %b[%i] {tile = tensor<4x16xf32>}
      : memref<?x9xf32, strided<[?, 1]>>, memref<2x4x16xf32>, tensor<4x1xi32>
  return
}

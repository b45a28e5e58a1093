// RUN: tile-opt %s --fuse "--schedule=schedule='rows = 64'" --tile --canonicalize --cse | FileCheck %s --check-prefix=WHOLE
// RUN: tile-opt %s --fuse "--schedule=schedule='rows = 16, threads = 128, columns = 128'" --tile --canonicalize --cse | FileCheck %s --check-prefix=PARTS

// A tile that holds a band combines its rows where they are. What has a row for
// each band has one for as many of the tile's.
// WHOLE-LABEL: tile.program @f_kernel(
// WHOLE-SAME:      memref<?x2xf32> {tile.alignment = 4 : i64, tile.band = 64 : i64, tile.readonly},
// WHOLE-SAME:      memref<?x2xf32> {tile.alignment = 4 : i64, tile.band = 64 : i64})
// WHOLE-SAME:      attributes {band = 64 : i64, column_blocks = 2 : i64,
// WHOLE-NOT:     scf.for
// WHOLE:         %[[ROW:.*]] = arith.muli %{{.*}}, %c64
// WHOLE:         tile.load %arg2[%[[ROW]], %{{.*}}] {alignment = 4 : i64, band = 64 : i64, invariant} : memref<?x2xf32> -> tensor<64x1xf32>
// WHOLE:         %[[GROUPS:.*]] = tile.reduce max %{{.*}} -> tensor<64x1xf32>
// WHOLE-NEXT:    %[[MASKED:.*]] = tile.mask_rows %[[GROUPS]] from %[[ROW]] limit %arg0 else 0xFF800000
// WHOLE-NEXT:    %[[BLOCK:.*]] = tile.reduce_rows max %[[MASKED]] : tensor<64x1xf32> -> tensor<1x1xf32>
// WHOLE-NEXT:    %[[BLOCKS:.*]] = tile.broadcast %[[BLOCK]]
// WHOLE:         tile.store %[[BLOCKS]], %arg4[%[[ROW]], %{{.*}}] {alignment = 4 : i64, band = 64 : i64}
// WHOLE:         tile.return

// A tile of fewer rows sweeps the band twice, the last band up to its end.
// PARTS-LABEL: tile.program @f_kernel(
// PARTS:         %[[FIRST:.*]] = arith.muli %{{.*}}, %c64
// PARTS-NEXT:    %[[NEXT:.*]] = arith.addi %[[FIRST]], %c64
// PARTS-NEXT:    %[[END:.*]] = arith.minui %[[NEXT]], %arg0
// PARTS-NEXT:    %[[LOOP:.*]] = scf.for %[[ROW:.*]] = %[[FIRST]] to %[[END]] step %c16 iter_args(%[[SO_FAR:.*]] = %{{.*}}) -> (tensor<16x1xf32>) {
// PARTS:           %[[MASKED:.*]] = tile.mask_rows %{{.*}} from %[[ROW]] limit %arg0
// PARTS-NEXT:      %[[BOTH:.*]] = arith.maximumf %[[SO_FAR]], %[[MASKED]]
// PARTS-NEXT:      scf.yield %[[BOTH]]
// PARTS:         %[[BLOCK:.*]] = tile.reduce_rows max %[[LOOP]]
// PARTS-NEXT:    %[[BLOCKS:.*]] = tile.broadcast %[[BLOCK]]
// PARTS-NEXT:    scf.for %[[AGAIN:.*]] = %[[FIRST]] to %[[END]] step %c16 {
// PARTS:           tile.load %arg1[%[[AGAIN]],
// PARTS:           tile.store %[[BLOCKS]], %arg4[%[[AGAIN]],
// PARTS:         tile.return
func.func @f(%x: tensor<?x256xf32>, %s: tensor<?x2xf32>) -> (tensor<?x256xf32>, tensor<?x2xf32>) {
  %0 = tile.reduce max %x : tensor<?x256xf32> -> tensor<?x2xf32>
  %1 = tile.reduce_bands max %0 of 64 : tensor<?x2xf32>
  %2 = tile.repeat_bands %s of 64 like %x : tensor<?x2xf32>, tensor<?x256xf32> -> tensor<?x2xf32>
  %3 = arith.addf %1, %2 : tensor<?x2xf32>
  %4 = tile.broadcast %3 like %x : tensor<?x2xf32>, tensor<?x256xf32> -> tensor<?x256xf32>
  %5 = arith.subf %x, %4 : tensor<?x256xf32>
  %6 = tile.pack_bands %1 of 64 : tensor<?x2xf32> -> tensor<?x2xf32>
  return %5, %6 : tensor<?x256xf32>, tensor<?x2xf32>
}

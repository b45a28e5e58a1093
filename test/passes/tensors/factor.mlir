// RUN: tile-opt %s "--differentiate=gradients=x,w together in-place" --cse | FileCheck %s --check-prefix=FUNCTION
// RUN: tile-opt %s "--differentiate=gradients=x,w together in-place" --cse --fuse --schedule --tile | FileCheck %s --check-prefix=TILED

// The gradients of a loss can be multiplied by that of the loss, which is called
// like any backward.
// FUNCTION-LABEL: func @loss(
// FUNCTION-SAME:      tile.backward = {function = @loss_scale, gradients = {w = {result = 1 : i64}, x = {result = 0 : i64}}, inputs = [{grad = 0 : i64}, {output = 1 : i64}, {output = 2 : i64}]}
// FUNCTION-LABEL: func @loss_scale(
// FUNCTION-SAME:      %[[FACTOR:[^:]*]]: tensor<1xf32> {tile.factor, tile.name = "grad_result0"}, %[[X:[^:]*]]: tensor<?x8xbf16> {tile.name = "grad_x"}, %[[W:[^:]*]]: tensor<8xf32> {tile.name = "grad_w"})
// FUNCTION-SAME:      -> (tensor<?x8xbf16> {tile.in_place = 1 : index, tile.name = "grad_x"}, tensor<8xf32> {tile.in_place = 2 : index, tile.name = "grad_w"})
// FUNCTION:         %[[WIDE:.*]] = arith.extf %[[X]]
// FUNCTION:         %[[FACTORS:.*]] = tile.broadcast %[[FACTOR]] like %[[WIDE]]
// FUNCTION:         %[[PRODUCT:.*]] = arith.mulf %[[WIDE]], %[[FACTORS]]
// FUNCTION:         %[[ROUNDED:.*]] = arith.truncf %[[PRODUCT]]
// FUNCTION:         return %[[ROUNDED]], %{{.*}}

// Its programs, as few as run at once, end where there is nothing to do.
// TILED-LABEL: tile.program @loss_scale_kernel0(
// TILED-SAME:      persistent =
// TILED:         %[[DONE:.*]] = tile.is_done %{{.*}}, %{{.*}} to %{{.*}} : memref<1xf32>, memref<?x8xbf16, strided<[?, 1]>> to memref<?x8xbf16, strided<[?, 1]>>
// TILED:         %[[LEFT:.*]] = arith.xori %[[DONE]]
// TILED:         scf.if %[[LEFT]] {
// TILED:           tile.store {{.*}}
// TILED-NEXT:    }
// TILED-NEXT:    }
// TILED-NEXT:    tile.return
// TILED-LABEL: tile.program @loss_scale_kernel1(
// TILED:         tile.is_done %{{.*}}, %{{.*}} to %{{.*}} : memref<1xf32>, memref<8xf32> to memref<8xf32>
func.func @loss(%x: tensor<?x8xbf16> {tile.name = "x"}, %w: tensor<8xf32> {tile.name = "w"})
    -> tensor<1xf32> {
  %0 = arith.extf %x : tensor<?x8xbf16> to tensor<?x8xf32>
  %1 = tile.broadcast %w like %x : tensor<8xf32>, tensor<?x8xbf16> -> tensor<?x8xf32>
  %2 = arith.mulf %0, %1 : tensor<?x8xf32>
  %3 = tile.reduce add %2 : tensor<?x8xf32> -> tensor<?x1xf32>
  %4 = tile.reduce_rows add %3 : tensor<?x1xf32> -> tensor<1xf32>
  return %4 : tensor<1xf32>
}

// A result of more numbers than one has no single factor.
// FUNCTION-LABEL: func @rows(
// FUNCTION-NOT:   _scale
func.func @rows(%x: tensor<?x8xf32> {tile.name = "x"}) -> tensor<?x8xf32> {
  %0 = arith.mulf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

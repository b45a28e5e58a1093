// RUN: tile-opt %s --decompose --cse --canonicalize --cse -split-input-file | FileCheck %s

// The target's logit is picked out of the shifted row, before which log(sum) is
// not large either: their difference keeps its digits. A target outside of the row
// makes NaN, one to be ignored 0; its low half is not taken for a target.
// CHECK-LABEL: func @each(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xf32>, %[[T:[^:]*]]: tensor<?x1xi64>)
// CHECK-DAG:     %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// CHECK-DAG:     %[[IGNORE:.*]] = arith.constant -100 : i64
// CHECK-DAG:     %[[LENGTH:.*]] = arith.constant 8 : i64
// CHECK-DAG:     %[[MAX:.*]] = tile.reduce {{ *}}max %[[X]]
// CHECK-DAG:     %[[STOPPED:.*]] = tile.stop_gradient %[[MAX]]
// CHECK-DAG:     %[[MISALIGNMENTED:.*]] = arith.subf %[[X]],
// CHECK-DAG:     %[[EXP:.*]] = math.exp %[[MISALIGNMENTED]]
// CHECK-DAG:     %[[SUM:.*]] = tile.reduce {{ *}}add %[[EXP]]
// CHECK-DAG:     %[[LOG:.*]] = math.log %[[SUM]]
// CHECK-DAG:     %[[LSE:.*]] = arith.addf %[[LOG]], %[[STOPPED]]
// CHECK-DAG:     %[[IGNORES:.*]] = tile.broadcast %[[IGNORE]] like %[[T]]
// CHECK-DAG:     %[[IGNORED:.*]] = arith.cmpi eq, %[[T]], %[[IGNORES]]
// CHECK-DAG:     %[[LENGTHS:.*]] = tile.broadcast %[[LENGTH]] like %[[T]]
// CHECK-DAG:     %[[INSIDE:.*]] = arith.cmpi ult, %[[T]], %[[LENGTHS]]
// CHECK-DAG:     %[[COLUMN:.*]] = tile.iota like %[[X]]
// CHECK-DAG:     %[[SAFE:.*]] = arith.select %[[INSIDE]], %{{.*}}, %{{.*}} : tensor<?x1xi1>, tensor<?x1xi32>
// CHECK-DAG:     %[[SAFES:.*]] = tile.broadcast %[[SAFE]] like %[[X]]
// CHECK-DAG:     %[[ISTARGET:.*]] = arith.cmpi eq, %[[COLUMN]], %[[SAFES]]
// CHECK-DAG:     %[[CHOSEN:.*]] = arith.select %[[ISTARGET]], %[[X]],
// CHECK-DAG:     %[[LOGIT:.*]] = tile.reduce {{ *}}add %[[CHOSEN]]
// CHECK-DAG:     %[[TARGET:.*]] = arith.subf %[[LOGIT]], %[[STOPPED]]
// CHECK-DAG:     %[[LOSS:.*]] = arith.subf %[[LOG]], %[[TARGET]]
// CHECK-DAG:     %[[VALID:.*]] = arith.select %[[INSIDE]], %[[LOSS]],
// CHECK-DAG:     %[[RESULT:.*]] = arith.select %[[IGNORED]], %{{.*}}, %[[VALID]]
// CHECK:         return %[[RESULT]], %[[LSE]]
func.func @each(%x: tensor<?x8xf32>, %t: tensor<?x1xi64>)
    -> (tensor<?x1xf32>, tensor<?x1xf32>) {
  %0:5 = tile.cross_entropy %x, %t reduction(none) : tensor<?x8xf32>, tensor<?x1xi64>
  return %0#0, %0#1 : tensor<?x1xf32>, tensor<?x1xf32>
}

// -----

// CHECK-LABEL: func @sum(
// CHECK:         %[[SUM:.*]] = tile.reduce_rows add %{{.*}} : tensor<?x1xf32> -> tensor<1xf32>
// CHECK-NOT:     tile.reduce_rows add {{.*}}
// CHECK:         return %[[SUM]]
func.func @sum(%x: tensor<?x8xf32>, %t: tensor<?x1xi64>) -> tensor<1xf32> {
  %0:5 = tile.cross_entropy %x, %t reduction(sum) : tensor<?x8xf32>, tensor<?x1xi64>
  return %0#0 : tensor<1xf32>
}

// -----

// The mean is over the tokens that are not ignored; none make 0, not 0 / 0.
// CHECK-LABEL: func @mean(
// CHECK:         %[[LOSS:.*]] = tile.reduce_rows
// CHECK:         %[[COUNT:.*]] = tile.reduce_rows
// CHECK:         %[[NONE:.*]] = arith.cmpf oeq, %[[COUNT]],
// CHECK-NEXT:    %[[SAFE:.*]] = arith.select %[[NONE]], %{{.*}}, %[[COUNT]]
// CHECK-NEXT:    %[[MEAN:.*]] = arith.divf %[[LOSS]], %[[SAFE]]
// CHECK-NEXT:    return %[[MEAN]]
func.func @mean(%x: tensor<?x8xf32>, %t: tensor<?x1xi64>) -> tensor<1xf32> {
  %0:5 = tile.cross_entropy %x, %t : tensor<?x8xf32>, tensor<?x1xi64>
  return %0#0 : tensor<1xf32>
}

// -----

// CHECK-LABEL: func @attributes(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xf32>,
// CHECK-DAG:     %[[ZLOSS:.*]] = arith.constant 0.00999999977
// CHECK-DAG:     %[[SMOOTHING:.*]] = arith.constant 1.250000e-02
// CHECK-DAG:     %[[REST:.*]] = arith.constant 0.899999976
// CHECK-DAG:     %[[SCALED:.*]] = arith.mulf %[[X]],
// CHECK-DAG:     %[[TANH:.*]] = math.tanh %[[SCALED]]
// CHECK-DAG:     %[[CAPPED:.*]] = arith.mulf %[[TANH]],
// CHECK-DAG:     %[[COOLED:.*]] = arith.mulf %[[CAPPED]],
// CHECK-DAG:     tile.reduce {{ *}}max %[[COOLED]]
// CHECK-DAG:     tile.broadcast %[[REST]]
// CHECK-DAG:     tile.broadcast %[[SMOOTHING]]
// CHECK-DAG:     tile.broadcast %[[ZLOSS]]
// CHECK:         return
func.func @attributes(%x: tensor<?x8xf32>, %t: tensor<?x1xi64>) -> tensor<1xf32> {
  %0:5 = tile.cross_entropy %x, %t
      {label_smoothing = 0.1, z_loss = 0.01, soft_cap = 30.0, temperature = 2.0}
      : tensor<?x8xf32>, tensor<?x1xi64>
  return %0#0 : tensor<1xf32>
}

// -----

// A token's weight is that of its class, 0 where it is ignored.
// CHECK-LABEL: func @weights(
// CHECK-SAME:      %[[W:[^:]*]]: tensor<8xf32>)
// CHECK:         %[[WS:.*]] = tile.broadcast %[[W]]
// CHECK-NEXT:    %[[CHOSEN:.*]] = arith.select %{{.*}}, %[[WS]],
// CHECK-NEXT:    %[[WEIGHT:.*]] = tile.reduce {{ *}}add %[[CHOSEN]]
// CHECK-NEXT:    arith.mulf %{{.*}}, %[[WEIGHT]]
// CHECK:         arith.select %{{.*}}, %{{.*}}, %[[WEIGHT]]
// CHECK-NEXT:    tile.reduce_rows
func.func @weights(%x: tensor<?x8xf32>, %t: tensor<?x1xi64>, %w: tensor<8xf32>) -> tensor<1xf32> {
  %0:5 = tile.cross_entropy %x, %t weights(%w)
      : tensor<?x8xf32>, tensor<?x1xi64>, tensor<8xf32>
  return %0#0 : tensor<1xf32>
}

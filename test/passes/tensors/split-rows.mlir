// RUN: tile-opt %s --split-rows -split-input-file | FileCheck %s

// Each piece of a result comes from the same pieces of the operands.
// CHECK-LABEL: func @elementwise(
// CHECK-SAME:      %[[X:.*]]: tensor<?x8xf32>, %[[Y:.*]]: tensor<?x8xf32>
// CHECK-DAG:     %[[XS:.*]]:2 = tile.split %[[X]] : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
// CHECK-DAG:     %[[YS:.*]]:2 = tile.split %[[Y]]
// CHECK-NEXT:    %[[LOW:.*]] = arith.addf %[[XS]]#0, %[[YS]]#0 : tensor<?x4xf32>
// CHECK-NEXT:    %[[HIGH:.*]] = arith.addf %[[XS]]#1, %[[YS]]#1 : tensor<?x4xf32>
// CHECK-NEXT:    %[[PRODUCT:.*]] = arith.mulf %[[LOW]], %[[HIGH]]
// CHECK-NEXT:    return %[[PRODUCT]]
func.func @elementwise(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x4xf32> {
  %0 = arith.addf %x, %y : tensor<?x8xf32>
  %low, %high = tile.split %0 : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %1 = arith.mulf %low, %high : tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// -----

// What follows a join computes on the pieces; the other operand is split.
// CHECK-LABEL: func @elementwise_after_join(
// CHECK-SAME:      %[[A:.*]]: tensor<?x4xf32>, %[[B:.*]]: tensor<?x4xf32>, %[[Y:.*]]: tensor<?x8xf32>
// CHECK:         %[[YS:.*]]:2 = tile.split %[[Y]]
// CHECK-NEXT:    %[[LOW:.*]] = arith.subf %[[A]], %[[YS]]#0
// CHECK-NEXT:    %[[HIGH:.*]] = arith.subf %[[B]], %[[YS]]#1
// CHECK-NEXT:    %[[JOIN:.*]] = tile.join %[[LOW]], %[[HIGH]] : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
// CHECK-NEXT:    return %[[JOIN]]
func.func @elementwise_after_join(%a: tensor<?x4xf32>, %b: tensor<?x4xf32>,
                                  %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.join %a, %b : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  %1 = arith.subf %0, %y : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

// A scalar condition serves all pieces, a condition on rows is split; attributes
// stay.
// CHECK-LABEL: func @conditions_and_attributes(
// CHECK-SAME:      %[[X:.*]]: tensor<?x8xf32>, %[[C:.*]]: i1
// CHECK:         %[[XS:.*]]:2 = tile.split %[[X]]
// CHECK-NEXT:    %[[N0:.*]] = arith.negf %[[XS]]#0 fastmath<nnan>
// CHECK-NEXT:    %[[N1:.*]] = arith.negf %[[XS]]#1 fastmath<nnan>
// CHECK-NEXT:    %[[S0:.*]] = arith.select %[[C]], %[[XS]]#0, %[[N0]] : tensor<?x4xf32>
// CHECK-NEXT:    %[[S1:.*]] = arith.select %[[C]], %[[XS]]#1, %[[N1]] : tensor<?x4xf32>
// CHECK-NEXT:    %[[C0:.*]] = arith.cmpf olt, %[[S0]], %[[XS]]#0 : tensor<?x4xf32>
// CHECK-NEXT:    %[[C1:.*]] = arith.cmpf olt, %[[S1]], %[[XS]]#1 : tensor<?x4xf32>
// CHECK-NEXT:    %[[T0:.*]] = arith.select %[[C0]], %[[XS]]#0, %[[S0]] : tensor<?x4xi1>, tensor<?x4xf32>
// CHECK-NEXT:    %[[T1:.*]] = arith.select %[[C1]], %[[XS]]#1, %[[S1]] : tensor<?x4xi1>, tensor<?x4xf32>
// CHECK-NEXT:    return %[[T0]], %[[T1]]
func.func @conditions_and_attributes(%x: tensor<?x8xf32>, %c: i1)
    -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = arith.negf %x fastmath<nnan> : tensor<?x8xf32>
  %1 = arith.select %c, %x, %0 : tensor<?x8xf32>
  %2 = arith.cmpf olt, %1, %x : tensor<?x8xf32>
  %3 = arith.select %2, %x, %1 : tensor<?x8xi1>, tensor<?x8xf32>
  %low, %high = tile.split %3 : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  return %low, %high : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// CHECK-LABEL: func @split_of_join(
// CHECK-SAME:      %[[A:.*]]: tensor<?x4xf32>, %[[B:.*]]: tensor<?x4xf32>
// CHECK-NEXT:    %[[SUM:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT:    return %[[SUM]]
func.func @split_of_join(%a: tensor<?x4xf32>, %b: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = tile.join interleaved %a, %b : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  %c, %d = tile.split interleaved %0 : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %1 = arith.addf %c, %d : tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// -----

// Half of four pieces are two of them.
// CHECK-LABEL: func @split_of_larger_join(
// CHECK-SAME:      %[[A:[^:]*]]: {{.*}}, %[[B:[^:]*]]: {{.*}}, %[[C:[^:]*]]: {{.*}}, %[[D:[^:]*]]: tensor<?x2xf32>)
// CHECK-NEXT:    %[[AC:.*]] = arith.addf %[[A]], %[[C]]
// CHECK-NEXT:    %[[BD:.*]] = arith.addf %[[B]], %[[D]]
// CHECK-NEXT:    %[[JOIN:.*]] = tile.join %[[AC]], %[[BD]] : tensor<?x2xf32>, tensor<?x2xf32> -> tensor<?x4xf32>
// CHECK-NEXT:    return %[[JOIN]]
func.func @split_of_larger_join(%a: tensor<?x2xf32>, %b: tensor<?x2xf32>, %c: tensor<?x2xf32>,
                                %d: tensor<?x2xf32>) -> tensor<?x4xf32> {
  %0 = tile.join %a, %b, %c, %d
      : tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32> -> tensor<?x8xf32>
  %low, %high = tile.split %0 : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %1 = arith.addf %low, %high : tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// -----

// Every fourth element in turn is every second of every second: a, c; b, d.
// CHECK-LABEL: func @interleaved_split_of_larger_join(
// CHECK-SAME:      %[[A:[^:]*]]: {{.*}}, %[[B:[^:]*]]: {{.*}}, %[[C:[^:]*]]: {{.*}}, %[[D:[^:]*]]: tensor<?x2xf32>)
// CHECK-NEXT:    %[[AB:.*]] = arith.subf %[[A]], %[[B]]
// CHECK-NEXT:    %[[CD:.*]] = arith.subf %[[C]], %[[D]]
// CHECK-NEXT:    %[[JOIN:.*]] = tile.join interleaved %[[AB]], %[[CD]]
// CHECK-NEXT:    return %[[JOIN]]
func.func @interleaved_split_of_larger_join(%a: tensor<?x2xf32>, %b: tensor<?x2xf32>,
    %c: tensor<?x2xf32>, %d: tensor<?x2xf32>) -> tensor<?x4xf32> {
  %0 = tile.join interleaved %a, %b, %c, %d
      : tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32> -> tensor<?x8xf32>
  %even, %odd = tile.split interleaved %0 : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %1 = arith.subf %even, %odd : tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// -----

// Pieces of pieces are pieces: of 12 elements in halves, one half in thirds.
// CHECK-LABEL: func @split_of_split(
// CHECK:         %[[XS:.*]]:6 = tile.split %[[X:.*]] : tensor<?x12xf32> -> tensor<?x2xf32>,
// CHECK-NEXT:    %[[N0:.*]] = arith.negf %[[XS]]#0
// CHECK-NEXT:    %[[N1:.*]] = arith.negf %[[XS]]#1
// CHECK-NEXT:    %[[N2:.*]] = arith.negf %[[XS]]#2
// CHECK-NEXT:    %[[JOIN:.*]] = tile.join %[[N0]], %[[N1]], %[[N2]] : {{.*}} -> tensor<?x6xf32>
// CHECK-NEXT:    return %[[JOIN]], %[[XS]]#4
func.func @split_of_split(%x: tensor<?x12xf32>) -> (tensor<?x6xf32>, tensor<?x2xf32>) {
  %low, %high = tile.split %x : tensor<?x12xf32> -> tensor<?x6xf32>, tensor<?x6xf32>
  %a, %b, %c = tile.split %high : tensor<?x6xf32> -> tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>
  %0 = arith.negf %low : tensor<?x6xf32>
  return %0, %b : tensor<?x6xf32>, tensor<?x2xf32>
}

// -----

// Halves and thirds of one row are sixths.
// CHECK-LABEL: func @two_counts(
// CHECK:         %[[XS:.*]]:6 = tile.split
// CHECK-DAG:     tile.join %[[XS]]#0, %[[XS]]#1, %[[XS]]#2 :
// CHECK-DAG:     tile.join %[[XS]]#2, %[[XS]]#3 :
func.func @two_counts(%x: tensor<?x12xf32>) -> (tensor<?x6xf32>, tensor<?x4xf32>) {
  %low, %high = tile.split %x : tensor<?x12xf32> -> tensor<?x6xf32>, tensor<?x6xf32>
  %a, %b, %c = tile.split %x : tensor<?x12xf32> -> tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  return %low, %b : tensor<?x6xf32>, tensor<?x4xf32>
}

// -----

// Scalars, statistics and vectors of one element are the same for every piece,
// and a piece has the leading sizes.
// CHECK-LABEL: func @broadcast_uniform(
// CHECK-SAME:      %[[X:.*]]: tensor<?x8xf32>, %[[S:.*]]: tensor<?x1xf32>, %[[V:.*]]: tensor<1xf32>
// CHECK-DAG:     %[[SCALAR:.*]] = arith.constant 2.000000e+00 : f32
// CHECK-DAG:     %[[XS:.*]]:2 = tile.split %[[X]]
// CHECK-DAG:     %[[TWO:.*]] = tile.broadcast %[[SCALAR]] like %[[XS]]#0 : f32, tensor<?x4xf32> -> tensor<?x4xf32>
// CHECK-DAG:     %[[MEAN:.*]] = tile.broadcast %[[S]] like %[[XS]]#0 : tensor<?x1xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
// CHECK-DAG:     %[[ONE:.*]] = tile.broadcast %[[V]] like %[[XS]]#0 : tensor<1xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
// CHECK-DAG:     arith.mulf %[[XS]]#0, %[[TWO]]
// CHECK-DAG:     arith.mulf %[[XS]]#1, %[[TWO]]
// CHECK-COUNT-2: arith.addf %{{.*}}, %[[MEAN]]
// CHECK-COUNT-2: arith.subf %{{.*}}, %[[ONE]]
// CHECK-NOT:     tensor<?x8xf32>{{$}}
// CHECK:         return
func.func @broadcast_uniform(%x: tensor<?x8xf32>, %s: tensor<?x1xf32>, %v: tensor<1xf32>)
    -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %two = arith.constant 2.0 : f32
  %0 = tile.broadcast %two like %x : f32, tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = tile.broadcast %s like %x : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %2 = tile.broadcast %v like %x : tensor<1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %3 = arith.mulf %x, %0 : tensor<?x8xf32>
  %4 = arith.addf %3, %1 : tensor<?x8xf32>
  %5 = arith.subf %4, %2 : tensor<?x8xf32>
  %low, %high = tile.split %5 : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  return %low, %high : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// CHECK-LABEL: func @broadcast_vector(
// CHECK-SAME:      %[[X:.*]]: tensor<?x8xf32>, %[[W:.*]]: tensor<8xf32>
// CHECK-DAG:     %[[XS:.*]]:2 = tile.split interleaved %[[X]]
// CHECK-DAG:     %[[WS:.*]]:2 = tile.split interleaved %[[W]] : tensor<8xf32> -> tensor<4xf32>, tensor<4xf32>
// CHECK-DAG:     tile.broadcast %[[WS]]#0 like %[[XS]]#0 : tensor<4xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
// CHECK-DAG:     tile.broadcast %[[WS]]#1 like %[[XS]]#0 : tensor<4xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
// CHECK:         return
func.func @broadcast_vector(%x: tensor<?x8xf32>, %w: tensor<8xf32>) -> tensor<?x4xf32> {
  %0 = tile.broadcast %w like %x : tensor<8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = arith.mulf %x, %0 : tensor<?x8xf32>
  %even, %odd = tile.split interleaved %1 : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %2 = arith.addf %even, %odd : tensor<?x4xf32>
  return %2 : tensor<?x4xf32>
}

// -----

// CHECK-LABEL: func @broadcast_rows(
// CHECK-SAME:      %[[X:.*]]: tensor<?x?x8xf32>, %[[COS:.*]]: tensor<1x?x8xf32>
// CHECK-DAG:     %[[XS:.*]]:2 = tile.split %[[X]]
// CHECK-DAG:     %[[COSS:.*]]:2 = tile.split %[[COS]]
// CHECK-DAG:     tile.broadcast %[[COSS]]#1 like %[[XS]]#0 : tensor<1x?x4xf32>, tensor<?x?x4xf32> -> tensor<?x?x4xf32>
// CHECK:         return
func.func @broadcast_rows(%x: tensor<?x?x8xf32>, %cos: tensor<1x?x8xf32>) -> tensor<?x?x4xf32> {
  %0 = tile.broadcast %cos like %x : tensor<1x?x8xf32>, tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %1 = arith.mulf %x, %0 : tensor<?x?x8xf32>
  %low, %high = tile.split %1 : tensor<?x?x8xf32> -> tensor<?x?x4xf32>, tensor<?x?x4xf32>
  return %high : tensor<?x?x4xf32>
}

// -----

// A tensor that only lends its sizes need not be whole.
// CHECK-LABEL: func @broadcast_like_join(
// CHECK-SAME:      %[[A:.*]]: tensor<?x4xf32>, %[[B:.*]]: tensor<?x4xf32>, %[[S:.*]]: tensor<?x1xf32>
// CHECK-NOT:     tile.join
// CHECK:         tile.broadcast %[[S]] like %[[A]] : tensor<?x1xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
// CHECK-NOT:     tile.join
// CHECK:         return
func.func @broadcast_like_join(%a: tensor<?x4xf32>, %b: tensor<?x4xf32>, %s: tensor<?x1xf32>)
    -> tensor<?x8xf32> {
  %0 = tile.join %a, %b : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  %1 = tile.broadcast %s like %0 : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

// Equal columns tie nothing together: %y stays whole though one constant serves
// both.
// CHECK-LABEL: func @shared_constant(
// CHECK-SAME:      %[[X:.*]]: tensor<2x8xf32>, %[[Y:.*]]: tensor<2x8xf32>
// CHECK-DAG:     %[[WHOLE:.*]] = arith.constant dense<1.000000e+00> : tensor<2x8xf32>
// CHECK-DAG:     %[[PIECE:.*]] = arith.constant dense<1.000000e+00> : tensor<2x4xf32>
// CHECK-DAG:     %[[XS:.*]]:2 = tile.split %[[X]]
// CHECK-DAG:     %[[LOW:.*]] = arith.addf %[[XS]]#0, %[[PIECE]]
// CHECK-DAG:     %[[SUM:.*]] = arith.addf %[[Y]], %[[WHOLE]] : tensor<2x8xf32>
// CHECK:         return %[[LOW]], %[[SUM]]
func.func @shared_constant(%x: tensor<2x8xf32>, %y: tensor<2x8xf32>)
    -> (tensor<2x4xf32>, tensor<2x8xf32>) {
  %one = arith.constant dense<1.0> : tensor<2x8xf32>
  %0 = arith.addf %x, %one : tensor<2x8xf32>
  %low, %high = tile.split %0 : tensor<2x8xf32> -> tensor<2x4xf32>, tensor<2x4xf32>
  %1 = arith.addf %y, %one : tensor<2x8xf32>
  return %low, %1 : tensor<2x4xf32>, tensor<2x8xf32>
}

// -----

// CHECK-LABEL: func @split_of_broadcast(
// CHECK-SAME:      %[[X:.*]]: tensor<?x8xf32>, %[[S:.*]]: tensor<?x1xf32>
// CHECK-NEXT:    %[[PIECE:.*]] = tile.broadcast %[[S]] like %[[X]] : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x4xf32>
// CHECK-NEXT:    %[[SUM:.*]] = arith.addf %[[PIECE]], %[[PIECE]]
// CHECK-NEXT:    return %[[SUM]]
func.func @split_of_broadcast(%x: tensor<?x8xf32>, %s: tensor<?x1xf32>) -> tensor<?x4xf32> {
  %0 = tile.broadcast %s like %x : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %low, %high = tile.split %0 : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %1 = arith.addf %low, %high : tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// -----

// What a number takes its sizes from is not taken apart for it.
// CHECK-LABEL: func @iota_contiguous(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xf32>)
// CHECK-NOT:     tile.split
// CHECK-DAG:     %[[C4:.*]] = arith.constant 4 : i32
// CHECK-DAG:     %[[FIRST:.*]] = tile.iota like %[[X]] : tensor<?x4xi32>, tensor<?x8xf32>
// CHECK-DAG:     %[[OFFSET:.*]] = tile.broadcast %[[C4]] like %[[X]] : i32, tensor<?x8xf32> -> tensor<?x4xi32>
// CHECK:         %[[SECOND:.*]] = arith.addi %[[FIRST]], %[[OFFSET]]
// CHECK-NEXT:    return %[[FIRST]], %[[SECOND]]
func.func @iota_contiguous(%x: tensor<?x8xf32>) -> (tensor<?x4xi32>, tensor<?x4xi32>) {
  %0 = tile.iota like %x : tensor<?x8xi32>, tensor<?x8xf32>
  %low, %high = tile.split %0 : tensor<?x8xi32> -> tensor<?x4xi32>, tensor<?x4xi32>
  return %low, %high : tensor<?x4xi32>, tensor<?x4xi32>
}

// -----

// CHECK-LABEL: func @iota_interleaved(
// CHECK-DAG:     %[[C1:.*]] = arith.constant 1 : i32
// CHECK-DAG:     %[[C2:.*]] = arith.constant 2 : i32
// CHECK-DAG:     %[[IOTA:.*]] = tile.iota : tensor<2x4xi32>
// CHECK-DAG:     %[[COUNT:.*]] = tile.broadcast %[[C2]] : i32 -> tensor<2x4xi32>
// CHECK-DAG:     %[[EVEN:.*]] = arith.muli %[[IOTA]], %[[COUNT]]
// CHECK-DAG:     %[[ONE:.*]] = tile.broadcast %[[C1]] : i32 -> tensor<2x4xi32>
// CHECK:         %[[ODD:.*]] = arith.addi %[[EVEN]], %[[ONE]]
// CHECK-NEXT:    return %[[EVEN]], %[[ODD]]
func.func @iota_interleaved() -> (tensor<2x4xi32>, tensor<2x4xi32>) {
  %0 = tile.iota : tensor<2x8xi32>
  %even, %odd = tile.split interleaved %0 : tensor<2x8xi32> -> tensor<2x4xi32>, tensor<2x4xi32>
  return %even, %odd : tensor<2x4xi32>, tensor<2x4xi32>
}

// -----

// CHECK-LABEL: func @stop_gradient(
// CHECK:         %[[XS:.*]]:2 = tile.split
// CHECK-NEXT:    tile.stop_gradient %[[XS]]#0 : tensor<?x4xf32>
// CHECK-NEXT:    tile.stop_gradient %[[XS]]#1 : tensor<?x4xf32>
func.func @stop_gradient(%x: tensor<?x8xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = tile.stop_gradient %x : tensor<?x8xf32>
  %low, %high = tile.split %0 : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  return %low, %high : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// One reduction of what the pieces combine to.
// CHECK-LABEL: func @reduce(
// CHECK-SAME:      %[[A:.*]]: tensor<?x4xf32>, %[[B:.*]]: tensor<?x4xf32>
// CHECK-NEXT:    %[[MAX:.*]] = arith.maximumf %[[A]], %[[B]]
// CHECK-NEXT:    %[[STATISTIC:.*]] = tile.reduce {{ *}}max %[[MAX]] : tensor<?x4xf32> -> tensor<?x1xf32>
// CHECK-NEXT:    return %[[STATISTIC]]
func.func @reduce(%a: tensor<?x4xf32>, %b: tensor<?x4xf32>) -> tensor<?x1xf32> {
  %0 = tile.join %a, %b : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  %1 = tile.reduce max %0 : tensor<?x8xf32> -> tensor<?x1xf32>
  return %1 : tensor<?x1xf32>
}

// -----

// Vectors are joined too, and computed with in pieces.
// CHECK-LABEL: func @reduce_rows(
// CHECK-SAME:      %[[A:.*]]: tensor<?x4xf32>, %[[B:.*]]: tensor<?x4xf32>
// CHECK-DAG:     %[[RA:.*]] = tile.reduce_rows {{ *}}add %[[A]] : tensor<?x4xf32> -> tensor<4xf32>
// CHECK-DAG:     %[[RB:.*]] = tile.reduce_rows {{ *}}add %[[B]] : tensor<?x4xf32> -> tensor<4xf32>
// CHECK-DAG:     %[[LOW:.*]] = arith.truncf %[[RA]] : tensor<4xf32> to tensor<4xbf16>
// CHECK-DAG:     %[[HIGH:.*]] = arith.truncf %[[RB]] : tensor<4xf32> to tensor<4xbf16>
// CHECK:         %[[JOIN:.*]] = tile.join %[[LOW]], %[[HIGH]] : tensor<4xbf16>, tensor<4xbf16> -> tensor<8xbf16>
// CHECK-NEXT:    return %[[JOIN]]
func.func @reduce_rows(%a: tensor<?x4xf32>, %b: tensor<?x4xf32>) -> tensor<8xbf16> {
  %0 = tile.join %a, %b : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  %1 = tile.reduce_rows add %0 : tensor<?x8xf32> -> tensor<8xf32>
  %2 = arith.truncf %1 : tensor<8xf32> to tensor<8xbf16>
  return %2 : tensor<8xbf16>
}

// -----

// What is used whole as well is taken apart there too: a norm of the whole row
// before its halves are turned.
// CHECK-LABEL: func @used_whole_too(
// CHECK:         %[[XS:.*]]:2 = tile.split
// CHECK-NEXT:    %[[S0:.*]] = arith.mulf %[[XS]]#0, %[[XS]]#0
// CHECK-NEXT:    %[[S1:.*]] = arith.mulf %[[XS]]#1, %[[XS]]#1
// CHECK-NEXT:    %[[SQUARES:.*]] = arith.addf %[[S0]], %[[S1]]
// CHECK-NEXT:    %[[SUM:.*]] = tile.reduce {{ *}}add %[[SQUARES]] : tensor<?x4xf32> -> tensor<?x1xf32>
// CHECK-NEXT:    %[[SUMS:.*]] = tile.broadcast %[[SUM]] like %[[XS]]#0 : tensor<?x1xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
// CHECK-NEXT:    %[[N0:.*]] = arith.divf %[[XS]]#0, %[[SUMS]]
// CHECK-NEXT:    %[[N1:.*]] = arith.divf %[[XS]]#1, %[[SUMS]]
// CHECK-NEXT:    %[[NEGATED:.*]] = arith.negf %[[N1]]
// CHECK-NEXT:    %[[T0:.*]] = arith.addf %[[N0]], %[[NEGATED]]
// CHECK-NEXT:    %[[T1:.*]] = arith.addf %[[N1]], %[[N0]]
// CHECK-NEXT:    %[[TURNED:.*]] = tile.join %[[T0]], %[[T1]]
// CHECK-NEXT:    %[[NORM:.*]] = tile.join %[[N0]], %[[N1]]
// CHECK-NEXT:    return %[[TURNED]], %[[NORM]]
func.func @used_whole_too(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = arith.mulf %x, %x : tensor<?x8xf32>
  %1 = tile.reduce add %0 : tensor<?x8xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %3 = arith.divf %x, %2 : tensor<?x8xf32>
  %low, %high = tile.split %3 : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %4 = arith.negf %high : tensor<?x4xf32>
  %5 = tile.join %4, %low : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  %6 = arith.addf %3, %5 : tensor<?x8xf32>
  return %6, %3 : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// An argument that is returned stays the argument.
// CHECK-LABEL: func @returned_argument(
// CHECK-SAME:      %[[X:.*]]: tensor<?x8xf32>
// CHECK:         %[[XS:.*]]:2 = tile.split %[[X]]
// CHECK-NEXT:    %[[SUM:.*]] = arith.addf %[[XS]]#0, %[[XS]]#1
// CHECK-NEXT:    return %[[SUM]], %[[X]]
func.func @returned_argument(%x: tensor<?x8xf32>) -> (tensor<?x4xf32>, tensor<?x8xf32>) {
  %low, %high = tile.split %x : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %0 = arith.addf %low, %high : tensor<?x4xf32>
  return %0, %x : tensor<?x4xf32>, tensor<?x8xf32>
}

// -----

// Pieces of rows that are taken apart in different ways may meet.
// CHECK-LABEL: func @kinds_of_separate_rows(
// CHECK-SAME:      %[[X:.*]]: tensor<?x8xf32>, %[[Y:.*]]: tensor<?x8xf32>
// CHECK-DAG:     %[[XS:.*]]:2 = tile.split %[[X]]
// CHECK-DAG:     %[[YS:.*]]:2 = tile.split interleaved %[[Y]]
// CHECK:         arith.addf %[[XS]]#0, %[[YS]]#1 : tensor<?x4xf32>
func.func @kinds_of_separate_rows(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x4xf32> {
  %low, %high = tile.split %x : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %even, %odd = tile.split interleaved %y : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %0 = arith.addf %low, %odd : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// Halves and interleaved pieces of one row are interleaved pieces of its halves.
// CHECK-LABEL: func @two_kinds(
// CHECK-NEXT:    %[[XS:.*]]:4 = tile.split interleaved parts(2) %{{.*}} : tensor<?x8xf32> -> tensor<?x2xf32>,
// CHECK-NEXT:    %[[N0:.*]] = arith.negf %[[XS]]#1
// CHECK-NEXT:    %[[N1:.*]] = arith.negf %[[XS]]#3
// CHECK-NEXT:    %[[LOW:.*]] = tile.join interleaved %[[XS]]#0, %[[XS]]#1
// CHECK-NEXT:    %[[ODD:.*]] = tile.join %[[N0]], %[[N1]]
// CHECK-NEXT:    return %[[LOW]], %[[ODD]]
func.func @two_kinds(%x: tensor<?x8xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %low, %high = tile.split %x : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %0 = arith.negf %x : tensor<?x8xf32>
  %even, %odd = tile.split interleaved %0 : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  return %low, %odd : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// Half of what two rows are interleaved to has a half of each.
// CHECK-LABEL: func @split_of_other_join(
// CHECK-SAME:      %[[A:[^:]*]]: tensor<?x4xf32>, %[[B:[^:]*]]: tensor<?x4xf32>)
// CHECK-DAG:     %[[AS:.*]]:2 = tile.split %[[A]] : tensor<?x4xf32> -> tensor<?x2xf32>
// CHECK-DAG:     %[[BS:.*]]:2 = tile.split %[[B]]
// CHECK:         %[[HIGH:.*]] = tile.join interleaved %[[AS]]#1, %[[BS]]#1
// CHECK-NEXT:    return %[[HIGH]]
func.func @split_of_other_join(%a: tensor<?x4xf32>, %b: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = tile.join interleaved %a, %b : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  %low, %high = tile.split %0 : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  return %high : tensor<?x4xf32>
}

// -----

// Half of the odd elements are the odd ones of a half.
// CHECK-LABEL: func @half_of_odd(
// CHECK-NEXT:    %[[XS:.*]]:4 = tile.split interleaved parts(2)
// CHECK-NEXT:    return %[[XS]]#3
func.func @half_of_odd(%x: tensor<?x8xf32>) -> tensor<?x2xf32> {
  %even, %odd = tile.split interleaved %x : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %low, %high = tile.split %odd : tensor<?x4xf32> -> tensor<?x2xf32>, tensor<?x2xf32>
  return %high : tensor<?x2xf32>
}

// -----

// Beside half a row of zeros, as the gradient of half a row is: what is uniform
// has no strands of its own, and as many as the row asks for.
// CHECK-LABEL: func @strands_of_uniform_half(
// CHECK:         %[[GS:.*]]:2 = tile.split interleaved
// CHECK:         %[[ZERO:.*]] = tile.broadcast %{{.*}} -> tensor<?x2xf32>
// CHECK-NEXT:    %[[EVEN:.*]] = tile.join %[[ZERO]], %[[GS]]#0
// CHECK-NEXT:    %[[ODD:.*]] = tile.join %[[ZERO]], %[[GS]]#1
// CHECK-NEXT:    return %[[EVEN]], %[[ODD]]
func.func @strands_of_uniform_half(%g: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = tile.broadcast %zero like %g : f32, tensor<?x4xf32> -> tensor<?x4xf32>
  %1 = tile.join %0, %g : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  %even, %odd = tile.split interleaved %1 : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  return %even, %odd : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// The strands of a part are taken apart into more of them, and put together to
// what the parts had: of 16 elements, 4, 6 are the even ones of the even ones of
// the second part.
// CHECK-LABEL: func @parts(
// CHECK-NEXT:    %[[XS:.*]]:8 = tile.split interleaved parts(2) %{{.*}} : tensor<?x16xf32> -> tensor<?x2xf32>,
// CHECK-NEXT:    %[[N0:.*]] = arith.negf %[[XS]]#4
// CHECK-NEXT:    %[[N1:.*]] = arith.negf %[[XS]]#6
// CHECK-NEXT:    %[[RESULT:.*]] = tile.join interleaved parts(2) %[[XS]]#4, %[[XS]]#6, %[[N0]], %[[N1]]
// CHECK-NEXT:    return %[[RESULT]], %[[XS]]#4
func.func @parts(%x: tensor<?x16xf32>) -> (tensor<?x8xf32>, tensor<?x2xf32>) {
  %0:4 = tile.split interleaved parts(2) %x
      : tensor<?x16xf32> -> tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %even, %odd = tile.split interleaved %0#2 : tensor<?x4xf32> -> tensor<?x2xf32>, tensor<?x2xf32>
  %1 = arith.negf %0#2 : tensor<?x4xf32>
  %2 = tile.join %0#2, %1 : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  return %2, %even : tensor<?x8xf32>, tensor<?x2xf32>
}

// -----

// CHECK-LABEL: func @iota_parts(
// CHECK-DAG:     %[[C1:.*]] = arith.constant 1 : i32
// CHECK-DAG:     %[[C2:.*]] = arith.constant 2 : i32
// CHECK-DAG:     %[[C4:.*]] = arith.constant 4 : i32
// CHECK-DAG:     %[[C5:.*]] = arith.constant 5 : i32
// CHECK-DAG:     %[[IOTA:.*]] = tile.iota : tensor<2x2xi32>
// CHECK-DAG:     %[[TWO:.*]] = tile.broadcast %[[C2]]
// CHECK-DAG:     %[[FIRST:.*]] = arith.muli %[[IOTA]], %[[TWO]]
// CHECK-DAG:     %[[ONE:.*]] = tile.broadcast %[[C1]]
// CHECK-DAG:     %[[SECOND:.*]] = arith.addi %[[FIRST]], %[[ONE]]
// CHECK-DAG:     %[[FOUR:.*]] = tile.broadcast %[[C4]]
// CHECK-DAG:     %[[THIRD:.*]] = arith.addi %[[FIRST]], %[[FOUR]]
// CHECK-DAG:     %[[FIVE:.*]] = tile.broadcast %[[C5]]
// CHECK-DAG:     %[[FOURTH:.*]] = arith.addi %[[FIRST]], %[[FIVE]]
// CHECK:         return %[[FIRST]], %[[SECOND]], %[[THIRD]], %[[FOURTH]]
func.func @iota_parts() -> (tensor<2x2xi32>, tensor<2x2xi32>, tensor<2x2xi32>, tensor<2x2xi32>) {
  %0 = tile.iota : tensor<2x8xi32>
  %1:4 = tile.split interleaved parts(2) %0
      : tensor<2x8xi32> -> tensor<2x2xi32>, tensor<2x2xi32>, tensor<2x2xi32>, tensor<2x2xi32>
  return %1#0, %1#1, %1#2, %1#3 : tensor<2x2xi32>, tensor<2x2xi32>, tensor<2x2xi32>, tensor<2x2xi32>
}

// -----

// The pieces alone say how long a piece of what they make is.
// CHECK-LABEL: func @join_of_broadcasts(
// CHECK-DAG:     %[[S:.*]] = tile.broadcast %arg1 {{.*}} -> tensor<?x4xf32>
// CHECK-DAG:     %[[T:.*]] = tile.broadcast %arg2 {{.*}} -> tensor<?x4xf32>
// CHECK-DAG:     %[[EVEN:.*]] = arith.subf %[[S]], %{{.*}}#0
// CHECK-DAG:     %[[ODD:.*]] = arith.subf %[[T]], %{{.*}}#1
// CHECK:         tile.join interleaved %[[EVEN]], %[[ODD]]
func.func @join_of_broadcasts(%x: tensor<?x8xf32>, %s: tensor<?x1xf32>, %t: tensor<?x1xf32>)
    -> tensor<?x8xf32> {
  %0 = tile.broadcast %s like %x : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x4xf32>
  %1 = tile.broadcast %t like %x : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x4xf32>
  %2 = tile.join interleaved %0, %1 : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  %3 = arith.subf %2, %x : tensor<?x8xf32>
  return %3 : tensor<?x8xf32>
}

// -----

// Once pieces of one element are combined, nothing is left to reduce.
// CHECK-LABEL: func @sum_of_single_elements(
// CHECK:         %[[SUM:.*]] = arith.addf %arg1, %arg1
// CHECK-NOT:     tile.reduce
// CHECK:         arith.mulf %[[SUM]], %[[SUM]]
func.func @sum_of_single_elements(%x: tensor<?x33xf32>, %s: tensor<?x1xf32>)
    -> (tensor<?x1xf32>, tensor<?x33xf32>) {
  %0 = tile.join %s, %s : tensor<?x1xf32>, tensor<?x1xf32> -> tensor<?x2xf32>
  %1 = tile.reduce add %0 : tensor<?x2xf32> -> tensor<?x1xf32>
  %2 = arith.mulf %1, %1 : tensor<?x1xf32>
  return %2, %x : tensor<?x1xf32>, tensor<?x33xf32>
}

// -----

// CHECK-LABEL: func @nothing_to_split(
// CHECK-NEXT:    arith.addf
// CHECK-NEXT:    arith.subf
// CHECK-NEXT:    return
func.func @nothing_to_split(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %dead = arith.addf %x, %x : tensor<?x8xf32>
  %0 = arith.subf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// A product multiplies whole rows. Pieces of its own rows are products of pieces
// of the right factor.
// CHECK-LABEL: func @product(
// CHECK-SAME:      %[[A:[^:]*]]: tensor<?x4xf32>, %[[B:[^:]*]]: tensor<?x4xf32>, %[[W:[^:]*]]: tensor<6x8xf32>
// CHECK:         %[[N:.*]] = arith.negf %[[A]]
// CHECK-NEXT:    %[[J:.*]] = tile.join %[[N]], %[[B]]
// CHECK-NEXT:    %[[W0:.*]] = tile.piece %[[W]] dimension 0[0 of 2] : tensor<6x8xf32> -> tensor<3x8xf32>
// CHECK-NEXT:    %[[P0:.*]] = tile.dot %[[J]], %[[W0]] contract [1, 1]
// CHECK-NEXT:    %[[W1:.*]] = tile.piece %[[W]] dimension 0[1 of 2] : tensor<6x8xf32> -> tensor<3x8xf32>
// CHECK-NEXT:    %[[P1:.*]] = tile.dot %[[J]], %[[W1]] contract [1, 1]
// CHECK-NEXT:    math.exp %[[P0]]
// CHECK-NEXT:    math.exp %[[P1]]
// CHECK-NEXT:    %[[M:.*]] = arith.mulf
// CHECK-NEXT:    %[[P:.*]] = tile.join %[[P0]], %[[P1]]
// CHECK-NEXT:    return %[[M]], %[[J]], %[[P]]
func.func @product(%a: tensor<?x4xf32>, %b: tensor<?x4xf32>, %w: tensor<6x8xf32>)
    -> (tensor<?x3xf32>, tensor<?x8xf32>, tensor<?x6xf32>) {
  %0 = arith.negf %a : tensor<?x4xf32>
  %1 = tile.join %0, %b : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  %2 = tile.dot %1, %w contract [1, 1] : tensor<?x8xf32>, tensor<6x8xf32> -> tensor<?x6xf32>
  %3 = math.exp %2 : tensor<?x6xf32>
  %low, %high = tile.split %3 : tensor<?x6xf32> -> tensor<?x3xf32>, tensor<?x3xf32>
  %4 = arith.mulf %low, %high : tensor<?x3xf32>
  return %4, %1, %2 : tensor<?x3xf32>, tensor<?x8xf32>, tensor<?x6xf32>
}

// -----

// Interleaved columns of a product belong to interleaved rows of the factor.
// CHECK-LABEL: func @interleaved_product(
// CHECK:         tile.piece %{{.*}} dimension 0[0 of 2] interleaved : tensor<6x8xf32> -> tensor<3x8xf32>
// CHECK:         tile.piece %{{.*}} dimension 0[1 of 2] interleaved
// CHECK-NOT:     tile.split
func.func @interleaved_product(%x: tensor<?x8xf32>, %w: tensor<6x8xf32>) -> tensor<?x3xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x8xf32>, tensor<6x8xf32> -> tensor<?x6xf32>
  %even, %odd = tile.split interleaved %0 : tensor<?x6xf32> -> tensor<?x3xf32>, tensor<?x3xf32>
  %1 = arith.mulf %even, %odd : tensor<?x3xf32>
  return %1 : tensor<?x3xf32>
}

// -----

// Interleaved rows that are needed whole, or that meet those of an argument, are
// taken apart in memory: a product's kernel stores and loads neighbours. What
// follows the product element by element, up to the split, is computed whole.
// CHECK-LABEL: func @interleaved_in_memory(
// CHECK-NOT:     tile.piece
// CHECK:         %[[P:.*]] = tile.dot
// CHECK:         %[[S:.*]] = arith.addf %[[P]]
// CHECK:         tile.split interleaved %[[S]]
func.func @interleaved_in_memory(%x: tensor<?x8xf32>, %w: tensor<6x8xf32>, %b: tensor<6xf32>)
    -> tensor<?x3xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x8xf32>, tensor<6x8xf32> -> tensor<?x6xf32>
  %1 = tile.broadcast %b like %0 : tensor<6xf32>, tensor<?x6xf32> -> tensor<?x6xf32>
  %2 = arith.addf %0, %1 : tensor<?x6xf32>
  %even, %odd = tile.split interleaved %2 : tensor<?x6xf32> -> tensor<?x3xf32>, tensor<?x3xf32>
  %3 = arith.mulf %even, %odd : tensor<?x3xf32>
  return %3 : tensor<?x3xf32>
}

// -----

// Columns of a factor are pieces of it where each piece begins at an address that
// copies of 16 bytes take.
// CHECK-LABEL: func @columns_of_factor(
// CHECK:         tile.piece %{{.*}} dimension 1[0 of 2] : tensor<8x32xbf16> -> tensor<8x16xbf16>
// CHECK:         %[[P:.*]] = tile.dot {{.*}} -> tensor<?x6xf32>
// CHECK-NEXT:    tile.split %[[P]]
func.func @columns_of_factor(%x: tensor<?x8xbf16>, %w: tensor<8x32xbf16>, %v: tensor<8x6xbf16>)
    -> (tensor<?x16xf32>, tensor<?x3xf32>) {
  %0 = tile.dot %x, %w contract [1, 0] : tensor<?x8xbf16>, tensor<8x32xbf16> -> tensor<?x32xf32>
  %1, %2 = tile.split %0 : tensor<?x32xf32> -> tensor<?x16xf32>, tensor<?x16xf32>
  %3 = arith.mulf %1, %2 : tensor<?x16xf32>
  %4 = tile.dot %x, %v contract [1, 0] : tensor<?x8xbf16>, tensor<8x6xbf16> -> tensor<?x6xf32>
  %5, %6 = tile.split %4 : tensor<?x6xf32> -> tensor<?x3xf32>, tensor<?x3xf32>
  %7 = arith.mulf %5, %6 : tensor<?x3xf32>
  return %3, %7 : tensor<?x16xf32>, tensor<?x3xf32>
}

// -----

// Of what follows a product that stays whole, the last value of the fewest bytes is
// taken apart, and not what is computed of it in more.
// CHECK-LABEL: func @narrow_in_memory(
// CHECK:         %[[P:.*]] = tile.dot
// CHECK-NEXT:    %[[N:.*]] = arith.truncf %[[P]]
// CHECK-NEXT:    tile.split interleaved %[[N]] : tensor<?x6xbf16>
// CHECK-NEXT:    arith.extf
// CHECK-NEXT:    arith.extf
// CHECK-NOT:     tile.split
func.func @narrow_in_memory(%x: tensor<?x8xbf16>, %w: tensor<8x6xbf16>) -> tensor<?x3xf32> {
  %0 = tile.dot %x, %w contract [1, 0] : tensor<?x8xbf16>, tensor<8x6xbf16> -> tensor<?x6xf32>
  %1 = arith.truncf %0 : tensor<?x6xf32> to tensor<?x6xbf16>
  %2 = arith.extf %1 : tensor<?x6xbf16> to tensor<?x6xf32>
  %even, %odd = tile.split interleaved %2 : tensor<?x6xf32> -> tensor<?x3xf32>, tensor<?x3xf32>
  %3 = arith.mulf %even, %odd : tensor<?x3xf32>
  return %3 : tensor<?x3xf32>
}

// -----

// A bias that is taken apart as the product's interleaved columns are keeps these in
// memory: no kernel of a product reads elements that are apart.
// CHECK-LABEL: func @interleaved_bias(
// CHECK:         %[[B:.*]]:2 = tile.split interleaved %{{.*}} : tensor<6xf32>
// CHECK:         %[[P:.*]] = tile.dot
// CHECK:         tile.split interleaved %[[P]]
func.func @interleaved_bias(%x: tensor<?x8xf32>, %w: tensor<6x8xf32>, %b: tensor<6xf32>)
    -> tensor<?x3xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x8xf32>, tensor<6x8xf32> -> tensor<?x6xf32>
  %even, %odd = tile.split interleaved %0 : tensor<?x6xf32> -> tensor<?x3xf32>, tensor<?x3xf32>
  %be, %bo = tile.split interleaved %b : tensor<6xf32> -> tensor<3xf32>, tensor<3xf32>
  %1 = tile.broadcast %be like %even : tensor<3xf32>, tensor<?x3xf32> -> tensor<?x3xf32>
  %2 = arith.addf %even, %1 : tensor<?x3xf32>
  %3 = tile.broadcast %bo like %odd : tensor<3xf32>, tensor<?x3xf32> -> tensor<?x3xf32>
  %4 = arith.addf %odd, %3 : tensor<?x3xf32>
  %5 = arith.mulf %2, %4 : tensor<?x3xf32>
  return %5 : tensor<?x3xf32>
}

// -----

// Products in more pieces than a kernel has of one left factor stay whole.
// CHECK-LABEL: func @three_pieces(
// CHECK-NOT:     tile.piece
// CHECK:         tile.split
func.func @three_pieces(%x: tensor<?x8xf32>, %w: tensor<6x8xf32>) -> tensor<?x2xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x8xf32>, tensor<6x8xf32> -> tensor<?x6xf32>
  %1, %2, %3 = tile.split %0 : tensor<?x6xf32> -> tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>
  %4 = arith.mulf %1, %2 : tensor<?x2xf32>
  %5 = arith.mulf %3, %4 : tensor<?x2xf32>
  return %5 : tensor<?x2xf32>
}

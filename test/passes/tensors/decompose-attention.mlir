// RUN: tile-opt %s --decompose --cse -split-input-file | FileCheck %s

// One division a row; the maximum is no part of the derivative.
// CHECK-LABEL: func @softmax(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xf32>)
// CHECK:         %[[MAX:.*]] = tile.reduce {{ *}}max %[[X]]
// CHECK-NEXT:    %[[STOPPED:.*]] = tile.stop_gradient %[[MAX]]
// CHECK-NEXT:    %[[MAXES:.*]] = tile.broadcast %[[STOPPED]]
// CHECK-NEXT:    %[[MISALIGNMENTED:.*]] = arith.subf %[[X]], %[[MAXES]]
// CHECK-NEXT:    %[[EXP:.*]] = math.exp %[[MISALIGNMENTED]]
// CHECK-NEXT:    %[[SUM:.*]] = tile.reduce {{ *}}add %[[EXP]]
// CHECK:         %[[SCALE:.*]] = arith.divf %{{.*}}, %[[SUM]] : tensor<?x1xf32>
// CHECK-NEXT:    %[[SCALES:.*]] = tile.broadcast %[[SCALE]]
// CHECK-NEXT:    %[[RESULT:.*]] = arith.mulf %[[EXP]], %[[SCALES]]
// CHECK-NEXT:    return %[[RESULT]]
func.func @softmax(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.softmax %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @log_softmax(
// CHECK:         %[[MISALIGNMENTED:.*]] = arith.subf
// CHECK-NEXT:    %[[EXP:.*]] = math.exp %[[MISALIGNMENTED]]
// CHECK-NEXT:    %[[SUM:.*]] = tile.reduce {{ *}}add %[[EXP]]
// CHECK-NEXT:    %[[LOG:.*]] = math.log %[[SUM]] : tensor<?x1xf32>
// CHECK-NEXT:    %[[LOGS:.*]] = tile.broadcast %[[LOG]]
// CHECK-NEXT:    %[[RESULT:.*]] = arith.subf %[[MISALIGNMENTED]], %[[LOGS]]
// CHECK-NEXT:    return %[[RESULT]]
func.func @log_softmax(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.log_softmax %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// (a, b) becomes (a cos - b sin, b cos + a sin), with angles that heads share.
// CHECK-LABEL: func @rope(
// CHECK-SAME:      %[[Q:[^:]*]]: tensor<?x?x8xf32>, %[[COS:[^:]*]]: tensor<1x?x4xf32>, %[[SIN:[^:]*]]: tensor<1x?x4xf32>)
// CHECK-NEXT:    %[[P:.*]]:2 = tile.split %[[Q]]
// CHECK-DAG:     %[[COSA:.*]] = tile.broadcast %[[COS]] like %[[P]]#0
// CHECK-DAG:     %[[COSB:.*]] = tile.broadcast %[[COS]] like %[[P]]#1
// CHECK-DAG:     %[[SINA:.*]] = tile.broadcast %[[SIN]] like %[[P]]#0
// CHECK-DAG:     %[[SINB:.*]] = tile.broadcast %[[SIN]] like %[[P]]#1
// CHECK-DAG:     %[[ACOS:.*]] = arith.mulf %[[P]]#0, %[[COSA]]
// CHECK-DAG:     %[[BSIN:.*]] = arith.mulf %[[P]]#1, %[[SINA]]
// CHECK-DAG:     %[[A:.*]] = arith.subf %[[ACOS]], %[[BSIN]]
// CHECK-DAG:     %[[BCOS:.*]] = arith.mulf %[[P]]#1, %[[COSB]]
// CHECK-DAG:     %[[ASIN:.*]] = arith.mulf %[[P]]#0, %[[SINB]]
// CHECK-DAG:     %[[B:.*]] = arith.addf %[[BCOS]], %[[ASIN]]
// CHECK-NEXT:    %[[RESULT:.*]] = tile.join %[[A]], %[[B]]
// CHECK-NEXT:    return %[[RESULT]]
func.func @rope(%q: tensor<?x?x8xf32>, %cos: tensor<1x?x4xf32>, %sin: tensor<1x?x4xf32>)
    -> tensor<?x?x8xf32> {
  %0 = tile.rope %q, %cos, %sin : tensor<?x?x8xf32>, tensor<1x?x4xf32>
  return %0 : tensor<?x?x8xf32>
}

// -----

// Angles as long as the row have one for each element of a pair.
// CHECK-LABEL: func @rope_angle_for_each(
// CHECK-NEXT:    %[[P:.*]]:2 = tile.split %{{.*}}
// CHECK-DAG:     %[[COS:.*]]:2 = tile.split %arg1
// CHECK-DAG:     %[[SIN:.*]]:2 = tile.split %arg2
// CHECK-DAG:     arith.mulf %[[P]]#0, %[[COS]]#0
// CHECK-DAG:     arith.mulf %[[P]]#1, %[[SIN]]#0
// CHECK-DAG:     arith.mulf %[[P]]#1, %[[COS]]#1
// CHECK-DAG:     arith.mulf %[[P]]#0, %[[SIN]]#1
// CHECK:         return
func.func @rope_angle_for_each(%q: tensor<?x8xf32>, %cos: tensor<?x8xf32>, %sin: tensor<?x8xf32>)
    -> tensor<?x8xf32> {
  %0 = tile.rope %q, %cos, %sin : tensor<?x8xf32>, tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// What is not rotated is passed on: the row is cut into pieces that divide it and half
// of the rotary size, which here are the same.
// CHECK-LABEL: func @rope_rotary(
// CHECK-NEXT:    %[[P:.*]]:4 = tile.split %{{.*}} : tensor<?x8xf32>
// CHECK:         tile.join %{{.*}}, %{{.*}}, %[[P]]#2, %[[P]]#3
func.func @rope_rotary(%q: tensor<?x8xf32>, %cos: tensor<?x2xf32>, %sin: tensor<?x2xf32>)
    -> tensor<?x8xf32> {
  %0 = tile.rope %q, %cos, %sin {rotary = 4} : tensor<?x8xf32>, tensor<?x2xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Of a head of 128 turn 96, as in Phi-4-mini: its pieces are of 16, of which the first
// three pair with the next three, and the last two are passed on.
// CHECK-LABEL: func @rope_three_quarters(
// CHECK-NEXT:    %[[P:.*]]:8 = tile.split %{{.*}} : tensor<?x128xf32>
// CHECK-NEXT:    %[[COS:.*]]:3 = tile.split %arg1 : tensor<?x48xf32>
// CHECK-NEXT:    %[[SIN:.*]]:3 = tile.split %arg2
// CHECK-DAG:     arith.mulf %[[P]]#0, %[[COS]]#0
// CHECK-DAG:     arith.mulf %[[P]]#3, %[[SIN]]#0
// CHECK-DAG:     arith.mulf %[[P]]#1, %[[COS]]#1
// CHECK-DAG:     arith.mulf %[[P]]#4, %[[SIN]]#1
// CHECK-DAG:     arith.mulf %[[P]]#5, %[[COS]]#2
// CHECK-DAG:     arith.mulf %[[P]]#2, %[[SIN]]#2
// CHECK:         tile.join {{.*}}, %[[P]]#6, %[[P]]#7
func.func @rope_three_quarters(%q: tensor<?x128xf32>, %cos: tensor<?x48xf32>, %sin: tensor<?x48xf32>)
    -> tensor<?x128xf32> {
  %0 = tile.rope %q, %cos, %sin {rotary = 96} : tensor<?x128xf32>, tensor<?x48xf32>
  return %0 : tensor<?x128xf32>
}

// -----

// CHECK-LABEL: func @rope_interleaved(
// CHECK-NEXT:    %[[P:.*]]:2 = tile.split interleaved %{{.*}} : tensor<?x8xf32>
// CHECK:         %[[RESULT:.*]] = tile.join interleaved
// CHECK-NEXT:    return %[[RESULT]]
func.func @rope_interleaved(%q: tensor<?x8xf32>, %cos: tensor<?x4xf32>, %sin: tensor<?x4xf32>)
    -> tensor<?x8xf32> {
  %0 = tile.rope %q, %cos, %sin interleaved : tensor<?x8xf32>, tensor<?x4xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Pairs lie in parts of the row, and so does what is not rotated.
// CHECK-LABEL: func @rope_interleaved_rotary(
// CHECK-NEXT:    %[[P:.*]]:4 = tile.split interleaved parts(2) %{{.*}} : tensor<?x8xf32>
// CHECK-DAG:     arith.mulf %[[P]]#0, %arg1
// CHECK-DAG:     arith.mulf %[[P]]#1, %arg2
// CHECK:         tile.join interleaved parts(2) %{{.*}}, %{{.*}}, %[[P]]#2, %[[P]]#3
func.func @rope_interleaved_rotary(%q: tensor<?x8xf32>, %cos: tensor<?x2xf32>, %sin: tensor<?x2xf32>)
    -> tensor<?x8xf32> {
  %0 = tile.rope %q, %cos, %sin interleaved {rotary = 4} : tensor<?x8xf32>, tensor<?x2xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Parts divide the rotary size and the row: the angles are taken apart as well.
// CHECK-LABEL: func @rope_interleaved_two_thirds(
// CHECK-NEXT:    %[[P:.*]]:6 = tile.split interleaved parts(3) %{{.*}} : tensor<?x12xf32>
// CHECK-NEXT:    %[[COS:.*]]:2 = tile.split %arg1 : tensor<?x4xf32> -> tensor<?x2xf32>, tensor<?x2xf32>
// CHECK-NEXT:    %[[SIN:.*]]:2 = tile.split %arg2
// CHECK-DAG:     arith.mulf %[[P]]#0, %[[COS]]#0
// CHECK-DAG:     arith.mulf %[[P]]#1, %[[SIN]]#0
// CHECK-DAG:     arith.mulf %[[P]]#2, %[[COS]]#1
// CHECK-DAG:     arith.mulf %[[P]]#3, %[[SIN]]#1
// CHECK:         tile.join interleaved parts(3) {{.*}}, %[[P]]#4, %[[P]]#5
func.func @rope_interleaved_two_thirds(%q: tensor<?x12xf32>, %cos: tensor<?x4xf32>, %sin: tensor<?x4xf32>)
    -> tensor<?x12xf32> {
  %0 = tile.rope %q, %cos, %sin interleaved {rotary = 8} : tensor<?x12xf32>, tensor<?x4xf32>
  return %0 : tensor<?x12xf32>
}

// -----

// An angle for each element lies as the elements do.
// CHECK-LABEL: func @rope_interleaved_angle_for_each(
// CHECK-NEXT:    %[[P:.*]]:6 = tile.split interleaved parts(3) %{{.*}} : tensor<?x12xf32>
// CHECK-NEXT:    %[[COS:.*]]:4 = tile.split interleaved parts(2) %arg1 : tensor<?x8xf32>
// CHECK-NEXT:    %[[SIN:.*]]:4 = tile.split interleaved parts(2) %arg2
// CHECK-DAG:     arith.mulf %[[P]]#2, %[[COS]]#2
// CHECK-DAG:     arith.mulf %[[P]]#3, %[[SIN]]#2
// CHECK-DAG:     arith.mulf %[[P]]#3, %[[COS]]#3
// CHECK-DAG:     arith.mulf %[[P]]#2, %[[SIN]]#3
// CHECK:         return
func.func @rope_interleaved_angle_for_each(%q: tensor<?x12xf32>, %cos: tensor<?x8xf32>, %sin: tensor<?x8xf32>)
    -> tensor<?x12xf32> {
  %0 = tile.rope %q, %cos, %sin interleaved {rotary = 8} : tensor<?x12xf32>, tensor<?x8xf32>
  return %0 : tensor<?x12xf32>
}

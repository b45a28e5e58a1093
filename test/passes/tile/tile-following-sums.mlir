// RUN: tile-opt %s --tile --canonicalize --cse -split-input-file | FileCheck %s

// The expectation of a row under a softmax takes one sweep. Its terms are powers
// relative to the largest number so far, times their weights; in place of the
// divisor stands 2^-10, as the row has 1000 columns, which the divisor has as
// well when the sum is divided.
// CHECK-LABEL: tile.program @expectation(
// CHECK-DAG:     %[[SMALL:.*]] = arith.constant dense<9.765625E-4> : tensor<1x256xf32>
// CHECK-DAG:     %[[SMALLER:.*]] = arith.constant dense<9.765625E-4> : tensor<1x1xf32>
// CHECK:         scf.for
// CHECK:           %[[X:.*]] = tile.load
// CHECK:           %[[SPREAD:.*]] = tile.spread
// CHECK:           %[[EXP:.*]] = math.exp
// CHECK:           tile.fold {{ *}}add %[[EXP]]
// CHECK:           %[[SHARE:.*]] = arith.mulf %[[EXP]], %[[SMALL]]
// CHECK:           %[[W:.*]] = tile.load
// CHECK-NEXT:      %[[TERMS:.*]] = arith.mulf %[[SHARE]], %[[W]]
// CHECK-NEXT:      %[[MASKED:.*]] = tile.mask %[[TERMS]]
// CHECK-NEXT:      %[[ADDED:.*]] = tile.fold {{ *}}add %[[MASKED]]
// CHECK:         %[[MAX:.*]] = tile.reduce {{ *}}max
// CHECK:         %[[L:.*]] = tile.reduce {{ *}}add
// CHECK:         %[[SUM:.*]] = tile.reduce {{ *}}add
// CHECK-NEXT:    %[[DIVISOR:.*]] = arith.mulf %[[L]], %[[SMALLER]]
// CHECK-NEXT:    %[[RESULT:.*]] = arith.divf %[[SUM]], %[[DIVISOR]]
// CHECK-NEXT:    tile.store %[[RESULT]]
// CHECK-NOT:     scf.for
// CHECK:         tile.return
tile.kernel @expectation(%x: tensor<?x1000xf32>, %w: tensor<?x1000xf32>)
    -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %unit = arith.constant 1.0 : f32
  %max = tile.reduce max %x : tensor<?x1000xf32> -> tensor<?x1xf32>
  %maxes = tile.broadcast %max like %x
      : tensor<?x1xf32>, tensor<?x1000xf32> -> tensor<?x1000xf32>
  %shifted = arith.subf %x, %maxes : tensor<?x1000xf32>
  %exp = math.exp %shifted : tensor<?x1000xf32>
  %sum = tile.reduce add %exp : tensor<?x1000xf32> -> tensor<?x1xf32>
  %one = tile.broadcast %unit like %x : f32, tensor<?x1000xf32> -> tensor<?x1xf32>
  %reciprocal = arith.divf %one, %sum : tensor<?x1xf32>
  %scale = tile.broadcast %reciprocal like %x
      : tensor<?x1xf32>, tensor<?x1000xf32> -> tensor<?x1000xf32>
  %share = arith.mulf %exp, %scale : tensor<?x1000xf32>
  %terms = arith.mulf %share, %w : tensor<?x1000xf32>
  %result = tile.reduce add %terms : tensor<?x1000xf32> -> tensor<?x1xf32>
  tile.return %result : tensor<?x1xf32>
}
func.func @f(%x: tensor<?x1000xf32>, %w: tensor<?x1000xf32>) -> tensor<?x1xf32> {
  %0 = tile.launch [@expectation](%x, %w)
      : (tensor<?x1000xf32>, tensor<?x1000xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// -----

// Where the maximum may be that of the row or a number of its own, the loop
// knows the row's, and what all threads have is relative to the larger one.
// CHECK-LABEL: tile.program @sink(
// CHECK:         scf.for
// CHECK:           tile.fold {{ *}}max
// CHECK:           tile.fold {{ *}}add
// CHECK:         %[[MAX:.*]] = tile.reduce {{ *}}max
// CHECK-NEXT:    %[[S:.*]] = tile.load
// CHECK-NEXT:    %[[LARGER:.*]] = arith.maximumf %[[MAX]], %[[S]]
// CHECK-NEXT:    %[[TO:.*]] = tile.broadcast %[[LARGER]]
// CHECK-NEXT:    arith.subf %{{.*}}, %[[TO]]
// CHECK-NEXT:    math.exp
// CHECK-NOT:     scf.for
// CHECK:         tile.return
tile.kernel @sink(%x: tensor<?x1024xf32>, %s: tensor<?x1xf32>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %max = tile.reduce max %x : tensor<?x1024xf32> -> tensor<?x1xf32>
  %larger = arith.maximumf %max, %s : tensor<?x1xf32>
  %larges = tile.broadcast %larger like %x
      : tensor<?x1xf32>, tensor<?x1024xf32> -> tensor<?x1024xf32>
  %shifted = arith.subf %x, %larges : tensor<?x1024xf32>
  %exp = math.exp %shifted : tensor<?x1024xf32>
  %sum = tile.reduce add %exp : tensor<?x1024xf32> -> tensor<?x1xf32>
  tile.return %sum : tensor<?x1xf32>
}
func.func @f(%x: tensor<?x1024xf32>, %s: tensor<?x1xf32>) -> tensor<?x1xf32> {
  %0 = tile.launch [@sink](%x, %s)
      : (tensor<?x1024xf32>, tensor<?x1xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// -----

// Terms that conditions do not leave out are counted. While there are none, a
// maximum that is no number leaves their sum alone.
// CHECK-LABEL: tile.program @chosen(
// CHECK-DAG:     %[[NAN:.*]] = arith.constant dense<0x7FC00000> : tensor<1x1xf32>
// CHECK:         scf.for
// CHECK:           %[[CHOSEN:.*]] = arith.cmpi ult
// CHECK:           %[[TERMS:.*]] = arith.select %[[CHOSEN]], %{{.*}}, %{{.*}}
// CHECK-NEXT:      tile.fold {{ *}}add %[[TERMS]]
// CHECK:           arith.select
// CHECK-NEXT:      %[[ISNONE:.*]] = arith.cmpf oeq, %[[SOFAR:[^,]*]], %{{.*}}
// CHECK-NEXT:      %[[SCALE:.*]] = arith.select %[[ISNONE]]
// CHECK-NEXT:      arith.mulf %{{.*}}, %[[SCALE]]
// CHECK:           %[[COUNTED:.*]] = arith.select %[[CHOSEN]], %{{.*}}, %{{.*}}
// CHECK-NEXT:      %[[ADDED:.*]] = tile.fold {{ *}}add %[[COUNTED]]
// CHECK-NEXT:      arith.addf %[[SOFAR]], %[[ADDED]]
// CHECK:         %[[MAX:.*]] = tile.reduce {{ *}}max
// CHECK:         %[[SUM:.*]] = tile.reduce {{ *}}add
// CHECK-NEXT:    %[[COUNT:.*]] = tile.reduce {{ *}}add
// CHECK-NEXT:    %[[ISEMPTY:.*]] = arith.cmpf oeq, %[[COUNT]]
// CHECK-NEXT:    %[[ISNONE:.*]] = arith.cmpf oeq, %[[MAX]]
// CHECK-NEXT:    %[[SOME:.*]] = arith.select %[[ISNONE]], %[[NAN]], %[[SUM]]
// CHECK-NEXT:    %[[RESULT:.*]] = arith.select %[[ISEMPTY]], %[[SUM]], %[[SOME]]
// CHECK-NEXT:    tile.store %[[RESULT]]
// CHECK-NOT:     scf.for
// CHECK:         tile.return
tile.kernel @chosen(%x: tensor<?x1024xf32>, %n: tensor<?x1xi32>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %zero = arith.constant 0.0 : f32
  %zeros = tile.broadcast %zero like %x : f32, tensor<?x1024xf32> -> tensor<?x1024xf32>
  %column = tile.iota like %x : tensor<?x1024xi32>, tensor<?x1024xf32>
  %count = tile.broadcast %n like %x
      : tensor<?x1xi32>, tensor<?x1024xf32> -> tensor<?x1024xi32>
  %chosen = arith.cmpi ult, %column, %count : tensor<?x1024xi32>
  %max = tile.reduce max %x : tensor<?x1024xf32> -> tensor<?x1xf32>
  %maxes = tile.broadcast %max like %x
      : tensor<?x1xf32>, tensor<?x1024xf32> -> tensor<?x1024xf32>
  %shifted = arith.subf %x, %maxes : tensor<?x1024xf32>
  %exp = math.exp %shifted : tensor<?x1024xf32>
  %terms = arith.select %chosen, %exp, %zeros : tensor<?x1024xi1>, tensor<?x1024xf32>
  %sum = tile.reduce add %terms : tensor<?x1024xf32> -> tensor<?x1xf32>
  tile.return %sum : tensor<?x1xf32>
}
func.func @f(%x: tensor<?x1024xf32>, %n: tensor<?x1xi32>) -> tensor<?x1xf32> {
  %0 = tile.launch [@chosen](%x, %n)
      : (tensor<?x1024xf32>, tensor<?x1xi32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// -----

// A coefficient that waits for the maximum needs a sweep of its own: the terms
// of an entropy are not linear in the powers alone.
// CHECK-LABEL: tile.program @entropy(
// CHECK-COUNT-2: scf.for
// CHECK-NOT:     scf.for
// CHECK:         tile.return
tile.kernel @entropy(%x: tensor<?x1024xf32>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %max = tile.reduce max %x : tensor<?x1024xf32> -> tensor<?x1xf32>
  %maxes = tile.broadcast %max like %x
      : tensor<?x1xf32>, tensor<?x1024xf32> -> tensor<?x1024xf32>
  %shifted = arith.subf %x, %maxes : tensor<?x1024xf32>
  %exp = math.exp %shifted : tensor<?x1024xf32>
  %terms = arith.mulf %exp, %shifted : tensor<?x1024xf32>
  %sum = tile.reduce add %terms : tensor<?x1024xf32> -> tensor<?x1xf32>
  tile.return %sum : tensor<?x1xf32>
}
func.func @f(%x: tensor<?x1024xf32>) -> tensor<?x1xf32> {
  %0 = tile.launch [@entropy](%x) : (tensor<?x1024xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// -----

// A weighted sum that follows would save no sweep where another result waits
// for the maximum in the same way.
// CHECK-LABEL: tile.program @saves_nothing(
// CHECK:         scf.for
// CHECK:           tile.fold {{ *}}max
// CHECK-NOT:       math.exp
// CHECK:         scf.for
// CHECK-COUNT-1:   math.exp
// CHECK:           tile.store
// CHECK-NOT:     scf.for
// CHECK:         tile.return
tile.kernel @saves_nothing(%x: tensor<?x1024xf32>, %w: tensor<?x1024xf32>)
    -> (tensor<?x1024xf32>, tensor<?x1xf32>)
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %max = tile.reduce max %x : tensor<?x1024xf32> -> tensor<?x1xf32>
  %maxes = tile.broadcast %max like %x
      : tensor<?x1xf32>, tensor<?x1024xf32> -> tensor<?x1024xf32>
  %shifted = arith.subf %x, %maxes : tensor<?x1024xf32>
  %exp = math.exp %shifted : tensor<?x1024xf32>
  %terms = arith.mulf %exp, %w : tensor<?x1024xf32>
  %sum = tile.reduce add %terms : tensor<?x1024xf32> -> tensor<?x1xf32>
  tile.return %exp, %sum : tensor<?x1024xf32>, tensor<?x1xf32>
}
func.func @f(%x: tensor<?x1024xf32>, %w: tensor<?x1024xf32>)
    -> (tensor<?x1024xf32>, tensor<?x1xf32>) {
  %0:2 = tile.launch [@saves_nothing](%x, %w)
      : (tensor<?x1024xf32>, tensor<?x1024xf32>)
        -> (tensor<?x1024xf32>, tensor<?x1xf32>)
  return %0#0, %0#1 : tensor<?x1024xf32>, tensor<?x1xf32>
}

// RUN: tile-opt %s --fuse --schedule=target=sm_80 --tile=target=sm_80 --canonicalize --cse | FileCheck %s

// Keys up to the query's number, and 9 before it: the loop goes from the first
// step with a key that the first query of the tile sees to the last one with a
// key that the last query sees. Behind it, nothing is copied.
// CHECK-LABEL: tile.program @window_kernel(
// CHECK-SAME: %[[M:[^:]*]]: index, %[[K:[^:]*]]: index, %[[N:[^:]*]]: index,
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[STEP:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[ROWS:.*]] = arith.constant 128 : index
// CHECK-DAG: %[[BEFORE:.*]] = arith.constant -9 : index
// CHECK: %[[ROW:.*]] = arith.muli %{{.*}}, %[[ROWS]]
// CHECK: %[[FIRST:.*]] = arith.addi %[[ROW]], %[[BEFORE]]
// CHECK: %[[FROM:.*]] = arith.maxsi %[[FIRST]], %[[ZERO]]
// CHECK: %[[BEHIND:.*]] = arith.addi %[[ROW]], %[[ROWS]]
// CHECK: %[[LAST:.*]] = arith.minsi %[[BEHIND]], %[[M]]
// CHECK: %[[END:.*]] = arith.minsi %[[K]], %[[LAST]]
// CHECK: %[[UP_TO:.*]] = arith.maxsi %[[END]], %[[ZERO]]
// CHECK: %[[FIRST_STEP:.*]] = arith.divui %[[FROM]], %[[STEP]]
// CHECK: %[[STEPS:.*]] = arith.ceildivui %[[UP_TO]], %[[STEP]]
// CHECK: %[[SHOWN_FROM:.*]] = arith.maxsi %{{.*}}, %[[ZERO]]
// CHECK: %[[SHOWN_UP_TO:.*]] = arith.select %{{.*}}, %[[K]], %{{.*}}
// CHECK: scf.for %{{.*}} = %[[FIRST_STEP]] to %[[STEPS]]
// CHECK:   %[[IS_BEHIND:.*]] = arith.cmpi uge, %{{.*}}, %[[STEPS]]
// CHECK:   %[[PLACE:.*]] = arith.select %[[IS_BEHIND]], %[[K]], %{{.*}}
// CHECK:   tile.copy_tile %{{.*}}[%[[PLACE]], %[[ZERO]]]
// Only where some key of the step is hidden from some query, are they compared.
// CHECK:   %[[HALF:.*]] = tile.dot
// CHECK:   %[[SCORES:.*]] = tile.dot %{{.*}}, %{{.*}}, %[[HALF]]
// CHECK:   %[[BEHIND_FIRST:.*]] = arith.cmpi sge, %[[AT:.*]], %[[SHOWN_FROM]]
// CHECK:   %[[AHEAD_OF_LAST:.*]] = arith.cmpi sle, %[[AT]], %[[SHOWN_UP_TO]]
// CHECK:   %[[SHOWN:.*]] = arith.andi %[[BEHIND_FIRST]], %[[AHEAD_OF_LAST]]
// CHECK:   scf.if %[[SHOWN]]
// CHECK-NEXT: scf.yield %[[SCORES]]
// CHECK:   } else {
// CHECK:     tile.iota from
// CHECK:     arith.cmpi sle
// CHECK:     arith.cmpi sge
// CHECK:     %[[MASKED:.*]] = arith.select %{{.*}}, %[[SCORES]]
// CHECK:     scf.yield %[[MASKED]]
// CHECK:   tile.reduce max
func.func @window(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>) -> tensor<?x64xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %key = tile.iota like %s : tensor<?x?xi32>, tensor<?x?xf32>
  %row = tile.iota over [0] like %s : tensor<?x1xi32>, tensor<?x?xf32>
  %query = tile.broadcast %row like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %before = arith.cmpi sle, %key, %query : tensor<?x?xi32>
  %nine = arith.constant 9 : i32
  %nines = tile.broadcast %nine like %s : i32, tensor<?x?xf32> -> tensor<?x?xi32>
  %first = arith.subi %query, %nines : tensor<?x?xi32>
  %after = arith.cmpi sge, %key, %first : tensor<?x?xi32>
  %seen = arith.andi %before, %after : tensor<?x?xi1>
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.select %seen, %s, %hidden : tensor<?x?xi1>, tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %ms = tile.broadcast %m like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %o = tile.dot %e, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// A sum that sees hidden elements goes through all of them: what is selected in
// their place is 1, whose sum counts them.
// CHECK-LABEL: tile.program @counted_kernel(
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: %[[STEPS:.*]] = arith.ceildivui %[[K:.*]], %
// CHECK: scf.for %{{.*}} = %[[ZERO]] to %[[STEPS]]
func.func @counted(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>) -> tensor<?x64xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %key = tile.iota like %s : tensor<?x?xi32>, tensor<?x?xf32>
  %row = tile.iota over [0] like %s : tensor<?x1xi32>, tensor<?x?xf32>
  %query = tile.broadcast %row like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %seen = arith.cmpi sle, %key, %query : tensor<?x?xi32>
  %one = arith.constant 1.0 : f32
  %ones = tile.broadcast %one like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.select %seen, %s, %ones : tensor<?x?xi1>, tensor<?x?xf32>
  %o = tile.dot %x, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// The same mask with 0 hides them from the sum.
// CHECK-LABEL: tile.program @zeros_kernel(
// CHECK: %[[END:.*]] = arith.minsi
// CHECK: %[[STEPS:.*]] = arith.ceildivui
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[STEPS]]
func.func @zeros(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>) -> tensor<?x64xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %key = tile.iota like %s : tensor<?x?xi32>, tensor<?x?xf32>
  %row = tile.iota over [0] like %s : tensor<?x1xi32>, tensor<?x?xf32>
  %query = tile.broadcast %row like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %seen = arith.cmpi sle, %key, %query : tensor<?x?xi32>
  %zero = arith.constant 0.0 : f32
  %zeros = tile.broadcast %zero like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.select %seen, %s, %zeros : tensor<?x?xi1>, tensor<?x?xf32>
  %o = tile.dot %x, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// The first key that a row sees is a number of the row in memory: the loop begins
// with the least one of the tile. Where even the greatest one is ahead of a step,
// nothing is compared. Integers of 32 bits that may wrap around bound nothing.
// CHECK-LABEL: tile.program @numbers_kernel(
// CHECK-SAME: %[[M:[^:]*]]: index, %[[K:[^:]*]]: index, %[[N:[^:]*]]: index,
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[STEP:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[ROWS:.*]] = arith.constant 128 : index
// CHECK: %[[ROW:.*]] = arith.muli %{{.*}}, %[[ROWS]]
// CHECK: %[[LEAST:.*]], %[[MOST:.*]] = tile.extremes %{{.*}}[%[[ROW]], %[[ZERO]]] along 0 count 128 end %[[M]] : memref<?x1xi32
// CHECK: %[[FROM:.*]] = arith.index_cast %[[LEAST]]
// CHECK: %[[GREATEST:.*]] = arith.index_cast %[[MOST]]
// CHECK: %[[LESS:.*]] = arith.muli %[[FROM]], %c-1
// CHECK: %[[BEGIN:.*]] = arith.subi %[[ZERO]], %[[LESS]]
// CHECK: %[[FIRST:.*]] = arith.maxsi %[[BEGIN]], %[[ZERO]]
// CHECK: %[[KNOWN:.*]] = arith.select %{{.*}}, %[[FIRST]], %[[ZERO]]
// CHECK: %[[FIRST_STEP:.*]] = arith.divui %[[KNOWN]], %[[STEP]]
// CHECK: arith.muli %[[GREATEST]], %c-1
// CHECK: %[[BEHIND_ALL:.*]] = arith.maxsi
// CHECK: %[[SHOWN:.*]] = arith.select %{{.*}}, %[[BEHIND_ALL]], %[[K]]
// CHECK: scf.for %{{.*}} = %[[FIRST_STEP]] to
// CHECK:   arith.cmpi sge, %{{.*}}, %[[SHOWN]]
// CHECK:   scf.if
// CHECK-NEXT: scf.yield
// CHECK:   } else {
// CHECK:     arith.cmpi sge
func.func @numbers(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>, %n: tensor<?x1xi32>) -> tensor<?x64xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %key = tile.iota like %s : tensor<?x?xi32>, tensor<?x?xf32>
  %ns = tile.broadcast %n like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %seen = arith.cmpi sge, %key, %ns : tensor<?x?xi32>
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.select %seen, %s, %hidden : tensor<?x?xi1>, tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %ms = tile.broadcast %m like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %o = tile.dot %e, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

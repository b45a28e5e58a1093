// RUN: tile-opt %s --distribute --lower-tiles --canonicalize --cse -split-input-file | FileCheck %s

// Columns that are compared with a number: a difference for all of a vector.
// CHECK-LABEL: tile.program @columns_equal(
// CHECK-DAG:     %[[COUNTS:.*]] = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
// CHECK-DAG:     %[[FIRST:.*]] = arith.index_castui %{{.*}} : index to i32
// CHECK-DAG:     %[[START:.*]] = vector.broadcast %[[FIRST]] : i32 to vector<4xi32>
// CHECK-DAG:     %[[TARGET:.*]] = vector.broadcast %{{.*}} : i32 to vector<4xi32>
// CHECK-DAG:     %[[REST:.*]] = arith.subi %[[TARGET]], %[[START]] : vector<4xi32>
// CHECK:         arith.cmpi eq, %[[REST]], %[[COUNTS]] : vector<4xi32>
tile.program @columns_equal(%rows: index, %target: memref<?x1xi32, strided<[?, 1]>>,
                            %y: memref<?x128xi8, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %target[%row, %c0] : memref<?x1xi32, strided<[?, 1]>> -> tensor<1x1xi32>
  %1 = tile.broadcast %0 : tensor<1x1xi32> -> tensor<1x128xi32>
  %2 = tile.iota from %c0 : tensor<1x128xi32>
  %3 = arith.cmpi eq, %2, %1 : tensor<1x128xi32>
  %4 = arith.extui %3 : tensor<1x128xi1> to tensor<1x128xi8>
  tile.store %4, %y[%row, %c0] : tensor<1x128xi8>, memref<?x128xi8, strided<[?, 1]>>
  tile.return
}

// -----

// The element of a sum whose column is a number is looked for in the vector that
// has it.
// CHECK-LABEL: tile.program @sum_of_one(
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG:     %[[COUNT:.*]] = arith.constant 2 : i32
// CHECK-DAG:     %[[REST:.*]] = arith.subi %{{.*}} : vector<2xi32>
// CHECK-DAG:     %[[POSITION:.*]] = vector.extract %[[REST]][0]
// CHECK-DAG:     %[[HAS:.*]] = arith.cmpi ult, %[[POSITION]], %[[COUNT]]
// CHECK:         scf.if %[[HAS]] -> (f32) {
// CHECK:           %[[FIRST:.*]] = arith.select %{{.*}}, %{{.*}}, %[[ZERO]] : f32
// CHECK:           %[[SECOND:.*]] = arith.select %{{.*}}, %{{.*}}, %[[FIRST]] : f32
// CHECK-NEXT:      scf.yield %[[SECOND]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[ZERO]]
// CHECK-NOT:     vector.reduction
// CHECK:         gpu.shuffle
tile.program @sum_of_one(%rows: index, %target: memref<?x1xi32, strided<[?, 1]>>,
                         %x: memref<?x64xf32, strided<[?, 1]>>,
                         %y: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 2, columns = 64>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %row = tile.program_id
  %0 = tile.load %target[%row, %c0] : memref<?x1xi32, strided<[?, 1]>> -> tensor<1x1xi32>
  %1 = tile.broadcast %0 : tensor<1x1xi32> -> tensor<1x64xi32>
  %2 = tile.iota from %c0 : tensor<1x64xi32>
  %3 = arith.cmpi eq, %2, %1 : tensor<1x64xi32>
  %4 = tile.load %x[%row, %c0] : memref<?x64xf32, strided<[?, 1]>> -> tensor<1x64xf32>
  %5 = tile.broadcast %zero : f32 -> tensor<1x64xf32>
  %6 = arith.select %3, %4, %5 : tensor<1x64xi1>, tensor<1x64xf32>
  %7 = tile.reduce add %6 : tensor<1x64xf32> -> tensor<1x1xf32>
  tile.store %7, %y[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.return
}

// -----

// The same where it is added to each element of the row.
// CHECK-LABEL: tile.program @add_to_one(
// CHECK:         %[[X:.*]] = llvm.load %{{.*}} -> vector<2xf32>
// CHECK:         %[[SUM:.*]] = scf.if %{{.*}} -> (vector<2xf32>) {
// CHECK:           arith.addf
// CHECK:           arith.addf
// CHECK:         } else {
// CHECK-NEXT:      scf.yield %[[X]]
// CHECK-NEXT:    }
// CHECK:         llvm.store %[[SUM]]
tile.program @add_to_one(%rows: index, %target: memref<?x1xi32, strided<[?, 1]>>,
                         %x: memref<?x64xf32, strided<[?, 1]>>,
                         %y: memref<?x64xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 2, columns = 64>} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %row = tile.program_id
  %0 = tile.load %target[%row, %c0] : memref<?x1xi32, strided<[?, 1]>> -> tensor<1x1xi32>
  %1 = tile.broadcast %0 : tensor<1x1xi32> -> tensor<1x64xi32>
  %2 = tile.iota from %c0 : tensor<1x64xi32>
  %3 = arith.cmpi eq, %2, %1 : tensor<1x64xi32>
  %4 = tile.broadcast %one : f32 -> tensor<1x64xf32>
  %5 = tile.broadcast %zero : f32 -> tensor<1x64xf32>
  %6 = arith.select %3, %4, %5 : tensor<1x64xi1>, tensor<1x64xf32>
  %7 = tile.load %x[%row, %c0] : memref<?x64xf32, strided<[?, 1]>> -> tensor<1x64xf32>
  %8 = arith.addf %6, %7 : tensor<1x64xf32>
  tile.store %8, %y[%row, %c0] : tensor<1x64xf32>, memref<?x64xf32, strided<[?, 1]>>
  tile.return
}

// -----

// Columns compared with numbers of their own are none of this.
// CHECK-LABEL: tile.program @several(
// CHECK-NOT:     scf.if
// CHECK:         arith.cmpi eq
// CHECK:         arith.select
// CHECK:         arith.addf
// CHECK:         tile.return
tile.program @several(%rows: index, %numbers: memref<?x64xi32, strided<[?, 1]>>,
                      %x: memref<?x64xf32, strided<[?, 1]>>,
                      %y: memref<?x64xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 2, columns = 64>} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %row = tile.program_id
  %1 = tile.load %numbers[%row, %c0] : memref<?x64xi32, strided<[?, 1]>> -> tensor<1x64xi32>
  %2 = tile.iota from %c0 : tensor<1x64xi32>
  %3 = arith.cmpi eq, %2, %1 : tensor<1x64xi32>
  %4 = tile.broadcast %one : f32 -> tensor<1x64xf32>
  %5 = tile.broadcast %zero : f32 -> tensor<1x64xf32>
  %6 = arith.select %3, %4, %5 : tensor<1x64xi1>, tensor<1x64xf32>
  %7 = tile.load %x[%row, %c0] : memref<?x64xf32, strided<[?, 1]>> -> tensor<1x64xf32>
  %8 = arith.addf %6, %7 : tensor<1x64xf32>
  tile.store %8, %y[%row, %c0] : tensor<1x64xf32>, memref<?x64xf32, strided<[?, 1]>>
  tile.return
}

// RUN: tile-opt %s --lower-tiles=target=sm_90a --canonicalize --cse -split-input-file | FileCheck %s

// A thread has 32 columns of a row, two of each eight. Those up to a number of the
// row are the first ones: of whole eights two, and at most two of the last. As many
// bits are set in an integer, and each pair of columns takes its two of them.
// Conditions on both sides are joined as integers, so that no column is compared.
// CHECK-LABEL: tile.program @window
// CHECK-DAG:     %[[C8:.*]] = arith.constant 8 : i32
// CHECK-DAG:     %[[C32:.*]] = arith.constant 32 : i32
// CHECK-DAG:     %[[ALL:.*]] = arith.constant -1 : i32
// CHECK-DAG:     %[[FIRST:.*]] = arith.constant dense<[1, 2]> : vector<2xi32>
// CHECK-DAG:     %[[LAST:.*]] = arith.constant dense<[1073741824, -2147483648]> : vector<2xi32>
// CHECK:         arith.minsi
// CHECK-NEXT:    arith.maxsi
// CHECK-NEXT:    %[[BELOW:.*]] = arith.subi
// CHECK-NEXT:    %[[EIGHTS:.*]] = arith.divui %[[BELOW]], %[[C8]]
// CHECK:         %[[REST:.*]] = arith.remui %[[BELOW]], %[[C8]]
// CHECK:         %[[COUNT:.*]] = arith.addi
// CHECK-NEXT:    %[[SHIFTED:.*]] = arith.shli %{{.*}}, %[[COUNT]]
// CHECK-NEXT:    %[[ONES:.*]] = arith.subi %[[SHIFTED]], %{{.*}}
// CHECK-NEXT:    %[[IS_ALL:.*]] = arith.cmpi eq, %[[COUNT]], %[[C32]]
// CHECK-NEXT:    %[[UP_TO:.*]] = arith.select %[[IS_ALL]], %[[ALL]], %[[ONES]]
// CHECK:         %[[NOT_BELOW:.*]] = arith.xori %{{.*}}, %[[ALL]]
// CHECK:         %[[BOTH:.*]] = arith.andi %[[UP_TO]], %[[NOT_BELOW]] : i32
// CHECK:         %[[WORD:.*]] = vector.broadcast %[[BOTH]] : i32 to vector<2xi32>
// CHECK-NEXT:    %[[OWN:.*]] = arith.andi %[[WORD]], %[[FIRST]]
// CHECK-NEXT:    %[[SHOWN:.*]] = arith.cmpi ne, %[[OWN]], %{{.*}} : vector<2xi32>
// CHECK:         arith.andi %[[WORD]], %[[LAST]]
// CHECK-NOT:     arith.cmpi s
// CHECK:         arith.select %[[SHOWN]]
!matrix = memref<?x?xf32, strided<[?, 1]>>
!tile = tensor<64x128xf32, #tile.mma<warps = 4>>
!columns = tensor<64x128xi32, #tile.mma<warps = 4>>
!conditions = tensor<64x128xi1, #tile.mma<warps = 4>>
tile.program @window(%m: index, %n: index, %x: !matrix {tile.dimensions = ["m", "n"]},
    %y: !matrix {tile.dimensions = ["m", "n"]})
    attributes {dimensions = ["m", "n"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %cst = arith.constant dense<0xFF800000> : !tile
  %c127 = arith.constant dense<127> : tensor<64x1xi32, #tile.mma<warps = 4>>
  %0 = tile.load %x[%m, %n] {invariant} : !matrix -> !tile
  %rows = tile.iota_rows from %m : tensor<64x1xi32, #tile.mma<warps = 4>>
  %least = arith.subi %rows, %c127 : tensor<64x1xi32, #tile.mma<warps = 4>>
  %iota = tile.iota from %n : tensor<1x128xi32, #tile.mma<warps = 4>>
  %columns = tile.broadcast %iota : tensor<1x128xi32, #tile.mma<warps = 4>> -> !columns
  %1 = tile.broadcast %rows : tensor<64x1xi32, #tile.mma<warps = 4>> -> !columns
  %2 = arith.cmpi sle, %columns, %1 : !columns
  %3 = tile.broadcast %least : tensor<64x1xi32, #tile.mma<warps = 4>> -> !columns
  %4 = arith.cmpi sge, %columns, %3 : !columns
  %5 = arith.andi %2, %4 : !conditions
  %6 = arith.select %5, %0, %cst : !conditions, !tile
  tile.store %6, %y[%m, %n] : !tile, !matrix
  tile.return
}

// -----

// Columns that are no numbers one after the other are compared each.
// CHECK-LABEL: tile.program @other
// CHECK-COUNT-32: arith.cmpi sle, %{{.*}} : vector<2xi32>
!matrix = memref<?x?xf32, strided<[?, 1]>>
!integers = memref<?x?xi32, strided<[?, 1]>>
!tile = tensor<64x128xf32, #tile.mma<warps = 4>>
!columns = tensor<64x128xi32, #tile.mma<warps = 4>>
tile.program @other(%m: index, %n: index, %x: !matrix {tile.dimensions = ["m", "n"]},
    %k: !integers {tile.dimensions = ["m", "n"]}, %y: !matrix {tile.dimensions = ["m", "n"]})
    attributes {dimensions = ["m", "n"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 128>} {
  %cst = arith.constant dense<0xFF800000> : !tile
  %0 = tile.load %x[%m, %n] {invariant} : !matrix -> !tile
  %columns = tile.load %k[%m, %n] {invariant} : !integers -> !columns
  %rows = tile.iota_rows from %m : tensor<64x1xi32, #tile.mma<warps = 4>>
  %1 = tile.broadcast %rows : tensor<64x1xi32, #tile.mma<warps = 4>> -> !columns
  %2 = arith.cmpi sle, %columns, %1 : !columns
  %3 = arith.select %2, %0, %cst : tensor<64x128xi1, #tile.mma<warps = 4>>, !tile
  tile.store %3, %y[%m, %n] : !tile, !matrix
  tile.return
}

// RUN: tile-opt %s --lower-tiles=target=sm_90a --canonicalize --cse | FileCheck %s

// A warp copies 48 numbers of each of two operands, two a lane: all of them are
// loaded, as far as the operand has them, before the first is stored, and the
// last lanes have none.
// Each thread of the other role reads two neighbours of every eight.
// CHECK-LABEL: tile.program @numbers(
// CHECK-SAME:      %[[N:[^:]*]]: index, %[[X:[^:]*]]: !llvm.ptr<1>
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<1xf32>
// CHECK-DAG:     %[[COUNT:.*]] = arith.constant 48 : index
// CHECK-DAG:     %[[NUMBERS:.*]] = llvm.mlir.addressof @numbers_scratch{{.*}} : !llvm.ptr<3>
// CHECK:         %[[IS_INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %[[N]] : index
// CHECK:         %[[FIRST:.*]] = llvm.intr.masked.load %{{.*}}, %{{.*}}, %[[ZERO]] {{.*}} : (!llvm.ptr<1>, vector<1xi1>, vector<1xf32>) -> vector<1xf32>
// CHECK-COUNT-3: llvm.intr.masked.load
// CHECK:         %[[IS_IN_SLOT:.*]] = arith.cmpi ult, %{{.*}}, %[[COUNT]] : index
// CHECK-COUNT-4: llvm.intr.masked.store {{.*}} vector<1xi1> into !llvm.ptr<3>
// CHECK:         nvvm.bar.warp.sync
// CHECK-COUNT-6: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// CHECK-NOT:     llvm.load
tile.program @numbers(%n: index, %x: memref<?x1xf32, strided<[?, 1]>> {tile.dimensions = ["n", 1]},
                      %y: memref<?xf32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 48 : i64},
                schedule = #tile.launch<threads = 256>} {
  %c0 = arith.constant 0 : index
  %numbers = tile.make_numbers : memref<2x48xf32, #gpu.address_space<workgroup>>
  %full = tile.make_barriers arrivals 1 : !tile.barriers<1>
  tile.synchronize
  %program = tile.program_id
  %c48 = arith.constant 48 : index
  %row = arith.muli %program, %c48 : index
  tile.roles warps [4, 4] threads [32, 128] {
    tile.copy_numbers %x[%row, %c0] to %numbers[%c0] : memref<?x1xf32, strided<[?, 1]>>, memref<2x48xf32, #gpu.address_space<workgroup>>
    %c1 = arith.constant 1 : index
    %next = arith.addi %row, %c1 : index
    tile.copy_numbers %x[%next, %c0] to %numbers[%c1] : memref<?x1xf32, strided<[?, 1]>>, memref<2x48xf32, #gpu.address_space<workgroup>>
    tile.arrive at %full[%c0] warps : !tile.barriers<1>
  }, {
    tile.await %full[%c0] parity %c0 : !tile.barriers<1>
    %0 = tile.take_numbers %numbers[%c0] : memref<2x48xf32, #gpu.address_space<workgroup>> -> tensor<1x48xf32, #tile.mma<warps = 4>>
    tile.store %0, %y[%row] : tensor<1x48xf32, #tile.mma<warps = 4>>, memref<?xf32>
  }
  tile.return
}

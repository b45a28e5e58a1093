// RUN: tile-opt %s --lower-tiles=target=sm_80 --canonicalize --cse -split-input-file | FileCheck %s

// Eight lanes give the addresses of the rows of each matrix of a left operand:
// its rows from 16 times the warp on, of two pieces of 16 bytes each. Where the
// lane begins follows the swizzle once; other columns are an exclusive or away.
// CHECK-LABEL: tile.program @left(
// CHECK:         %[[BITS:.*]] = arith.andi %{{.*}}, %{{.*}} : index
// CHECK:         %[[PLACE:.*]] = arith.xori %{{.*}}, %[[BITS]] : index
// CHECK:         %[[FIRST:.*]] = nvvm.ldmatrix %{{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4 : i32, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
// CHECK:         arith.xori %[[PLACE]], %{{.*}} : index
// CHECK:         nvvm.ldmatrix
// CHECK-NOT:     ldmatrix
tile.program @left(%m: index, %y: memref<?x?xbf16, strided<[?, 1]>> {tile.dimensions = ["m", "m"]})
    attributes {dimensions = ["m"], programs = {m = 32 : i64}, schedule = #tile.launch<threads = 64>} {
  %c0 = arith.constant 0 : index
  %buffer = tile.buffer {offset = 0 : i64} : memref<1x32x32xbf16, #tile.shared<swizzle = 64>>
  %0 = tile.take %buffer[%c0] : memref<1x32x32xbf16, #tile.shared<swizzle = 64>> -> tensor<32x32xbf16, #tile.mma<warps = 2>>
  tile.store %0, %y[%c0, %c0] : tensor<32x32xbf16, #tile.mma<warps = 2>>, memref<?x?xbf16, strided<[?, 1]>>
  tile.return
}

// -----

// Each 16 x 16 elements of a right operand are four matrices, which are transposed
// if the contracted dimension is not the contiguous one. A product of 32 rows and
// 16 columns is two by two instructions, each adding to sums of its own.
// CHECK-LABEL: tile.program @product(
// CHECK-COUNT-2: nvvm.ldmatrix %{{.*}} {{.*}}layout = #nvvm.mma_layout<row>
// CHECK:         nvvm.ldmatrix %{{.*}} {{.*}}layout = #nvvm.mma_layout<col>
// CHECK-NOT:     ldmatrix
// CHECK-COUNT-4: nvvm.mma.sync A[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] B[%{{.*}}, %{{.*}}] C[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}]{{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 16>
// CHECK-NOT:     mma.sync
// CHECK:         tile.return
tile.program @product(%m: index, %y: memref<?x?xf32, strided<[?, 1]>> {tile.dimensions = ["m", "m"]})
    attributes {dimensions = ["m"], programs = {m = 32 : i64}, schedule = #tile.launch<threads = 32>} {
  %c0 = arith.constant 0 : index
  %a_buffer = tile.buffer {offset = 0 : i64} : memref<1x32x16xbf16, #tile.shared<swizzle = 32>>
  %b_buffer = tile.buffer {offset = 1024 : i64} : memref<1x16x16xbf16, #tile.shared<swizzle = 32>>
  %a = tile.take %a_buffer[%c0] : memref<1x32x16xbf16, #tile.shared<swizzle = 32>> -> tensor<32x16xbf16, #tile.mma<warps = 1>>
  %b = tile.take %b_buffer[%c0] transposed : memref<1x16x16xbf16, #tile.shared<swizzle = 32>> -> tensor<16x16xbf16, #tile.mma_rhs>
  %0 = tile.dot %a, %b contract [1, 1]
      : tensor<32x16xbf16, #tile.mma<warps = 1>>, tensor<16x16xbf16, #tile.mma_rhs> -> tensor<32x16xf32, #tile.mma<warps = 1>>
  tile.store %0, %y[%c0, %c0] : tensor<32x16xf32, #tile.mma<warps = 1>>, memref<?x?xf32, strided<[?, 1]>>
  tile.return
}

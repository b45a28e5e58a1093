// RUN: tile-opt %s --distribute --lower-tiles --expand-math --cse --lower-to-nvvm | FileCheck %s --check-prefixes=CHECK,GPU
// RUN: tile-opt %s --distribute=target=host --lower-tiles=target=host --expand-math=target=host --cse --lower-to-host | FileCheck %s --check-prefixes=CHECK,HOST

// Both targets take interleaved pieces apart and together in registers.
// CHECK-LABEL: llvm.func @interleaved(
// CHECK-DAG:     %[[WIDE:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : {{.*}} -> vector<16xbf16>
// CHECK-DAG:     %[[ODD:.*]] = llvm.shufflevector %[[WIDE]], %[[WIDE]] [1, 3, 5, 7, 9, 11, 13, 15]
// CHECK:         %[[JOIN:.*]] = llvm.shufflevector %[[ODD]], %{{.*}} [0, 8, 1, 9,
// GPU:           llvm.store %[[JOIN]], %{{.*}} {alignment = 16 : i64} : vector<16xbf16>
// HOST:          %[[BITS:.*]] = llvm.bitcast %[[JOIN]] : vector<16xbf16> to vector<16xi16>
// HOST:          llvm.store %[[BITS]], %{{.*}} {alignment = 16 : i64} : vector<16xi16>
tile.program @interleaved(%rows: index, %x: memref<?x512xbf16, strided<[?, 1]>>,
                          %y: memref<?x512xbf16, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 8, columns = 256>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] {alignment = 16 : i64}
      : memref<?x512xbf16, strided<[?, 1]>> -> tensor<1x512xbf16>
  %even, %odd = tile.split interleaved %0 : tensor<1x512xbf16> -> tensor<1x256xbf16>, tensor<1x256xbf16>
  %1 = tile.join interleaved %odd, %even : tensor<1x256xbf16>, tensor<1x256xbf16> -> tensor<1x512xbf16>
  tile.store %1, %y[%row, %c0] {alignment = 16 : i64}
      : tensor<1x512xbf16>, memref<?x512xbf16, strided<[?, 1]>>
  tile.return
}

// CHECK-LABEL: llvm.func @three_of_one(
// CHECK:         %[[WIDE:.*]] = llvm.load {{.*}} -> vector<3xf32>
// CHECK:         llvm.extractelement %[[WIDE]]
// CHECK:         llvm.insertelement
// CHECK-NOT:     vector.
tile.program @three_of_one(%rows: index, %x: memref<?x96xf32, strided<[?, 1]>>,
                           %y: memref<?x96xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x96xf32, strided<[?, 1]>> -> tensor<1x96xf32>
  %1, %2, %3 = tile.split interleaved %0 : tensor<1x96xf32> -> tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>
  %4 = tile.join interleaved %3, %1, %2 : tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xf32> -> tensor<1x96xf32>
  tile.store %4, %y[%row, %c0] : tensor<1x96xf32>, memref<?x96xf32, strided<[?, 1]>>
  tile.return
}

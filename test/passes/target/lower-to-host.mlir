// RUN: tile-opt %s --lower-to-host -split-input-file | FileCheck %s

// A kernel becomes a function that unpacks its arguments and runs a range of
// programs.
// CHECK-LABEL: llvm.func @kernel(
// CHECK-SAME:      %[[ARGS:[^:]*]]: !llvm.ptr, %[[BEGIN:[^:]*]]: i64, %[[END:[^:]*]]: i64, %[[COUNT:[^:]*]]: i64) {
// CHECK:         %[[SLOT0:.*]] = llvm.getelementptr %[[ARGS]][0]
// CHECK-NEXT:    %[[ARG0:.*]] = llvm.load %[[SLOT0]] : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT:    %[[ROWS:.*]] = llvm.load %[[ARG0]] : !llvm.ptr -> i64
// CHECK:         %[[SLOT1:.*]] = llvm.getelementptr %[[ARGS]][1]
// CHECK-NEXT:    %[[ARG1:.*]] = llvm.load %[[SLOT1]] : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT:    %[[P:.*]] = llvm.load %[[ARG1]] : !llvm.ptr -> !llvm.ptr
// CHECK:         %[[ONE:.*]] = llvm.mlir.constant(1 : index) : i64
// CHECK:         llvm.br ^[[HEAD:.*]](%[[BEGIN]] : i64)
// CHECK:       ^[[HEAD]](%[[ID:.*]]: i64):
// CHECK-NEXT:    %[[MORE:.*]] = llvm.icmp "slt" %[[ID]], %[[END]]
// CHECK-NEXT:    llvm.cond_br %[[MORE]]
// CHECK:         %[[SUM:.*]] = llvm.add %[[ID]], %[[COUNT]]
// CHECK-NEXT:    %[[TOTAL:.*]] = llvm.add %[[SUM]], %[[ROWS]]
// CHECK-NEXT:    llvm.store %[[TOTAL]], %[[P]]
// CHECK-NEXT:    %[[NEXT:.*]] = llvm.add %[[ID]], %[[ONE]]
// CHECK-NEXT:    llvm.br ^[[HEAD]](%[[NEXT]] : i64)
// CHECK:         llvm.return
tile.program @kernel(%rows: index, %p: !llvm.ptr)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 1, vector = 8, columns = 8>} {
  %id = tile.program_id
  %count = tile.program_count
  %0 = arith.addi %id, %count : index
  %1 = arith.addi %0, %rows : index
  %2 = arith.index_cast %1 : index to i64
  llvm.store %2, %p : i64, !llvm.ptr
  tile.return
}

// The launch metadata stands for the function.
// CHECK-NOT: @launcher
func.func @launcher(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.launch [@kernel](%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// What float64 needs comes from libm.
// CHECK:       llvm.func @erf(f64) -> f64
// CHECK-LABEL: llvm.func @float64(
// CHECK:         llvm.call @erf(
tile.program @float64(%p: !llvm.ptr, %x: !llvm.ptr) attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = llvm.load %x : !llvm.ptr -> f64
  %1 = math.erf %0 : f64
  llvm.store %1, %p : f64, !llvm.ptr
  tile.return
}
func.func @launcher() {
  return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// So do the numbers of a vector, one by one.
// CHECK-LABEL: llvm.func @vectors(
// CHECK-COUNT-2: llvm.call @erf(
tile.program @vectors(%p: !llvm.ptr, %x: vector<2xf64>) attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.erf %x : vector<2xf64>
  llvm.store %0, %p : vector<2xf64>, !llvm.ptr
  tile.return
}

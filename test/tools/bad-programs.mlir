// What is no module of programs is refused at the first thing that is not.
// RUN: split-file %s %t
// RUN: not tilec %t/rows.mlir 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not tilec %t/pointers.mlir 2>&1 | FileCheck %s --check-prefix=POINTERS
// RUN: not tilec %t/declared.mlir 2>&1 | FileCheck %s --check-prefix=DECLARED
// RUN: not tilec %t/kernel.mlir 2>&1 | FileCheck %s --check-prefix=KERNEL
// RUN: not tilec %t/ops.mlir 2>&1 | FileCheck %s --check-prefix=OPS
// RUN: not tilec %t/argument.mlir 2>&1 | FileCheck %s --check-prefix=ARGUMENT
// RUN: not tilec %t/twice.mlir 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not tilec %t/variants.mlir 2>&1 | FileCheck %s --check-prefix=VARIANTS
// RUN: not tilec %t/operands.mlir 2>&1 | FileCheck %s --check-prefix=OPERANDS
// RUN: not tilec %t/returned.mlir 2>&1 | FileCheck %s --check-prefix=RETURNED
// RUN: not tilec %t/given.mlir 2>&1 | FileCheck %s --check-prefix=GIVEN
// RUN: not tilec %t/parts.mlir 2>&1 | FileCheck %s --check-prefix=PARTS
// RUN: not tilec %t/size.mlir 2>&1 | FileCheck %s --check-prefix=SIZE

//--- rows.mlir
// ROWS: rows.mlir:2:1: error: 'tile.program' op has no 'dimensions'; only the pass 'tile' makes programs over rows, from functions
tile.program @f(%rows: index, %x: memref<?x8xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>} {
  tile.return
}

//--- pointers.mlir
// POINTERS: 'tile.program' op argument 1 is a '!llvm.ptr', which is no operand in memory
tile.program @f(%n: index, %p: !llvm.ptr)
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

//--- declared.mlir
tile.program @p(%n: index, %x: memref<?xf32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}
// DECLARED: 'func.func' op beside programs must have a body of one block
func.func private @f(tensor<?xf32>)

//--- kernel.mlir
tile.program @p(%n: index, %x: memref<?xf32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}
// KERNEL: 'tile.kernel' op cannot be compiled beside programs; only 'func.func' and 'tile.program' can
tile.kernel @k(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  tile.return %x : tensor<?x8xf32>
}

//--- ops.mlir
tile.program @p(%n: index, %x: memref<?xf32> {tile.dimensions = ["n"]}, %y: memref<?xf32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  // OPS: 'arith.negf' op cannot stand beside programs: their functions hold launches of them and nothing else
  %0 = arith.negf %x : tensor<?xf32>
  %1 = tile.launch [@p](%0) : (tensor<?xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

//--- argument.mlir
tile.program @p(%n: index, %x: memref<?xf32> {tile.dimensions = ["n"]}, %y: memref<?xf32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}
func.func @f(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %0 = tile.launch [@p](%x) : (tensor<?xf32>) -> tensor<?xf32>
  // ARGUMENT: 'func.return' op returns an argument of the function as result 1; results are those of launches
  return %0, %x : tensor<?xf32>, tensor<?xf32>
}

//--- twice.mlir
tile.program @p(%n: index, %x: memref<?xf32> {tile.dimensions = ["n"]}, %y: memref<?xf32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}
func.func @f(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %0 = tile.launch [@p](%x) : (tensor<?xf32>) -> tensor<?xf32>
  // TWICE: 'func.return' op returns a value twice, again as result 1
  return %0, %0 : tensor<?xf32>, tensor<?xf32>
}

//--- variants.mlir
tile.program @p(%n: index, %x: memref<?xf32> {tile.dimensions = ["n"]}, %y: memref<?xf32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}
tile.program @q(%m: index, %x: memref<?xf32> {tile.dimensions = ["m"]}, %y: memref<?xf32> {tile.dimensions = ["m"]})
    attributes {dimensions = ["m"], programs = {m = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  // VARIANTS: 'tile.launch' op has variants with other dimensions: @p has ["n"], @q has ["m"]
  %0 = tile.launch [@p, @q](%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

//--- operands.mlir
tile.program @p(%n: index, %m: index, %x: memref<?x?xf32, strided<[?, 1]>> {tile.dimensions = ["n", "m"]}, %y: memref<?xf32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n", "m"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}
tile.program @q(%n: index, %m: index, %x: memref<?x?xf32, strided<[?, 1]>> {tile.dimensions = ["m", "n"]}, %y: memref<?xf32> {tile.dimensions = ["m"]})
    attributes {dimensions = ["n", "m"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}
func.func @f(%x: tensor<?x?xf32>) -> tensor<?xf32> {
  // OPERANDS: 'tile.launch' op has variants with other dimensions: argument 2 of @p has ["n", "m"], that of @q has ["m", "n"]
  %0 = tile.launch [@p, @q](%x) : (tensor<?x?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

//--- returned.mlir
tile.program @p(%n: index, %x: memref<?xf32> {tile.dimensions = ["n"]}, %c: memref<?xi32> {tile.counters = {n = 1 : i64}})
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}
func.func @f(%x: tensor<?xf32>) -> tensor<?xi32> {
  // RETURNED: 'tile.launch' op has counters as result 0, which nothing else may use, nor return
  %0 = tile.launch [@p](%x) : (tensor<?xf32>) -> tensor<?xi32>
  return %0 : tensor<?xi32>
}

//--- given.mlir
tile.program @p(%n: index, %x: memref<?xf32> {tile.dimensions = ["n"]}, %c: memref<?xi32> {tile.counters = {n = 1 : i64}}, %y: memref<?xf32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}
func.func @f(%x: tensor<?xf32>, %c: tensor<?xi32>) -> tensor<?xf32> {
  // GIVEN: 'tile.launch' op takes operand 1 for counters, which have to be a result
  %0 = tile.launch [@p](%x, %c) : (tensor<?xf32>, tensor<?xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

//--- parts.mlir
tile.program @p(%n: index, %x: memref<?xf32> {tile.dimensions = ["n"]}, %c: memref<?xi32> {tile.counters = {n = 1 : i64}})
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}
tile.program @q(%n: index, %x: memref<?xf32> {tile.dimensions = ["n"]}, %c: memref<?xi32> {tile.counters = {n = 2 : i64}})
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}
func.func @f(%x: tensor<?xf32>) {
  // PARTS: 'tile.launch' op has variants with other dimensions: argument 2 of @p has {n = 1 : i64}, that of @q has {n = 2 : i64}
  %0 = tile.launch [@p, @q](%x) : (tensor<?xf32>) -> tensor<?xi32>
  return
}

//--- size.mlir
tile.program @p(%n: index, %m: index, %x: memref<?xf32> {tile.dimensions = ["n"]}, %y: memref<?xf32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n", "m"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  // SIZE: 'tile.launch' op is of @p, whose dimension "m" no operand has, so that its size is unknown
  %0 = tile.launch [@p](%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

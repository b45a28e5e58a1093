// RUN: %python %S/Inputs/expect-errors.py %s | FileCheck %s
// CHECK: {{^[0-9][0-9]+}} cases, 0 failed

// -----
// an unclosed argument list
// error: 1:35: expected attribute name
func.func @f(%x: tensor<?x8xf32> {

// -----
// an unclosed function
// error: 3:9: expected operation name in quotes
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return

// -----
// a missing return
// error: 2:8: block with no terminator
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
}

// -----
// a missing type
// error: 2:24: expected ':'
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x
  return %0 : tensor<?x8xf32>
}

// -----
// a missing operand
// error: 2:21: expected ','
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.geglu %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// an operand too many
// error: 2:25: expected ':'
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.geglu %x, %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// a value that is not defined
// error: 2:22: use of undeclared SSA value name
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %y : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// text that is not MLIR
// error: 1:1: custom op 'import' is unknown
import torch

// -----
// a misspelled op
// error: 2:8: custom op 'tile.geglue' is unknown
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.geglue %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// an op of a dialect that there is not
// error: 2:8: Dialect `tosa' not found for custom op 'tosa.add'
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tosa.add %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// a misspelled attribute
// error: 2:8: 'tile.rms_norm' op has the unknown attribute 'epsilon'
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x {epsilon = 1.0e-5} : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// an integer for a float
// error: 2:25: custom op 'tile.rms_norm' 'tile.rms_norm' op attribute 'eps' failed to satisfy constraint: 64-bit float attribute
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x {eps = 1} : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// a form that there is not
// error: 2:31: custom op 'tile.geglu' expected
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.geglu %x, %x form(relu) : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// a negative eps
// error: 2:8: 'tile.rms_norm' op eps must not be negative, but is -1.000000e+00
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x {eps = -1.0} : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// a misspelled attribute of a function
// error: 1:1: 'func.func' op has the unknown attribute 'tile.schedul'
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {tile.schedul = #tile.rows<threads = 32>} {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// a misspelled field of a schedule
// error: 2:53: duplicate or unknown struct parameter name: thread
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {tile.schedule = #tile.rows<thread = 32>} {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// a weight of another length
// error: 2:8: 'tile.rms_norm' op weight of type 'tensor<9xf32>' does not have the row length of the input of type 'tensor<?x8xf32>'
func.func @f(%x: tensor<?x8xf32>, %w: tensor<9xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x, %w : tensor<?x8xf32>, tensor<9xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// operands of different lengths
// error: 2:26: use of value '%up' expects different type than prior uses: 'tensor<?x8xf32>' vs 'tensor<?x16xf32>'
func.func @f(%gate: tensor<?x8xf32>, %up: tensor<?x16xf32>) -> tensor<?x8xf32> {
  %0 = tile.geglu %gate, %up : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// a result of another length
// error: 3:3: type of return operand 0 ('tensor<?x8xf32>') doesn't match function result type ('tensor<?x16xf32>')
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x16xf32> {
  %0 = tile.geglu %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// integers
// error: 2:8: 'tile.rms_norm' op operand #0 must be row tensor of f16, bf16, f32 or f64
func.func @f(%x: tensor<?x8xi32>) -> tensor<?x8xi32> {
  %0 = tile.rms_norm %x : tensor<?x8xi32>
  return %0 : tensor<?x8xi32>
}

// -----
// integers of four bits
// error: 1:14: argument 0 of type 'tensor<?x8xi4>' must be a row tensor
func.func @f(%x: tensor<?x8xi4>) -> tensor<?x8xi4> {
  %0 = arith.addi %x, %x : tensor<?x8xi4>
  return %0 : tensor<?x8xi4>
}

// -----
// a tensor of another type that nothing reads
// error: 1:35: argument 1 of type 'tensor<?x8xi16>' must be a row tensor
func.func @f(%x: tensor<?x8xf32>, %ids: tensor<?x8xi16>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// float8
// error: 1:14: argument 0 of type 'tensor<?x8xf8E4M3FNUZ>' must be a row tensor
func.func @f(%x: tensor<?x8xf8E4M3FNUZ>) -> tensor<?x8xf8E4M3FNUZ> {
  %0 = arith.addf %x, %x : tensor<?x8xf8E4M3FNUZ>
  return %0 : tensor<?x8xf8E4M3FNUZ>
}

// -----
// float128
// error: 1:14: argument 0 of type 'tensor<?x8xf128>' must be a row tensor
func.func @f(%x: tensor<?x8xf128>) -> tensor<?x8xf128> {
  %0 = arith.addf %x, %x : tensor<?x8xf128>
  return %0 : tensor<?x8xf128>
}

// -----
// float64 on a GPU
// options: --target=sm_90
// error: 1:1: float64 is computed on the host only, not on sm_90
func.func @f(%x: tensor<?x8xf64>) -> tensor<?x8xf64> {
  %0 = tile.rms_norm %x : tensor<?x8xf64>
  return %0 : tensor<?x8xf64>
}

// -----
// rows of length zero
// error: 2:8: 'tile.rms_norm' op operand #0 must be row tensor of f16, bf16, f32 or f64 (at least one leading dimension and a static last dimension of at least 1), but got 'tensor<?x0xf32>'
func.func @f(%x: tensor<?x0xf32>) -> tensor<?x0xf32> {
  %0 = tile.rms_norm %x : tensor<?x0xf32>
  return %0 : tensor<?x0xf32>
}

// -----
// rows of length zero in ops of arith
// error: 1:14: argument 0 of type 'tensor<?x0xf32>' must be a row tensor or row vector of f8E4M3FN, f8E5M2, f16, bf16, f32, f64, i8, i32 or i64 with a row length from 1 to 2147483648, which is static in a vector
func.func @f(%x: tensor<?x0xf32>) -> tensor<?x0xf32> {
  %0 = arith.addf %x, %x : tensor<?x0xf32>
  return %0 : tensor<?x0xf32>
}

// -----
// rows of dynamic length
// error: 1:14: argument 0 of type 'tensor<?xf32>' must be a row tensor
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.addf %x, %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----
// rows longer than any memory
// error: 1:14: argument 0 of type 'tensor<?x9223372036854775807xf32>' must be a row tensor
func.func @f(%x: tensor<?x9223372036854775807xf32>) -> tensor<?x9223372036854775807xf32> {
  %0 = tile.rms_norm %x : tensor<?x9223372036854775807xf32>
  return %0 : tensor<?x9223372036854775807xf32>
}

// -----
// a tensor of rank one for a row tensor
// error: 2:8: 'tile.rms_norm' op operand #0 must be row tensor
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = tile.rms_norm %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----
// a tensor of rank zero
// error: 1:14: argument 0 of type 'tensor<f32>' must be a row tensor
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = arith.addf %x, %x : tensor<f32>
  return %0 : tensor<f32>
}

// -----
// a tensor without a rank
// error: 1:14: argument 0 of type 'tensor<*xf32>' must be a row tensor
func.func @f(%x: tensor<*xf32>) -> tensor<*xf32> {
  %0 = arith.addf %x, %x : tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----
// a scalar argument
// error: 1:35: argument 1 of type 'f32' must be a row tensor or row vector
func.func @f(%x: tensor<?x8xf32>, %s: f32) -> tensor<?x8xf32> {
  %0 = tile.broadcast %s like %x : f32, tensor<?x8xf32> -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// a scalar argument that nothing reads
// error: 1:35: argument 1 of type 'f32' must be a row tensor or row vector
func.func @f(%x: tensor<?x8xf32>, %s: f32) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// a memref argument
// error: 1:14: argument 0 of type 'memref<?x8xf32>' must be a row tensor or row vector
func.func @f(%m: memref<?x8xf32>, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// a table of numbers
// error: 2:8: 'arith.constant' op has elements that differ; pass such a tensor as an argument
func.func @f(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %w = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = tile.rms_norm %x, %w : tensor<?x2xf32>, tensor<2xf32>
  return %0 : tensor<?x2xf32>
}

// -----
// no arguments
// error: 2:8: 'arith.constant' op depends on no row tensor among the arguments, so its rows are unknown
func.func @f() -> tensor<4x8xf32> {
  %0 = arith.constant dense<1.0> : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----
// no results
// error: 1:1: 'func.func' op returns nothing, so there is nothing to compute
func.func @f(%x: tensor<?x8xf32>) {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return
}

// -----
// a scalar returned
// error: 4:3: 'func.return' op result 1 of type 'f32' is neither a row tensor nor a row vector
func.func @f(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, f32) {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  %1 = arith.constant 1.0 : f32
  return %0, %1 : tensor<?x8xf32>, f32
}

// -----
// bands that a tile does not divide
// options: --target=host --schedule=rows=3
// error: 1:1: schedule #tile.rows<rows = 3, threads = 1, vector = 8, columns = 8> does not fit host: 3 rows do not divide a band of 128
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.reduce_bands max %x of 128 : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// control flow
// error: 1:1: 'func.func' op must be a single block of straight-line code
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  cf.br ^loop(%x : tensor<?x8xf32>)
^loop(%y: tensor<?x8xf32>):
  %0 = tile.rms_norm %y : tensor<?x8xf32>
  cf.br ^loop(%0 : tensor<?x8xf32>)
}

// -----
// a structured loop
// error: 5:8: 'scf.for' op cannot be part of a kernel
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%y = %x) -> tensor<?x8xf32> {
    %1 = tile.rms_norm %y : tensor<?x8xf32>
    scf.yield %1 : tensor<?x8xf32>
  }
  return %0 : tensor<?x8xf32>
}

// -----
// a call
// error: 6:8: 'func.call' op cannot be part of a kernel
func.func @g(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = call @g(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// a call of a function that there is not
// error: 2:8: 'func.call' op 'g' does not reference a valid function
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = call @g(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// an external function
// error: 1:1: 'func.func' op has no body to compile
func.func private @g(tensor<?x8xf32>) -> tensor<?x8xf32>

// -----
// an external function before a good one
// error: 1:1: 'func.func' op has no body to compile
func.func private @g(tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// a broken function after a good one
// error: 5:14: argument 0 of type 'tensor<?xf32>' must be a row tensor or row vector
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
func.func @g(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}

// -----
// two functions of one name
// error: 5:1: redefinition of symbol named 'f'
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// what is no function
// error: 1:1: 'memref.global' op cannot be compiled; only 'func.func' can
memref.global @g : memref<8xf32>
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// a gradient of what is no argument
// options: --grad=y
// error: file: no function has an argument called 'y' to compute a gradient for
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// a schedule of what is no kernel
// options: --schedule=g:rows=2
// error: file: in the schedule 'g:rows=2':
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// an empty module
// error: 1:1: there is no function to compile
module {
}

// -----
// a comment and nothing else
// error: file: there is no function to compile
// to do

// -----
// threads past those of a block
// options: --target=sm_90
// error: 1:1: schedule #tile.rows<rows = 1, threads = 2048, vector = 8, columns = 8192> does not fit sm_90: 2048 threads are more than the 1024 of a block
func.func @f(%x: tensor<?x8192xbf16>) -> tensor<?x8192xbf16>
    attributes {tile.schedule = #tile.rows<rows = 1, threads = 2048, vector = 8, columns = 8192>} {
  %0 = tile.rms_norm %x : tensor<?x8192xbf16>
  return %0 : tensor<?x8192xbf16>
}

// -----
// threads past those of a block, as an option
// options: --target=sm_90 --schedule=threads=2048
// error: 1:1: schedule #tile.rows<rows = 1, threads = 2048,
func.func @f(%x: tensor<?x8192xbf16>) -> tensor<?x8192xbf16> {
  %0 = tile.rms_norm %x : tensor<?x8192xbf16>
  return %0 : tensor<?x8192xbf16>
}

// -----
// part of a warp
// options: --target=sm_90 --schedule=threads=100
// error: 1:1: schedule #tile.rows<rows = 1, threads = 100,
func.func @f(%x: tensor<?x8192xbf16>) -> tensor<?x8192xbf16> {
  %0 = tile.rms_norm %x : tensor<?x8192xbf16>
  return %0 : tensor<?x8192xbf16>
}

// -----
// a vector that does not divide the row
// options: --schedule=vector=16
// error: 1:1: schedule #tile.rows<
func.func @f(%x: tensor<?x24xbf16>) -> tensor<?x24xbf16> {
  %0 = tile.rms_norm %x : tensor<?x24xbf16>
  return %0 : tensor<?x24xbf16>
}

// -----
// a tile that does not divide among its threads
// options: --target=sm_90 --schedule=columns=1032,threads=128,vector=8
// error: 1:1: schedule #tile.rows<rows = 1, threads = 128, vector = 8, columns = 1032, reread = shared> does not fit sm_90: 1 rows of 129 vectors do not divide evenly among 128 threads
func.func @f(%x: tensor<?x8192xbf16>) -> tensor<?x8192xbf16> {
  %0 = tile.rms_norm %x : tensor<?x8192xbf16>
  return %0 : tensor<?x8192xbf16>
}

// -----
// more elements than registers
// options: --target=sm_90 --schedule=rows=64,threads=128,vector=8,columns=8192
// error: 1:1: schedule #tile.rows<rows = 64, threads = 128, vector = 8, columns = 8192> does not fit sm_90: 4096 elements a thread are more than the 256 that registers hold
func.func @f(%x: tensor<?x8192xbf16>) -> tensor<?x8192xbf16> {
  %0 = tile.rms_norm %x : tensor<?x8192xbf16>
  return %0 : tensor<?x8192xbf16>
}

// -----
// more shared memory than a block has
// options: --target=sm_90 --schedule=rows=256,threads=1024,vector=1,columns=1024
// error: 1:1: schedule #tile.rows<rows = 256, threads = 1024, vector = 1, columns = 1024> does not fit sm_90: 65536 bytes of shared memory are more than the 49152
func.func @f(%x: tensor<?x1024xf32>) -> (tensor<?x1xf32>, tensor<?x1xf32>) {
  %0 = tile.reduce max %x : tensor<?x1024xf32> -> tensor<?x1xf32>
  %1 = tile.reduce min %x : tensor<?x1024xf32> -> tensor<?x1xf32>
  return %0, %1 : tensor<?x1xf32>, tensor<?x1xf32>
}

// -----
// more than the host unrolls
// options: --target=host --schedule=rows=4096
// error: 1:1: schedule #tile.rows<rows = 4096,
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = tile.rms_norm %x : tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----
// fields whose product overflows
// options: --schedule=rows=4611686018427387904
// error: 1:1: in the schedule 'rows=4611686018427387904': schedule field 'rows' must be from 0 to 16777216, but is 4611686018427387904
module {
  func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %0 = tile.rms_norm %x : tensor<?x64xf32>
    return %0 : tensor<?x64xf32>
  }
}

// -----
// a misspelled field of a schedule, as an option
// options: --schedule=row=2
// error: 1:1: in the schedule 'row=2': duplicate or unknown struct parameter name: row
module {
  func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %0 = tile.rms_norm %x : tensor<?x64xf32>
    return %0 : tensor<?x64xf32>
  }
}

// -----
// a field without a number
// options: --schedule=rows=many
// error: 1:1: in the schedule 'rows=many': expected integer value
module {
  func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %0 = tile.rms_norm %x : tensor<?x64xf32>
    return %0 : tensor<?x64xf32>
  }
}

// -----
// a target that there is not
// options: --target=sm_1
// error: tilec: unknown target 'sm_1', expected one of: sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100a, sm_120, host
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// no target
// options: --target=
// error: tilec: unknown target '', expected one of: sm_80
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----
// a negative number of rows to explain
// options: --explain --rows=-5
// error: tilec: --rows must not be negative, but is -5
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// Unusual and legal functions: each compiles, for every target.

// RUN: tilec %s | FileCheck %s --check-prefix=PTX
// RUN: tilec %s --target=sm_80 | FileCheck %s --check-prefix=PTX
// RUN: tilec %s --target=host | FileCheck %s --check-prefix=HOST

// Arguments that nothing reads.
// PTX:  .entry unused_kernel(
// HOST: {{^}}unused_kernel:
func.func @unused(%x: tensor<?x8xf32>, %unused: tensor<?x16xbf16>, %w: tensor<4xf16>)
    -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// Ops whose results nothing reads.
// PTX:  .entry unused_op_kernel(
// HOST: {{^}}unused_op_kernel:
func.func @unused_op(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  %1 = tile.geglu %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// Rows of one element, with a weight.
// PTX:  .entry one_kernel(
// HOST: {{^}}one_kernel:
func.func @one(%x: tensor<?x1xbf16>, %w: tensor<1xbf16>) -> tensor<?x1xbf16> {
  %0 = tile.rms_norm %x, %w : tensor<?x1xbf16>, tensor<1xbf16>
  return %0 : tensor<?x1xbf16>
}

// Head norms: several rows to a block share the weight.
// PTX:  .entry heads_kernel(
// HOST: {{^}}heads_kernel:
func.func @heads(%x: tensor<?x?x?x128xbf16>, %w: tensor<128xbf16>)
    -> tensor<?x?x?x128xbf16> {
  %0 = tile.rms_norm %x, %w : tensor<?x?x?x128xbf16>, tensor<128xbf16>
  return %0 : tensor<?x?x?x128xbf16>
}

// The longest rows, of a length that no vector divides.
// PTX:  .entry long_kernel(
// HOST: {{^}}long_kernel:
func.func @long(%x: tensor<?x1048573xbf16>) -> tensor<?x1048573xbf16> {
  %0 = tile.rms_norm %x : tensor<?x1048573xbf16>
  return %0 : tensor<?x1048573xbf16>
}

// As many rows as the type says, even none.
// PTX:  .entry no_rows_kernel(
// HOST: {{^}}no_rows_kernel:
func.func @no_rows(%x: tensor<0x8xf32>) -> tensor<0x8xf32> {
  %0 = tile.rms_norm %x : tensor<0x8xf32>
  return %0 : tensor<0x8xf32>
}

// Leading dimensions of both kinds.
// PTX:  .entry leading_kernel(
// PTX:  .entry leading_kernel_strided(
// HOST: {{^}}leading_kernel:
func.func @leading(%x: tensor<?x4x8xf32>) -> tensor<?x4x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x4x8xf32>
  return %0 : tensor<?x4x8xf32>
}

// Tensors of different ranks side by side, which one program is for.
// PTX:  .entry ranks_kernel0(
// PTX-NOT: .entry ranks_kernel1(
// HOST: {{^}}ranks_kernel0:
// HOST-NOT: {{^}}ranks_kernel1:
func.func @ranks(%x: tensor<?x8xf32>, %y: tensor<?x?x8xf32>)
    -> (tensor<?x8xf32>, tensor<?x?x8xf32>) {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  %1 = tile.rms_norm %y : tensor<?x?x8xf32>
  return %0, %1 : tensor<?x8xf32>, tensor<?x?x8xf32>
}

// A statistic as the result, in the type it is computed in.
// PTX:  .entry statistic_kernel(
// HOST: {{^}}statistic_kernel:
func.func @statistic(%x: tensor<?x100xf32>) -> tensor<?x1xf32> {
  %0 = tile.reduce max %x : tensor<?x100xf32> -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// Constants that are the same everywhere.
// PTX:  .entry constants_kernel(
// HOST: {{^}}constants_kernel:
func.func @constants(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %vector = arith.constant dense<2.0> : tensor<8xf32>
  %0 = tile.rms_norm %x, %vector : tensor<?x8xf32>, tensor<8xf32>
  return %0 : tensor<?x8xf32>
}

// Functions of narrow types, which are computed in float32.
// PTX:  .entry narrow_kernel0(
// PTX:  ex2.approx
// HOST: {{^}}narrow_kernel0:
func.func @narrow(%x: tensor<?x8xbf16>, %y: tensor<?x8xf16>)
    -> (tensor<?x8xbf16>, tensor<?x8xf16>) {
  %0 = math.exp %x : tensor<?x8xbf16>
  %1 = math.log %y : tensor<?x8xf16>
  return %0, %1 : tensor<?x8xbf16>, tensor<?x8xf16>
}

// Comparisons and integers between the operands.
// PTX:  .entry integers_kernel(
// HOST: {{^}}integers_kernel:
func.func @integers(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.cmpf ogt, %x, %y : tensor<?x8xf32>
  %1 = arith.fptosi %x : tensor<?x8xf32> to tensor<?x8xi32>
  %2 = arith.sitofp %1 : tensor<?x8xi32> to tensor<?x8xf32>
  %3 = arith.select %0, %2, %y : tensor<?x8xi1>, tensor<?x8xf32>
  return %3 : tensor<?x8xf32>
}

// A block that only leads to another.
// PTX:  .entry branch_kernel(
// HOST: {{^}}branch_kernel:
func.func @branch(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  cf.br ^next
^next:
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// A name that PTX does not take as it is.
// PTX:  .entry layer_0_norm_kernel(
// HOST: {{^}}layer_0_norm_kernel:
func.func @"layer.0 norm"(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// A kernel's name gives way to a function's.
// PTX:  .entry clash_kernel_{{[0-9]+}}(
// PTX:  .entry clash_kernel_kernel(
// HOST: {{^}}clash_kernel_{{[0-9]+}}:
// HOST: {{^}}clash_kernel_kernel:
func.func @clash(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
func.func @clash_kernel(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

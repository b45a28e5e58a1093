// RUN: tile-opt %s --fuse -split-input-file | FileCheck %s

// What follows a product element by element shares its kernel: a bias, an
// activation, a residual.
// CHECK-LABEL: tile.kernel @linear_kernel(
// CHECK-SAME:      tensor<?x8xbf16>, %{{[^:]*}}: tensor<4x8xbf16>, %{{[^:]*}}: tensor<4xf32>, %{{[^:]*}}: tensor<?x4xbf16>) -> tensor<?x4xbf16>
// CHECK:         tile.dot
// CHECK:         math.tanh
// CHECK:         arith.truncf
// CHECK-NOT:   tile.kernel
// CHECK-LABEL: func @linear(
func.func @linear(%x: tensor<?x8xbf16>, %w: tensor<4x8xbf16>, %b: tensor<4xf32>,
    %r: tensor<?x4xbf16>) -> tensor<?x4xbf16> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x8xbf16>, tensor<4x8xbf16> -> tensor<?x4xf32>
  %1 = tile.broadcast %b like %0 : tensor<4xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  %2 = arith.addf %0, %1 : tensor<?x4xf32>
  %3 = math.tanh %2 : tensor<?x4xf32>
  %4 = arith.extf %r : tensor<?x4xbf16> to tensor<?x4xf32>
  %5 = arith.addf %3, %4 : tensor<?x4xf32>
  %6 = arith.truncf %5 : tensor<?x4xf32> to tensor<?x4xbf16>
  return %6 : tensor<?x4xbf16>
}

// -----

// What comes before a product, reductions behind it and other products have
// kernels of their own, and no product is computed twice.
// CHECK-LABEL: tile.kernel @chain_kernel0(
// CHECK:         arith.addf
// CHECK-NOT:     tile.dot
// CHECK:       tile.kernel @chain_kernel1(
// CHECK:         tile.dot
// CHECK-NOT:     tile.reduce
// CHECK:       tile.kernel @chain_kernel2(
// CHECK-NOT:     tile.dot
// CHECK:         tile.reduce max
// CHECK-NOT:     tile.dot
// CHECK:       tile.kernel @chain_kernel3(
// CHECK:         tile.dot
// CHECK-NOT:   tile.dot
// CHECK-LABEL: func @chain(
func.func @chain(%x: tensor<?x8xf32>, %w: tensor<8x4xf32>, %v: tensor<4x8xf32>)
    -> tensor<?x8xf32> {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  %1 = tile.dot %0, %w contract [1, 0] : tensor<?x8xf32>, tensor<8x4xf32> -> tensor<?x4xf32>
  %2 = tile.reduce max %1 : tensor<?x4xf32> -> tensor<?x1xf32>
  %3 = tile.broadcast %2 like %1 : tensor<?x1xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  %4 = arith.subf %1, %3 : tensor<?x4xf32>
  %5 = tile.dot %4, %v contract [1, 0] : tensor<?x4xf32>, tensor<4x8xf32> -> tensor<?x8xf32>
  return %5 : tensor<?x8xf32>
}

// -----

// A widened value is stored narrow, and widened again where it is read.
// CHECK-LABEL: tile.kernel @narrow_kernel0(
// CHECK-SAME:      -> tensor<?x8xbf16>
// CHECK-LABEL: tile.kernel @narrow_kernel1(
// CHECK-SAME:      %[[H:[^:]*]]: tensor<?x8xbf16>,
// CHECK:         tile.dot %[[H]]
// CHECK:         arith.extf %[[H]]
func.func @narrow(%x: tensor<?x8xf32>, %w: tensor<8x8xbf16>) -> tensor<?x8xf32> {
  %0 = math.exp %x : tensor<?x8xf32>
  %1 = arith.truncf %0 : tensor<?x8xf32> to tensor<?x8xbf16>
  %2 = tile.dot %1, %w contract [1, 1] : tensor<?x8xbf16>, tensor<8x8xbf16> -> tensor<?x8xf32>
  %3 = arith.extf %1 : tensor<?x8xbf16> to tensor<?x8xf32>
  %4 = arith.addf %2, %3 : tensor<?x8xf32>
  return %4 : tensor<?x8xf32>
}

// -----

// A product and what is added to it share no kernel with the factor, though both
// read the same rows.
// CHECK-LABEL: tile.kernel @factor_beside_sum_kernel0(
// CHECK:         arith.mulf
// CHECK-NOT:     arith.addf
// CHECK:       tile.kernel @factor_beside_sum_kernel1(
// CHECK:         tile.dot
// CHECK:         arith.addf
// CHECK-LABEL: func @factor_beside_sum(
func.func @factor_beside_sum(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>)
    -> tensor<?x8xf32> {
  %0 = arith.mulf %x, %x : tensor<?x8xf32>
  %1 = math.absf %x : tensor<?x8xf32>
  %2 = tile.dot %0, %w contract [1, 1] : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %3 = arith.addf %1, %2 : tensor<?x8xf32>
  return %3 : tensor<?x8xf32>
}

// -----

// A piece of an argument that follows a product is read where it lies: the
// kernel of a product takes nothing apart.
// CHECK-LABEL: tile.kernel @piece_behind_product_kernel
// CHECK-NEXT:    %[[D:.*]] = tile.dot
// CHECK-NEXT:    arith.addf %[[D]], %{{.*}} : tensor<?x4xf32>
// CHECK-NOT:     tile.split
// CHECK-LABEL: func @piece_behind_product(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xf32>
// CHECK:         tile.piece %[[X]] dimension 1[0 of 2]
func.func @piece_behind_product(%x: tensor<?x8xf32>, %w: tensor<4x4xf32>, %y: tensor<?x4xf32>)
    -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %0, %1 = tile.split %x : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %2 = tile.dot %y, %w contract [1, 0] : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x4xf32>
  %3 = arith.addf %2, %0 : tensor<?x4xf32>
  return %3, %1 : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// A condition for each row, which the kernel of a product cannot compute, is
// computed where the product is read.
// CHECK-LABEL: tile.kernel @condition_of_rows_kernel0(
// CHECK:         arith.select
// CHECK:       tile.kernel @condition_of_rows_kernel1(
// CHECK:         tile.dot
// CHECK-NEXT:    tile.return
// CHECK:       tile.kernel @condition_of_rows_kernel2(
// CHECK:         arith.cmpf
// CHECK:         arith.select
// CHECK-LABEL: func @condition_of_rows(
func.func @condition_of_rows(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %c: tensor<?x1xf32>)
    -> tensor<?x8xf32> {
  %0 = arith.cmpf une, %c, %c : tensor<?x1xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x1xi1>, tensor<?x8xf32> -> tensor<?x8xi1>
  %2 = arith.negf %x : tensor<?x8xf32>
  %3 = arith.select %1, %x, %2 : tensor<?x8xi1>, tensor<?x8xf32>
  %4 = tile.dot %3, %w contract [1, 0] : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %5 = arith.select %1, %4, %x : tensor<?x8xi1>, tensor<?x8xf32>
  return %5 : tensor<?x8xf32>
}

// -----

// What is computed of a repeated number, to be multiplied, takes its sizes from
// a value with such rows: here from the product before.
// CHECK-LABEL: tile.kernel @computed_of_number_kernel0(
// CHECK:         %[[SIZES:.*]] = tile.dot
// CHECK:         %[[ONES:.*]] = tile.broadcast %{{.*}} like %[[SIZES]]
// CHECK:         arith.truncf %[[ONES]]
// CHECK-LABEL: func @computed_of_number(
func.func @computed_of_number(%x: tensor<?x1xbf16>, %y: tensor<?x8xbf16>)
    -> (tensor<1x8xf32>, tensor<?x8xf32>) {
  %cst = arith.constant 1.0 : f32
  %0 = tile.dot %x, %y contract [0, 0] : tensor<?x1xbf16>, tensor<?x8xbf16> -> tensor<1x8xf32>
  %1 = tile.broadcast %cst : f32 -> tensor<1x8xf32>
  %2 = arith.truncf %1 : tensor<1x8xf32> to tensor<1x8xbf16>
  %3 = tile.dot %x, %2 contract [1, 0] : tensor<?x1xbf16>, tensor<1x8xbf16> -> tensor<?x8xf32>
  return %0, %3 : tensor<1x8xf32>, tensor<?x8xf32>
}

// -----

// What only a kernel on rows needs is computed there, where the product's kernel
// has to leave no more for it: of a norm, the residual's sum is left, not its
// squares beside it.
// CHECK-LABEL: tile.kernel @norm_behind_product_kernel0(
// CHECK-SAME:      -> tensor<?x8xf32> attributes
// CHECK-NEXT:    tile.dot
// CHECK-NEXT:    %[[H:.*]] = arith.addf
// CHECK-NEXT:    tile.return %[[H]]
// CHECK:       tile.kernel @norm_behind_product_kernel1(
// CHECK:         arith.mulf
// CHECK:         tile.reduce add
// CHECK-LABEL: func @norm_behind_product(
func.func @norm_behind_product(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>)
    -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %1 = arith.addf %0, %x : tensor<?x8xf32>
  %2 = arith.mulf %1, %1 : tensor<?x8xf32>
  %3 = tile.reduce add %2 : tensor<?x8xf32> -> tensor<?x1xf32>
  %4 = tile.broadcast %3 like %x : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %5 = arith.divf %1, %4 : tensor<?x8xf32>
  return %5, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// A value that takes fewer bytes than what it is computed of is left by the
// product's kernel: here the rounded one.
// CHECK-LABEL: tile.kernel @rounded_behind_product_kernel0(
// CHECK-SAME:      -> tensor<?x8xbf16>
// CHECK:         tile.dot
// CHECK-NEXT:    arith.truncf
// CHECK-NEXT:    tile.return
// CHECK:       tile.kernel @rounded_behind_product_kernel1(
// CHECK:         arith.extf
// CHECK:         math.absf
// CHECK:         tile.reduce max
// CHECK-LABEL: func @rounded_behind_product(
func.func @rounded_behind_product(%x: tensor<?x8xbf16>, %w: tensor<8x8xbf16>) -> tensor<?x1xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x8xbf16>, tensor<8x8xbf16> -> tensor<?x8xf32>
  %1 = arith.truncf %0 : tensor<?x8xf32> to tensor<?x8xbf16>
  %2 = arith.extf %1 : tensor<?x8xbf16> to tensor<?x8xf32>
  %3 = math.absf %2 : tensor<?x8xf32>
  %4 = tile.reduce max %3 : tensor<?x8xf32> -> tensor<?x1xf32>
  return %4 : tensor<?x1xf32>
}

// -----

// A repeated vector is repeated in each kernel that needs it, not left in memory
// as rows.
// CHECK-LABEL: tile.kernel @vector_of_two_kernel0(
// CHECK-SAME:      -> tensor<?x8xf32>
// CHECK:         tile.broadcast %{{.*}} like %{{.*}} : tensor<8xf32>
// CHECK-LABEL: tile.kernel @vector_of_two_kernel1(
// CHECK-SAME:      tensor<8xf32>
// CHECK:         tile.broadcast %{{.*}} like %{{.*}} : tensor<8xf32>
// CHECK-NEXT:    tile.dot
// CHECK-LABEL: func @vector_of_two(
func.func @vector_of_two(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %v: tensor<8xf32>) -> tensor<?x8xf32> {
  %0 = tile.broadcast %v like %x : tensor<8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = arith.addf %x, %0 : tensor<?x8xf32>
  %2 = tile.dot %1, %w contract [1, 1] : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %3 = arith.mulf %2, %0 : tensor<?x8xf32>
  return %3 : tensor<?x8xf32>
}

// -----

// A repeated vector or a widened value that is a factor is in memory: what
// follows the product reads it there.
// CHECK-LABEL: tile.kernel @vector_as_factor_kernel0(
// CHECK:         tile.broadcast
// CHECK-LABEL: tile.kernel @vector_as_factor_kernel1(
// CHECK-SAME:      %[[B:[^:]*]]: tensor<?x8xf32>, %{{[^:]*}}: tensor<8x8xf32>) -> tensor<?x8xf32> attributes
// CHECK-NEXT:    %[[P:.*]] = tile.dot %[[B]],
// CHECK-NEXT:    arith.mulf %[[P]], %[[B]]
// CHECK-LABEL: func @vector_as_factor(
func.func @vector_as_factor(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %v: tensor<8xf32>) -> tensor<?x8xf32> {
  %0 = tile.broadcast %v like %x : tensor<8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = tile.dot %0, %w contract [1, 1] : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %2 = arith.mulf %1, %0 : tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: tile.kernel @widened_factor_kernel0(
// CHECK:         arith.extf
// CHECK-LABEL: tile.kernel @widened_factor_kernel1(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xf32>, %{{[^:]*}}: tensor<8x8xf32>) -> tensor<?x8xf32> attributes
// CHECK-NEXT:    %[[P:.*]] = tile.dot %[[X]],
// CHECK-NEXT:    arith.mulf %[[P]], %[[X]]
// CHECK-LABEL: func @widened_factor(
func.func @widened_factor(%x: tensor<?x8xbf16>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.extf %x : tensor<?x8xbf16> to tensor<?x8xf32>
  %1 = tile.dot %0, %w contract [1, 1] : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %2 = arith.mulf %1, %0 : tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

// The rows of a product are taken apart in the kernel behind it, which reads
// pieces; rows that are put together are left for the product.
// CHECK-LABEL: tile.kernel @pieces_around_product_kernel0(
// CHECK:         %[[J:.*]] = tile.join
// CHECK-NEXT:    tile.return %[[J]]
// CHECK:       tile.kernel @pieces_around_product_kernel1(
// CHECK-NEXT:    %[[P:.*]] = tile.dot
// CHECK-NEXT:    tile.return %[[P]]
// CHECK:       tile.kernel @pieces_around_product_kernel2(
// CHECK-SAME:      %[[P:[^:]*]]: tensor<?x6xf32>) -> tensor<?x3xf32>
// CHECK-NEXT:    tile.split %[[P]]
// CHECK-NEXT:    arith.mulf
// CHECK-LABEL: func @pieces_around_product(
func.func @pieces_around_product(%a: tensor<?x4xf32>, %b: tensor<?x4xf32>, %w: tensor<6x8xf32>)
    -> tensor<?x3xf32> {
  %0 = arith.negf %a : tensor<?x4xf32>
  %1 = tile.join %0, %b : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  %2 = tile.dot %1, %w contract [1, 1] : tensor<?x8xf32>, tensor<6x8xf32> -> tensor<?x6xf32>
  %low, %high = tile.split %2 : tensor<?x6xf32> -> tensor<?x3xf32>, tensor<?x3xf32>
  %3 = arith.mulf %low, %high : tensor<?x3xf32>
  return %3 : tensor<?x3xf32>
}

// -----

// Pieces that kernels of products compute are stored where the whole rows lie,
// for the product that multiplies these. Nothing joins them.
// CHECK-LABEL: tile.kernel @pieces_between_products_kernel0(
// CHECK-SAME:      -> (tensor<?x4xbf16>, tensor<?x4xbf16>)
// CHECK:         tile.dot
// CHECK-NOT:     tile.dot
// CHECK:       tile.kernel @pieces_between_products_kernel1(
// CHECK-SAME:      %[[R:[^:]*]]: tensor<?x8xbf16>
// CHECK-NEXT:    tile.dot %[[R]]
// CHECK-LABEL: func @pieces_between_products(
// CHECK:         %[[L:.*]]:2 = tile.launch [@pieces_between_products_kernel0]
// CHECK-NEXT:    %[[J:.*]] = tile.join %[[L]]#0, %[[L]]#1
// CHECK-NEXT:    tile.launch [@pieces_between_products_kernel1](%[[J]],
func.func @pieces_between_products(%x: tensor<?x8xbf16>, %w: tensor<4x8xbf16>, %v: tensor<8x8xbf16>)
    -> tensor<?x8xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x8xbf16>, tensor<4x8xbf16> -> tensor<?x4xf32>
  %1 = math.exp %0 : tensor<?x4xf32>
  %2 = math.tanh %0 : tensor<?x4xf32>
  %3 = arith.truncf %1 : tensor<?x4xf32> to tensor<?x4xbf16>
  %4 = arith.truncf %2 : tensor<?x4xf32> to tensor<?x4xbf16>
  %5 = tile.join %3, %4 : tensor<?x4xbf16>, tensor<?x4xbf16> -> tensor<?x8xbf16>
  %6 = tile.dot %5, %v contract [1, 1] : tensor<?x8xbf16>, tensor<8x8xbf16> -> tensor<?x8xf32>
  return %6 : tensor<?x8xf32>
}

// -----

// A piece that the function returns by itself, too, is copied to the joined rows.
// CHECK-LABEL: tile.kernel @piece_alone_kernel1(
// CHECK:         %[[J:.*]] = tile.join
// CHECK-NEXT:    tile.return %[[J]]
func.func @piece_alone(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>)
    -> (tensor<?x4xf32>, tensor<?x8xf32>) {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  %1 = math.exp %0 : tensor<?x4xf32>
  %2 = tile.join %0, %1 : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  return %1, %2 : tensor<?x4xf32>, tensor<?x8xf32>
}

// -----

// The kernel that joins the rows of a factor rounds them.
// CHECK-LABEL: tile.kernel @rounded_pieces_kernel0(
// CHECK-SAME:    -> tensor<?x8xbf16>
// CHECK-COUNT-2: arith.truncf
// CHECK-NEXT:    tile.join
// CHECK-NEXT:    tile.return
// CHECK-LABEL: tile.kernel @rounded_pieces_kernel1(
// CHECK-NEXT:    tile.dot
// CHECK-LABEL: func @rounded_pieces(
func.func @rounded_pieces(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %w: tensor<6x8xbf16>)
    -> tensor<?x6xf32> {
  %0 = math.exp %x : tensor<?x4xf32>
  %1 = math.tanh %y : tensor<?x4xf32>
  %2 = tile.join %0, %1 : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  %3 = tile.dot %2, %w contract [1, 1] : tensor<?x8xf32>, tensor<6x8xbf16> -> tensor<?x6xf32>
  return %3 : tensor<?x6xf32>
}

// -----

// A factor that is taken apart may have been joined: it is in memory.
// CHECK-LABEL: tile.kernel @joined_factor_kernel0(
// CHECK:         tile.join
// CHECK-LABEL: tile.kernel @joined_factor_kernel1(
// CHECK-NEXT:    tile.dot %[[X:.*]], %{{.*}} contract
// CHECK-NEXT:    tile.dot %[[X]], %{{.*}} contract
// CHECK-NEXT:    arith.mulf
// CHECK-LABEL: func @joined_factor(
func.func @joined_factor(%x: tensor<?x4xbf16>, %y: tensor<4x8xbf16>, %z: tensor<4x8xbf16>)
    -> tensor<?x8xf32> {
  %0 = math.exp %y : tensor<4x8xbf16>
  %1 = math.tanh %z : tensor<4x8xbf16>
  %2 = tile.join %0, %1 : tensor<4x8xbf16>, tensor<4x8xbf16> -> tensor<4x16xbf16>
  %3 = tile.piece %2 dimension 1 [0 of 2] : tensor<4x16xbf16> -> tensor<4x8xbf16>
  %4 = tile.dot %x, %3 contract [1, 0] : tensor<?x4xbf16>, tensor<4x8xbf16> -> tensor<?x8xf32>
  %5 = tile.piece %2 dimension 1 [1 of 2] : tensor<4x16xbf16> -> tensor<4x8xbf16>
  %6 = tile.dot %x, %5 contract [1, 0] : tensor<?x4xbf16>, tensor<4x8xbf16> -> tensor<?x8xf32>
  %7 = arith.mulf %4, %6 : tensor<?x8xf32>
  return %7 : tensor<?x8xf32>
}

// -----

// A product of pieces of one factor is one kernel, whatever follows each of them.
// CHECK-LABEL: tile.kernel @of_pieces_kernel(
// CHECK-NEXT:    tile.dot %[[X:.*]], %{{.*}} contract
// CHECK-NEXT:    tile.dot %[[X]], %{{.*}} contract
// CHECK-LABEL: func @of_pieces(
func.func @of_pieces(%x: tensor<?x8xbf16>, %w: tensor<8x8xbf16>)
    -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = tile.piece %w dimension 0 [0 of 2] : tensor<8x8xbf16> -> tensor<4x8xbf16>
  %1 = tile.piece %w dimension 0 [1 of 2] : tensor<8x8xbf16> -> tensor<4x8xbf16>
  %2 = tile.dot %x, %0 contract [1, 1] : tensor<?x8xbf16>, tensor<4x8xbf16> -> tensor<?x4xf32>
  %3 = tile.dot %x, %1 contract [1, 1] : tensor<?x8xbf16>, tensor<4x8xbf16> -> tensor<?x4xf32>
  %4 = math.exp %2 : tensor<?x4xf32>
  return %4, %3 : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// Two products of one left factor share a kernel with what is computed of both;
// three would not fit in registers, and products of two factors would read more.
// CHECK-LABEL: tile.kernel @gated_kernel(
// CHECK: tile.dot
// CHECK: tile.dot
// CHECK: arith.mulf
// CHECK-NOT: tile.kernel
// CHECK: func.func @gated(
func.func @gated(%x: tensor<?x64xbf16>, %g: tensor<96x64xbf16>, %u: tensor<96x64xbf16>) -> tensor<?x96xf32> {
  %0 = tile.dot %x, %g contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  %1 = tile.dot %x, %u contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  %2 = arith.mulf %0, %1 : tensor<?x96xf32>
  return %2 : tensor<?x96xf32>
}

// CHECK-LABEL: tile.kernel @two_rows_kernel0(
// CHECK: tile.dot
// CHECK-NOT: tile.dot
// CHECK-LABEL: tile.kernel @two_rows_kernel1(
// CHECK: tile.dot
// CHECK-NOT: tile.dot
// CHECK: func.func @two_rows(
func.func @two_rows(%x: tensor<?x64xbf16>, %y: tensor<?x64xbf16>, %g: tensor<96x64xbf16>, %u: tensor<96x64xbf16>) -> tensor<?x96xf32> {
  %0 = tile.dot %x, %g contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  %1 = tile.dot %y, %u contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  %2 = arith.addf %0, %1 : tensor<?x96xf32>
  return %2 : tensor<?x96xf32>
}

// -----

// A kernel on rows that needs several values of a product's kernel reads the
// product, and computes them again: one number for each element is left, not two.
// CHECK-LABEL: tile.kernel @recomputed_kernel0(
// CHECK-SAME: -> (tensor<?x512xf32>, tensor<?x512xbf16>)
// CHECK: tile.dot
// CHECK-LABEL: tile.kernel @recomputed_kernel1(%{{.*}}: tensor<?x512xf32>) -> tensor<?x1xf32>
// CHECK: math.exp
// CHECK: math.sin
// CHECK: tile.reduce
func.func @recomputed(%x: tensor<?x64xbf16>, %w: tensor<512x64xbf16>) -> (tensor<?x512xbf16>, tensor<?x1xf32>) {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<512x64xbf16> -> tensor<?x512xf32>
  %1 = math.exp %0 : tensor<?x512xf32>
  %2 = math.sin %1 : tensor<?x512xf32>
  %3 = arith.mulf %2, %1 : tensor<?x512xf32>
  %4 = arith.truncf %3 : tensor<?x512xf32> to tensor<?x512xbf16>
  %5 = tile.reduce max %1 : tensor<?x512xf32> -> tensor<?x1xf32>
  %6 = tile.broadcast %5 like %1 : tensor<?x1xf32>, tensor<?x512xf32> -> tensor<?x512xf32>
  %7 = arith.mulf %6, %2 : tensor<?x512xf32>
  %8 = tile.reduce add %7 : tensor<?x512xf32> -> tensor<?x1xf32>
  return %4, %8 : tensor<?x512xbf16>, tensor<?x1xf32>
}

// -----

// A factor of rows, such as a norm's, stands behind the product that would round
// what it multiplies: the rows are read as they are in memory.
// CHECK-LABEL: tile.kernel @row_factor_kernel0(
// CHECK-SAME:      -> tensor<?x1xf32>
// CHECK:         tile.reduce add
// CHECK:       tile.kernel @row_factor_kernel1(
// CHECK:         %[[P:.*]] = tile.dot {{.*}} : tensor<?x8xbf16>, tensor<4x8xbf16> -> tensor<?x4xf32>
// CHECK:         %[[S:.*]] = tile.broadcast {{.*}} -> tensor<?x4xf32>
// CHECK:         arith.mulf %[[P]], %[[S]]
func.func @row_factor(%x: tensor<?x8xbf16>, %w: tensor<4x8xbf16>) -> tensor<?x4xf32> {
  %0 = arith.extf %x : tensor<?x8xbf16> to tensor<?x8xf32>
  %1 = arith.mulf %0, %0 : tensor<?x8xf32>
  %2 = tile.reduce add %1 : tensor<?x8xf32> -> tensor<?x1xf32>
  %3 = math.rsqrt %2 : tensor<?x1xf32>
  %4 = tile.broadcast %3 like %x : tensor<?x1xf32>, tensor<?x8xbf16> -> tensor<?x8xf32>
  %5 = arith.mulf %0, %4 : tensor<?x8xf32>
  %6 = tile.dot %5, %w contract [1, 1] : tensor<?x8xf32>, tensor<4x8xbf16> -> tensor<?x4xf32>
  return %6 : tensor<?x4xf32>
}

// -----

// Rows that the formula itself rounds are multiplied rounded.
// CHECK-LABEL: tile.kernel @rounded_rows_kernel0(
// CHECK-SAME:      -> tensor<?x8xbf16>
// CHECK:         arith.mulf
// CHECK:         arith.truncf
// CHECK-LABEL: tile.kernel @rounded_rows_kernel1(
// CHECK-NOT:     arith.mulf
func.func @rounded_rows(%x: tensor<?x8xbf16>, %s: tensor<?x1xf32>, %w: tensor<4x8xbf16>) -> tensor<?x4xf32> {
  %0 = arith.extf %x : tensor<?x8xbf16> to tensor<?x8xf32>
  %1 = tile.broadcast %s like %x : tensor<?x1xf32>, tensor<?x8xbf16> -> tensor<?x8xf32>
  %2 = arith.mulf %0, %1 : tensor<?x8xf32>
  %3 = arith.truncf %2 : tensor<?x8xf32> to tensor<?x8xbf16>
  %4 = tile.dot %3, %w contract [1, 1] : tensor<?x8xbf16>, tensor<4x8xbf16> -> tensor<?x4xf32>
  return %4 : tensor<?x4xf32>
}

// -----

// Rows that are needed for more than products along them are in memory anyway.
// CHECK-LABEL: tile.kernel @needed_rows_kernel0(
// CHECK:         arith.divf
// CHECK-LABEL: tile.kernel @needed_rows_kernel1(
// CHECK-NOT:     arith.divf
func.func @needed_rows(%x: tensor<?x8xbf16>, %s: tensor<?x1xf32>, %w: tensor<4x8xbf16>)
    -> (tensor<?x4xf32>, tensor<?x8xf32>) {
  %0 = arith.extf %x : tensor<?x8xbf16> to tensor<?x8xf32>
  %1 = tile.broadcast %s like %x : tensor<?x1xf32>, tensor<?x8xbf16> -> tensor<?x8xf32>
  %2 = arith.divf %0, %1 : tensor<?x8xf32>
  %3 = tile.dot %2, %w contract [1, 1] : tensor<?x8xf32>, tensor<4x8xbf16> -> tensor<?x4xf32>
  return %3, %2 : tensor<?x4xf32>, tensor<?x8xf32>
}

// -----

// Where there may be no columns, no program of the product would be there to
// leave numbers of its rows: a kernel on rows does, and the product's computes
// those again that it needs. The left factor tells how many rows there are.
// CHECK-LABEL: tile.kernel @numbers_kernel0(
// CHECK-SAME:    -> tensor<?x?xf32>
// CHECK:         tile.dot
// CHECK:         tile.broadcast %{{.*}} like %{{.*}} -> tensor<?x1xf32>
// CHECK-LABEL: tile.kernel @numbers_kernel1(
// CHECK-SAME:    %[[A:.*]]: tensor<1x1xf32>, %[[X:.*]]: tensor<?x8xf32>) -> tensor<?x1xf32>
// CHECK-NEXT:    tile.broadcast %[[A]] like %[[X]]
// CHECK-NEXT:    tile.return
func.func @numbers(%x: tensor<?x8xf32>, %w: tensor<?x8xf32>, %a: tensor<1x1xf32>)
    -> (tensor<?x?xf32>, tensor<?x1xf32>) {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x?xf32>
  %1 = tile.broadcast %a like %0 : tensor<1x1xf32>, tensor<?x?xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %0 : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %3 = arith.mulf %0, %2 : tensor<?x?xf32>
  return %3, %1 : tensor<?x?xf32>, tensor<?x1xf32>
}

// -----

// A product with columns leaves its rows' numbers itself.
// CHECK-LABEL: tile.kernel @known_columns_kernel(
// CHECK-SAME:    -> (tensor<?x4xf32>, tensor<?x1xf32>)
func.func @known_columns(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %a: tensor<?x1xf32>)
    -> (tensor<?x4xf32>, tensor<?x1xf32>) {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  %1 = arith.mulf %a, %a : tensor<?x1xf32>
  %2 = tile.broadcast %1 like %0 : tensor<?x1xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  %3 = arith.mulf %0, %2 : tensor<?x4xf32>
  return %3, %1 : tensor<?x4xf32>, tensor<?x1xf32>
}

// -----

// Nothing reads the vector that is repeated.
// CHECK-LABEL: tile.kernel @nothing_repeated_kernel(
// CHECK-NEXT:    tile.dot
// CHECK-NEXT:    tile.return
func.func @nothing_repeated(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %a: tensor<8xf32>) -> tensor<?x4xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  %1 = tile.broadcast %a like %x : tensor<8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return %0 : tensor<?x4xf32>
}

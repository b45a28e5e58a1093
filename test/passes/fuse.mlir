// RUN: tile-opt %s --fuse -split-input-file | FileCheck %s

// What stays inside the kernel is not written.
// CHECK-LABEL: tile.kernel @intermediate_kernel(
// CHECK-SAME:      %{{[^:]*}}: tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK-LABEL: func @intermediate(
func.func @intermediate(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  %1 = arith.mulf %0, %x : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

// Chains that meet in no tensor may have different numbers of rows.
// CHECK-LABEL: tile.kernel @independent_kernel0(
// CHECK:         arith.addf
// CHECK-NOT:     arith.mulf
// CHECK:       tile.kernel @independent_kernel1(
// CHECK:         arith.mulf
// CHECK-NOT:     arith.addf
// CHECK-LABEL: func @independent(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xf32>, %[[Y:[^:]*]]: tensor<?x8xf32>)
// CHECK-NEXT:    %[[A:.*]] = tile.launch [@independent_kernel0](%[[X]])
// CHECK-NEXT:    %[[B:.*]] = tile.launch [@independent_kernel1](%[[Y]])
// CHECK-NEXT:    return %[[A]], %[[B]]
func.func @independent(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>)
    -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  %1 = arith.mulf %y, %y : tensor<?x8xf32>
  return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// Two readers of one tensor walk the same rows: it is read once.
// CHECK-LABEL: tile.kernel @siblings_kernel(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>)
// CHECK-NOT:   tile.kernel
// CHECK-LABEL: func @siblings(
func.func @siblings(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  %1 = arith.mulf %x, %x : tensor<?x8xf32>
  return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// A sharing chain joins what was apart before it.
// CHECK-LABEL: tile.kernel @join_kernel(
// CHECK-NOT:   tile.kernel
// CHECK-LABEL: func @join(
func.func @join(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  %1 = arith.mulf %y, %y : tensor<?x8xf32>
  %2 = arith.subf %0, %1 : tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

// A kernel walks rows of one length; a statistic carries over to the next.
// CHECK-LABEL: tile.kernel @statistic_kernel0(
// CHECK-SAME:      %{{[^:]*}}: tensor<?x8xf32>) -> tensor<?x1xf32>
// CHECK:         tile.reduce {{ *}}add
// CHECK:       tile.kernel @statistic_kernel1(
// CHECK-SAME:      %[[STATISTIC:[^:]*]]: tensor<?x1xf32>, %[[Y:[^:]*]]: tensor<?x16xf32>) -> tensor<?x16xf32>
// CHECK-NEXT:    tile.broadcast %[[STATISTIC]] like %[[Y]]
// CHECK-LABEL: func @statistic(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xf32>, %[[Y:[^:]*]]: tensor<?x16xf32>)
// CHECK-NEXT:    %[[SUM:.*]] = tile.launch [@statistic_kernel0](%[[X]])
// CHECK-NEXT:    %[[RESULT:.*]] = tile.launch [@statistic_kernel1](%[[SUM]], %[[Y]])
// CHECK-NEXT:    return %[[RESULT]]
func.func @statistic(%x: tensor<?x8xf32>, %y: tensor<?x16xf32>)
    -> tensor<?x16xf32> {
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %y
      : tensor<?x1xf32>, tensor<?x16xf32> -> tensor<?x16xf32>
  %2 = arith.mulf %y, %1 : tensor<?x16xf32>
  return %2 : tensor<?x16xf32>
}

// -----

// Within one length, a statistic and what uses it are one kernel.
// CHECK-LABEL: tile.kernel @statistic_result_kernel(
// CHECK-SAME:      -> (tensor<?x1xf32>, tensor<?x8xf32>)
// CHECK-NOT:   tile.kernel
// CHECK-LABEL: func @statistic_result(
func.func @statistic_result(%x: tensor<?x8xf32>)
    -> (tensor<?x1xf32>, tensor<?x8xf32>) {
  %0 = tile.reduce max %x : tensor<?x8xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %x
      : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %2 = arith.subf %x, %1 : tensor<?x8xf32>
  return %0, %2 : tensor<?x1xf32>, tensor<?x8xf32>
}

// -----

// What is computed of a weight is computed again in each kernel, not stored.
// CHECK-LABEL: tile.kernel @weight_kernel0(
// CHECK-SAME:      %[[W:[^:]*]]: tensor<8xbf16>, %{{[^:]*}}: tensor<?x8xf32>)
// CHECK:         arith.extf %[[W]] : tensor<8xbf16> to tensor<8xf32>
// CHECK:       tile.kernel @weight_kernel1(
// CHECK-SAME:      %[[W:[^:]*]]: tensor<8xbf16>, %{{[^:]*}}: tensor<?x8xf32>)
// CHECK:         arith.extf %[[W]] : tensor<8xbf16> to tensor<8xf32>
// CHECK-LABEL: func @weight(
// CHECK-NOT:     arith.extf
func.func @weight(%w: tensor<8xbf16>, %x: tensor<?x8xf32>, %y: tensor<?x8xf32>)
    -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = arith.extf %w : tensor<8xbf16> to tensor<8xf32>
  %1 = tile.broadcast %0 like %x
      : tensor<8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %2 = tile.broadcast %0 like %y
      : tensor<8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %3 = arith.mulf %x, %1 : tensor<?x8xf32>
  %4 = arith.addf %y, %2 : tensor<?x8xf32>
  return %3, %4 : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// What nothing needs becomes no kernel.
// CHECK-LABEL: tile.kernel @unused_kernel(
// CHECK-NOT:     math.exp
// CHECK-NOT:   tile.kernel
// CHECK-LABEL: func @unused(
func.func @unused(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.exp %y : tensor<?x8xf32>
  %1 = arith.addf %x, %x : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

// An argument that nothing reads is not passed on.
// CHECK-LABEL: tile.kernel @unused_argument_kernel(
// CHECK-SAME:      %{{[^:]*}}: tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK-LABEL: func @unused_argument(
// CHECK-SAME:      %{{[^:]*}}: tensor<?x8xf32>, %[[X:.*]]: tensor<?x8xf32>)
// CHECK-NEXT:    tile.launch [@unused_argument_kernel](%[[X]])
func.func @unused_argument(%unused: tensor<?x8xf32>, %x: tensor<?x8xf32>)
    -> tensor<?x8xf32> {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Each function has its own kernels.
// CHECK-LABEL: tile.kernel @first_kernel(
// CHECK-LABEL: func @first(
// CHECK:         tile.launch [@first_kernel]
// CHECK-LABEL: tile.kernel @second_kernel(
// CHECK-LABEL: func @second(
// CHECK:         tile.launch [@second_kernel]
func.func @first(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
func.func @second(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// A kernel's name gives way to a function's.
// CHECK:         tile.kernel @[[NAME:f_kernel_[0-9]+]](
// CHECK-LABEL: func @f(
// CHECK:         tile.launch [@[[NAME]]]
// CHECK-LABEL: func @f_kernel(
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
func.func @f_kernel(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Kernels have names that PTX takes.
// CHECK:       tile.kernel @_0_layer_norm_2_kernel(
// CHECK-LABEL: func @"0.layer norm-2"(
func.func @"0.layer norm-2"(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// The schedule that a user pins reaches the kernels.
// CHECK-LABEL: tile.kernel @pinned_kernel(
// CHECK-SAME:      attributes {schedule = #tile.schedule<threads = 64>}
func.func @pinned(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {tile.schedule = #tile.schedule<threads = 64>} {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Comparisons and integers may stand between the operands.
// CHECK-LABEL: tile.kernel @select_kernel(
// CHECK:         arith.cmpf
// CHECK:         arith.select
func.func @select(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.cmpf ogt, %x, %y : tensor<?x8xf32>
  %1 = arith.select %0, %x, %y : tensor<?x8xi1>, tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

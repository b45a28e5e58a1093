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

// Two readers of one tensor have the same rows, so it is read once.
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

// The rows of a kernel have one length; a statistic carries over to the next.
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
// CHECK-SAME:      attributes {schedule = #tile.rows<threads = 64>,
func.func @pinned(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {tile.schedule = #tile.rows<threads = 64>} {
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

// -----

// What combines all rows is two kernels: one has a partial result for each of its
// programs, the other combines these and goes on with the vector.
// CHECK-LABEL: tile.kernel @sum_of_rows_kernel0(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xbf16>) -> (tensor<?x8xf32> {tile.approximate})
// CHECK:         %[[WIDE:.*]] = arith.extf %[[X]]
// CHECK-NEXT:    %[[PARTIAL:.*]] = tile.reduce_rows add %[[WIDE]] partial : tensor<?x8xf32> -> tensor<?x8xf32>
// CHECK-NEXT:    tile.return %[[PARTIAL]]
// CHECK:       tile.kernel @sum_of_rows_kernel1(
// CHECK-SAME:      %[[ROWS:[^:]*]]: tensor<?x8xf32>) -> tensor<8xbf16>
// CHECK-NEXT:    %[[SUM:.*]] = tile.reduce_rows add %[[ROWS]] : tensor<?x8xf32> -> tensor<8xf32>
// CHECK-NEXT:    %[[ROUNDED:.*]] = arith.truncf %[[SUM]]
// CHECK-NEXT:    tile.return %[[ROUNDED]]
// CHECK-LABEL: func @sum_of_rows(
// CHECK-NEXT:    %[[PARTIALS:.*]] = tile.launch [@sum_of_rows_kernel0]
// CHECK-NEXT:    %[[RESULT:.*]] = tile.launch [@sum_of_rows_kernel1](%[[PARTIALS]])
// CHECK-NEXT:    return %[[RESULT]]
func.func @sum_of_rows(%x: tensor<?x8xbf16>) -> tensor<8xbf16> {
  %0 = arith.extf %x : tensor<?x8xbf16> to tensor<?x8xf32>
  %1 = tile.reduce_rows add %0 : tensor<?x8xf32> -> tensor<8xf32>
  %2 = arith.truncf %1 : tensor<8xf32> to tensor<8xbf16>
  return %2 : tensor<8xbf16>
}

// -----

// Vectors of one length are combined in one kernel, and beside the rows' own
// results; one of another length in another.
// CHECK-LABEL: tile.kernel @several_sums_kernel0(
// CHECK-SAME:      -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x1xf32>)
// CHECK-DAG:     tile.reduce_rows add %{{.*}} partial : tensor<?x8xf32>
// CHECK-DAG:     tile.reduce_rows max %{{.*}} partial : tensor<?x8xf32>
// CHECK-DAG:     tile.reduce_rows add %{{.*}} partial : tensor<?x1xf32>
// CHECK:       tile.kernel @several_sums_kernel1(
// CHECK-SAME:      tensor<?x8xf32>, %{{[^:]*}}: tensor<?x8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK-SAME:      arguments = [(r, c), (r, c)], results = [(c), (c)]
// CHECK-NEXT:    tile.reduce_rows add
// CHECK-NEXT:    tile.reduce_rows max
// CHECK:       tile.kernel @several_sums_kernel2(
// CHECK-SAME:      -> tensor<1xf32>
// CHECK-LABEL: func @several_sums(
func.func @several_sums(%x: tensor<?x8xf32>)
    -> (tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<1xf32>) {
  %0 = math.exp %x : tensor<?x8xf32>
  %1 = tile.reduce_rows add %0 : tensor<?x8xf32> -> tensor<8xf32>
  %2 = tile.reduce_rows max %x : tensor<?x8xf32> -> tensor<8xf32>
  %3 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x1xf32>
  %4 = tile.reduce_rows add %3 : tensor<?x1xf32> -> tensor<1xf32>
  return %0, %1, %2, %4 : tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<1xf32>
}

// -----

// Values of an earlier round that a later one needs are computed again: only the
// partial results are stored.
// CHECK-LABEL: tile.kernel @computed_again_kernel0(
// CHECK-SAME:      %{{[^:]*}}: tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK:         math.exp
// CHECK-NEXT:    tile.reduce_rows
// CHECK:       tile.kernel @computed_again_kernel1(
// CHECK:       tile.kernel @computed_again_kernel2(
// CHECK-SAME:      %[[SUM:[^:]*]]: tensor<8xf32>, %[[X:[^:]*]]: tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK:         math.exp %[[X]]
// CHECK:         tile.broadcast %[[SUM]] like %[[X]]
// CHECK-LABEL: func @computed_again(
func.func @computed_again(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.exp %x : tensor<?x8xf32>
  %1 = tile.reduce_rows add %0 : tensor<?x8xf32> -> tensor<8xf32>
  %2 = tile.broadcast %1 like %x : tensor<8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %3 = arith.divf %0, %2 : tensor<?x8xf32>
  return %3 : tensor<?x8xf32>
}

// -----

// A statistic is stored for the later round: another sweep over the row costs more.
// CHECK-LABEL: tile.kernel @statistic_stored_kernel0(
// CHECK-SAME:      -> (tensor<?x1xf32>, tensor<?x8xf32>)
// CHECK-NEXT:    %[[MAX:.*]] = tile.reduce {{ *}}max
// CHECK:         tile.return %[[MAX]],
// CHECK:       tile.kernel @statistic_stored_kernel2(
// CHECK-SAME:      %{{[^:]*}}: tensor<8xf32>, %[[X:[^:]*]]: tensor<?x8xf32>, %[[MAX:[^:]*]]: tensor<?x1xf32>)
// CHECK-NOT:     tile.reduce
// CHECK:         arith.subf %[[X]],
// CHECK-LABEL: func @statistic_stored(
func.func @statistic_stored(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.reduce max %x : tensor<?x8xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %2 = arith.subf %x, %1 : tensor<?x8xf32>
  %3 = tile.reduce_rows add %2 : tensor<?x8xf32> -> tensor<8xf32>
  %4 = tile.broadcast %3 like %x : tensor<8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %5 = arith.divf %2, %4 : tensor<?x8xf32>
  return %5 : tensor<?x8xf32>
}

// -----

// Each op runs as late as it may. Only the count is needed first, by the gradient;
// the loss shares the last round with that, so that x is read once.
// CHECK-LABEL: tile.kernel @count_before_loss_kernel0(
// CHECK-SAME:      %[[W:[^:]*]]: tensor<?x1xf32>) -> tensor<?x1xf32>
// CHECK-NEXT:    tile.reduce_rows add %[[W]] partial
// CHECK-NEXT:    tile.return
// CHECK:       tile.kernel @count_before_loss_kernel1(
// CHECK:       tile.kernel @count_before_loss_kernel2(
// CHECK-SAME:      -> (tensor<?x8xf32>, tensor<?x1xf32>)
// CHECK:         math.exp
// CHECK:         tile.reduce_rows add {{.*}} partial
// CHECK:       tile.kernel @count_before_loss_kernel3(
// CHECK-SAME:      %[[COUNT:[^:]*]]: tensor<1xf32>, %[[ROWS:[^:]*]]: tensor<?x1xf32>) -> tensor<1xf32>
// CHECK-NEXT:    %[[SUM:.*]] = tile.reduce_rows add %[[ROWS]]
// CHECK-NEXT:    arith.divf %[[SUM]], %[[COUNT]]
// CHECK-LABEL: func @count_before_loss(
// CHECK-COUNT-4: tile.launch
// CHECK-NOT:     tile.launch
func.func @count_before_loss(%x: tensor<?x8xf32>, %w: tensor<?x1xf32>)
    -> (tensor<1xf32>, tensor<?x8xf32>) {
  %0 = math.exp %x : tensor<?x8xf32>
  %1 = tile.reduce add %0 : tensor<?x8xf32> -> tensor<?x1xf32>
  %2 = arith.mulf %1, %w : tensor<?x1xf32>
  %3 = tile.reduce_rows add %2 : tensor<?x1xf32> -> tensor<1xf32>
  %4 = tile.reduce_rows add %w : tensor<?x1xf32> -> tensor<1xf32>
  %5 = arith.divf %3, %4 : tensor<1xf32>
  %6 = tile.broadcast %4 like %x : tensor<1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %7 = arith.divf %0, %6 : tensor<?x8xf32>
  return %5, %7 : tensor<1xf32>, tensor<?x8xf32>
}

// -----

// Every result has memory of its own: an argument and a value that is returned
// twice are copied.
// CHECK-LABEL: tile.kernel @copies_kernel(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xf32>)
// CHECK-DAG:     %[[ARGUMENT:.*]] = tile.copy %[[X]]
// CHECK-DAG:     %[[SUM:.*]] = arith.addf
// CHECK-DAG:     %[[AGAIN:.*]] = tile.copy %[[SUM]]
// CHECK:         tile.return %[[ARGUMENT]], %[[SUM]], %[[AGAIN]]
// CHECK-LABEL: func @copies(
func.func @copies(%x: tensor<?x8xf32>)
    -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  return %x, %0, %0 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// A kernel that writes a result in the place of an argument says so, because it
// may not load that argument as a constant.
// CHECK-LABEL: tile.kernel @in_place_kernel(
// CHECK-SAME:      %{{[^:]*}}: tensor<?x8xf32> {tile.in_place = 0 : i64}, %{{[^:]*}}: tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK-LABEL: func @in_place(
// CHECK-SAME:      -> (tensor<?x8xf32> {tile.in_place = 0 : index})
func.func @in_place(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>)
    -> (tensor<?x8xf32> {tile.in_place = 0 : index}) {
  %0 = arith.addf %x, %y : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// A row length that only a call knows is no longer than itself.
// CHECK-LABEL: tile.kernel @dynamic_in_place_kernel(
// CHECK-SAME:      tensor<?x?x?xf32> {tile.in_place = 0 : i64}
// CHECK-LABEL: func @dynamic_in_place(
func.func @dynamic_in_place(%f: tensor<1xf32>, %x: tensor<?x?x?xf32>)
    -> (tensor<?x?x?xf32> {tile.in_place = 1 : index}) {
  %0 = tile.broadcast %f like %x : tensor<1xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>
  %1 = arith.mulf %x, %0 : tensor<?x?x?xf32>
  return %1 : tensor<?x?x?xf32>
}

// -----

// A vector takes a place, too, as the gradient of a weight does.
// CHECK-LABEL: tile.kernel @vector_in_place_kernel0(
// CHECK-NOT:     tile.in_place
// CHECK:       tile.kernel @vector_in_place_kernel1(
// CHECK-SAME:      tensor<8xf32> {tile.in_place = 0 : i64}
// CHECK-LABEL: func @vector_in_place(
func.func @vector_in_place(%x: tensor<?x8xf32>, %w: tensor<8xf32>)
    -> (tensor<8xf32> {tile.in_place = 1 : index}) {
  %0 = tile.reduce_rows add %x : tensor<?x8xf32> -> tensor<8xf32>
  %1 = arith.mulf %0, %w : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// A gradient, which takes a place if it can, does not take that of what a later
// launch reads.
// CHECK-LABEL: func @read_later(
// CHECK-SAME:      -> (tensor<?x1xf32>, tensor<?x16xf32>) {
// CHECK-COUNT-2: tile.launch
func.func @read_later(%x: tensor<?x8xf32>, %s: tensor<?x1xf32>, %y: tensor<?x16xf32>)
    -> (tensor<?x1xf32> {tile.in_place = 1 : index, tile.in_place_if_possible}, tensor<?x16xf32>) {
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x1xf32>
  %1 = arith.mulf %0, %s : tensor<?x1xf32>
  %2 = tile.broadcast %1 like %y : tensor<?x1xf32>, tensor<?x16xf32> -> tensor<?x16xf32>
  %3 = tile.broadcast %s like %y : tensor<?x1xf32>, tensor<?x16xf32> -> tensor<?x16xf32>
  %4 = arith.divf %2, %3 : tensor<?x16xf32>
  %5 = arith.mulf %4, %y : tensor<?x16xf32>
  return %1, %5 : tensor<?x1xf32>, tensor<?x16xf32>
}

// -----

// Several results take the places of several arguments, whichever comes first.
// CHECK-LABEL: tile.kernel @several_places_kernel(
// CHECK-SAME:      tensor<?x8xf32> {tile.in_place = 0 : i64}, %{{[^:]*}}: tensor<?x8xbf16> {tile.in_place = 1 : i64})
// CHECK-LABEL: func @several_places(
// CHECK-SAME:      -> (tensor<?x8xf32> {tile.in_place = 1 : index}, tensor<?x8xbf16> {tile.in_place = 0 : index})
func.func @several_places(%p: tensor<?x8xbf16>, %m: tensor<?x8xf32>)
    -> (tensor<?x8xf32> {tile.in_place = 1 : index}, tensor<?x8xbf16> {tile.in_place = 0 : index}) {
  %0 = arith.mulf %m, %m : tensor<?x8xf32>
  %1 = arith.truncf %0 : tensor<?x8xf32> to tensor<?x8xbf16>
  %2 = arith.subf %p, %1 : tensor<?x8xbf16>
  return %0, %2 : tensor<?x8xf32>, tensor<?x8xbf16>
}

// -----

// What overwrites an argument runs after all that read it: the counter of steps
// is returned first and computed last.
// CHECK-LABEL: tile.kernel @counted_kernel0(
// CHECK-SAME:      %[[N:[^:]*]]: tensor<1xf32>, %{{[^:]*}}: tensor<?x8xf32> {tile.in_place = 0 : i64}
// CHECK:       tile.kernel @counted_kernel1(
// CHECK-SAME:      tensor<1xf32> {tile.in_place = 0 : i64})
// CHECK-LABEL: func @counted(
// CHECK:         %[[X:.*]] = tile.launch [@counted_kernel0]
// CHECK:         %[[NEXT:.*]] = tile.launch [@counted_kernel1]
// CHECK:         return %[[NEXT]], %[[X]]
func.func @counted(%n: tensor<1xf32>, %x: tensor<?x8xf32>)
    -> (tensor<1xf32> {tile.in_place = 0 : index}, tensor<?x8xf32> {tile.in_place = 1 : index}) {
  %0 = arith.addf %n, %n : tensor<1xf32>
  %1 = tile.broadcast %0 like %x : tensor<1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %2 = arith.mulf %x, %1 : tensor<?x8xf32>
  return %0, %2 : tensor<1xf32>, tensor<?x8xf32>
}

// -----

// The result of other rows waits as well, although its kernel does not read the
// argument whose place it takes.
// CHECK-LABEL: func @overwritten_by_others(
// CHECK:         tile.launch [@overwritten_by_others_kernel0](%{{.*}}, %arg0)
// CHECK:         tile.launch [@overwritten_by_others_kernel1](%{{.*}}, %arg1)
func.func @overwritten_by_others(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %w: tensor<8xf32>)
    -> (tensor<?x8xf32> {tile.in_place = 0 : index}, tensor<?x8xf32>) {
  %0 = tile.broadcast %w like %y : tensor<8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = arith.mulf %y, %0 : tensor<?x8xf32>
  %2 = tile.broadcast %w like %x : tensor<8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %3 = arith.mulf %x, %2 : tensor<?x8xf32>
  return %1, %3 : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// A row may be normalized in place, and its halves may change places: no thread
// reads what another stores.
// CHECK-LABEL: tile.kernel @whole_rows_kernel(
// CHECK-SAME:      tensor<?x8xf32> {tile.in_place = 0 : i64})
func.func @whole_rows(%x: tensor<?x8xf32>) -> (tensor<?x8xf32> {tile.in_place = 0 : index}) {
  %0 = tile.reduce max %x : tensor<?x8xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %2 = arith.subf %x, %1 : tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}
// CHECK-LABEL: tile.kernel @halves_kernel(
// CHECK-SAME:      tensor<?x8xf32> {tile.in_place = 0 : i64})
func.func @halves(%x: tensor<?x8xf32>) -> (tensor<?x8xf32> {tile.in_place = 0 : index}) {
  %low, %high = tile.split %x : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %0 = tile.join %high, %low : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Repeated rows come from kernels of their own: an op that reads them has the rows
// of the other tensor, and two such ops that share them stay apart.
// CHECK-LABEL: tile.kernel @repeated_rows_kernel0(
// CHECK-SAME:      tensor<?x1x8xf32>, %{{[^:]*}}: tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
// CHECK:       tile.kernel @repeated_rows_kernel1(
// CHECK-LABEL: func @repeated_rows(
func.func @repeated_rows(%q: tensor<?x?x8xf32>, %k: tensor<?x?x8xf32>,
                         %cos: tensor<?x1x8xf32>)
    -> (tensor<?x?x8xf32>, tensor<?x?x8xf32>) {
  %0 = tile.broadcast %cos like %q : tensor<?x1x8xf32>, tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %1 = arith.mulf %q, %0 : tensor<?x?x8xf32>
  %2 = tile.broadcast %cos like %k : tensor<?x1x8xf32>, tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %3 = arith.mulf %k, %2 : tensor<?x?x8xf32>
  return %1, %3 : tensor<?x?x8xf32>, tensor<?x?x8xf32>
}

// -----

// A piece of them is read where it lies, by each.
// CHECK-LABEL: tile.kernel @pieces_of_repeated_rows_kernel0(
// CHECK-SAME:      tensor<?x1x8xf32>, %{{[^:]*}}: tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
// CHECK:         tile.split
// CHECK:       tile.kernel @pieces_of_repeated_rows_kernel1(
// CHECK-SAME:      tensor<?x1x8xf32>
// CHECK:         tile.split
// CHECK-NOT:   tile.kernel
// CHECK-LABEL: func @pieces_of_repeated_rows(
// CHECK-COUNT-2: tile.launch
func.func @pieces_of_repeated_rows(%q: tensor<?x?x4xf32>, %k: tensor<?x?x4xf32>,
                                   %cos: tensor<?x1x8xf32>)
    -> (tensor<?x?x4xf32>, tensor<?x?x4xf32>) {
  %low, %high = tile.split %cos : tensor<?x1x8xf32> -> tensor<?x1x4xf32>, tensor<?x1x4xf32>
  %0 = tile.broadcast %low like %q : tensor<?x1x4xf32>, tensor<?x?x4xf32> -> tensor<?x?x4xf32>
  %1 = arith.mulf %q, %0 : tensor<?x?x4xf32>
  %2 = tile.broadcast %high like %k : tensor<?x1x4xf32>, tensor<?x?x4xf32> -> tensor<?x?x4xf32>
  %3 = arith.mulf %k, %2 : tensor<?x?x4xf32>
  return %1, %3 : tensor<?x?x4xf32>, tensor<?x?x4xf32>
}

// -----

// A number that is repeated for the sizes of %b is no value that one kernel needs of the
// other: each repeats it itself. So what %b is needed for waits for the statistic of %a,
// and no exponentials are stored.
// CHECK-LABEL: tile.kernel @repeated_number_kernel0
// CHECK-NOT:     math.exp
// CHECK-LABEL: tile.kernel @repeated_number_kernel1
// CHECK:         math.exp
// CHECK-LABEL: func.func @repeated_number
// CHECK-COUNT-2: tile.launch
// CHECK-NOT:     tile.launch
func.func @repeated_number(%a: tensor<?x8xf32>, %b: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %eight = arith.constant 8.0 : f32
  %0 = math.exp %b : tensor<?x8xf32>
  %1 = tile.reduce add %a : tensor<?x8xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %eight like %b : f32, tensor<?x8xf32> -> tensor<?x1xf32>
  %3 = arith.divf %1, %2 : tensor<?x1xf32>
  %4 = tile.broadcast %3 like %b : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %5 = arith.mulf %0, %4 : tensor<?x8xf32>
  return %5 : tensor<?x8xf32>
}

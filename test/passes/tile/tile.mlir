// RUN: tile-opt %s --tile --canonicalize --cse -split-input-file | FileCheck %s

// A row that fits in a tile is loaded once and needs no mask.
// CHECK-LABEL: tile.program @whole_row(
// CHECK-SAME:      %[[ROWS:[^:]*]]: index,
// CHECK-SAME:      %[[X:[^:]*]]: memref<?x256xbf16, strided<[?, 1]>> {tile.alignment = 16 : i64, tile.readonly},
// CHECK-SAME:      %[[W:[^:]*]]: memref<256xbf16> {tile.alignment = 16 : i64, tile.readonly},
// CHECK-SAME:      %[[Y:[^:]*]]: memref<?x256xbf16, strided<[?, 1]>> {tile.alignment = 16 : i64})
// CHECK-SAME:      leading = 1 : i64
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[ROW:.*]] = tile.program_id
// CHECK-NEXT:    %[[TX:.*]] = tile.load %[[X]][%[[ROW]], %[[ZERO]]] {alignment = 16 : i64, invariant}
// CHECK-SAME:        -> tensor<1x256xbf16>
// CHECK-NEXT:    %[[TW:.*]] = tile.load %[[W]][%[[ZERO]]] {alignment = 16 : i64, invariant}
// CHECK-SAME:        -> tensor<1x256xbf16>
// CHECK-NEXT:    %[[SUM:.*]] = arith.addf %[[TX]], %[[TW]] : tensor<1x256xbf16>
// CHECK-NEXT:    tile.store %[[SUM]], %[[Y]][%[[ROW]], %[[ZERO]]] {alignment = 16 : i64}
// CHECK-NEXT:    tile.return
// A second program takes operands whose addresses are aligned to no more than
// their elements.
// CHECK:       tile.program @whole_row_unaligned(
// CHECK-COUNT-3: tile.alignment = 2 : i64
// CHECK-COUNT-2: tile.load {{.*}} {alignment = 2 : i64, invariant}
// CHECK:         tile.store {{.*}} {alignment = 2 : i64}
// CHECK-NOT:   tile.program @
// CHECK-LABEL: func @f(
// CHECK:         tile.launch [@whole_row, @whole_row_unaligned](
tile.kernel @whole_row(%x: tensor<?x256xbf16>, %w: tensor<256xbf16>)
    -> tensor<?x256xbf16>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 8, columns = 256>} {
  %0 = tile.broadcast %w like %x
      : tensor<256xbf16>, tensor<?x256xbf16> -> tensor<?x256xbf16>
  %1 = arith.addf %x, %0 : tensor<?x256xbf16>
  tile.return %1 : tensor<?x256xbf16>
}
func.func @f(%x: tensor<?x256xbf16>, %w: tensor<256xbf16>) -> tensor<?x256xbf16> {
  %0 = tile.launch [@whole_row](%x, %w)
      : (tensor<?x256xbf16>, tensor<256xbf16>) -> tensor<?x256xbf16>
  return %0 : tensor<?x256xbf16>
}

// -----

// Several rows to a tile: the program's rows start at a multiple of them. A row
// vector is loaded once and repeated.
// CHECK-LABEL: tile.program @several_rows(
// CHECK-SAME:      %{{[^:]*}}: index, %[[X:[^:]*]]: memref<{{[^:]*}}> {tile{{[^}]*}}}, %[[W:[^:]*]]: memref
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[FOUR:.*]] = arith.constant 4 : index
// CHECK:         %[[ID:.*]] = tile.program_id
// CHECK-NEXT:    %[[ROW:.*]] = arith.muli %[[ID]], %[[FOUR]]
// CHECK-NEXT:    tile.load %[[X]][%[[ROW]], %[[ZERO]]] {{.*}} -> tensor<4x64xf32>
// CHECK-NEXT:    %[[TW:.*]] = tile.load %[[W]][%[[ZERO]]] {{.*}} -> tensor<1x64xf32>
// CHECK-NEXT:    tile.broadcast %[[TW]] : tensor<1x64xf32> -> tensor<4x64xf32>
tile.kernel @several_rows(%x: tensor<?x64xf32>, %w: tensor<64xf32>)
    -> tensor<?x64xf32>
    attributes {schedule = #tile.rows<rows = 4, threads = 32, vector = 4, columns = 64>} {
  %0 = tile.broadcast %w like %x
      : tensor<64xf32>, tensor<?x64xf32> -> tensor<?x64xf32>
  %1 = arith.mulf %x, %0 : tensor<?x64xf32>
  tile.return %1 : tensor<?x64xf32>
}
func.func @f(%x: tensor<?x64xf32>, %w: tensor<64xf32>) -> tensor<?x64xf32> {
  %0 = tile.launch [@several_rows](%x, %w)
      : (tensor<?x64xf32>, tensor<64xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----

// A tile wider than the row is masked before it is reduced, and only there. The
// statistic is a tile of one column, not aligned to vectors.
// CHECK-LABEL: tile.program @masked_row(
// CHECK-SAME:      %[[Y:[^:]*]]: memref<?x1xf32, strided<[?, 1]>> {tile.alignment = 4 : i64})
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : index
// CHECK:         %[[ROW:.*]] = tile.program_id
// CHECK-NEXT:    %[[X:.*]] = tile.load {{.*}} -> tensor<1x128xf32>
// CHECK-NEXT:    %[[EXP:.*]] = math.exp %[[X]]
// CHECK-NEXT:    %[[MASKED:.*]] = tile.mask %[[EXP]] from %[[ZERO]] limit 100 else 0.000000e+00 : f32
// CHECK-NEXT:    %[[SUM:.*]] = tile.reduce {{ *}}add %[[MASKED]] : tensor<1x128xf32> -> tensor<1x1xf32>
// CHECK-NEXT:    tile.store %[[SUM]], %[[Y]][%[[ROW]], %[[ZERO]]] {alignment = 4 : i64}
// CHECK-NOT:     tile.mask
// CHECK:         tile.return
tile.kernel @masked_row(%x: tensor<?x100xf32>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %0 = math.exp %x : tensor<?x100xf32>
  %1 = tile.reduce add %0 : tensor<?x100xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}
func.func @f(%x: tensor<?x100xf32>) -> tensor<?x1xf32> {
  %0 = tile.launch [@masked_row](%x) : (tensor<?x100xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// -----

// Columns are equal to no number beyond the row, and a sum of numbers that are not
// exponentials below a maximum is masked itself.
// CHECK-LABEL: tile.program @sums_of_part(
// CHECK:         %[[X:.*]] = tile.load {{.*}} -> tensor<1x128xf32>
// CHECK:         %[[COLUMNS:.*]] = tile.iota
// CHECK:         %[[NUMBER:.*]] = tile.broadcast
// CHECK-NEXT:    %[[MASKED:.*]] = tile.mask %[[NUMBER]] from %{{.*}} limit 100 else -1 : i32
// CHECK-NEXT:    %[[FOUND:.*]] = arith.cmpi eq, %[[COLUMNS]], %[[MASKED]]
// CHECK-NEXT:    %[[ONE:.*]] = arith.select %[[FOUND]]
// CHECK-NEXT:    tile.reduce {{ *}}add %[[ONE]]
// CHECK:         %[[EXP:.*]] = math.exp
// CHECK-NEXT:    %[[PART:.*]] = tile.mask %[[EXP]] from %{{.*}} limit 100 else 0.000000e+00 : f32
// CHECK-NEXT:    tile.reduce {{ *}}add %[[PART]]
// CHECK-NOT:     tile.mask
// CHECK:         tile.return
tile.kernel @sums_of_part(%x: tensor<?x100xf32>, %t: tensor<?x1xi32>, %y: tensor<?x1xf32>)
    -> (tensor<?x1xf32>, tensor<?x1xf32>)
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %zero = arith.constant 0.0 : f32
  %none = tile.broadcast %zero like %x : f32, tensor<?x100xf32> -> tensor<?x100xf32>
  %columns = tile.iota like %x : tensor<?x100xi32>, tensor<?x100xf32>
  %number = tile.broadcast %t like %x : tensor<?x1xi32>, tensor<?x100xf32> -> tensor<?x100xi32>
  %found = arith.cmpi eq, %columns, %number : tensor<?x100xi32>
  %one = arith.select %found, %x, %none : tensor<?x100xi1>, tensor<?x100xf32>
  %0 = tile.reduce add %one : tensor<?x100xf32> -> tensor<?x1xf32>
  %less = tile.broadcast %y like %x : tensor<?x1xf32>, tensor<?x100xf32> -> tensor<?x100xf32>
  %power = arith.subf %x, %less : tensor<?x100xf32>
  %exp = math.exp %power : tensor<?x100xf32>
  %1 = tile.reduce add %exp : tensor<?x100xf32> -> tensor<?x1xf32>
  tile.return %0, %1 : tensor<?x1xf32>, tensor<?x1xf32>
}
func.func @f(%x: tensor<?x100xf32>, %t: tensor<?x1xi32>, %y: tensor<?x1xf32>)
    -> (tensor<?x1xf32>, tensor<?x1xf32>) {
  %0:2 = tile.launch [@sums_of_part](%x, %t, %y) : (tensor<?x100xf32>, tensor<?x1xi32>, tensor<?x1xf32>) -> (tensor<?x1xf32>, tensor<?x1xf32>)
  return %0#0, %0#1 : tensor<?x1xf32>, tensor<?x1xf32>
}

// -----

// Beyond the row, its last vector is repeated, which changes no extremum.
// CHECK-LABEL: tile.program @repeated(
// CHECK-NOT:     tile.mask
// CHECK:         tile.reduce {{ *}}max
// CHECK-NOT:     tile.mask
// CHECK:         tile.reduce {{ *}}min
// CHECK-NOT:     tile.mask
// CHECK:         tile.return
tile.kernel @repeated(%x: tensor<?x100xf32>) -> (tensor<?x1xf32>, tensor<?x1xf32>)
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %0 = tile.reduce max %x : tensor<?x100xf32> -> tensor<?x1xf32>
  %1 = tile.reduce min %x : tensor<?x100xf32> -> tensor<?x1xf32>
  tile.return %0, %1 : tensor<?x1xf32>, tensor<?x1xf32>
}
func.func @f(%x: tensor<?x100xf32>) -> (tensor<?x1xf32>, tensor<?x1xf32>) {
  %0:2 = tile.launch [@repeated](%x)
      : (tensor<?x100xf32>) -> (tensor<?x1xf32>, tensor<?x1xf32>)
  return %0#0, %0#1 : tensor<?x1xf32>, tensor<?x1xf32>
}

// -----

// A row wider than the tile is swept in a loop, in which each thread combines what
// it loads, and swept once more for values that wait for the reduction.
// CHECK-LABEL: tile.program @column_loop(
// CHECK-SAME:      %{{[^:]*}}: index, %[[X:[^:]*]]: memref<{{[^:]*}}> {tile{{[^}]*}}}, %[[Y:[^:]*]]: memref
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[STEP:.*]] = arith.constant 256 : index
// CHECK-DAG:     %[[END:.*]] = arith.constant 1024 : index
// CHECK-DAG:     %[[NEUTRAL:.*]] = arith.constant dense<0.000000e+00> : tensor<1x32xf32, #tile.blocked<vector = 1, threadRows = 1, threadColumns = 32>>
// CHECK:         %[[ROW:.*]] = tile.program_id
// CHECK-NEXT:    %[[PARTIALS:.*]] = scf.for %[[COLUMN:.*]] = %[[ZERO]] to %[[END]] step %[[STEP]] iter_args(%[[PARTIAL:.*]] = %[[NEUTRAL]])
// CHECK-NEXT:      %[[TILE:.*]] = tile.load %[[X]][%[[ROW]], %[[COLUMN]]]
// CHECK-NEXT:      %[[OWN:.*]] = tile.fold {{ *}}add %[[TILE]] : tensor<1x256xf32> -> tensor<1x32xf32,
// CHECK-NEXT:      %[[COMBINED:.*]] = arith.addf %[[PARTIAL]], %[[OWN]] : tensor<1x32xf32,
// CHECK-NEXT:      scf.yield %[[COMBINED]]
// CHECK:         %[[SUM:.*]] = tile.reduce {{ *}}add %[[PARTIALS]] : tensor<1x32xf32, {{.*}}> -> tensor<1x1xf32>
// CHECK-NEXT:    scf.for %[[COLUMN:.*]] = %[[ZERO]] to %[[END]] step %[[STEP]] {
// CHECK-NEXT:      %[[TILE:.*]] = tile.load %[[X]][%[[ROW]], %[[COLUMN]]]
// CHECK-NEXT:      %[[SPREAD:.*]] = tile.broadcast %[[SUM]] : tensor<1x1xf32> -> tensor<1x256xf32>
// CHECK-NEXT:      %[[RESULT:.*]] = arith.divf %[[TILE]], %[[SPREAD]]
// CHECK-NEXT:      tile.store %[[RESULT]], %[[Y]][%[[ROW]], %[[COLUMN]]]
// CHECK-NOT:     scf.for
// CHECK:         tile.return
tile.kernel @column_loop(%x: tensor<?x1024xf32>) -> tensor<?x1024xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %0 = tile.reduce add %x : tensor<?x1024xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %x
      : tensor<?x1xf32>, tensor<?x1024xf32> -> tensor<?x1024xf32>
  %2 = arith.divf %x, %1 : tensor<?x1024xf32>
  tile.return %2 : tensor<?x1024xf32>
}
func.func @f(%x: tensor<?x1024xf32>) -> tensor<?x1024xf32> {
  %0 = tile.launch [@column_loop](%x) : (tensor<?x1024xf32>) -> tensor<?x1024xf32>
  return %0 : tensor<?x1024xf32>
}

// -----

// A sum of exp(x - max(x)) shares the loop of the maximum: each thread corrects
// its sum when it finds a larger one, and once more when all threads have met.
// What the row's end leaves of the last tile counts for nothing in the loop that
// reduces, since its exponents are -infinity; nothing is done about it in the one
// that stores.
// CHECK-LABEL: tile.program @two_depths(
// CHECK:         scf.for {{.*}} iter_args(%[[OLD:[^ ]*]] = %[[NONE:[^ ,]*]], %[[PARTIAL:[^ ]*]] = %[[ZERO:[^ )]*]])
// CHECK:           %[[X:.*]] = tile.load
// CHECK-NEXT:      %[[OWN:.*]] = tile.fold {{ *}}max %[[X]]
// CHECK-NEXT:      %[[NEW:.*]] = arith.maximumf %[[OLD]], %[[OWN]]
// CHECK-NEXT:      %[[ISNONE:.*]] = arith.cmpf oeq, %[[NEW]], %[[NONE]]
// CHECK-NEXT:      %[[BASE:.*]] = arith.select %[[ISNONE]], %[[ZERO]], %[[NEW]]
// CHECK-NEXT:      %[[SPREAD:.*]] = tile.spread %[[BASE]]
// CHECK-NEXT:      %[[MASKED:.*]] = tile.mask %[[SPREAD]] from %{{.*}} limit 1000 else 0x7F800000 : f32
// CHECK-NEXT:      arith.subf %[[X]], %[[MASKED]]
// CHECK-NEXT:      %[[EXP:.*]] = math.exp
// CHECK-NEXT:      %[[ADDED:.*]] = tile.fold {{ *}}add %[[EXP]]
// CHECK-NEXT:      %[[LESS:.*]] = arith.subf %[[OLD]], %[[NEW]]
// CHECK-NEXT:      %[[POWER:.*]] = math.exp %[[LESS]]
// CHECK-NEXT:      %[[SAME:.*]] = arith.cmpf oeq, %[[OLD]], %[[NEW]]
// CHECK-NEXT:      %[[FACTOR:.*]] = arith.select %[[SAME]], %{{.*}}, %[[POWER]]
// CHECK-NEXT:      %[[SCALED:.*]] = arith.mulf %[[PARTIAL]], %[[FACTOR]]
// CHECK-NEXT:      %[[SUMS:.*]] = arith.addf %[[SCALED]], %[[ADDED]]
// CHECK-NEXT:      scf.yield %[[NEW]], %[[SUMS]]
// CHECK:         %[[MAX:.*]] = tile.reduce {{ *}}max
// CHECK-NEXT:    %[[ALL:.*]] = tile.broadcast %[[MAX]]
// What all of the row leaves without a number stays so.
// CHECK-NEXT:    %[[LESS:.*]] = arith.subf %{{.*}}, %[[ALL]]
// CHECK-NEXT:    %[[POWER:.*]] = math.exp %[[LESS]]
// CHECK-NEXT:    %[[SCALED:.*]] = arith.mulf %{{.*}}, %[[POWER]]
// CHECK-NEXT:    %[[SUM:.*]] = tile.reduce {{ *}}add %[[SCALED]]
// The statistic is stored as soon as it is known.
// CHECK-NEXT:    tile.store %[[SUM]]
// CHECK-NEXT:    scf.for
// CHECK:           math.exp
// CHECK-NOT:       tile.mask
// CHECK:           tile.store
// CHECK-NOT:     scf.for
// CHECK:         tile.return
tile.kernel @two_depths(%x: tensor<?x1000xf32>)
    -> (tensor<?x1000xf32>, tensor<?x1xf32>)
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %max = tile.reduce max %x : tensor<?x1000xf32> -> tensor<?x1xf32>
  %maxes = tile.broadcast %max like %x
      : tensor<?x1xf32>, tensor<?x1000xf32> -> tensor<?x1000xf32>
  %shifted = arith.subf %x, %maxes : tensor<?x1000xf32>
  %exp = math.exp %shifted : tensor<?x1000xf32>
  %sum = tile.reduce add %exp : tensor<?x1000xf32> -> tensor<?x1xf32>
  %sums = tile.broadcast %sum like %x
      : tensor<?x1xf32>, tensor<?x1000xf32> -> tensor<?x1000xf32>
  %result = arith.divf %exp, %sums : tensor<?x1000xf32>
  tile.return %result, %sum : tensor<?x1000xf32>, tensor<?x1xf32>
}
func.func @f(%x: tensor<?x1000xf32>) -> (tensor<?x1000xf32>, tensor<?x1xf32>) {
  %0:2 = tile.launch [@two_depths](%x)
      : (tensor<?x1000xf32>) -> (tensor<?x1000xf32>, tensor<?x1xf32>)
  return %0#0, %0#1 : tensor<?x1000xf32>, tensor<?x1xf32>
}

// -----

// Two reductions that do not wait for each other share a loop.
// CHECK-LABEL: tile.program @shared_loop(
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK:           tile.load
// CHECK-NOT:       tile.load
// CHECK:           scf.yield %{{.*}}, %{{.*}}
// CHECK-NOT:     scf.for
// CHECK:         tile.return
tile.kernel @shared_loop(%x: tensor<?x1024xf32>) -> (tensor<?x1xf32>, tensor<?x1xf32>)
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %0 = tile.reduce max %x : tensor<?x1024xf32> -> tensor<?x1xf32>
  %1 = tile.reduce add %x : tensor<?x1024xf32> -> tensor<?x1xf32>
  tile.return %0, %1 : tensor<?x1xf32>, tensor<?x1xf32>
}
func.func @f(%x: tensor<?x1024xf32>) -> (tensor<?x1xf32>, tensor<?x1xf32>) {
  %0:2 = tile.launch [@shared_loop](%x)
      : (tensor<?x1024xf32>) -> (tensor<?x1xf32>, tensor<?x1xf32>)
  return %0#0, %0#1 : tensor<?x1xf32>, tensor<?x1xf32>
}

// -----

// What is the same in every column is loaded before the loop.
// CHECK-LABEL: tile.program @statistic_input(
// CHECK:         tile.load {{.*}} : memref<?x1xf32, strided<[?, 1]>> -> tensor<1x1xf32>
// CHECK:         scf.for
// CHECK-NOT:       tile.load {{.*}}memref<?x1xf32
// CHECK:         tile.return
tile.kernel @statistic_input(%s: tensor<?x1xf32>, %x: tensor<?x1024xf32>)
    -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %0 = tile.broadcast %s like %x
      : tensor<?x1xf32>, tensor<?x1024xf32> -> tensor<?x1024xf32>
  %1 = arith.mulf %x, %0 : tensor<?x1024xf32>
  %2 = tile.reduce add %1 : tensor<?x1024xf32> -> tensor<?x1xf32>
  tile.return %2 : tensor<?x1xf32>
}
func.func @f(%s: tensor<?x1xf32>, %x: tensor<?x1024xf32>) -> tensor<?x1xf32> {
  %0 = tile.launch [@statistic_input](%s, %x)
      : (tensor<?x1xf32>, tensor<?x1024xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// -----

// Without reductions each program takes one tile of a row, and there are as
// many programs to a row as it has tiles.
// CHECK-LABEL: tile.program @column_split(
// CHECK-SAME:      column_blocks = 4 : i64
// CHECK-DAG:     %[[COUNT:.*]] = arith.constant 4 : index
// CHECK-DAG:     %[[COLUMNS:.*]] = arith.constant 256 : index
// CHECK:         %[[ID:.*]] = tile.program_id
// CHECK-DAG:     %[[BLOCK:.*]] = arith.remui %[[ID]], %[[COUNT]]
// CHECK-DAG:     %[[ROW:.*]] = arith.divui %[[ID]], %[[COUNT]]
// CHECK-DAG:     %[[COLUMN:.*]] = arith.muli %[[BLOCK]], %[[COLUMNS]]
// CHECK-NOT:     scf.for
// CHECK:         tile.load %{{[^[]*}}[%[[ROW]], %[[COLUMN]]]
// CHECK-NOT:     tile.mask
// CHECK:         tile.store %{{.*}}, %{{[^[]*}}[%[[ROW]], %[[COLUMN]]]
tile.kernel @column_split(%x: tensor<?x1000xf32>) -> tensor<?x1000xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %0 = arith.addf %x, %x : tensor<?x1000xf32>
  tile.return %0 : tensor<?x1000xf32>
}
func.func @f(%x: tensor<?x1000xf32>) -> tensor<?x1000xf32> {
  %0 = tile.launch [@column_split](%x) : (tensor<?x1000xf32>) -> tensor<?x1000xf32>
  return %0 : tensor<?x1000xf32>
}

// -----

// A persistent program goes through row groups in steps of the number of programs.
// CHECK-LABEL: tile.program @persistent(
// CHECK-SAME:      %[[ROWS:[^:]*]]: index
// CHECK-DAG:     %[[TWO:.*]] = arith.constant 2 : index
// CHECK:         %[[ID:.*]] = tile.program_id
// CHECK-NEXT:    %[[COUNT:.*]] = tile.program_count
// CHECK-NEXT:    %[[GROUPS:.*]] = arith.ceildivui %[[ROWS]], %[[TWO]]
// CHECK-NEXT:    scf.for %[[GROUP:.*]] = %[[ID]] to %[[GROUPS]] step %[[COUNT]] {
// CHECK-NEXT:      %[[ROW:.*]] = arith.muli %[[GROUP]], %[[TWO]]
// CHECK-NEXT:      tile.load %{{[^[]*}}[%[[ROW]],
tile.kernel @persistent(%x: tensor<?x128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #tile.rows<rows = 2, threads = 64, vector = 4, columns = 128, persistent = 1>} {
  %0 = arith.addf %x, %x : tensor<?x128xf32>
  tile.return %0 : tensor<?x128xf32>
}
func.func @f(%x: tensor<?x128xf32>) -> tensor<?x128xf32> {
  %0 = tile.launch [@persistent](%x) : (tensor<?x128xf32>) -> tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
}

// -----

// Where programs share a row, a persistent one keeps to its columns, so that it
// can combine what it meets there.
// CHECK-LABEL: tile.program @persistent_column_split(
// CHECK-SAME:      %[[ROWS:[^:]*]]: index
// CHECK-DAG:     %[[FOUR:.*]] = arith.constant 4 : index
// CHECK:         %[[ID:.*]] = tile.program_id
// CHECK:         %[[FIRST:.*]] = arith.divui %[[ID]], %[[FOUR]]
// CHECK:         %[[COUNT:.*]] = tile.program_count
// CHECK-NEXT:    %[[STEP:.*]] = arith.divui %[[COUNT]], %[[FOUR]]
// CHECK-NEXT:    scf.for %{{.*}} = %[[FIRST]] to %[[ROWS]] step %[[STEP]]
tile.kernel @persistent_column_split(%x: tensor<?x1000xf32>) -> tensor<?x1000xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256, persistent = 2>} {
  %0 = arith.addf %x, %x : tensor<?x1000xf32>
  tile.return %0 : tensor<?x1000xf32>
}
func.func @f(%x: tensor<?x1000xf32>) -> tensor<?x1000xf32> {
  %0 = tile.launch [@persistent_column_split](%x)
      : (tensor<?x1000xf32>) -> tensor<?x1000xf32>
  return %0 : tensor<?x1000xf32>
}

// -----

// Leading dimensions that lie one after the other in memory count as one, the
// fastest way; then one by one; then without alignment.
// CHECK-LABEL: tile.program @leading
// CHECK-SAME:      (%{{[^:]*}}: index, %{{[^:]*}}: memref<?x128xf32, strided<[?, 1]>> {tile.alignment = 16
// CHECK-SAME:      leading = 1 : i64
// CHECK:       tile.program @leading_strided
// CHECK-SAME:      (%{{[^:]*}}: index, %{{[^:]*}}: index, %{{[^:]*}}: memref<?x?x128xf32, strided<[?, ?, 1]>> {tile.alignment = 16
// CHECK-SAME:      leading = 2 : i64
// CHECK:       tile.program @leading_strided_unaligned
// CHECK-SAME:      (%{{[^:]*}}: index, %{{[^:]*}}: index, %{{[^:]*}}: memref<?x?x128xf32, strided<[?, ?, 1]>> {tile.alignment = 4
// CHECK-SAME:      leading = 2 : i64
// CHECK-NOT:   tile.program @
// CHECK:       tile.launch [@leading, @leading_strided, @leading_strided_unaligned](
tile.kernel @leading(%x: tensor<?x?x128xf32>) -> tensor<?x?x128xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %0 = arith.addf %x, %x : tensor<?x?x128xf32>
  tile.return %0 : tensor<?x?x128xf32>
}
func.func @f(%x: tensor<?x?x128xf32>) -> tensor<?x?x128xf32> {
  %0 = tile.launch [@leading](%x) : (tensor<?x?x128xf32>) -> tensor<?x?x128xf32>
  return %0 : tensor<?x?x128xf32>
}

// -----

// One loop goes through the rows of all leading dimensions.
// CHECK:       tile.program @leading_persistent_strided(
// CHECK-SAME:      %[[A:[^:]*]]: index, %[[B:[^:]*]]: index, %[[C:[^:]*]]: index,
// CHECK-DAG:     %[[AB:.*]] = arith.muli %[[A]], %[[B]]
// CHECK-DAG:     %[[ABC:.*]] = arith.muli %[[AB]], %[[C]]
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[ABC]]
tile.kernel @leading_persistent(%x: tensor<?x?x?x128xf32>) -> tensor<?x?x?x128xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128, persistent = 1>} {
  %0 = arith.addf %x, %x : tensor<?x?x?x128xf32>
  tile.return %0 : tensor<?x?x?x128xf32>
}
func.func @f(%x: tensor<?x?x?x128xf32>) -> tensor<?x?x?x128xf32> {
  %0 = tile.launch [@leading_persistent](%x)
      : (tensor<?x?x?x128xf32>) -> tensor<?x?x?x128xf32>
  return %0 : tensor<?x?x?x128xf32>
}

// -----

// Elements that are moved one by one need no alignment beyond their own.
// CHECK-LABEL: tile.program @scalar(
// CHECK-SAME:      tile.alignment = 4 : i64
// CHECK-NOT:   tile.program @
// CHECK:       tile.launch [@scalar](
tile.kernel @scalar(%x: tensor<?x31xf32>) -> tensor<?x31xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>} {
  %0 = arith.addf %x, %x : tensor<?x31xf32>
  tile.return %0 : tensor<?x31xf32>
}
func.func @f(%x: tensor<?x31xf32>) -> tensor<?x31xf32> {
  %0 = tile.launch [@scalar](%x) : (tensor<?x31xf32>) -> tensor<?x31xf32>
  return %0 : tensor<?x31xf32>
}

// -----

// Each operand is aligned to its own vector, at most to 16 bytes.
// CHECK-LABEL: tile.program @mixed_alignment(
// CHECK-SAME:      memref<?x128xbf16, strided<[?, 1]>> {tile.alignment = 8 : i64, tile.readonly}
// CHECK-SAME:      memref<?x128xf32, strided<[?, 1]>> {tile.alignment = 16 : i64})
tile.kernel @mixed_alignment(%x: tensor<?x128xbf16>) -> tensor<?x128xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %0 = arith.extf %x : tensor<?x128xbf16> to tensor<?x128xf32>
  tile.return %0 : tensor<?x128xf32>
}
func.func @f(%x: tensor<?x128xbf16>) -> tensor<?x128xf32> {
  %0 = tile.launch [@mixed_alignment](%x) : (tensor<?x128xbf16>) -> tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
}

// -----

// A piece of one column is a number of each row, though the kernel goes along the
// columns of the whole row as well.
// CHECK-LABEL: tile.program @number_of_row_kernel(
// CHECK-SAME:      %[[X:[^:]*]]: memref<?x2xf16, strided<[?, 1]>>
// CHECK-SAME:      %[[OUT:[^:]*]]: memref<?x1xf32, strided<[?, 1]>>
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK:         %[[PIECE:.*]] = tile.load %[[X]][%{{.*}}, %[[C0]]] {alignment = 2 : i64, invariant, length = 1 : i64, offset = 1 : i64} {{.*}} -> tensor<[[R:[0-9]+]]x1xf16>
// CHECK:         %[[NUMBER:.*]] = arith.extf %[[PIECE]] : tensor<[[R]]x1xf16> to tensor<[[R]]x1xf32>
// CHECK:         tile.store %[[NUMBER]], %[[OUT]]
tile.kernel @number_of_row_kernel(%x: tensor<?x2xf16>) -> (tensor<?x1xf32>, tensor<?x2xf16>)
    attributes {schedule = #tile.rows<rows = 4, threads = 32, vector = 1, columns = 32>} {
  %0:2 = tile.split %x : tensor<?x2xf16> -> tensor<?x1xf16>, tensor<?x1xf16>
  %1 = arith.extf %0#1 : tensor<?x1xf16> to tensor<?x1xf32>
  %2 = arith.mulf %x, %x : tensor<?x2xf16>
  tile.return %1, %2 : tensor<?x1xf32>, tensor<?x2xf16>
}

func.func @number_of_row(%x: tensor<?x2xf16>) -> (tensor<?x1xf32>, tensor<?x2xf16>) {
  %0:2 = tile.launch [@number_of_row_kernel](%x) : (tensor<?x2xf16>) -> (tensor<?x1xf32>, tensor<?x2xf16>)
  return %0#0, %0#1 : tensor<?x1xf32>, tensor<?x2xf16>
}

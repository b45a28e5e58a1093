// RUN: tile-opt %s | tile-opt | FileCheck %s
// Spaces are parsed and printed in full.

// CHECK-LABEL: tile.kernel @columns(
// CHECK-SAME:    space = #tile.space<[r = ?, reduction c = 64, g = groups(c, 8)], arguments = [(r, c)], results = [(r, g)], values = [(), (r, c), (r, c), (r, g)]>
tile.kernel @columns(%x: tensor<?x64xf32>) -> tensor<?x8xf32>
    attributes {space = #tile.space<[r = ?, reduction c = 64, g = groups(c, 8)],
        arguments = [(r, c)], results = [(r, g)],
        values = [(), (r, c), (r, c), (r, g)]>} {
  %two = arith.constant 2.0 : f32
  %0 = tile.broadcast %two like %x : f32, tensor<?x64xf32> -> tensor<?x64xf32>
  %1 = arith.mulf %x, %0 : tensor<?x64xf32>
  %2 = tile.reduce add %1 : tensor<?x64xf32> -> tensor<?x8xf32>
  tile.return %2 : tensor<?x8xf32>
}

// Any string is a name, also that of a kind.
// CHECK-LABEL: tile.kernel @names(
// CHECK-SAME:    space = #tile.space<["my rows" = ?, reduction reduction = 64], arguments = [("my rows", reduction)], results = [("my rows", 1)], values = [("my rows", 1)]>
tile.kernel @names(%x: tensor<?x64xf32>) -> tensor<?x1xf32>
    attributes {space = #tile.space<["my rows" = ?, reduction reduction = 64],
        arguments = [("my rows", reduction)], results = [("my rows", 1)],
        values = [("my rows", 1)]>} {
  %0 = tile.reduce add %x : tensor<?x64xf32> -> tensor<?x1xf32>
  tile.return %0 : tensor<?x1xf32>
}

// The space says that the columns of both are one, which no op shows.
// CHECK-LABEL: tile.kernel @joined(
tile.kernel @joined(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>) -> tensor<?x64xf32>
    attributes {space = #tile.space<[r = ?, reduction c = 64],
        arguments = [(r, c), (r, c)], results = [(r, c)],
        values = [(r, 1), (r, c), (r, c)]>} {
  %0 = tile.reduce add %x : tensor<?x64xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %y : tensor<?x1xf32>, tensor<?x64xf32> -> tensor<?x64xf32>
  %2 = arith.mulf %y, %1 : tensor<?x64xf32>
  tile.return %2 : tensor<?x64xf32>
}

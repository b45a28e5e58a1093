// RUN: tile-opt %s --split-input-file --verify-diagnostics
// A kernel's space is what its ops show.

// The result is computed of the argument's columns.
// expected-error @below {{'tile.kernel' op has 'space' #tile.space<[r = ?, c = 8, d = 8], arguments = [(r, c)], results = [(r, d)], values = [(r, d)]>, but its ops show #tile.space<[r = ?, c = 8], arguments = [(r, c)], results = [(r, c)], values = [(r, c)]>}}
tile.kernel @parted(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {space = #tile.space<[r = ?, c = 8, d = 8], arguments = [(r, c)],
        results = [(r, d)], values = [(r, d)]>} {
  %0 = arith.negf %x : tensor<?x8xf32>
  tile.return %0 : tensor<?x8xf32>
}

// -----

// expected-error @below {{'tile.kernel' op has 'space' #tile.space<[r = ?, c = 8], arguments = [(r, c)], results = [(r, 1)], values = [(r, 1)]>, but its ops show #tile.space<[r = ?, reduction c = 8]}}
tile.kernel @no_reduction(%x: tensor<?x8xf32>) -> tensor<?x1xf32>
    attributes {space = #tile.space<[r = ?, c = 8], arguments = [(r, c)],
        results = [(r, 1)], values = [(r, 1)]>} {
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x1xf32>
  tile.return %0 : tensor<?x1xf32>
}

// -----

// A product sums over the second dimension of both factors.
// expected-error @below {{arguments = [(m, k), (k, n)], results = [(m, n)], values = [(m, n)]>, but its ops show #tile.space<[m = ?, reduction k = 8, n = 8], arguments = [(m, k), (n, k)]}}
tile.kernel @transposed(%a: tensor<?x8xf32>, %b: tensor<8x8xf32>) -> tensor<?x8xf32>
    attributes {space = #tile.space<[m = ?, reduction k = 8, n = 8],
        arguments = [(m, k), (k, n)], results = [(m, n)], values = [(m, n)]>} {
  %0 = tile.dot %a, %b contract [1, 1] : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  tile.return %0 : tensor<?x8xf32>
}

// -----

// expected-error @below {{'tile.kernel' op has 'space' #tile.space<[r = ?], arguments = [(r)], results = [(r)], values = [(r)]>, in which a 'tensor<?x8xf32>' has 1 dimensions}}
tile.kernel @too_few(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {space = #tile.space<[r = ?], arguments = [(r)], results = [(r)],
        values = [(r)]>} {
  %0 = arith.negf %x : tensor<?x8xf32>
  tile.return %0 : tensor<?x8xf32>
}

// -----

// expected-error @below {{'tile.kernel' op has 'space' #tile.space<[r = ?, c = 8], arguments = [], results = [(r, c)], values = [(r, c)]>, which is of another number of arguments or results}}
tile.kernel @no_arguments(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {space = #tile.space<[r = ?, c = 8], arguments = [],
        results = [(r, c)], values = [(r, c)]>} {
  %0 = arith.negf %x : tensor<?x8xf32>
  tile.return %0 : tensor<?x8xf32>
}

// -----

// expected-error @below {{space has no dimension "c"}}
func.func private @unknown() attributes {a = #tile.space<[r = ?], arguments = [(r, c)], results = [], values = []>}

// -----

// expected-error @below {{space has two dimensions "r"}}
func.func private @twice() attributes {a = #tile.space<[r = ?, r = 8], arguments = [], results = [], values = []>}

// -----

// expected-error @below {{space has a dimension "r" of 0 elements}}
func.func private @empty() attributes {a = #tile.space<[r = 0], arguments = [], results = [], values = []>}

// -----

// expected-error @below {{dimension "g" follows from "c", which does not come before it}}
func.func private @base() attributes {a = #tile.space<[g = groups(c, 8), c = 64], arguments = [], results = [], values = []>}

// -----

// expected-error @below {{expected groups or pieces of 2 or more}}
func.func private @kind() attributes {a = #tile.space<[c = 64, g = parts(c, 8)], arguments = [], results = [], values = []>}

// -----

// expected-error @below {{dimension "c" does not divide into groups or pieces}}
func.func private @uneven() attributes {a = #tile.space<[c = 60, g = groups(c, 8)], arguments = [], results = [], values = []>}

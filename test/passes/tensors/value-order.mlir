// RUN: tile-opt %s --decompose -verify-diagnostics -split-input-file
// RUN: tile-opt %s --differentiate -verify-diagnostics -split-input-file
// RUN: tile-opt %s --expand-math -verify-diagnostics -split-input-file

// Folding an op that reads its own result has no end.

// expected-error @below {{'arith.negf' op reads a value that is not computed yet}}
%0 = arith.negf %0 : f32

// -----

// expected-error @below {{'arith.negf' op reads a value that is not computed yet}}
%0 = arith.negf %1 : f32
// expected-note @below {{it is computed here}}
%1 = arith.negf %0 : f32

// -----

func.func @unreached(%x: f32) -> f32 {
  return %x : f32
^unreached:
  // expected-error @below {{'arith.negf' op is in a block that nothing branches to; remove the block}}
  %0 = arith.negf %1 : f32
  %1 = arith.negf %0 : f32
  return %1 : f32
}

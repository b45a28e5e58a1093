// RUN: tile-opt %s --lower-tiles -split-input-file -verify-diagnostics
// Ops on tiles are dealt to the threads of a program.

func.func @outside() {
  // expected-error @below {{'tile.take_turn' op must be part of a 'tile.program'}}
  tile.take_turn
  return
}

// -----

func.func @rank() -> index {
  // expected-error @below {{'tile.block_rank' op must be part of a 'tile.program'}}
  %0 = tile.block_rank
  return %0 : index
}

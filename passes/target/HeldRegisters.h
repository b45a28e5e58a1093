//===- HeldRegisters.h - What threads hold while they wait ------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TARGET_HELDREGISTERS_H
#define BASTILE_PASSES_TARGET_HELDREGISTERS_H

#include "dialect/Tile.h"

namespace bastile {

/// How many blocks of `program`, up to `most`, a multiprocessor has registers
/// for: a thread that may have fewer than it holds while it waits for other
/// threads spills, which costs more than what other blocks hide of the waiting.
int32_t countBlocksThatFit(tile::ProgramOp program, int32_t most);

} // namespace bastile

#endif // BASTILE_PASSES_TARGET_HELDREGISTERS_H

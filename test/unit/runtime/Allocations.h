//===- Allocations.h - Counted and limited allocations ----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TEST_UNIT_RUNTIME_ALLOCATIONS_H
#define BASTILE_TEST_UNIT_RUNTIME_ALLOCATIONS_H

#include <cstddef>
#include <cstdint>

namespace bastile::runtime {

/// How often this thread has allocated memory from the heap.
extern thread_local size_t allocationsMade;

/// How many more allocations succeed; all of them, if negative.
extern thread_local int64_t allocationsLeft;

} // namespace bastile::runtime

#endif // BASTILE_TEST_UNIT_RUNTIME_ALLOCATIONS_H

//===- Allocations.h - What the tests take from the heap --------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TEST_UNIT_RUNTIME_ALLOCATIONS_H
#define BASTILE_TEST_UNIT_RUNTIME_ALLOCATIONS_H

#include <cstddef>
#include <cstdint>

namespace bastile::runtime {

/// How often this thread has taken memory from the heap.
extern thread_local size_t allocationsMade;

/// How many more times it can; always, if negative.
extern thread_local int64_t allocationsLeft;

} // namespace bastile::runtime

#endif // BASTILE_TEST_UNIT_RUNTIME_ALLOCATIONS_H

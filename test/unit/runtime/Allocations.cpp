//===- Allocations.cpp - Counted and limited allocations ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Allocations.h"

#include <cstdlib>
#include <new>

using namespace bastile;

thread_local size_t runtime::allocationsMade = 0;
thread_local int64_t runtime::allocationsLeft = -1;

static void *allocate(size_t size) {
  if (runtime::allocationsLeft == 0)
    return nullptr;
  if (runtime::allocationsLeft > 0)
    --runtime::allocationsLeft;
  ++runtime::allocationsMade;
  return std::malloc(size ? size : 1);
}

// These operators replace the library's in the whole program.
void *operator new(size_t size) {
  if (void *memory = allocate(size))
    return memory;
  throw std::bad_alloc();
}
void *operator new[](size_t size) { return operator new(size); }
void *operator new(size_t size, const std::nothrow_t &) noexcept {
  return allocate(size);
}
void *operator new[](size_t size, const std::nothrow_t &) noexcept {
  return allocate(size);
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete[](void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
void operator delete[](void *memory, size_t) noexcept { std::free(memory); }

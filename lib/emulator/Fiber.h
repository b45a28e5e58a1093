//===- Fiber.h - Threads of control that yield by hand ----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_EMULATOR_FIBER_H
#define BASTILE_LIB_EMULATOR_FIBER_H

#include <cstddef>

namespace bastile {

/// Stacks for `count` fibers in one reservation. A page that a fiber never
/// touches costs no memory, and a page below each stack traps.
class FiberStacks {
public:
  explicit FiberStacks(std::size_t count);
  ~FiberStacks();
  FiberStacks(const FiberStacks &) = delete;
  FiberStacks &operator=(const FiberStacks &) = delete;

  /// Makes fiber `index` start at `function` when it is first switched to;
  /// returns its stack pointer. `function` must not return.
  void *prepare(std::size_t index, void (*function)());

  /// Whether `address` lies in the stack of fiber `index`.
  bool contains(std::size_t index, const void *address) const;

  std::size_t size() const { return count; }

private:
  std::size_t count;
  char *memory;
};

/// Saves the running fiber's stack pointer in `save` and goes on with the fiber
/// whose stack pointer is `load`.
///
/// This is assembly because swapcontext saves the signal mask by a system call
/// each time, and a block of 1024 threads switches tens of thousands of times.
extern "C" void bastileSwitchFiber(void **save, void *load);

} // namespace bastile

#endif // BASTILE_LIB_EMULATOR_FIBER_H

//===- Fiber.cpp - Threads of control that yield by hand ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/Fiber.h"
#include "llvm/Support/ErrorHandling.h"
#include <cstdint>
#include <sys/mman.h>

using namespace bastile;

#if !defined(__x86_64__)
#error "switching fibers is written for x86-64, as the host code generator is"
#endif

// The registers that the calling convention has a callee preserve go on the
// stack; the compiler has saved the others around the call.
asm(R"(
  .pushsection .text
  .globl bastileSwitchFiber
  .hidden bastileSwitchFiber
  .type bastileSwitchFiber, @function
bastileSwitchFiber:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size bastileSwitchFiber, .-bastileSwitchFiber
  .popsection
)");

static constexpr std::size_t guardBytes = 4096;
// Fully unrolled kernels spill a lot on the host, which has fewer registers.
static constexpr std::size_t fiberBytes = 256 * 1024;

FiberStacks::FiberStacks(std::size_t count) : count(count) {
  void *reserved = mmap(nullptr, count * fiberBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1,
                        /*offset=*/0);
  if (reserved == MAP_FAILED)
    llvm::report_fatal_error("cannot reserve the stacks of emulated threads");
  memory = static_cast<char *>(reserved);
  for (std::size_t index = 0; index < count; ++index)
    mprotect(memory + index * fiberBytes, guardBytes, PROT_NONE);
}

FiberStacks::~FiberStacks() { munmap(memory, count * fiberBytes); }

void *FiberStacks::prepare(std::size_t index, void (*function)()) {
  auto *top = reinterpret_cast<uint64_t *>(memory + (index + 1) * fiberBytes);
  // A function expects the stack at 8 modulo 16, as a call leaves it: `ret`
  // pops `function` from a multiple of 16.
  uint64_t *stack = top - 2;
  *stack = reinterpret_cast<uint64_t>(function);
  constexpr unsigned numSavedRegisters = 6;
  for (unsigned i = 0; i < numSavedRegisters; ++i)
    *--stack = 0;
  return stack;
}

bool FiberStacks::contains(std::size_t index, const void *address) const {
  auto offset = static_cast<uintptr_t>(static_cast<const char *>(address) -
                                       (memory + index * fiberBytes));
  return offset < fiberBytes;
}

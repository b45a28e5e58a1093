//===- HostMemory.h - Memory of this process -------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TOOLS_TILERUN_HOSTMEMORY_H
#define BASTILE_TOOLS_TILERUN_HOSTMEMORY_H

#include "Machine.h"
#include "llvm/Support/MemAlloc.h"

namespace bastile::run {

class HostMemory : public Memory {
public:
  explicit HostMemory(size_t bytes)
      : bytes(bytes), address(llvm::allocate_buffer(bytes, kAlignment)) {}
  ~HostMemory() override {
    llvm::deallocate_buffer(address, bytes, kAlignment);
  }
  HostMemory(const HostMemory &) = delete;
  HostMemory &operator=(const HostMemory &) = delete;

  void *data() const override { return address; }

private:
  /// A line of the cache, to which frameworks align tensors.
  static constexpr size_t kAlignment = 64;

  size_t bytes;
  void *address;
};

} // namespace bastile::run

#endif // BASTILE_TOOLS_TILERUN_HOSTMEMORY_H

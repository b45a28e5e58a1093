//===- EmulatedMemory.cpp - Checking what emulated threads touch ----------===//

#include "EmulatedBlock.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace bastile;
using llvm::Twine;

static llvm::StringRef verbOf(EmulatedAccess access) {
  switch (access) {
  case EmulatedAccess::Load:
    return "load";
  case EmulatedAccess::Store:
    return "store";
  case EmulatedAccess::Atomic:
    return "atomic access";
  }
  return "access";
}

static bool contains(const EmulatedBuffer &buffer, uintptr_t address,
                     uint64_t bytes) {
  return address >= buffer.begin && bytes <= buffer.bytes &&
         address - buffer.begin <= buffer.bytes - bytes;
}

EmulatedBuffer EmulatedBlock::bufferOf(const EmulatedVariable &variable) const {
  auto begin = reinterpret_cast<uintptr_t>(shared.data()) + redZoneBytes;
  return {begin + variable.offset,
          variable.isDynamic ? launch.dynamicSharedBytes : variable.bytes,
          variable.name, /*isWritable=*/true};
}

void EmulatedBlock::access(uintptr_t address, uint64_t bytes,
                           uint32_t alignment, EmulatedAccess access,
                           uint32_t site) {
  checkAccess(address, bytes, alignment, access, site);
  // Here and not where the error is found: nothing that is left behind on
  // this stack has a destructor.
  if (!failure.empty())
    yield();
}

void EmulatedBlock::checkAccess(uintptr_t address, uint64_t bytes,
                                uint32_t alignment, EmulatedAccess access,
                                uint32_t site) {
  if (address % alignment != 0)
    return fail("misaligned " + verbOf(access) + " of " + Twine(bytes) +
                " bytes in " + siteName(site) + " by " + threadName(running) +
                ": the address is not a multiple of " + Twine(alignment));

  uintptr_t offset = address - reinterpret_cast<uintptr_t>(shared.data());
  if (offset < shared.size()) {
    if (!findShared(offset - redZoneBytes, bytes))
      return reportOutOfBounds(address, bytes, access, site);
    return checkShared(offset - redZoneBytes, bytes, access, site);
  }
  if (launch.buffers.empty() ||
      stacks.contains(running, reinterpret_cast<void *>(address)))
    return;

  const auto *buffer =
      llvm::find_if(launch.buffers, [&](const EmulatedBuffer &one) {
        return contains(one, address, bytes);
      });
  if (buffer == launch.buffers.end())
    return reportOutOfBounds(address, bytes, access, site);
  if (access != EmulatedAccess::Load && !buffer->isWritable)
    fail(verbOf(access) + " to '" + buffer->name +
         "', which is read-only, in " + siteName(site) + " by " +
         threadName(running));
}

const EmulatedVariable *EmulatedBlock::findShared(uint64_t offset,
                                                  uint64_t bytes) const {
  uintptr_t address =
      reinterpret_cast<uintptr_t>(shared.data()) + redZoneBytes + offset;
  for (const EmulatedVariable &variable : launch.module.variables)
    if (variable.isShared && contains(bufferOf(variable), address, bytes))
      return &variable;
  return nullptr;
}

void EmulatedBlock::checkShared(uint64_t offset, uint64_t bytes,
                                EmulatedAccess access, uint32_t site) {
  // Atomics order themselves.
  if (access == EmulatedAccess::Atomic)
    return;
  bool isLoad = access == EmulatedAccess::Load;
  std::optional<SharedShadow::Race> race =
      isLoad ? shadow.read(running, offset, bytes)
             : shadow.write(running, offset, bytes);
  if (!race)
    return;
  const EmulatedVariable *variable = findShared(race->offset, /*bytes=*/1);
  fail("data race on byte " + Twine(race->offset - variable->offset) + " of '" +
       variable->name + "': " + threadName(running) +
       (isLoad ? " reads" : " writes") + " it in " + siteName(site) + ", " +
       threadName(race->otherThread) + " " + race->earlier +
       " it before, and no barrier lies in between");
}

void EmulatedBlock::reportOutOfBounds(uintptr_t address, uint64_t bytes,
                                      EmulatedAccess access, uint32_t site) {
  llvm::SmallVector<EmulatedBuffer> buffers(launch.buffers.begin(),
                                            launch.buffers.end());
  for (const EmulatedVariable &variable : launch.module.variables)
    if (variable.isShared)
      buffers.push_back(bufferOf(variable));

  // What lies nearest is most likely what was meant.
  const EmulatedBuffer *nearest = nullptr;
  uint64_t distance = std::numeric_limits<uint64_t>::max();
  for (const EmulatedBuffer &buffer : buffers) {
    uintptr_t end = buffer.begin + buffer.bytes;
    uint64_t gap = 0;
    if (address < buffer.begin)
      gap = buffer.begin - address;
    else if (address > end)
      gap = address - end;
    if (gap < distance) {
      distance = gap;
      nearest = &buffer;
    }
  }
  std::string place = "at no known buffer";
  if (nearest)
    place = "at byte " +
            std::to_string(static_cast<int64_t>(address - nearest->begin)) +
            " of '" + nearest->name + "', which has " +
            std::to_string(nearest->bytes);
  fail("out-of-bounds " + verbOf(access) + " of " + Twine(bytes) + " bytes " +
       place + ", in " + siteName(site) + " by " + threadName(running));
}

//===- EmulatedMemory.cpp - Checking what emulated threads touch ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/EmulatedCluster.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace bastile;
using llvm::Twine;

static constexpr unsigned warpSize = 32;

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

/// Whether `size` bytes from `begin` on hold the `bytes` from `address` on.
static bool contains(uint64_t begin, uint64_t size, uint64_t address,
                     uint64_t bytes) {
  return address >= begin && bytes <= size && address - begin <= size - bytes;
}

EmulatedBuffer EmulatedCluster::bufferOf(const EmulatedVariable &variable,
                                         unsigned block) const {
  auto begin = reinterpret_cast<uintptr_t>(shared.data()) +
               block * blockStride() + redZoneBytes;
  return {begin + variable.offset, sizeOf(variable), variable.name,
          /*isWritable=*/true};
}

uint64_t EmulatedCluster::sizeOf(const EmulatedVariable &variable) const {
  return variable.isDynamic ? launch.dynamicSharedBytes : variable.bytes;
}

void EmulatedCluster::access(uintptr_t address, uint64_t bytes,
                             uint32_t alignment, EmulatedAccess access,
                             uint32_t site) {
  checkAccess(address, bytes, alignment, access, site);
  // An error ends the thread here and not where it is found: nothing that is
  // left behind on this stack has a destructor.
  if (!failure.empty())
    yield();
}

void EmulatedCluster::checkAccess(uintptr_t address, uint64_t bytes,
                                  uint32_t alignment, EmulatedAccess access,
                                  uint32_t site) {
  if (address % alignment != 0)
    return fail("misaligned " + verbOf(access) + " of " + Twine(bytes) +
                " bytes in " + siteName(site) + " by " + threadName(running) +
                ": the address is not a multiple of " + Twine(alignment));

  uintptr_t offset = address - reinterpret_cast<uintptr_t>(shared.data());
  if (offset < shared.size()) {
    unsigned block = offset / blockStride();
    offset = offset % blockStride() - redZoneBytes;
    if (!findShared(offset, bytes))
      return reportOutOfBounds(address, bytes, access, site);
    return checkShared(block, offset, bytes, access, site);
  }
  if (launch.buffers.empty() ||
      stacks.contains(running, reinterpret_cast<void *>(address)))
    return;

  const auto *buffer =
      llvm::find_if(launch.buffers, [&](const EmulatedBuffer &one) {
        return contains(one.begin, one.bytes, address, bytes);
      });
  if (buffer == launch.buffers.end())
    return reportOutOfBounds(address, bytes, access, site);
  if (access != EmulatedAccess::Load && !buffer->isWritable)
    fail(verbOf(access) + " to '" + buffer->name +
         "', which is read-only, in " + siteName(site) + " by " +
         threadName(running));
}

char *EmulatedCluster::mapShared(char *address, uint32_t rank, uint32_t site) {
  auto offset = static_cast<uint64_t>(address - sharedMemory());
  if (rank >= launch.cluster)
    fail(siteName(site) + " by " + threadName(running) + " names block " +
         Twine(rank) + " of a cluster of " + Twine(launch.cluster));
  else if (offset > sharedBytes)
    fail(siteName(site) + " by " + threadName(running) +
         " maps an address outside of its block's shared memory");
  if (!failure.empty())
    yield();
  return sharedOf(rank) + offset;
}

const EmulatedVariable *EmulatedCluster::findShared(uint64_t offset,
                                                    uint64_t bytes) const {
  // Every access asks, so that no buffer is made, which would copy its name.
  for (const EmulatedVariable &variable : launch.module.variables)
    if (variable.isShared &&
        contains(variable.offset, sizeOf(variable), offset, bytes))
      return &variable;
  return nullptr;
}

bool EmulatedCluster::checkRemote(unsigned block, EmulatedAccess access,
                                  uint32_t site) {
  const char *reason = nullptr;
  if (!arrivals[running / warpSize].hasMet)
    reason = "may not have started: no barrier of the cluster lies in between";
  else if (numAliveInBlock[block] == 0)
    reason = "has exited";
  if (!reason)
    return true;
  fail(verbOf(access) + " to the shared memory of block " + Twine(block) +
       " in " + siteName(site) + " by " + threadName(running) +
       ": that block " + reason);
  return false;
}

void EmulatedCluster::checkShared(unsigned block, uint64_t offset,
                                  uint64_t bytes, EmulatedAccess access,
                                  uint32_t site) {
  if (block != blockOf(running) && !checkRemote(block, access, site))
    return;
  // Atomic accesses order themselves, so they are not recorded.
  if (access == EmulatedAccess::Atomic)
    return;
  bool isLoad = access == EmulatedAccess::Load;
  uint64_t first = block * sharedBytes;
  std::optional<SharedShadow::Race> race =
      isLoad ? shadow.read(running, first + offset, bytes)
             : shadow.write(running, first + offset, bytes);
  if (!race)
    return;
  offset = race->offset - first;
  const EmulatedVariable *variable = findShared(offset, /*bytes=*/1);
  std::string owner =
      launch.cluster == 1 ? "" : " in block " + std::to_string(block);
  fail("data race on byte " + Twine(offset - variable->offset) + " of '" +
       variable->name + "'" + owner + ": " + threadName(running) +
       (isLoad ? " reads" : " writes") + " it in " + siteName(site) + ", " +
       threadName(race->otherThread) + " " + race->earlier +
       " it before, and no barrier lies in between");
}

void EmulatedCluster::reportOutOfBounds(uintptr_t address, uint64_t bytes,
                                        EmulatedAccess access, uint32_t site) {
  llvm::SmallVector<EmulatedBuffer> buffers(launch.buffers.begin(),
                                            launch.buffers.end());
  for (const EmulatedVariable &variable : launch.module.variables)
    for (unsigned block = 0; variable.isShared && block < launch.cluster;
         ++block)
      buffers.push_back(bufferOf(variable, block));

  // The nearest buffer is most likely the one that was meant.
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

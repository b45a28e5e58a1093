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

std::optional<EmulatedCluster::SharedPlace>
EmulatedCluster::placeOf(uintptr_t address) const {
  uintptr_t offset = address - reinterpret_cast<uintptr_t>(sharedBase);
  if (offset >= launch.cluster * blockStride())
    return std::nullopt;
  // In the red zone ahead of a block's memory the offset is far too large.
  return SharedPlace{static_cast<unsigned>(offset / blockStride()),
                     offset % blockStride() - redZoneBytes};
}

EmulatedBuffer EmulatedCluster::bufferOf(const EmulatedVariable &variable,
                                         unsigned block) const {
  auto begin = reinterpret_cast<uintptr_t>(sharedOf(block));
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
  // Atomic accesses order themselves.
  if (failure.empty() && access != EmulatedAccess::Atomic) {
    const unsigned warp = running / warpSize;
    noteInGrid(address, bytes, access == EmulatedAccess::Store, warp,
               clocks.step(warp), site);
  }
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

  if (std::optional<SharedPlace> place = placeOf(address)) {
    if (!findShared(place->offset, bytes))
      return reportOutOfBounds(address, bytes, verbOf(access), site);
    return checkShared(*place, bytes, access, site);
  }
  if (launch.buffers.empty() ||
      stacks.contains(running, reinterpret_cast<void *>(address)))
    return;

  const auto *buffer =
      llvm::find_if(launch.buffers, [&](const EmulatedBuffer &one) {
        return contains(one.begin, one.bytes, address, bytes);
      });
  if (buffer == launch.buffers.end())
    return reportOutOfBounds(address, bytes, verbOf(access), site);
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

void EmulatedCluster::noteForEnd(unsigned block, unsigned component,
                                 uint32_t step, uint32_t site) {
  std::vector<OutlivedAccess> &accesses = outlived[block];
  if (accesses.size() <= component)
    accesses.resize(component + 1);
  accesses[component] = {step, running, site};
}

void EmulatedCluster::checkEnds() {
  unsigned numWarps = blockThreads / warpSize;
  for (auto [block, accesses] : llvm::enumerate(outlived))
    for (auto [component, access] : llvm::enumerate(accesses)) {
      // Some warp has to know of the access, so that the block cannot have
      // ended ahead of it.
      auto knows = [&, component = component,
                    step = access.step](unsigned warp) {
        return stepOf(clocks.of(warp), component) >= step;
      };
      unsigned first = block * numWarps;
      if (llvm::none_of(llvm::seq(first, first + numWarps), knows))
        return fail("block " + Twine(block) + " may exit before " +
                    threadName(access.thread) +
                    " is done with its shared memory in " +
                    siteName(access.site) +
                    ": nothing that the block waits for comes after that");
    }
}

void EmulatedCluster::checkShared(SharedPlace place, uint64_t bytes,
                                  EmulatedAccess access, uint32_t site) {
  if (place.block != blockOf(running)) {
    if (!checkRemote(place.block, access, site))
      return;
    unsigned warp = running / warpSize;
    noteForEnd(place.block, warp, clocks.step(warp), site);
  }
  // Atomic accesses order themselves, so they are not recorded.
  if (access == EmulatedAccess::Atomic)
    return;
  bool isLoad = access == EmulatedAccess::Load;
  uint64_t offset = shadowOffset(place);
  std::optional<SharedShadow::Race> race =
      isLoad ? shadow.read(running, offset, bytes)
             : shadow.write(running, offset, bytes);
  if (race)
    reportRace(*race, threadName(running), !isLoad, site);
}

std::string EmulatedCluster::nameByte(SharedPlace place) const {
  const EmulatedVariable *variable = findShared(place.offset, /*bytes=*/1);
  std::string owner =
      launch.cluster == 1 ? "" : " in block " + std::to_string(place.block);
  return "byte " + std::to_string(place.offset - variable->offset) + " of '" +
         variable->name + "'" + owner;
}

void EmulatedCluster::reportRace(const SharedShadow::Race &race,
                                 const Twine &who, bool isWrite,
                                 uint32_t site) {
  std::string byte = nameByte({static_cast<unsigned>(race.offset / shadowBytes),
                               race.offset % shadowBytes});
  std::string other =
      race.isEngine ? engineName(race.other) : threadName(race.other);
  if (race.isCopy)
    other = "a copy of " + other;
  const char *lacking = race.isEngine ? "and nothing has waited for them since"
                                      : "and no barrier lies in between";
  if (race.isCopy)
    lacking = "and that thread has not waited for it since";
  if (race.lacksFence)
    lacking = "and that thread has run no fence between the generic and the "
              "async proxy since";
  fail((race.lacksFence ? "missing fence for " : "data race on ") + byte +
       ": " + who + (isWrite ? " writes" : " reads") + " it in " +
       siteName(site) + ", " + other + " " + race.earlier + " it before, " +
       lacking);
}

std::string EmulatedCluster::engineName(unsigned component) const {
  for (auto [number, warpgroup] : llvm::enumerate(warpgroups))
    if (warpgroup.component == component)
      return "products of " + warpgroupName(number);
  for (const auto &[thread, stores] : tensorStores)
    if (stores.component == component)
      return "stores of tensors by " + threadName(thread);
  for (const auto &[address, barrier] : messageBarriers)
    if (barrier.component == component)
      return "copies for the mbarrier at " +
             nameByte(*placeOf(reinterpret_cast<uintptr_t>(address)));
  return "copies for an mbarrier";
}

void EmulatedCluster::reportOutOfBounds(uintptr_t address, uint64_t bytes,
                                        llvm::StringRef verb, uint32_t site) {
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
  fail("out-of-bounds " + verb + " of " + Twine(bytes) + " bytes " + place +
       ", in " + siteName(site) + " by " + threadName(running));
}

//===- EmulatedTensors.cpp - Copies of boxes of tensors -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A copy into shared memory writes there at once; who reads it without having
// waited at its mbarrier is found by the clocks. A copy out of shared memory
// reads as late as its wait allows.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/EmulatedTensors.h"
#include "lib/emulator/EmulatedCluster.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cstring>

using namespace bastile;
using llvm::Twine;
using runtime::EmulatedTensorMap;
using runtime::TensorMapLimits;

static constexpr unsigned warpSize = 32;

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

uint64_t TensorBox::bytes() const {
  uint64_t bytes = map.elementBytes;
  for (unsigned i = 0; i < map.rank; ++i)
    bytes *= map.box[i];
  return bytes;
}

void TensorBox::forEachRow(char *place, Visitor visit) const {
  auto bound = [&](int64_t element) {
    return std::clamp<int64_t>(element, 0, map.sizes[0]);
  };
  int64_t first = coordinates[0];
  int64_t begin = bound(first), end = bound(first + map.box[0]);
  uint32_t index[TensorMapLimits::rank] = {};
  uint64_t numRows = bytes() / rowBytes();
  for (uint64_t row = 0; row < numRows; ++row, place += rowBytes()) {
    bool isInside = begin < end;
    uint64_t address = map.address + begin * map.elementBytes;
    for (unsigned i = 1; i < map.rank; ++i) {
      int64_t at = int64_t(coordinates[i]) + index[i];
      isInside &= at >= 0 && at < map.sizes[i];
      address += at * map.strides[i];
    }
    if (isInside)
      visit(place, reinterpret_cast<char *>(address),
            (begin - first) * map.elementBytes,
            (end - first) * map.elementBytes);
    else
      visit(place, nullptr, 0, 0);
    for (unsigned i = 1; i < map.rank; ++i) {
      if (++index[i] < map.box[i])
        break;
      index[i] = 0;
    }
  }
}

void TensorBox::load(char *place) const {
  std::vector<char> bytes(rowBytes());
  constexpr uint64_t piece = SharedShadow::pieceBytes;
  forEachRow(place, [&](char *row, char *from, uint64_t begin, uint64_t end) {
    std::fill(bytes.begin(), bytes.end(), 0);
    if (begin < end)
      std::memcpy(bytes.data() + begin, from, end - begin);
    for (uint64_t i = 0; i < bytes.size(); i += piece)
      std::memcpy(swizzled(row + i, map.swizzle), &bytes[i], piece);
  });
}

void TensorBox::store(char *place) const {
  std::vector<char> bytes(rowBytes());
  constexpr uint64_t piece = SharedShadow::pieceBytes;
  forEachRow(place, [&](char *row, char *to, uint64_t begin, uint64_t end) {
    for (uint64_t i = 0; i < bytes.size(); i += piece)
      std::memcpy(&bytes[i], swizzled(row + i, map.swizzle), piece);
    if (begin < end)
      std::memcpy(to, bytes.data() + begin, end - begin);
  });
}

void TensorBox::add(char *place) const {
  forEachRow(place, [&](char *row, char *to, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; i += sizeof(float)) {
      float sum, own;
      std::memcpy(&sum, to + (i - begin), sizeof(float));
      std::memcpy(&own, swizzled(row + i, map.swizzle), sizeof(float));
      sum += own;
      std::memcpy(to + (i - begin), &sum, sizeof(float));
    }
  });
}

bool TensorBox::endsWithPiece() const {
  const int64_t end =
      std::min<int64_t>(int64_t(coordinates[0]) + map.box[0], map.sizes[0]);
  return end <= coordinates[0] ||
         (end - coordinates[0]) * map.elementBytes % SharedShadow::pieceBytes ==
             0;
}

TensorBox::Range TensorBox::range() const {
  uint64_t first = map.address, last = map.address + map.elementBytes;
  for (unsigned i = 0; i < map.rank; ++i) {
    int64_t begin = std::max<int64_t>(coordinates[i], 0);
    int64_t end =
        std::min<int64_t>(int64_t(coordinates[i]) + map.box[i], map.sizes[i]);
    if (begin >= end)
      return {map.address, 0};
    first += begin * map.strides[i];
    last += (end - 1) * map.strides[i];
  }
  return {first, last - first};
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// The reason why no copy can use a map with `rank` coordinates; null if one
/// can.
static const char *findFlaw(const EmulatedTensorMap &map, uint32_t rank) {
  if (map.magic != EmulatedTensorMap::expectedMagic)
    return "reads a map that is none";
  if (map.rank != rank || rank == 0 || rank > TensorMapLimits::rank)
    return "has another number of coordinates than the map has dimensions";
  uint64_t rowBytes = uint64_t(map.box[0]) * map.elementBytes;
  if (rowBytes % SharedShadow::pieceBytes != 0)
    return "copies rows that are no multiple of 16 bytes";
  if (map.swizzle != 0 && rowBytes != map.swizzle)
    return "copies rows that are not as long as their swizzle";
  for (unsigned i = 0; i < rank; ++i)
    if (map.box[i] == 0 || map.box[i] > TensorMapLimits::boxSize)
      return "copies a box with a side that is not from 1 to 256";
  bool isMisaligned = map.address % TensorMapLimits::alignment != 0;
  for (unsigned i = 1; i < rank; ++i)
    isMisaligned |= map.strides[i] % TensorMapLimits::alignment != 0;
  if (isMisaligned)
    return "reads a map whose address and strides are no multiples of 16 bytes";
  return nullptr;
}

std::optional<TensorBox>
EmulatedCluster::checkTensor(const void *map, const char *place,
                             const int32_t *coordinates, uint32_t rank,
                             uint32_t site) {
  TensorBox box;
  std::memcpy(&box.map, map, sizeof(box.map));
  std::copy_n(coordinates, std::min(rank, TensorMapLimits::rank),
              box.coordinates);
  const char *flaw = findFlaw(box.map, rank);
  // The pattern of a swizzle is one of addresses, so that a box begins where
  // the pattern does.
  uint64_t alignment = std::max<uint64_t>(128, 8 * box.map.swizzle);
  if (!flaw && reinterpret_cast<uintptr_t>(place) % alignment != 0) {
    fail(siteName(site) + " by " + threadName(running) +
         " copies a box with a swizzle of " + Twine(box.map.swizzle) +
         " bytes whose place in shared memory is no multiple of " +
         Twine(alignment));
    return std::nullopt;
  }
  if (flaw) {
    fail(siteName(site) + " by " + threadName(running) + " " + flaw);
    return std::nullopt;
  }
  return box;
}

/// Whether what a box takes of its tensor lies in memory that the kernel may
/// touch.
bool EmulatedCluster::checkTensorBuffer(const TensorBox &box, bool isWrite,
                                        uint32_t site) {
  TensorBox::Range range = box.range();
  if (range.bytes == 0 || launch.buffers.empty())
    return true;
  checkAccess(range.begin, range.bytes, /*alignment=*/1,
              isWrite ? EmulatedAccess::Store : EmulatedAccess::Load, site);
  return failure.empty();
}

/// Notes that what a box takes of its tensor is read or written.
void EmulatedCluster::noteBox(const TensorBox &box, bool isWrite,
                              unsigned component, uint32_t step,
                              uint32_t site) {
  if (!launch.shadow)
    return;
  box.forEachRow(/*place=*/nullptr,
                 [&](char *, char *from, uint64_t begin, uint64_t end) {
                   if (begin < end)
                     noteInGrid(reinterpret_cast<uintptr_t>(from), end - begin,
                                isWrite, component, step, site);
                 });
}

//===----------------------------------------------------------------------===//
// Into shared memory
//===----------------------------------------------------------------------===//

/// Copies into one block and counts the bytes at the mbarrier there.
void EmulatedCluster::arriveBytes(char *to, char *barrierAt, uint64_t bytes,
                                  uint32_t site,
                                  llvm::function_ref<void(char *to)> copy) {
  std::optional<SharedPlace> place = placeOf(reinterpret_cast<uintptr_t>(to));
  if (!place || !findShared(place->offset, bytes))
    return reportOutOfBounds(reinterpret_cast<uintptr_t>(to), bytes, "copy",
                             site);
  if (place->block != blockOf(running) &&
      !checkRemote(place->block, EmulatedAccess::Store, site))
    return;
  MessageBarrier *barrier = findBarrier(barrierAt, /*isByEngine=*/true, site);
  if (!barrier)
    return;
  SharedShadow::Engine engine = {barrier->component, barrier->copyStep,
                                 clocks.of(running / warpSize), running};
  if (auto race = shadow.write(engine, shadowOffset(*place), bytes))
    return reportRace(*race, "a copy that " + threadName(running) + " begins",
                      /*isWrite=*/true, site);
  noteForEnd(place->block, barrier->component, barrier->copyStep, site);
  copy(to);
  barrier->bytes -= bytes;
  completeMessages(*barrier);
}

/// Copies into the blocks that a mask names, at the same place in each; a
/// negative mask names the block of `to` alone.
void EmulatedCluster::multicast(char *to, char *barrier, uint64_t bytes,
                                int32_t mask, uint32_t site,
                                llvm::function_ref<void(char *to)> copy) {
  if (mask < 0) {
    arriveBytes(to, barrier, bytes, site, copy);
  } else if (mask >> launch.cluster != 0 || mask == 0) {
    fail(siteName(site) + " by " + threadName(running) + " names blocks 0x" +
         llvm::utohexstr(mask) + " of a cluster of " + Twine(launch.cluster));
  } else {
    for (unsigned block = 0; block < launch.cluster; ++block) {
      ptrdiff_t distance = sharedOf(block) - sharedMemory();
      if (mask >> block & 1)
        arriveBytes(to + distance, barrier + distance, bytes, site, copy);
      if (!failure.empty())
        break;
    }
  }
  if (!failure.empty())
    yield();
}

void EmulatedCluster::loadTensor(char *to, const void *map,
                                 const int32_t *coordinates, uint32_t rank,
                                 char *barrier, int32_t multicastMask,
                                 uint32_t site) {
  std::optional<TensorBox> box = checkTensor(map, to, coordinates, rank, site);
  if (!box || !checkTensorBuffer(*box, /*isWrite=*/false, site))
    return yield();
  const unsigned warp = running / warpSize;
  noteBox(*box, /*isWrite=*/false, warp, clocks.step(warp), site);
  multicast(to, barrier, box->bytes(), multicastMask, site,
            [&](char *place) { box->load(place); });
}

void EmulatedCluster::loadBytes(char *to, const char *from, char *barrier,
                                uint32_t bytes, int32_t multicastMask,
                                uint32_t site) {
  auto toAddress = reinterpret_cast<uintptr_t>(to);
  auto fromAddress = reinterpret_cast<uintptr_t>(from);
  if ((toAddress | fromAddress | bytes) % SharedShadow::pieceBytes != 0)
    fail(siteName(site) + " by " + threadName(running) + " copies " +
         Twine(bytes) +
         " bytes whose number or addresses are no multiples of "
         "16");
  else
    checkAccess(fromAddress, bytes, /*alignment=*/1, EmulatedAccess::Load,
                site);
  const unsigned warp = running / warpSize;
  noteInGrid(fromAddress, bytes, /*isWrite=*/false, warp, clocks.step(warp),
             site);
  if (!failure.empty())
    return yield();
  multicast(to, barrier, bytes, multicastMask, site,
            [&](char *place) { std::memcpy(place, from, bytes); });
}

//===----------------------------------------------------------------------===//
// Out of shared memory
//===----------------------------------------------------------------------===//

void EmulatedCluster::storeTensor(const void *map, char *from,
                                  const int32_t *coordinates, uint32_t rank,
                                  bool adds, uint32_t site) {
  std::optional<TensorBox> box =
      checkTensor(map, from, coordinates, rank, site);
  if (!box || !checkTensorBuffer(*box, /*isWrite=*/true, site))
    return yield();
  if (!box->endsWithPiece()) {
    fail(siteName(site) + " by " + threadName(running) +
         " copies a box to rows that are no multiple of 16 bytes, and would "
         "overwrite what lies behind them");
    return yield();
  }
  uint64_t bytes = box->bytes();
  std::optional<SharedPlace> place = placeOf(reinterpret_cast<uintptr_t>(from));
  if (!place || !findShared(place->offset, bytes)) {
    reportOutOfBounds(reinterpret_cast<uintptr_t>(from), bytes, "copy", site);
    return yield();
  }
  TensorStores &own = tensorStores[running];
  if (own.component == 0) {
    own.component = clocks.addComponent();
    own.written = clocks.addComponent();
  }
  noteBox(*box, /*isWrite=*/true, own.written, own.numGroups + 1, site);
  SharedShadow::Engine engine = {own.component, own.numGroups + 1,
                                 clocks.of(running / warpSize), running};
  if (auto race = shadow.read(engine, shadowOffset(*place), bytes)) {
    reportRace(*race, "a copy that " + threadName(running) + " begins",
               /*isWrite=*/false, site);
    return yield();
  }
  own.open.push_back({*box, from, adds});
}

void EmulatedCluster::closeStores() {
  TensorStores &own = tensorStores[running];
  ++own.numGroups;
  own.groups.push_back(std::move(own.open));
  own.open.clear();
}

void EmulatedCluster::waitForStores(uint32_t mostPending, bool isRead) {
  TensorStores &own = tensorStores[running];
  while (own.groups.size() > mostPending) {
    for (const TensorStores::Store &store : own.groups.front())
      store.adds ? store.box.add(store.from) : store.box.store(store.from);
    own.groups.pop_front();
  }
  if (own.component == 0)
    return;
  const unsigned warp = running / warpSize;
  clocks.learn(warp, own.component, own.numGroups - own.groups.size());
  // What has been read may be written later, whenever that is.
  if (!isRead)
    clocks.learn(warp, own.written,
                 own.numGroups - std::min(own.numGroups, mostPending));
}

/// A thread may not exit while engines read shared memory for it.
void EmulatedCluster::checkExit(unsigned thread) {
  auto own = tensorStores.find(thread);
  if (own != tensorStores.end() &&
      (!own->second.open.empty() || !own->second.groups.empty()))
    return fail(threadName(thread) +
                " exits before it has waited for its stores of tensors, which "
                "read shared memory");
  const ThreadCopies &ahead = copies[thread];
  llvm::ArrayRef<Copy> last = ahead.open;
  for (const std::vector<Copy> &group : ahead.groups)
    if (last.empty())
      last = group;
  if (!last.empty())
    return fail(
        threadName(thread) +
        " exits before it has waited for its copy to shared memory in " +
        siteName(last.front().site));
  if (warpgroups[warpgroupOf(thread)].pending.empty())
    return;
  fail(threadName(thread) +
       " exits before its warpgroup has waited for its product in " +
       siteName(warpgroups[warpgroupOf(thread)].pending.front().site));
}

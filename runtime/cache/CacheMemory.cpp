//===- CacheMemory.cpp - The part of a cache in memory --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/cache/CacheMemory.h"

using namespace bastile::runtime;

CacheMemory::EntryPointer CacheMemory::find(const std::string &hash) {
  std::lock_guard<std::mutex> guard(mutex);
  return findLocked(hash);
}

CacheMemory::EntryPointer CacheMemory::findLocked(const std::string &hash) {
  auto found = entries.find(hash);
  return found == entries.end() ? nullptr : found->second.entry.lock();
}

Expected<CacheMemory::EntryPointer>
CacheMemory::findOrClaim(const std::string &hash, Claim &claim) {
  std::unique_lock<std::mutex> guard(mutex);
  for (;;) {
    if (EntryPointer entry = findLocked(hash))
      return entry;
    auto other = claims.find(hash);
    if (other == claims.end())
      break;
    if (other->second == std::this_thread::get_id())
      return Error("creating the entry " + hash + " of the cache asks for it");
    claimReleased->wait(guard);
  }
  // If there is no memory for one of these, nobody has the claim.
  claim.hash = hash;
  claims.emplace(hash, std::this_thread::get_id());
  claim.memory = this;
  claim.generation = generation;
  return EntryPointer();
}

CacheMemory::Claim::~Claim() {
  if (!memory)
    return;
  std::lock_guard<std::mutex> guard(memory->mutex);
  if (generation != memory->generation)
    return;
  memory->claims.erase(hash);
  memory->claimReleased->notify_all();
}

void CacheMemory::remember(const std::string &hash, const EntryPointer &entry,
                           bool onDisk) {
  std::lock_guard<std::mutex> guard(mutex);
  entries[hash] = {entry, onDisk ? nullptr : entry};
}

void CacheMemory::clear() {
  std::lock_guard<std::mutex> guard(mutex);
  entries.clear();
}

void CacheMemory::resetInChild() {
  claims.clear();
  ++generation;
  // The old condition variable may count waiting threads that the child does
  // not have, and destroying it would wait for them.
  (void)claimReleased.release();
  claimReleased = std::make_unique<std::condition_variable>();
}

//===- DiskCache.cpp - Compiled kernels, kept across runs -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/DiskCache.h"
#include "runtime/cache/DiskCacheState.h"

using namespace bastile::runtime;

DiskCache::DiskCache(CacheOptions options)
    : state(std::make_unique<State>(std::move(options))) {}

DiskCache::~DiskCache() = default;

const CacheOptions &DiskCache::options() const { return state->options; }

DiskCache::EntryPointer DiskCache::find(const CacheKey &key) {
  if (EntryPointer entry = state->memory.find(key.hash()))
    return entry;
  return state->read(key);
}

DiskCache::EntryPointer DiskCache::store(const CacheKey &key,
                                         CacheEntry entry) {
  return state->keep(key, std::move(entry));
}

Expected<DiskCache::EntryPointer>
DiskCache::getOrCreate(const CacheKey &key, const Creator &create) {
  CacheMemory::Claim claim;
  Expected<EntryPointer> known = state->memory.findOrClaim(key.hash(), claim);
  if (!known || *known)
    return known;
  if (EntryPointer entry = state->read(key))
    return entry;
  CacheLock lock;
  if (EntryPointer entry = state->acquire(key, lock))
    return entry;
  Expected<CacheEntry> created = create();
  if (!created)
    return created.takeError();
  return state->keep(key, std::move(*created));
}

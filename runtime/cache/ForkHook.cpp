//===- ForkHook.cpp - State that survives fork() --------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/cache/ForkHook.h"

#include <algorithm>
#include <pthread.h>
#include <vector>

using namespace bastile::runtime;

namespace {

/// All hooks of the process.
struct Registry {
  Registry();

  std::mutex mutex;
  std::vector<ForkHook *> hooks;
};

} // namespace

/// The registry is never destroyed: threads may fork while the process exits.
static Registry &getRegistry() {
  static Registry &registry = *new Registry;
  return registry;
}

static void beforeFork() {
  Registry &registry = getRegistry();
  registry.mutex.lock();
  for (ForkHook *hook : registry.hooks)
    hook->mutex.lock();
}

static void unlockAll() {
  Registry &registry = getRegistry();
  for (ForkHook *hook : registry.hooks)
    hook->mutex.unlock();
  registry.mutex.unlock();
}

static void inChild() {
  for (ForkHook *hook : getRegistry().hooks)
    hook->resetInChild();
  unlockAll();
}

Registry::Registry() { pthread_atfork(beforeFork, unlockAll, inChild); }

ForkHook::ForkHook(std::mutex &mutex, std::function<void()> resetInChild)
    : mutex(mutex), resetInChild(std::move(resetInChild)) {
  Registry &registry = getRegistry();
  std::lock_guard<std::mutex> guard(registry.mutex);
  registry.hooks.push_back(this);
}

ForkHook::~ForkHook() {
  Registry &registry = getRegistry();
  std::lock_guard<std::mutex> guard(registry.mutex);
  registry.hooks.erase(
      std::find(registry.hooks.begin(), registry.hooks.end(), this));
}

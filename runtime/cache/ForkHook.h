//===- ForkHook.h - State that survives fork() ------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A child of fork() has one thread, and everything else as its parent had it at
// that moment: mutexes held by threads that do not exist in it, waits that no
// thread will end, files that it shares with its parent.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_CACHE_FORKHOOK_H
#define BASTILE_RUNTIME_CACHE_FORKHOOK_H

#include <functional>
#include <mutex>

namespace bastile::runtime {

/// While a hook lives, fork() waits for `mutex`, and calls `resetInChild` in
/// the child, with `mutex` held. No two such mutexes may be held at once. A
/// hook has to be the last member of its class, so that the other members exist
/// when it is called.
class ForkHook {
public:
  ForkHook(std::mutex &mutex, std::function<void()> resetInChild);
  ~ForkHook();
  ForkHook(const ForkHook &) = delete;
  ForkHook &operator=(const ForkHook &) = delete;

  std::mutex &mutex;
  std::function<void()> resetInChild;
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_CACHE_FORKHOOK_H

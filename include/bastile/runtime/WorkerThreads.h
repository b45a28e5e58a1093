//===- WorkerThreads.h - Threads that may not be had ------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_WORKERTHREADS_H
#define BASTILE_RUNTIME_WORKERTHREADS_H

#include <cstddef>
#include <memory>
#include <new>
#include <pthread.h>

namespace bastile::runtime {

/// Threads that run one function, beside the caller's thread, and are joined at
/// the latest when this object is destroyed. A process may have no room for
/// another thread, by a limit or for lack of memory. `std::thread` and
/// `std::async` throw then; this class starts fewer threads, so each piece of
/// work is for whichever thread takes it, the caller's included. It works
/// without exceptions, and lies in a header so that the compiler needs nothing
/// of the runtime for it.
template <typename Work>
class WorkerThreads {
public:
  /// Starts up to `wanted` threads that call `work` once each. `work` must
  /// outlive this object, and must not throw.
  WorkerThreads(size_t wanted, Work &work)
      : threads(wanted ? new (std::nothrow) pthread_t[wanted] : nullptr) {
    while (threads && count != wanted &&
           pthread_create(&threads[count], nullptr, run, &work) == 0)
      ++count;
  }
  ~WorkerThreads() { join(); }
  WorkerThreads(const WorkerThreads &) = delete;
  WorkerThreads &operator=(const WorkerThreads &) = delete;

  /// How many threads were started and not joined yet.
  size_t size() const { return count; }

  /// Waits until all threads have ended.
  void join() {
    while (count != 0)
      pthread_join(threads[--count], nullptr);
  }

private:
  static void *run(void *work) {
    (*static_cast<Work *>(work))();
    return nullptr;
  }

  std::unique_ptr<pthread_t[]> threads;
  size_t count = 0;
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_WORKERTHREADS_H

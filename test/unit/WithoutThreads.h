//===- WithoutThreads.h - A process that can have no more threads ---------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TEST_UNIT_WITHOUTTHREADS_H
#define BASTILE_TEST_UNIT_WITHOUTTHREADS_H

#include <cstddef>
#include <pthread.h>

namespace bastile {

/// While it lives, no thread can be made: the stack of a thread would be larger
/// than any address space. (A limit on the number of threads would not hold for
/// the superuser.)
class WithoutThreads {
public:
  WithoutThreads() {
    pthread_getattr_default_np(&before);
    pthread_attr_t attributes = before;
    pthread_attr_setstacksize(&attributes, size_t(1) << 46);
    pthread_setattr_default_np(&attributes);
  }
  ~WithoutThreads() { pthread_setattr_default_np(&before); }
  WithoutThreads(const WithoutThreads &) = delete;
  WithoutThreads &operator=(const WithoutThreads &) = delete;

private:
  pthread_attr_t before;
};

} // namespace bastile

#endif // BASTILE_TEST_UNIT_WITHOUTTHREADS_H

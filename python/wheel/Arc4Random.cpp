//===- Arc4Random.cpp - Random numbers for LLVM where glibc has none ------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// LLVM names its temporary files by arc4random where it was built with glibc
// 2.36. This one serves the module on older systems and is seen by it alone.
//
//===----------------------------------------------------------------------===//

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <sys/random.h>

extern "C" uint32_t arc4random() noexcept {
  uint32_t value;
  // So few bytes come whole; a signal may interrupt the wait for the first.
  while (getrandom(&value, sizeof(value), 0) != sizeof(value))
    if (errno != EINTR)
      std::abort();
  return value;
}

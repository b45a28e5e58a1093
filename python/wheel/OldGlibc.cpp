//===- OldGlibc.cpp - What the module calls, on systems with glibc 2.28 ---===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// LLVM's and libstdc++'s archives are built against the glibc of the system
// that has them, and a linker binds each function to the newest version that
// this glibc has. For a wheel that runs with glibc 2.28, this file defines what
// would need a newer one: functions that later glibcs export under a new
// version, by a jump to the oldest; and functions that glibc 2.28 does not
// export at all. They are seen by the extension module alone. The wheel's test
// says when one is missing here.
//
//===----------------------------------------------------------------------===//

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <malloc.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#define OLDEST_SETNAME "GLIBC_2.12"
#define JUMP "jmp "
#define PLT "@PLT"
#elif defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#define OLDEST_SETNAME "GLIBC_2.17"
#define JUMP "b "
#define PLT ""
#else
#error "the versions of glibc's functions are not known for this processor"
#endif

// A jump leaves the caller as it is, which dlopen and dlsym ask for.
#define BIND(NAME, VERSION)                                                    \
  asm(".symver old_" #NAME "," #NAME "@" VERSION "\n"                          \
      ".text\n"                                                                \
      ".globl " #NAME "\n"                                                     \
      ".hidden " #NAME "\n"                                                    \
      ".type " #NAME ",%function\n" #NAME ":\n"                                \
      ".cfi_startproc\n" JUMP "old_" #NAME PLT "\n"                            \
      ".cfi_endproc\n"                                                         \
      ".size " #NAME ",.-" #NAME "\n");

// 2.29: without the errors of SVID.
BIND(exp, OLDEST)
BIND(exp2, OLDEST)
BIND(log, OLDEST)
BIND(log2, OLDEST)
BIND(pow, OLDEST)

// 2.32 and 2.34: moved from libpthread and libdl into libc.
BIND(pthread_sigmask, OLDEST)
BIND(dladdr, OLDEST)
BIND(dlclose, OLDEST)
BIND(dlerror, OLDEST)
BIND(dlopen, OLDEST)
BIND(dlsym, OLDEST)
BIND(pthread_attr_setstacksize, OLDEST)
BIND(pthread_create, OLDEST)
BIND(pthread_detach, OLDEST)
BIND(pthread_join, OLDEST)
BIND(pthread_once, OLDEST)
BIND(pthread_rwlock_rdlock, OLDEST)
BIND(pthread_rwlock_unlock, OLDEST)
BIND(pthread_rwlock_wrlock, OLDEST)
BIND(pthread_setname_np, OLDEST_SETNAME)
BIND(__pthread_key_create, OLDEST)

extern "C" {

// 2.32: libstdc++ counts references without atomic operations where this is
// true.
char __libc_single_threaded = 0;

// 2.33: inline functions in older headers.
int stat(const char *path, struct stat *result) noexcept {
  return syscall(SYS_newfstatat, AT_FDCWD, path, result, 0);
}

int lstat(const char *path, struct stat *result) noexcept {
  return syscall(SYS_newfstatat, AT_FDCWD, path, result, AT_SYMLINK_NOFOLLOW);
}

int fstat(int file, struct stat *result) noexcept {
  return syscall(SYS_fstat, file, result);
}

int fstatat(int folder, const char *path, struct stat *result,
            int flags) noexcept {
  return syscall(SYS_newfstatat, folder, path, result, flags);
}

int stat64(const char *path, struct stat64 *result) noexcept {
  return syscall(SYS_newfstatat, AT_FDCWD, path, result, 0);
}

int lstat64(const char *path, struct stat64 *result) noexcept {
  return syscall(SYS_newfstatat, AT_FDCWD, path, result, AT_SYMLINK_NOFOLLOW);
}

int fstat64(int file, struct stat64 *result) noexcept {
  return syscall(SYS_fstat, file, result);
}

int mknod(const char *path, mode_t mode, dev_t device) noexcept {
  return syscall(SYS_mknodat, AT_FDCWD, path, mode,
                 static_cast<unsigned>(device));
}

// 2.33: LLVM asks how much memory is in use. More than 2 GiB do not fit
// mallinfo.
struct mallinfo2 mallinfo2() noexcept {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  struct mallinfo old = mallinfo();
#pragma GCC diagnostic pop
  struct mallinfo2 result = {};
  result.arena = static_cast<unsigned>(old.arena);
  result.hblkhd = static_cast<unsigned>(old.hblkhd);
  result.uordblks = static_cast<unsigned>(old.uordblks);
  result.fordblks = static_cast<unsigned>(old.fordblks);
  return result;
}

// 2.36: LLVM names its temporary files by it.
uint32_t arc4random() noexcept {
  uint32_t value;
  // So few bytes come whole; a signal may interrupt the wait for the first.
  while (getrandom(&value, sizeof(value), 0) != sizeof(value))
    if (errno != EINTR)
      std::abort();
  return value;
}

} // extern "C"

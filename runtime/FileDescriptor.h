//===- FileDescriptor.h - Owners of open files ------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_FILEDESCRIPTOR_H
#define BASTILE_RUNTIME_FILEDESCRIPTOR_H

#include <unistd.h>
#include <utility>

namespace bastile::runtime {

/// An open file, closed with its owner.
class FileDescriptor {
public:
  /// Owns the open file `number`; none if it is negative.
  explicit FileDescriptor(int number = -1) : number(number) {}
  FileDescriptor(FileDescriptor &&other) noexcept
      : number(std::exchange(other.number, -1)) {}
  FileDescriptor &operator=(FileDescriptor &&other) noexcept {
    std::swap(number, other.number);
    return *this;
  }
  ~FileDescriptor() { close(); }

  explicit operator bool() const { return number >= 0; }
  int get() const { return number; }

  /// Gives up the number, which the caller has to close.
  int release() { return std::exchange(number, -1); }

  /// Closes the file. False, with `errno`, if the file system reports only now
  /// that written data is lost.
  bool close() {
    int closed = std::exchange(number, -1);
    return closed < 0 || ::close(closed) == 0;
  }

private:
  int number;
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_FILEDESCRIPTOR_H

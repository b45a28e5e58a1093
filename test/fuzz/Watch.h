//===- Watch.h - The behaviour of an input ----------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TEST_FUZZ_WATCH_H
#define BASTILE_TEST_FUZZ_WATCH_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mlir {
class Operation;
} // namespace mlir

namespace bastile::fuzz {

/// Ends the process, so that libFuzzer keeps the input, if the scope takes more
/// than 30 s of processor time: six thousand characters can be eighty kernels
/// on tensor cores, which take 10 s. libFuzzer's own limit is of the time of
/// day, in which a process on a busy machine may do nothing.
class TimeLimit {
public:
  TimeLimit();
  ~TimeLimit();
};

/// Reads from the arguments where libFuzzer writes what it finds.
void setFindings(llvm::ArrayRef<const char *> arguments);

/// Writes `text` to the findings if a signal ends the process within the scope:
/// libFuzzer writes the inputs that it runs, but not one that is still being
/// made.
class Attempt {
public:
  explicit Attempt(llvm::StringRef text);
  ~Attempt();
};

/// Ends the process if an op in `op` reads a value that no other op in it
/// defines any more. Only a build of MLIR with assertions says so where the
/// value's op is erased; in others, memory is overwritten later.
void checkUses(mlir::Operation *op);

/// Tells libFuzzer which messages an input has led to. libFuzzer takes them for
/// coverage, so that it goes on from an input that leads to new ones. In a
/// build that is not instrumented it knows nothing else.
void noteMessages(llvm::StringRef messages);
/// Tells libFuzzer of each op in `op`: its name, and the ops that give its
/// operands.
void noteOps(mlir::Operation *op);

} // namespace bastile::fuzz

#endif // BASTILE_TEST_FUZZ_WATCH_H

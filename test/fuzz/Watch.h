//===- Watch.h - What is known of an input's run ----------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TEST_FUZZ_WATCH_H
#define BASTILE_TEST_FUZZ_WATCH_H

#include "llvm/ADT/StringRef.h"

namespace mlir {
class Operation;
} // namespace mlir

namespace bastile::fuzz {

/// Ends the process, so that libFuzzer keeps the input, if the scope takes more
/// than 10 s of processor time. libFuzzer's own limit is of the time of day, in
/// which a busy machine may do nothing.
class TimeLimit {
public:
  TimeLimit();
  ~TimeLimit();
};

/// Tells libFuzzer of what an input has led to, which it takes for coverage: an
/// input that leads to something new is one to go on from. In a build that is
/// not instrumented it knows nothing else.
void noteMessages(llvm::StringRef messages);
/// Likewise, of each op in `op`: its name, and which ops its operands are.
void noteOps(mlir::Operation *op);

} // namespace bastile::fuzz

#endif // BASTILE_TEST_FUZZ_WATCH_H

//===- Watch.cpp - The behaviour of an input ------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Watch.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringExtras.h"

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <sys/time.h>
#include <unistd.h>

using namespace bastile;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

static void endProcess(int) {
  constexpr llvm::StringLiteral message =
      "an input takes more than 10 s of processor time\n";
  (void)!write(STDERR_FILENO, message.data(), message.size());
  std::abort();
}

static void setTimer(time_t seconds) {
  itimerval timer = {};
  timer.it_value.tv_sec = seconds;
  setitimer(ITIMER_PROF, &timer, nullptr);
}

fuzz::TimeLimit::TimeLimit() {
  std::signal(SIGPROF, endProcess);
  setTimer(10);
}

fuzz::TimeLimit::~TimeLimit() { setTimer(0); }

//===----------------------------------------------------------------------===//
// The behaviour of an input
//===----------------------------------------------------------------------===//

// libFuzzer finds the counters by this name, and clears them before each input.
__attribute__((
    section("__libfuzzer_extra_counters"))) static uint8_t counters[1 << 16];

template <typename... Ts>
static void note(const Ts &...what) {
  uint8_t &counter = counters[llvm::hash_combine(what...) % sizeof(counters)];
  if (counter != UINT8_MAX)
    ++counter;
}

void fuzz::noteMessages(llvm::StringRef messages) {
  // Only the words of a message count; sizes and names are the input's.
  for (llvm::StringRef line : llvm::split(messages, '\n')) {
    if (!line.contains("error: "))
      continue;
    llvm::hash_code hash = 0;
    for (llvm::StringRef word : llvm::split(line.split("error: ").second, ' '))
      if (llvm::all_of(word, llvm::isAlpha))
        hash = llvm::hash_combine(hash, word);
    note(hash);
  }
}

void fuzz::noteOps(Operation *root) {
  root->walk([](Operation *op) {
    llvm::StringRef name = op->getName().getStringRef();
    note(name);
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        note(name, producer->getName().getStringRef());
  });
}

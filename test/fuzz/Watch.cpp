//===- Watch.cpp - The behaviour of an input ------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Watch.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/time.h>
#include <unistd.h>

using namespace bastile;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

static void endProcess(int) {
  constexpr llvm::StringLiteral message =
      "an input takes more than 30 s of processor time\n";
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
  setTimer(30);
}

fuzz::TimeLimit::~TimeLimit() { setTimer(0); }

//===----------------------------------------------------------------------===//
// Inputs that are being made
//===----------------------------------------------------------------------===//

static constexpr int deadlySignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL,
                                        SIGABRT};

static std::string findings;
/// The input that is being made, and its file.
static llvm::StringRef attempt;
static std::string attemptFile;
/// What the sanitizers or libFuzzer do at each signal.
static struct sigaction usualActions[std::size(deadlySignals)];

static void restoreActions() {
  for (auto [signal, action] : llvm::zip_equal(deadlySignals, usualActions))
    sigaction(signal, &action, nullptr);
}

static void writeAttempt(int signal) {
  const int file =
      open(attemptFile.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  (void)!write(file, attempt.data(), attempt.size());
  close(file);
  restoreActions();
  // It arrives again once this handler is over.
  raise(signal);
}

void fuzz::setFindings(llvm::ArrayRef<const char *> arguments) {
  for (llvm::StringRef argument : arguments)
    if (argument.consume_front("-artifact_prefix="))
      findings = argument.str();
}

fuzz::Attempt::Attempt(llvm::StringRef text) {
  attempt = text;
  attemptFile = findings + "crash-" + llvm::utohexstr(llvm::xxh3_64bits(text));
  struct sigaction action = {};
  action.sa_handler = writeAttempt;
  for (auto [signal, usual] : llvm::zip_equal(deadlySignals, usualActions))
    sigaction(signal, &action, &usual);
}

fuzz::Attempt::~Attempt() { restoreActions(); }

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

void fuzz::checkUses(Operation *root) {
  llvm::DenseSet<Value> values;
  root->walk([&](Operation *op) {
    values.insert_range(op->getResults());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        values.insert_range(block.getArguments());
  });
  root->walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (!values.contains(operand)) {
        llvm::errs() << "'" << op->getName()
                     << "' reads a value of an op that was erased\n";
        std::abort();
      }
  });
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

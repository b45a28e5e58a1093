//===- Jit.h - Running host code in this process ----------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_JIT_H
#define BASTILE_JIT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>

namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace bastile {

/// A function that the caller gives to jitted code under a name of its own.
struct JitSymbol {
  llvm::StringRef name;
  void *address;
};

/// Machine code loaded into this process; it is unloaded with the object.
class Jit {
public:
  /// Optimizes and compiles `module`, whose contents are consumed. Functions
  /// that it calls are looked up in `symbols` first and in this process second;
  /// the error lists the names found in neither. `level` is that of `optimize`;
  /// below 2, machine code is generated in little time as well.
  static llvm::Expected<std::unique_ptr<Jit>>
  create(llvm::Module &module, llvm::ArrayRef<JitSymbol> symbols = {},
         unsigned level = 3);

  /// Loads an object that `emitObject` made on this kind of processor.
  static llvm::Expected<std::unique_ptr<Jit>>
  load(std::unique_ptr<llvm::MemoryBuffer> object,
       llvm::ArrayRef<JitSymbol> symbols = {});
  ~Jit();

  /// The address of a function or a global of the module; an error if there is
  /// none of this name.
  llvm::Expected<void *> lookup(llvm::StringRef name) const;

private:
  explicit Jit(std::unique_ptr<llvm::orc::LLJIT> engine);

  std::unique_ptr<llvm::orc::LLJIT> engine;
};

} // namespace bastile

#endif // BASTILE_JIT_H

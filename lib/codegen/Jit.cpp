//===- Jit.cpp - Running host code in this process ------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/Jit.h"
#include "bastile/CodeGen.h"
#include "bastile/Target.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"

using namespace bastile;
using llvm::StringRef;
namespace orc = llvm::orc;

/// LLVM calls this conversion where the host has no instruction for it. libgcc
/// has it from version 13 on only; the result comes in the low half of the
/// register that would return a float.
static float truncateToBFloat(float value) {
  auto bits = llvm::bit_cast<uint32_t>(value);
  bool isNaN = value != value;
  uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
  return llvm::bit_cast<float>(isNaN ? (bits >> 16) | 0x40 : rounded >> 16);
}

static void *findInProcess(StringRef name) {
  if (name == "__truncsfbf2")
    return reinterpret_cast<void *>(&truncateToBFloat);
  return llvm::sys::DynamicLibrary::SearchForAddressOfSymbol(name.str());
}

/// Finds the symbols that the object refers to. The module does not list all of
/// them, since instruction selection adds calls of its own.
static llvm::Expected<orc::SymbolMap>
resolve(llvm::MemoryBufferRef buffer, orc::LLJIT &engine,
        llvm::ArrayRef<JitSymbol> symbols) {
  auto object = llvm::object::ObjectFile::createObjectFile(buffer);
  if (!object)
    return object.takeError();

  // Without a name this opens the process itself, once.
  llvm::sys::DynamicLibrary::LoadLibraryPermanently(nullptr);
  orc::SymbolMap found;
  llvm::SmallVector<std::string> missing;
  for (const llvm::object::SymbolRef &symbol : (*object)->symbols()) {
    llvm::Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    if (!(*flags & llvm::object::SymbolRef::SF_Undefined))
      continue;
    llvm::Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    // The linker makes the offset table itself; ELF's first symbol is empty.
    if (name->empty() || *name == "_GLOBAL_OFFSET_TABLE_")
      continue;

    const auto *given = llvm::find_if(
        symbols, [&](const JitSymbol &one) { return one.name == *name; });
    void *address =
        given != symbols.end() ? given->address : findInProcess(*name);
    if (!address) {
      missing.push_back(("'" + *name + "'").str());
      continue;
    }
    found[engine.mangleAndIntern(*name)] = {orc::ExecutorAddr::fromPtr(address),
                                            llvm::JITSymbolFlags::Exported |
                                                llvm::JITSymbolFlags::Callable};
  }
  if (!missing.empty())
    return llvm::createStringError("host code calls what this process does "
                                   "not define: " +
                                   llvm::join(missing, ", "));
  return found;
}

llvm::Expected<std::unique_ptr<Jit>>
Jit::create(llvm::Module &module, llvm::ArrayRef<JitSymbol> symbols,
            unsigned level) {
  auto machine = createTargetMachine(Target::host());
  if (!machine)
    return machine.takeError();
  // Selecting instructions and registers well takes as long as all else.
  if (level < 2)
    (*machine)->setOptLevel(llvm::CodeGenOptLevel::None);
  optimize(module, **machine, level);
  auto object = emitObject(module, **machine);
  if (!object)
    return object.takeError();
  return load(std::make_unique<llvm::SmallVectorMemoryBuffer>(
                  std::move(*object), /*RequiresNullTerminator=*/false),
              symbols);
}

llvm::Expected<std::unique_ptr<Jit>>
Jit::load(std::unique_ptr<llvm::MemoryBuffer> object,
          llvm::ArrayRef<JitSymbol> symbols) {
  auto machine = createTargetMachine(Target::host());
  if (!machine)
    return machine.takeError();
  orc::JITTargetMachineBuilder builder((*machine)->getTargetTriple());
  auto engine = orc::LLJITBuilder()
                    .setJITTargetMachineBuilder(std::move(builder))
                    .setLinkProcessSymbolsByDefault(false)
                    // Kernels have no constructors to run.
                    .setPlatformSetUp(orc::setUpInactivePlatform)
                    .create();
  if (!engine)
    return engine.takeError();

  auto found = resolve(*object, **engine, symbols);
  if (!found)
    return found.takeError();
  if (!found->empty())
    if (llvm::Error error = (*engine)->getMainJITDylib().define(
            orc::absoluteSymbols(std::move(*found))))
      return error;
  if (llvm::Error error = (*engine)->addObjectFile(std::move(object)))
    return error;
  return std::unique_ptr<Jit>(new Jit(std::move(*engine)));
}

Jit::Jit(std::unique_ptr<orc::LLJIT> engine) : engine(std::move(engine)) {}

Jit::~Jit() = default;

llvm::Expected<void *> Jit::lookup(StringRef name) const {
  llvm::Expected<orc::ExecutorAddr> address = engine->lookup(name);
  if (!address)
    return address.takeError();
  return address->toPtr<void *>();
}

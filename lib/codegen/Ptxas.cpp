//===- Ptxas.cpp - Assembling PTX to a cubin ------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/Ptxas.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>

using namespace bastile;
using llvm::createStringError;
using llvm::StringRef;

static llvm::Expected<std::string> findPtxas() {
  if (std::optional<std::string> path =
          llvm::sys::Process::GetEnv("BASTILE_PTXAS")) {
    if (llvm::sys::fs::can_execute(*path))
      return *path;
    return createStringError("BASTILE_PTXAS names '" + *path +
                             "', which is not an executable file");
  }
  llvm::ErrorOr<std::string> path = llvm::sys::findProgramByName("ptxas");
  if (path)
    return *path;
  return createStringError("cannot find ptxas: put it on PATH, or name it in "
                           "BASTILE_PTXAS");
}

/// Creates an empty temporary file that `remover` deletes.
static llvm::Error createTemporary(StringRef suffix,
                                   llvm::SmallString<128> &path,
                                   llvm::FileRemover &remover) {
  if (std::error_code code =
          llvm::sys::fs::createTemporaryFile("bastile", suffix, path))
    return llvm::createFileError("temporary file", code);
  remover.setFile(path);
  return llvm::Error::success();
}

static std::string readText(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

/// Reads the number that stands before `unit` in a line such as
/// "Used 40 registers, used 1 barriers, 128 bytes smem"; 0 if there is none.
static unsigned numberBefore(StringRef line, StringRef unit) {
  llvm::SmallVector<StringRef> parts;
  line.split(parts, ',');
  for (StringRef part : parts) {
    part = part.rtrim();
    if (!part.consume_back(unit))
      continue;
    unsigned number = 0;
    part.rtrim().rsplit(' ').second.getAsInteger(10, number);
    return number;
  }
  return 0;
}

static std::vector<KernelResources> parseReport(StringRef report) {
  std::vector<KernelResources> kernels;
  llvm::SmallVector<StringRef> lines;
  report.split(lines, '\n');
  for (StringRef line : lines) {
    if (line.contains("Compiling entry function '")) {
      kernels.emplace_back();
      kernels.back().entry = line.split('\'').second.split('\'').first.str();
    } else if (!kernels.empty() && line.contains("bytes stack frame")) {
      kernels.back().stackBytes = numberBefore(line, "bytes stack frame");
      kernels.back().spillStoreBytes = numberBefore(line, "bytes spill stores");
      kernels.back().spillLoadBytes = numberBefore(line, "bytes spill loads");
    } else if (!kernels.empty() && line.contains(" registers")) {
      kernels.back().registers = numberBefore(line, "registers");
      kernels.back().barriers = numberBefore(line, "barriers");
      kernels.back().staticSharedBytes = numberBefore(line, "bytes smem");
    }
  }
  return kernels;
}

llvm::Expected<Cubin> bastile::assembleCubin(StringRef ptx, StringRef chip) {
  llvm::Expected<std::string> ptxas = findPtxas();
  if (!ptxas)
    return ptxas.takeError();

  llvm::SmallString<128> input, output, log;
  llvm::FileRemover removeInput, removeOutput, removeLog;
  if (llvm::Error error = createTemporary("ptx", input, removeInput))
    return error;
  if (llvm::Error error = createTemporary("cubin", output, removeOutput))
    return error;
  if (llvm::Error error = createTemporary("log", log, removeLog))
    return error;

  std::error_code code;
  llvm::raw_fd_ostream os(input, code);
  if (!code) {
    os << ptx;
    os.close();
    code = os.error();
    os.clear_error();
  }
  if (code)
    return llvm::createFileError(input, code);

  std::string architecture = ("-arch=" + chip).str();
  StringRef arguments[] = {*ptxas, "-v", architecture, input, "-o", output};
  std::optional<StringRef> redirects[] = {StringRef(), log.str(), log.str()};
  std::string message;
  int status = llvm::sys::ExecuteAndWait(
      *ptxas, arguments, /*Env=*/std::nullopt, redirects,
      /*SecondsToWait=*/0, /*MemoryLimit=*/0, &message);

  Cubin cubin;
  cubin.report = readText(log);
  if (status != 0)
    return createStringError(
        "ptxas failed on the PTX for " + chip + ":\n" +
        (message.empty() ? cubin.report : message + "\n" + cubin.report));

  auto bytes = llvm::MemoryBuffer::getFile(output, /*IsText=*/false,
                                           /*RequiresNullTerminator=*/false);
  if (!bytes)
    return llvm::createFileError(output, bytes.getError());
  cubin.bytes.assign((*bytes)->getBufferStart(), (*bytes)->getBufferEnd());
  cubin.kernels = parseReport(cubin.report);
  return cubin;
}

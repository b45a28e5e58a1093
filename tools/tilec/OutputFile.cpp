//===- OutputFile.cpp - A file that is written as a whole -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "OutputFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/raw_ostream.h"

using namespace bastile;

/// Whether nothing is at `path`, or a file whose place another one may take.
static bool isReplaced(const std::string &path) {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path, status))
    return true;
  return llvm::sys::fs::is_regular_file(status);
}

OutputFile::~OutputFile() {
  if (file)
    llvm::consumeError(file->discard());
}

static constexpr char kOpen[] = "open output file", kWrite[] = "write";

llvm::Error OutputFile::makeError(const char *what,
                                  std::error_code code) const {
  return llvm::createStringError(code, "cannot " + std::string(what) + " '" +
                                           path + "': " + code.message());
}

llvm::Error OutputFile::writeTo(int descriptor, llvm::StringRef content,
                                bool closes) const {
  llvm::raw_fd_ostream stream(descriptor, closes);
  stream << content;
  stream.flush();
  const std::error_code code = stream.error();
  stream.clear_error();
  return code ? makeError(kWrite, code) : llvm::Error::success();
}

llvm::Error OutputFile::write(llvm::StringRef content) {
  if (path == "-")
    return writeTo(/*descriptor=*/1, content, /*closes=*/false);
  if (!isReplaced(path)) {
    int descriptor = 0;
    if (std::error_code code = llvm::sys::fs::openFileForWrite(
            path, descriptor, llvm::sys::fs::CD_OpenExisting))
      return makeError(kOpen, code);
    return writeTo(descriptor, content, /*closes=*/true);
  }
  // Of a symbolic link, what it leads to is replaced.
  if (llvm::SmallString<128> real; !llvm::sys::fs::real_path(path, real))
    path = real.str();
  auto created = llvm::sys::fs::TempFile::create(
      path + ".%%%%%%", llvm::sys::fs::all_read | llvm::sys::fs::all_write);
  if (!created)
    return makeError(kOpen, llvm::errorToErrorCode(created.takeError()));
  file.emplace(std::move(*created));
  return writeTo(file->FD, content, /*closes=*/false);
}

llvm::Error OutputFile::keep() {
  if (!file)
    return llvm::Error::success();
  llvm::Error error = file->keep(path);
  file.reset();
  if (error)
    return makeError(kWrite, llvm::errorToErrorCode(std::move(error)));
  return llvm::Error::success();
}

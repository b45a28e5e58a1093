//===- OutputFile.h - A file that is written as a whole ---------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TOOLS_TILEC_OUTPUTFILE_H
#define BASTILE_TOOLS_TILEC_OUTPUTFILE_H

#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include <optional>

namespace bastile {

/// A file that takes the place of what was at its path once all of it is
/// written. The standard output ("-"), a pipe or a device is written at once.
class OutputFile {
public:
  explicit OutputFile(std::string path) : path(std::move(path)) {}
  OutputFile(OutputFile &&) = default;
  /// Leaves what was at the path, unless the file was kept.
  ~OutputFile();

  /// Writes `content`, all that the file is to have.
  llvm::Error write(llvm::StringRef content);
  /// Puts it at its path.
  llvm::Error keep();

private:
  llvm::Error makeError(const char *what, std::error_code code) const;
  llvm::Error writeTo(int descriptor, llvm::StringRef content,
                      bool closes) const;

  std::string path;
  /// What is written beside the path; none if that is written itself.
  std::optional<llvm::sys::fs::TempFile> file;
};

} // namespace bastile

#endif // BASTILE_TOOLS_TILEC_OUTPUTFILE_H

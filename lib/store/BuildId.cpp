//===- BuildId.cpp - The identity of this build of the compiler -----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/store/BuildId.h"
#include "bastile/Version.h"
#include "llvm/ADT/StringExtras.h"
#include <link.h>

using namespace bastile;

namespace {
struct Search {
  /// An address in the object that is searched for.
  uintptr_t address;
  std::string result;
};
} // namespace

static bool holds(const dl_phdr_info &object, uintptr_t address) {
  for (int i = 0; i != object.dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = object.dlpi_phdr[i];
    uintptr_t start = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= start &&
        address - start < segment.p_memsz)
      return true;
  }
  return false;
}

/// Finds the build id among the notes of a segment.
static std::string readNote(const char *data, size_t size) {
  auto align = [](size_t bytes) { return (bytes + 3) & ~size_t(3); };
  for (size_t offset = 0; offset + sizeof(ElfW(Nhdr)) <= size;) {
    const auto &note = *reinterpret_cast<const ElfW(Nhdr) *>(data + offset);
    const char *name = data + offset + sizeof(note);
    const char *contents = name + align(note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID &&
        llvm::StringRef(name, note.n_namesz) == llvm::StringRef("GNU", 4))
      return llvm::toHex(llvm::StringRef(contents, note.n_descsz),
                         /*LowerCase=*/true);
    offset += sizeof(note) + align(note.n_namesz) + align(note.n_descsz);
  }
  return "";
}

static int visit(dl_phdr_info *object, size_t, void *data) {
  auto &search = *static_cast<Search *>(data);
  if (!holds(*object, search.address))
    return 0;
  for (int i = 0; i != object->dlpi_phnum && search.result.empty(); ++i) {
    const ElfW(Phdr) &segment = object->dlpi_phdr[i];
    if (segment.p_type == PT_NOTE)
      search.result = readNote(
          reinterpret_cast<const char *>(object->dlpi_addr + segment.p_vaddr),
          segment.p_memsz);
  }
  return 1;
}

const std::string &bastile::getBuildId() {
  static const std::string id = [] {
    Search search = {reinterpret_cast<uintptr_t>(&getBuildId), ""};
    dl_iterate_phdr(visit, &search);
    // The linker is told to write a build id (cmake/BastileToolchain.cmake).
    return search.result.empty() ? BASTILE_VERSION " without a build id"
                                 : search.result;
  }();
  return id;
}
